// Package forgesetup is a forge in memory that can be set up, for tests of toryo init and of
// the pages that do the same.
package forgesetup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
)

// Forge is a Gitea in memory. Use [New].
type Forge struct {
	*dummy.Forge

	// Token is the one that is accepted; any, if it is empty.
	Token string
	// Missing are rights that the account does not have.
	Missing map[forge.Right]bool
	// Silent says that webhooks are not delivered.
	Silent bool
	// Answered is the status with which somebody has answered what Silent keeps from us; 0 if
	// nobody has, or the forge does not tell.
	Answered int
	// Unassigned says that nobody can be assigned to issues.
	Unassigned bool
	// Stuck says that a webhook which another takes the place of cannot be deleted.
	Stuck bool
	// After is called after each write, with its number and what was written; an error is the
	// answer that is lost then.
	After func(number int, what string) error

	given  string // the token of the caller
	shared *shared
}

// shared is what all that use the forge see.
type shared struct {
	mu      sync.Mutex
	written []string
	labels  map[string][]string
	hooks   map[string][]hook
	tests   int // of webhooks that were asked for
	lastID  int
}

type hook struct {
	forge.Hook

	secret string
}

// New makes a forge with a repository.
func New(self string, repositories ...string) *Forge {
	f := &Forge{
		Forge: dummy.New(task.Gitea, self), Missing: map[forge.Right]bool{},
		shared: &shared{labels: map[string][]string{}, hooks: map[string][]hook{}},
	}
	for _, name := range repositories {
		f.AddRepository(name, forge.Remote{})
		f.SetAccess(name, self, forge.WriteAccess)
	}
	return f
}

// As is the forge as the owner of a token sees it.
func (f *Forge) As(token string) *Forge {
	seen := *f
	seen.given = token
	return &seen
}

// Written lists the writes so far.
func (f *Forge) Written() []string {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	return slices.Clone(f.shared.written)
}

// HookURLs lists the addresses of the webhooks of a repository.
func (f *Forge) HookURLs(repository string) []string {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	var urls []string
	for _, one := range f.shared.hooks[repository] {
		urls = append(urls, one.URL)
	}
	return urls
}

// HookSecrets lists the secrets of the webhooks of a repository.
func (f *Forge) HookSecrets(repository string) []string {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	var secrets []string
	for _, one := range f.shared.hooks[repository] {
		secrets = append(secrets, one.secret)
	}
	return secrets
}

// write does something and counts it.
func (f *Forge) write(ctx context.Context, what string, do func(*shared) error) error {
	if err := f.authorized(ctx); err != nil {
		return err
	}
	f.shared.mu.Lock()
	if err := do(f.shared); err != nil {
		f.shared.mu.Unlock()
		return err
	}
	f.shared.written = append(f.shared.written, what)
	number := len(f.shared.written)
	f.shared.mu.Unlock()
	if f.After != nil {
		return f.After(number, what)
	}
	return nil
}

func (f *Forge) authorized(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return task.Wrap(task.Unavailable, err, "cannot ask")
	}
	if f.Token != "" && f.given != f.Token {
		return &forge.Error{Err: task.Errorf(task.Unauthorized, "the token is not valid"), Status: http.StatusUnauthorized}
	}
	return nil
}

// Self implements forge.Reader.
func (f *Forge) Self(ctx context.Context) (string, error) {
	if err := f.authorized(ctx); err != nil {
		return "", err
	}
	return f.Forge.Self(ctx)
}

// CheckRights implements forge.Setup.
func (f *Forge) CheckRights(ctx context.Context, _ string) ([]forge.RightCheck, error) {
	var all []forge.RightCheck
	for _, needed := range forge.NeededRights {
		check := forge.RightCheck{Right: needed.Right, State: forge.RightGiven, Given: "the scope " + string(needed.Right)}
		if f.Missing[needed.Right] {
			check.State, check.Found = forge.RightMissing, "403 Forbidden"
		}
		all = append(all, check)
	}
	return all, f.authorized(ctx)
}

// Labels implements forge.Setup.
func (f *Forge) Labels(ctx context.Context, repository string) ([]string, error) {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	return slices.Clone(f.shared.labels[repository]), f.authorized(ctx)
}

// CreateLabel implements forge.Setup.
func (f *Forge) CreateLabel(ctx context.Context, repository string, label forge.Label) (created bool, err error) {
	if f.Missing[forge.LabelItems] {
		return false, &forge.Error{Err: task.Errorf(task.Forbidden, "you may not create labels"), Status: http.StatusForbidden}
	}
	err = f.write(ctx, "create label "+label.Name, func(s *shared) error {
		if created = !slices.Contains(s.labels[repository], label.Name); created {
			s.labels[repository] = append(s.labels[repository], label.Name)
		}
		return nil
	})
	return created, err
}

// DeleteLabel implements forge.Setup.
func (f *Forge) DeleteLabel(ctx context.Context, repository, name string) error {
	return f.write(ctx, "delete label "+name, func(s *shared) error {
		s.labels[repository] = slices.DeleteFunc(s.labels[repository], func(other string) bool { return other == name })
		return nil
	})
}

