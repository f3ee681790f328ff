package dummy

import (
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Setup = (*Forge)(nil)

// setup is what is set up in a repository.
type setup struct {
	labels    []forge.Label
	hooks     []forge.Hook
	secrets   map[string]string             // of webhooks, by id
	delivered map[string]forge.HookDelivery // by webhooks, by id
	rights    map[forge.Right]forge.RightCheck
}

// HookEvents are the events that webhooks here can be enabled for.
var HookEvents = []string{"issues", "comments", "pulls", "checks", "push"}

// SetRight says what a look at a right finds. Those that are not set are given.
func (f *Forge) SetRight(name string, check forge.RightCheck) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[name].rights[check.Right] = check
}

// HookSecret returns the secret of a webhook, or "".
func (f *Forge) HookSecret(name, id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repositories[name].secrets[id]
}

// CheckRights implements forge.Setup.
func (f *Forge) CheckRights(ctx context.Context, name string) (checks []forge.RightCheck, err error) {
	err = f.onRepository(ctx, "CheckRights", name, "", func(r *repository) error {
		for _, needed := range forge.NeededRights {
			if needed.Right == forge.PushWorkflows && f.name != task.GitHub {
				continue
			}
			check, set := r.rights[needed.Right]
			if !set {
				check = forge.RightCheck{Right: needed.Right, State: forge.RightGiven, Given: "the scope " + string(needed.Right)}
			}
			checks = append(checks, check)
		}
		return nil
	})
	return checks, err
}

// Labels implements forge.Setup.
func (f *Forge) Labels(ctx context.Context, name string) (names []string, err error) {
	err = f.onRepository(ctx, "Labels", name, "", func(r *repository) error {
		for _, label := range r.labels {
			names = append(names, label.Name)
		}
		return nil
	})
	return names, err
}

// CreateLabel implements forge.Setup.
func (f *Forge) CreateLabel(ctx context.Context, name string, label forge.Label) (created bool, err error) {
	if label, err = label.Checked(); err != nil {
		return false, err
	}
	err = f.onRepository(ctx, "CreateLabel", name, label.Name, func(r *repository) error {
		if !slices.ContainsFunc(r.labels, func(l forge.Label) bool { return forge.SameLabel(f.name, l.Name, label.Name) }) {
			r.labels, created = append(r.labels, label), true
		}
		return nil
	})
	return created, err
}

// DeleteLabel implements forge.Setup.
func (f *Forge) DeleteLabel(ctx context.Context, name, label string) error {
	return f.onRepository(ctx, "DeleteLabel", name, label, func(r *repository) error {
		r.labels = slices.DeleteFunc(r.labels, func(l forge.Label) bool { return forge.SameLabel(f.name, l.Name, label) })
		return nil
	})
}

// Hooks implements forge.Setup.
func (f *Forge) Hooks(ctx context.Context, name string) (hooks []forge.Hook, err error) {
	err = f.onHooks(ctx, "Hooks", name, "", func(r *repository) error {
		hooks = slices.Clone(r.hooks)
		return nil
	})
	return hooks, err
}

// onHooks does something with webhooks, which is Forbidden without the right.
func (f *Forge) onHooks(ctx context.Context, method, name, detail string, body func(*repository) error) error {
	return f.onRepository(ctx, method, name, detail, func(r *repository) error {
		if r.rights[forge.ManageHooks].State == forge.RightMissing {
			return &forge.Error{Err: task.Errorf(task.Forbidden, "webhooks are for administrators"), Status: 403}
		}
		return body(r)
	})
}

// hookAt finds a webhook, or NotFound.
func (r *repository) hookAt(id string) (int, error) {
	at := slices.IndexFunc(r.hooks, func(h forge.Hook) bool { return h.ID == id })
	if at < 0 {
		return 0, notFound("webhook " + id)
	}
	return at, nil
}

// CreateHook implements forge.Setup.
func (f *Forge) CreateHook(ctx context.Context, name string, post forge.HookPost) (made forge.Hook, err error) {
	events, err := post.Checked(HookEvents)
	if err != nil {
		return made, err
	}
	err = f.onHooks(ctx, "CreateHook", name, post.URL, func(r *repository) error {
		made = forge.Hook{ID: f.id(), URL: post.URL, Events: events, Active: true}
		r.hooks = append(r.hooks, made)
		r.secrets[made.ID] = post.Secret
		return nil
	})
	return made, err
}

// EditHook implements forge.Setup.
func (f *Forge) EditHook(ctx context.Context, name, id string, post forge.HookPost) (edited forge.Hook, err error) {
	events, err := post.Checked(HookEvents)
	if err != nil {
		return edited, err
	}
	err = f.onHooks(ctx, "EditHook", name, post.URL, func(r *repository) error {
		at, err := r.hookAt(id)
		if err != nil {
			return err
		}
		r.hooks[at].URL, r.hooks[at].Events, r.hooks[at].Active = post.URL, events, true
		r.secrets[id] = post.Secret
		edited = r.hooks[at]
		return nil
	})
	return edited, err
}

// DeleteHook implements forge.Setup.
func (f *Forge) DeleteHook(ctx context.Context, name, id string) error {
	return f.onHooks(ctx, "DeleteHook", name, id, func(r *repository) error {
		r.hooks = slices.DeleteFunc(r.hooks, func(h forge.Hook) bool { return h.ID == id })
		delete(r.secrets, id)
		delete(r.delivered, id)
		return nil
	})
}

// TestHook implements forge.Setup. It delivers nothing and notes that it did.
func (f *Forge) TestHook(ctx context.Context, name, id string) error {
	return f.onHooks(ctx, "TestHook", name, id, func(r *repository) error {
		if _, err := r.hookAt(id); err != nil {
			return err
		}
		r.delivered[id] = forge.HookDelivery{At: f.moment(), Status: 200}
		return nil
	})
}

// SetDelivery says how the last delivery of a webhook went.
func (f *Forge) SetDelivery(name, id string, last forge.HookDelivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[name].delivered[id] = last
}

// LastDelivery implements forge.Setup.
func (f *Forge) LastDelivery(ctx context.Context, name, id string) (last forge.HookDelivery, err error) {
	err = f.onRepository(ctx, "LastDelivery", name, id, func(r *repository) error {
		last = r.delivered[id]
		return nil
	})
	return last, err
}

// CreateIssue implements forge.Setup. Who has no access is not assigned.
func (f *Forge) CreateIssue(ctx context.Context, name string, post forge.IssuePost) (opened forge.Item, err error) {
	title, text := post.Texts(name)
	if strings.TrimSpace(title) == "" {
		return opened, invalid("an issue needs a title")
	}
	err = f.onRepository(ctx, "CreateIssue", name, title, func(r *repository) error {
		made := f.add(name, task.Issue, f.self, title)
		made.Body = text
		made.Assignees = slices.DeleteFunc(slices.Clone(post.Assignees), func(login string) bool {
			return !task.SameLogin(login, f.self) && r.accessOf(login) == forge.NoAccess
		})
		for _, label := range post.Labels {
			made.Labels = append(made.Labels, label)
			f.labeled(made, label, true)
		}
		opened = made.copy()
		return nil
	})
	return opened, err
}
