package dummy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Name implements forge.Forge.
func (f *Forge) Name() task.Forge { return f.name }

// Self implements forge.Reader.
func (f *Forge) Self(ctx context.Context) (string, error) {
	return f.self, f.do(ctx, Call{Method: "Self"}, func() error { return nil })
}

// Repositories implements forge.Reader.
func (f *Forge) Repositories(ctx context.Context) (all []forge.Repository, err error) {
	err = f.do(ctx, Call{Method: "Repositories"}, func() error {
		for _, r := range f.repositories {
			all = append(all, r.Repository)
		}
		slices.SortFunc(all, func(a, b forge.Repository) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

// Repository implements forge.Reader.
func (f *Forge) Repository(ctx context.Context, name string) (found forge.Repository, err error) {
	err = f.onRepository(ctx, "Repository", name, "", func(r *repository) error {
		found = r.Repository
		return nil
	})
	return found, err
}

// Access implements forge.Reader.
func (f *Forge) Access(ctx context.Context, name, login string) (access forge.Access, err error) {
	err = f.onRepository(ctx, "Access", name, login, func(r *repository) error {
		access = r.accessOf(login)
		return nil
	})
	return access, err
}

func (r *repository) accessOf(login string) (access forge.Access) {
	for known, level := range r.access {
		if task.SameLogin(known, login) {
			access = level
		}
	}
	return access
}

// List implements forge.Reader.
func (f *Forge) List(ctx context.Context, query forge.Query) (all []forge.Item, err error) {
	err = f.onRepository(ctx, "List", query.Repository, "", func(*repository) error {
		for _, i := range f.items {
			if i.passes(query) {
				all = append(all, i.copy())
			}
		}
		slices.SortFunc(all, func(a, b forge.Item) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key.Number, b.Key.Number))
		})
		return nil
	})
	return all, err
}

func (i *item) passes(query forge.Query) bool {
	return i.Key.Repository == query.Repository && i.State == forge.Open &&
		(query.Kind == "" || i.Key.Kind == query.Kind) &&
		(query.Assignee == "" || i.AssignedTo(query.Assignee)) &&
		!slices.ContainsFunc(query.Labels, func(label string) bool { return !i.HasLabel(label) }) &&
		!i.UpdatedAt.Before(query.UpdatedSince)
}

// copy returns the item so that later changes do not show in it.
func (i *item) copy() forge.Item {
	copied := i.Item
	copied.Labels, copied.Assignees = slices.Clone(i.Labels), slices.Clone(i.Assignees)
	return copied
}

// Item implements forge.Reader.
func (f *Forge) Item(ctx context.Context, key task.Key) (found forge.Item, err error) {
	err = f.onItem(ctx, "Item", key, "", func(i *item) error {
		found = i.copy()
		return nil
	})
	return found, err
}

// Comments implements forge.Reader.
func (f *Forge) Comments(ctx context.Context, key task.Key) (all []task.Comment, err error) {
	err = f.onItem(ctx, "Comments", key, "", func(i *item) error {
		all = slices.Clone(i.comments)
		return nil
	})
	return all, err
}

// LabelEvents implements forge.Reader.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) (all []forge.LabelEvent, err error) {
	err = f.onItem(ctx, "LabelEvents", key, "", func(i *item) error {
		all = slices.Clone(i.labeled)
		return nil
	})
	return all, err
}

// LinkedPulls implements forge.Reader: those whose text names the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) (all []forge.LinkedPull, err error) {
	err = f.onItem(ctx, "LinkedPulls", key, "", func(*item) error {
		for _, other := range f.items {
			if key.Kind == task.Issue && other.Key.Kind == task.Pull && other.Key.Repository == key.Repository && names(other.Body, key.Number) {
				all = append(all, forge.LinkedPull{Key: other.Key, State: other.State, URL: other.URL})
			}
		}
		slices.SortFunc(all, func(a, b forge.LinkedPull) int { return cmp.Compare(a.Key.Number, b.Key.Number) })
		return nil
	})
	return all, err
}