// Hooks implements forge.Setup.
func (f *Forge) Hooks(ctx context.Context, repository string) ([]forge.Hook, error) {
	if err := f.administrates(); err != nil {
		return nil, err
	}
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	var all []forge.Hook
	for _, one := range f.shared.hooks[repository] {
		all = append(all, one.Hook)
	}
	return all, f.authorized(ctx)
}

func (f *Forge) administrates() error {
	if f.Missing[forge.ManageHooks] {
		return &forge.Error{Err: task.Errorf(task.Forbidden, "webhooks are for administrators"), Status: http.StatusForbidden}
	}
	return nil
}

// CreateHook implements forge.Setup.
func (f *Forge) CreateHook(ctx context.Context, repository string, post forge.HookPost) (made forge.Hook, err error) {
	if err := f.administrates(); err != nil {
		return made, err
	}
	err = f.write(ctx, "create webhook of "+repository, func(s *shared) error {
		s.lastID++
		made = forge.Hook{ID: strconv.Itoa(s.lastID), URL: post.URL, Events: allEvents(), Active: true}
		s.hooks[repository] = append(s.hooks[repository], hook{made, post.Secret})
		return nil
	})
	if err != nil {
		return forge.Hook{}, err
	}
	return made, nil
}

func allEvents() []string {
	names := []string{"push"}
	for _, event := range gitea.WebhookEvents {
		names = append(names, event.Name)
	}
	return names
}

// EditHook implements forge.Setup. As on Gitea, another webhook takes the place of the old one, and
// both are there if that one cannot be deleted.
func (f *Forge) EditHook(ctx context.Context, repository, id string, post forge.HookPost) (edited forge.Hook, err error) {
	err = f.write(ctx, "edit webhook of "+repository, func(s *shared) error {
		for i, one := range s.hooks[repository] {
			if one.ID == id {
				s.lastID++
				edited = forge.Hook{ID: strconv.Itoa(s.lastID), URL: post.URL, Events: allEvents(), Active: true}
				if f.Stuck {
					s.hooks[repository] = append(s.hooks[repository], hook{edited, post.Secret})
					return nil
				}
				s.hooks[repository][i] = hook{edited, post.Secret}
				return nil
			}
		}
		return &forge.Error{Err: task.Errorf(task.NotFound, "there is no webhook %s", id), Status: http.StatusNotFound}
	})
	switch {
	case err != nil:
		return forge.Hook{}, err
	case f.Stuck:
		return edited, &forge.Error{Err: task.Errorf(task.Unavailable, "the old webhook cannot be deleted"), Status: http.StatusServiceUnavailable}
	}
	return edited, nil
}

// DeleteHook implements forge.Setup.
func (f *Forge) DeleteHook(ctx context.Context, repository, id string) error {
	return f.write(ctx, "delete webhook of "+repository, func(s *shared) error {
		s.hooks[repository] = slices.DeleteFunc(s.hooks[repository], func(one hook) bool { return one.ID == id })
		return nil
	})
}

// TestHook implements forge.Setup. It delivers, signed as Gitea does, before it returns.
func (f *Forge) TestHook(ctx context.Context, repository, id string) error {
	f.shared.mu.Lock()
	at := slices.IndexFunc(f.shared.hooks[repository], func(one hook) bool { return one.ID == id })
	if at < 0 {
		f.shared.mu.Unlock()
		return &forge.Error{Err: task.Errorf(task.NotFound, "there is no webhook %s", id), Status: http.StatusNotFound}
	}
	to := f.shared.hooks[repository][at]
	f.shared.tests++
	f.shared.mu.Unlock()
	if f.Silent {
		return nil
	}
	body := fmt.Appendf(nil, `{"ref":"refs/heads/main","repository":{"full_name":%q},"sender":{"login":"ann"}}`, repository)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sum := hmac.New(sha256.New, []byte(to.secret))
	sum.Write(body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Gitea-Event", "push")
	request.Header.Set("X-Gitea-Signature", hex.EncodeToString(sum.Sum(nil)))
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return task.Wrap(task.Unavailable, err, "cannot deliver")
	}
	return answer.Body.Close()
}

// LastDelivery implements forge.Setup. It tells of tests that went elsewhere.
func (f *Forge) LastDelivery(context.Context, string, string) (forge.HookDelivery, error) {
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	if f.Answered == 0 || f.shared.tests == 0 {
		return forge.HookDelivery{}, nil
	}
	return forge.HookDelivery{At: time.Unix(int64(f.shared.tests), 0), Status: f.Answered}, nil
}

// CreateIssue implements forge.Setup.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (item forge.Item, err error) {
	err = f.write(ctx, "create issue "+post.Title, func(*shared) error {
		title, text := post.Texts(repository) // as adapters do
		key := f.AddItem(repository, task.Issue, "toryo-bot", title)
		f.Change(key, func(made *forge.Item) {
			made.Body = text
			if !f.Unassigned {
				made.Assignees = post.Assignees
			}
		})
		item, err = f.Item(ctx, key)
		return err
	})
	return item, err
}
