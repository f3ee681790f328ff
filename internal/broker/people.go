package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// mostCoAuthors is how many people are named in a commit.
const mostCoAuthors = 10

// coAuthors are the people who asked for the work, as far as the forge tells an address
// under which commits are theirs: the author of the item, and those whose comments and
// reviews the run was given. No address is made up, and nobody holds up the work.
func (r *Runs) coAuthors(ctx context.Context, held Lease) []string {
	from, found := r.options.Addresses[held.Key.Forge]
	if !found {
		return nil
	}
	var named []string
	for _, login := range r.askers(ctx, held.Task) {
		if len(named) == mostCoAuthors {
			break
		}
		address, err := from.Address(ctx, login)
		if err != nil {
			r.options.Log.WarnContext(ctx, "failed to find the email address of a person for a commit", "login", login, "error", err)
			continue
		}
		if person := personOf(address, login); person != "" && !slices.Contains(named, person) {
			named = append(named, person)
		}
	}
	return named
}

// personOf is a person as the message of a commit names them; empty if it cannot.
func personOf(address forge.Address, login string) string {
	plain := func(text string) string {
		return strings.TrimSpace(strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f || c == '<' || c == '>' {
				return -1
			}
			return c
		}, text))
	}
	name, email := plain(address.Name), plain(address.Email)
	if name == "" {
		name = plain(login)
	}
	if at := strings.IndexByte(email, '@'); at < 1 || strings.ContainsAny(email, " ") {
		return ""
	}
	return name + " <" + email + ">"
}

// askers are the logins of those who asked for the work, the author of the item first.
func (r *Runs) askers(ctx context.Context, t task.Task) []string {
	snapshot, err := r.options.Snapshots.Get(ctx, t.Key, items.ParticipantsAge)
	if err != nil {
		r.options.Log.WarnContext(ctx, "failed to find out who requested the work", "task", t.ID, "error", err)
		return nil
	}
	var logins []string
	add := func(login string) {
		known := slices.ContainsFunc(logins, func(other string) bool { return task.SameLogin(other, login) })
		if login != "" && !known && !task.SameLogin(login, forge.Ghost) && !r.options.Own(t.Key.Forge, login) {
			logins = append(logins, login)
		}
	}
	if t.Key.Kind == task.Issue { // who opened a pull request did not ask for what reviewers want
		add(snapshot.Item.Author)
	}
	known, _, err := r.options.Store.KnownComments(ctx, t.ID)
	if err != nil {
		r.options.Log.WarnContext(ctx, "failed to find out who commented", "task", t.ID, "error", err)
	}
	for _, entry := range known {
		if entry.Refused == "" && entry.Change != task.CommentDeleted {
			add(entry.Author)
		}
	}
	if t.Key.Kind == task.Pull {
		for _, login := range r.reviewers(ctx, t, snapshot.Item) {
			add(login)
		}
	}
	return logins
}

// reviewers are those who ask for changes and may.
func (r *Runs) reviewers(ctx context.Context, t task.Task, pull forge.Item) []string {
	from, found := r.options.Reviews[t.Key.Forge]
	if !found {
		return nil
	}
	reviews, err := from.Reviews(ctx, t.Key)
	if err != nil {
		r.options.Log.WarnContext(ctx, "who reviewed is not known", "task", t.ID, "error", err)
		return nil
	}
	var logins []string
	for _, review := range forge.OpenRequests(reviews) {
		if standing, err := r.options.Steering.Of(ctx, pull, review.Author, nil); err == nil && standing.MaySteer() {
			logins = append(logins, review.Author)
		}
	}
	return logins
}