// FindComment implements forge.Commenter.
func (f *Forge) FindComment(ctx context.Context, key task.Key, marker forge.Marker) (comment task.Comment, found bool, err error) {
	err = f.onItem(ctx, "FindComment", key, "", func(i *item) error {
		comment, found = forge.FindMarked(i.comments, f.self, marker)
		return nil
	})
	return comment, found, err
}

// FindPull implements forge.Pulls.
func (f *Forge) FindPull(ctx context.Context, name, head, base string) (found forge.Item, ok bool, err error) {
	err = f.onRepository(ctx, "FindPull", name, head, func(*repository) error {
		if pull := f.openPull(name, head, base); pull != nil {
			found, ok = pull.copy(), true
		}
		return nil
	})
	return found, ok, err
}

func (f *Forge) openPull(name, head, base string) *item {
	var oldest *item
	for _, i := range f.items {
		fits := i.Key.Repository == name && i.Key.Kind == task.Pull && i.State == forge.Open && i.Head == head && (base == "" || i.Base == base)
		if fits && (oldest == nil || i.Key.Number < oldest.Key.Number) {
			oldest = i
		}
	}
	return oldest
}

// Diff implements forge.Reviewer.
func (f *Forge) Diff(ctx context.Context, key task.Key) (diff forge.Diff, err error) {
	err = f.onPull(ctx, "Diff", key, "", func(i *item) error {
		diff = i.diff
		return nil
	})
	return diff, err
}

// Reviews implements forge.Reviewer.
func (f *Forge) Reviews(ctx context.Context, key task.Key) (all []forge.Review, err error) {
	err = f.onPull(ctx, "Reviews", key, "", func(i *item) error {
		all = slices.Clone(i.reviews)
		return nil
	})
	return all, err
}

// ReviewThreads implements forge.Reviewer.
func (f *Forge) ReviewThreads(ctx context.Context, key task.Key) (all []forge.ReviewThread, err error) {
	err = f.onPull(ctx, "ReviewThreads", key, "", func(i *item) error {
		for _, thread := range i.threads {
			thread.Comments = slices.Clone(thread.Comments)
			all = append(all, thread)
		}
		return nil
	})
	return all, err
}

func (f *Forge) onPull(ctx context.Context, method string, key task.Key, detail string, body func(*item) error) error {
	if key.Kind != task.Pull {
		return invalid("%s is no pull request", key)
	}
	return f.onItem(ctx, method, key, detail, body)
}

// Reactions implements forge.Reactor.
func (f *Forge) Reactions(ctx context.Context, target forge.Target) (all []forge.ReactionBy, err error) {
	err = f.onItem(ctx, "Reactions", target.Key, "", func(i *item) error {
		all = slices.Clone(i.reactions[target.Comment])
		return nil
	})
	return all, err
}

// Checks implements forge.Checks.
func (f *Forge) Checks(ctx context.Context, name, commit string) (all []forge.Check, err error) {
	err = f.onRepository(ctx, "Checks", name, commit, func(r *repository) error {
		for _, check := range r.checks[commit] {
			all = append(all, check)
		}
		all = forge.NewestChecks(all)
		return nil
	})
	return all, err
}

// CheckLog implements forge.Checks.
func (f *Forge) CheckLog(ctx context.Context, name string, check forge.Check, maxBytes int) (log string, err error) {
	err = f.onRepository(ctx, "CheckLog", name, check.ID, func(r *repository) error {
		whole, found := r.logs[check.ID]
		if !found {
			return task.Errorf(task.NotFound, "there is no log of the check %s", check.Name)
		}
		end := forge.NewLogEnd(maxBytes)
		_, _ = end.Write([]byte(whole))
		log = end.String()
		return nil
	})
	return log, err
}

// Remote implements forge.Git.
func (f *Forge) Remote(ctx context.Context, name string) (remote forge.Remote, err error) {
	err = f.onRepository(ctx, "Remote", name, "", func(r *repository) error {
		remote = r.remote
		return nil
	})
	return remote, err
}
