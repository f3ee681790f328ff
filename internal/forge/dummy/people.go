package dummy

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Unassign removes an assignee, as a person would.
func (f *Forge) Unassign(ctx context.Context, key task.Key, login string) error {
	return f.onItem(ctx, "Unassign", key, login, func(i *item) error {
		if i.AssignedTo(login) {
			i.Assignees = slices.DeleteFunc(i.Assignees, func(a string) bool { return task.SameLogin(a, login) })
			i.UpdatedAt = f.moment()
		}
		return nil
	})
}

// AddReview submits a review as someone else and returns it. Without a time it is of now.
func (f *Forge) AddReview(key task.Key, review forge.Review) forge.Review {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := f.items[key]
	review.ID = f.id()
	if review.At.IsZero() {
		review.At = f.moment()
	}
	on.reviews = append(on.reviews, review)
	on.UpdatedAt = f.moment()
	return review
}

// SetCheck sets what a check says about a commit and, if log is not empty, what it printed.
func (f *Forge) SetCheck(repository, commit string, check forge.Check, log string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repositories[repository]
	if log != "" {
		check.ID = f.id()
		r.logs[check.ID] = log
	}
	r.set(commit, check, f.moment())
}

// set keeps what a check says about a commit.
func (r *repository) set(commit string, check forge.Check, now time.Time) {
	if r.checks[commit] == nil {
		r.checks[commit] = map[string]forge.Check{}
	}
	check.At = now
	r.checks[commit][check.Name] = check
}

// AddReaction gives a reaction to a comment as someone else, or takes it back.
func (f *Forge) AddReaction(key task.Key, comment, login string, reaction forge.Reaction, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, i := forge.ReactionBy{Reaction: reaction, Login: login}, f.items[key]
	i.reactions[comment] = slices.DeleteFunc(i.reactions[comment], func(r forge.ReactionBy) bool { return r == one })
	if on {
		i.reactions[comment] = append(i.reactions[comment], one)
	}
}

// Label puts a label on an item or takes it off, as a person would.
func (f *Forge) Label(key task.Key, login, name string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.items[key]
	if i.HasLabel(name) == on {
		return
	}
	i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == name })
	if on {
		i.Labels = append(i.Labels, name)
	}
	f.labeled(i, name, on)
	i.labeled[len(i.labeled)-1].Actor = login
}

// EditReview changes the text of a review as its author. As on some forges, the item
// does not show it.
func (f *Forge) EditReview(key task.Key, id, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.items[key].reviews {
		if review := &f.items[key].reviews[i]; review.ID == id {
			review.Body = forge.Clean(body)
		}
	}
}

// Dismiss dismisses a review, as a person would.
func (f *Forge) Dismiss(key task.Key, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.items[key].reviews {
		if review := &f.items[key].reviews[i]; review.ID == id {
			review.Dismissed = true
		}
	}
}

// DeleteReview removes a review, as a person would.
func (f *Forge) DeleteReview(key task.Key, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[key].reviews = slices.DeleteFunc(f.items[key].reviews, func(r forge.Review) bool { return r.ID == id })
}

// AddThread writes a comment on a line of a pull request as someone else, and returns
// the thread.
func (f *Forge) AddThread(key task.Key, author, path string, line int, body string) forge.ReviewThread {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := f.items[key]
	on.threads = append(on.threads, forge.ReviewThread{
		ID: f.id(), Anchor: forge.Anchor{Path: path, Side: forge.NewSide, Line: line}, Comments: []task.Comment{f.onLine(on, author, body)},
	})
	return on.threads[len(on.threads)-1]
}

// AddReply writes a comment into a review thread as someone else.
func (f *Forge) AddReply(key task.Key, thread, author, body string) task.Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := f.items[key]
	made := f.onLine(on, author, body)
	for i := range on.threads {
		if on.threads[i].ID == thread {
			on.threads[i].Comments = append(on.threads[i].Comments, made)
		}
	}
	return made
}

func (f *Forge) onLine(on *item, author, body string) task.Comment {
	now := f.moment()
	on.UpdatedAt = now
	return task.Comment{ID: f.id(), Kind: task.ReviewComment, Author: author, Body: forge.Clean(body), CreatedAt: now, UpdatedAt: now}
}

// Edit changes a comment, also one on a line, as its author. As on some forges, the
// item does not show it.
func (f *Forge) Edit(key task.Key, id, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit := func(comments []task.Comment) {
		for i := range comments {
			if comments[i].ID == id {
				comments[i].Body, comments[i].UpdatedAt = forge.Clean(body), f.moment()
			}
		}
	}
	edit(f.items[key].comments)
	for _, thread := range f.items[key].threads {
		edit(thread.Comments)
	}
}

// DeleteComment removes a comment, also one on a line, as a person would. A thread
// without comments is gone.
func (f *Forge) DeleteComment(key task.Key, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := f.items[key]
	without := func(comments []task.Comment) []task.Comment {
		return slices.DeleteFunc(comments, func(c task.Comment) bool { return c.ID == id })
	}
	on.comments = without(on.comments)
	for i := range on.threads {
		on.threads[i].Comments = without(on.threads[i].Comments)
	}
	on.threads = slices.DeleteFunc(on.threads, func(t forge.ReviewThread) bool { return len(t.Comments) == 0 })
}
