package board

import (
	"context"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// kept is where the head and the base of a merged pull request are kept.
func kept(x store.BoardItem, what string) string {
	return fmt.Sprintf("refs/pull/%d/%s", x.Number, what)
}

// head returns the commit at the head of a pull request: of its branch, or, once
// it is merged, the one that was merged. It is "" if the branch is gone.
func (b *Board) head(ctx context.Context, x store.BoardItem) (string, error) {
	reference := "refs/heads/" + x.Head
	if x.State == store.BoardMerged {
		reference = kept(x, "head")
	}
	commit, _, err := b.resolve(ctx, x.Repository, reference)
	return commit, err
}

// OpenPull opens a pull request, or returns the one that is open.
func (f *Forge) OpenPull(ctx context.Context, repository string, post forge.PullPost) (forge.Item, bool, error) {
	return f.CreatePull(ctx, repository, forge.NewPull{
		Title: post.Title.String(), Body: post.Text.String(), Head: post.Head, Base: post.Base, Draft: post.Draft,
	})
}

// CreatePull opens a pull request of a person, or returns the one that is open.
func (f *Forge) CreatePull(ctx context.Context, repository string, p forge.NewPull) (item forge.Item, opened bool, err error) {
	if err := f.requireRepository(ctx, repository, forge.WriteAccess); err != nil {
		return forge.Item{}, false, err
	}
	title, err := titleOf("a pull request", p.Title)
	if err != nil {
		return forge.Item{}, false, err
	}
	if p.Base == "" {
		if p.Base, err = f.defaultBranch(ctx, repository); err != nil {
			return forge.Item{}, false, err
		}
	}
	if err := f.board.checkChange(ctx, repository, p.Head, p.Base); err != nil {
		return forge.Item{}, false, err
	}
	err = f.board.withLock(ctx, func() error {
		var found bool
		if item, found, err = f.FindPull(ctx, repository, p.Head, p.Base); err != nil || found {
			return err
		}
		made, err := f.board.store.AddBoardItem(ctx, store.BoardItem{
			Repository: repository, Kind: task.Pull, Title: title, Body: forge.Clean(p.Body), Author: f.self,
			Head: p.Head, Base: p.Base, Draft: p.Draft,
		})
		if err != nil {
			return storeError("open a pull request in "+repository, err)
		}
		opened = true
		item, err = f.whole(ctx, made)
		return err
	})
	return item, opened && err == nil, err
}

func (f *Forge) defaultBranch(ctx context.Context, repository string) (string, error) {
	found, err := f.board.store.BoardRepository(ctx, repository)
	return found.DefaultBranch, storeError("find the repository", err)
}

// checkChange refuses branches that are not there or between which there is
// nothing to merge.
func (b *Board) checkChange(ctx context.Context, repository, head, base string) error {
	from, err := b.requireBranch(ctx, repository, head)
	if err != nil {
		return err
	}
	to, err := b.requireBranch(ctx, repository, base)
	if err != nil {
		return err
	}
	parted, err := b.mergeBase(ctx, repository, to, from)
	if err == nil && parted == from {
		err = task.Errorf(task.Invalid, "%s has nothing that is not in %s", head, base)
	}
	return err
}

// FindPull looks for the open pull request of a branch.
func (f *Forge) FindPull(ctx context.Context, repository, head, base string) (forge.Item, bool, error) {
	if err := f.requireRepository(ctx, repository, forge.ReadAccess); err != nil {
		return forge.Item{}, false, err
	}
	if head == "" {
		return forge.Item{}, false, nil
	}
	found, err := f.board.store.ListBoardItems(ctx, store.BoardFilter{Repository: repository, Kind: task.Pull, State: store.BoardOpen, Head: head})
	if err != nil {
		return forge.Item{}, false, storeError("list the pull requests of "+repository, err)
	}
	for _, one := range found {
		if base == "" || one.Base == base {
			item, err := f.whole(ctx, one)
			return item, err == nil, err
		}
	}
	return forge.Item{}, false, nil
}

// EditPull changes a pull request.
func (f *Forge) EditPull(ctx context.Context, key task.Key, edit forge.PullEdit) (forge.Item, error) {
	if _, err := f.pull(ctx, key, forge.WriteAccess); err != nil {
		return forge.Item{}, err
	}
	change := store.BoardEdit{Draft: edit.Draft}
	if edit.Title != nil {
		title := edit.Title.String()
		if title == "" {
			return forge.Item{}, task.Errorf(task.Invalid, "a pull request needs a title")
		}
		change.Title = &title
	}
	if edit.Text != nil {
		body := edit.Text.String()
		change.Body = &body
	}
	edited, err := f.board.store.EditBoardItem(ctx, key.Repository, key.Number, change, f.self)
	if err != nil {
		return forge.Item{}, storeError("edit "+key.String(), err)
	}
	return f.whole(ctx, edited)
}

// Merge merges a pull request with a commit of its own, and closes the issues that
// its text says it closes. It fails with Conflict if it is not open, if git cannot
// merge it by itself, or if a branch moves at the same moment.
func (f *Forge) Merge(ctx context.Context, key task.Key) (forge.Item, error) {
	pull, err := f.pull(ctx, key, forge.WriteAccess)
	if err != nil {
		return forge.Item{}, err
	}
	if pull.State != store.BoardOpen {
		return forge.Item{}, task.Errorf(task.Conflict, "%s is %s", key, pull.State)
	}
	head, err := f.board.requireBranch(ctx, pull.Repository, pull.Head)
	if err != nil {
		return forge.Item{}, err
	}
	return f.merge(ctx, key, pull, head)
}

// MergePull merges a pull request as a person would.
func (f *Forge) MergePull(ctx context.Context, key task.Key, head string) error {
	pull, err := f.pull(ctx, key, forge.WriteAccess)
	if err != nil || pull.State == store.BoardMerged {
		return err
	}
	item, err := f.whole(ctx, pull)
	if err != nil {
		return err
	}
	if err := forge.Mergeable(item, head); err != nil {
		return err
	}
	_, err = f.merge(ctx, key, pull, head)
	return err
}

// merge merges the head of a pull request and notes it.
func (f *Forge) merge(ctx context.Context, key task.Key, pull store.BoardItem, head string) (forge.Item, error) {
	if err := f.board.merge(ctx, pull, head, f.self); err != nil {
		return forge.Item{}, err
	}
	merged := store.BoardMerged
	done, err := f.board.store.EditBoardItem(ctx, key.Repository, key.Number, store.BoardEdit{State: &merged}, f.self)
	if err != nil {
		return forge.Item{}, storeError("note that "+key.String()+" is merged", err)
	}
	if err := f.closeLinked(ctx, done); err != nil {
		return forge.Item{}, err
	}
	return f.whole(ctx, done)
}

// merge makes the merge in git. If it was made before and only not noted, nothing
// is left to merge, and that is well.
func (b *Board) merge(ctx context.Context, pull store.BoardItem, head, author string) error {
	base, err := b.requireBranch(ctx, pull.Repository, pull.Base)
	if err != nil {
		return err
	}
	parted, err := b.mergeBase(ctx, pull.Repository, base, head)
	if err != nil || parted == head {
		return err
	}
	message := fmt.Sprintf("Merge pull request #%d from %s\n\n%s", pull.Number, pull.Head, pull.Title)
	commit, err := b.mergeCommit(ctx, pull.Repository, base, head, author, message)
	if err != nil {
		return err
	}
	for what, at := range map[string]string{"head": head, "base": parted} {
		was, _, err := b.resolve(ctx, pull.Repository, kept(pull, what))
		if err != nil {
			return err
		}
		if err := b.setReference(ctx, pull.Repository, kept(pull, what), at, was); err != nil {
			return err
		}
	}
	return b.setReference(ctx, pull.Repository, "refs/heads/"+pull.Base, commit, base)
}

func (f *Forge) closeLinked(ctx context.Context, pull store.BoardItem) error {
	repository, err := f.board.store.BoardRepository(ctx, pull.Repository)
	if err != nil || repository.DefaultBranch != pull.Base {
		return storeError("find the repository", err)
	}
	closed := store.BoardClosed
	for _, number := range forge.Closes(pull.Title + "\n" + pull.Body) {
		issue, err := f.board.store.BoardItem(ctx, pull.Repository, number)
		if task.CodeOf(err) == task.NotFound || err == nil && issue.Kind != task.Issue {
			continue
		}
		if err == nil {
			_, err = f.board.store.EditBoardItem(ctx, pull.Repository, number, store.BoardEdit{State: &closed}, f.self)
		}
		if err != nil {
			return storeError("close what was merged", err)
		}
	}
	return nil
}

// Remote returns where git finds the repository: on this machine's disk.
func (f *Forge) Remote(ctx context.Context, repository string) (forge.Remote, error) {
	if err := f.requireRepository(ctx, repository, forge.WriteAccess); err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: f.board.Path(repository)}, nil
}

