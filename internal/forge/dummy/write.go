package dummy

import (
	"context"
	"regexp"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// names reports whether a text refers to the number.
func names(text string, number int64) bool {
	found, _ := regexp.MatchString(`#`+strconv.FormatInt(number, 10)+`\b`, text)
	return found
}

// CreateComment implements forge.Commenter.
func (f *Forge) CreateComment(ctx context.Context, key task.Key, post forge.Post) (made task.Comment, err error) {
	err = f.onItem(ctx, "CreateComment", key, post.Text.String(), func(i *item) error {
		if post.Repeat {
			if found, ok := forge.FindMarked(i.comments, f.self, post.Marker); ok {
				made = found
				return nil
			}
		}
		made = f.comment(i, f.self, post.Body())
		return nil
	})
	return made, err
}

// EditComment implements forge.Commenter.
func (f *Forge) EditComment(ctx context.Context, key task.Key, id string, post forge.Post) (edited task.Comment, err error) {
	err = f.onItem(ctx, "EditComment", key, post.Text.String(), func(i *item) error {
		at := slices.IndexFunc(i.comments, func(c task.Comment) bool { return c.ID == id })
		if at < 0 {
			return notFound("comment " + id)
		}
		if !i.comments[at].By(f.self) {
			return &forge.Error{Err: task.Errorf(task.Forbidden, "comment %s is not ours", id), Status: 403}
		}
		i.comments[at].Body, i.comments[at].UpdatedAt = post.Body(), f.moment()
		edited = i.comments[at]
		return nil
	})
	return edited, err
}

// AddLabel implements forge.Labeler.
func (f *Forge) AddLabel(ctx context.Context, key task.Key, name string) error {
	return f.onItem(ctx, "AddLabel", key, name, func(i *item) error {
		if !i.HasLabel(name) {
			i.Labels = append(i.Labels, name)
			f.labeled(i, name, true)
		}
		return nil
	})
}

// RemoveLabel implements forge.Labeler.
func (f *Forge) RemoveLabel(ctx context.Context, key task.Key, name string) error {
	return f.onItem(ctx, "RemoveLabel", key, name, func(i *item) error {
		if i.HasLabel(name) {
			i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == name })
			f.labeled(i, name, false)
		}
		return nil
	})
}

func (f *Forge) labeled(i *item, name string, on bool) {
	i.UpdatedAt = f.moment()
	i.labeled = append(i.labeled, forge.LabelEvent{Label: name, On: on, Actor: f.self, At: i.UpdatedAt})
}

// Assign implements forge.Assigner.
func (f *Forge) Assign(ctx context.Context, key task.Key, login string) error {
	return f.onItem(ctx, "Assign", key, login, func(i *item) error {
		if !i.AssignedTo(login) {
			i.Assignees = append(i.Assignees, login)
			i.UpdatedAt = f.moment()
		}
		return nil
	})
}

// OpenPull implements forge.Pulls.
func (f *Forge) OpenPull(ctx context.Context, name string, post forge.PullPost) (pull forge.Item, opened bool, err error) {
	err = f.onRepository(ctx, "OpenPull", name, post.Head, func(r *repository) error {
		if found := f.openPull(name, post.Head, post.Base); found != nil {
			pull = found.copy()
			return nil
		}
		head, ok := r.branches[post.Head]
		if !ok {
			return notFound("branch " + post.Head)
		}
		made := f.add(name, task.Pull, f.self, post.Title.String())
		made.Body, made.Head, made.Base, made.Draft, made.HeadCommit = post.Text.String(), post.Head, post.Base, post.Draft, head
		pull, opened = made.copy(), true
		return nil
	})
	return pull, opened, err
}

// EditPull implements forge.Pulls.
func (f *Forge) EditPull(ctx context.Context, key task.Key, edit forge.PullEdit) (pull forge.Item, err error) {
	err = f.onPull(ctx, "EditPull", key, "", func(i *item) error {
		if edit.Title != nil {
			i.Title = edit.Title.String()
		}
		if edit.Text != nil {
			i.Body = edit.Text.String()
		}
		if edit.Draft != nil {
			i.Draft = *edit.Draft
		}
		i.UpdatedAt = f.moment()
		pull = i.copy()
		return nil
	})
	return pull, err
}

// SubmitReview implements forge.Reviewer.
func (f *Forge) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (made forge.Review, err error) {
	err = f.onPull(ctx, "SubmitReview", key, post.Text.String(), func(i *item) error {
		for _, review := range i.reviews {
			if post.Repeat && task.SameLogin(review.Author, f.self) && post.Marker.In(review.Body) {
				made = review
				return nil
			}
		}
		if post.Verdict != forge.Remark && task.SameLogin(i.Author, f.self) {
			return invalid("a verdict on a pull request of our own")
		}
		now := f.moment()
		made = forge.Review{ID: f.id(), Author: f.self, Verdict: post.Verdict, Body: post.Body(), Commit: post.Commit, At: now}
		i.reviews = append(i.reviews, made)
		for _, line := range post.Comments {
			comment := task.Comment{ID: f.id(), Kind: task.ReviewComment, Author: f.self, Body: line.Text.String(), CreatedAt: now, UpdatedAt: now}
			i.threads = append(i.threads, forge.ReviewThread{ID: f.id(), Anchor: line.Anchor, Comments: []task.Comment{comment}})
		}
		i.UpdatedAt = now
		return nil
	})
	return made, err
}

// Reply implements forge.Reviewer.
func (f *Forge) Reply(ctx context.Context, key task.Key, thread string, post forge.Post) (made task.Comment, err error) {
	err = f.onPull(ctx, "Reply", key, post.Text.String(), func(i *item) error {
		at := slices.IndexFunc(i.threads, func(t forge.ReviewThread) bool { return t.ID == thread })
		if at < 0 {
			return notFound("thread " + thread)
		}
		if post.Repeat {
			if found, ok := forge.FindMarked(i.threads[at].Comments, f.self, post.Marker); ok {
				made = found
				return nil
			}
		}
		now := f.moment()
		made = task.Comment{ID: f.id(), Kind: task.ReviewComment, Author: f.self, Body: post.Body(), CreatedAt: now, UpdatedAt: now}
		i.threads[at].Comments = append(i.threads[at].Comments, made)
		i.UpdatedAt = now
		return nil
	})
	return made, err
}

// ResolveThread implements forge.Reviewer.
func (f *Forge) ResolveThread(ctx context.Context, key task.Key, thread string) error {
	return f.onPull(ctx, "ResolveThread", key, thread, func(i *item) error {
		at := slices.IndexFunc(i.threads, func(t forge.ReviewThread) bool { return t.ID == thread })
		if at < 0 {
			return notFound("thread " + thread)
		}
		i.threads[at].Resolved = true
		return nil
	})
}

// React implements forge.Reactor.
func (f *Forge) React(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	return f.onItem(ctx, "React", target.Key, string(reaction), func(i *item) error {
		ours := forge.ReactionBy{Reaction: reaction, Login: f.self}
		if !slices.Contains(i.reactions[target.Comment], ours) {
			i.reactions[target.Comment] = append(i.reactions[target.Comment], ours)
		}
		return nil
	})
}

// Unreact implements forge.Reactor.
func (f *Forge) Unreact(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	return f.onItem(ctx, "Unreact", target.Key, string(reaction), func(i *item) error {
		ours := forge.ReactionBy{Reaction: reaction, Login: f.self}
		i.reactions[target.Comment] = slices.DeleteFunc(i.reactions[target.Comment], func(r forge.ReactionBy) bool { return r == ours })
		return nil
	})
}

// SetStatus implements forge.Statuses.
func (f *Forge) SetStatus(ctx context.Context, name string, status forge.CommitStatus) error {
	return f.onRepository(ctx, "SetStatus", name, status.Context, func(r *repository) error {
		r.set(status.Commit, forge.Check{
			Name: status.Context, State: status.State, Description: status.ShortDescription(), URL: status.URL,
		}, f.moment())
		return nil
	})
}

// MergePull implements forge.Merger.
func (f *Forge) MergePull(ctx context.Context, key task.Key, head string) error {
	return f.onPull(ctx, "MergePull", key, head, func(i *item) error {
		if i.State == forge.Merged {
			return nil
		}
		if err := forge.Mergeable(i.Item, head); err != nil {
			return err
		}
		i.State, i.UpdatedAt = forge.Merged, f.moment()
		return nil
	})
}