// Branches returns the names of the branches, the one with the newest commit first.
func (f *Forge) Branches(ctx context.Context, repository string) ([]string, error) {
	if err := f.requireRepository(ctx, repository, forge.ReadAccess); err != nil {
		return nil, err
	}
	names, err := git(ctx, f.board.Path(repository), nil, "for-each-ref", "--sort=-committerdate", "--format=%(refname:lstrip=2)", "refs/heads")
	return strings.FieldsFunc(names, func(r rune) bool { return r == '\n' }), err
}

// SetStatus sets the state of a commit.
func (f *Forge) SetStatus(ctx context.Context, repository string, status forge.CommitStatus) error {
	if err := f.requireRepository(ctx, repository, forge.WriteAccess); err != nil {
		return err
	}
	if err := f.board.requireCommit(ctx, repository, status.Commit); err != nil {
		return err
	}
	return storeError("set the status of a commit", f.board.store.SetBoardStatus(ctx, store.BoardStatus{
		Repository: repository, Commit: status.Commit, Context: status.Context, State: string(status.State),
		Description: status.ShortDescription(), URL: status.URL,
	}))
}

// Checks returns the newest status of each context.
func (f *Forge) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	if err := f.requireRepository(ctx, repository, forge.ReadAccess); err != nil {
		return nil, err
	}
	found, err := f.board.store.BoardStatuses(ctx, repository, commit)
	if err != nil {
		return nil, storeError("read the statuses of a commit", err)
	}
	var checks []forge.Check
	for _, one := range found {
		checks = append(checks, forge.Check{
			Name: one.Context, State: forge.StatusState(one.State), Description: one.Description, URL: one.URL, At: one.UpdatedAt,
		})
	}
	return forge.NewestChecks(checks), nil
}

// CheckLog finds none: nothing runs on the board that prints one.
func (f *Forge) CheckLog(ctx context.Context, repository string, check forge.Check, _ int) (string, error) {
	if err := f.requireRepository(ctx, repository, forge.ReadAccess); err != nil {
		return "", err
	}
	return "", task.Errorf(task.NotFound, "the board has no log of the check %q", check.Name)
}
