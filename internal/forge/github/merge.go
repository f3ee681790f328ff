package github

import (
	"context"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// MergePull merges a pull request. GitHub would pass rules of protection by the rights of an
// administrator when it is asked to merge, so it is asked first how it stands with them.
func (f *Forge) MergePull(ctx context.Context, key task.Key, head string) error {
	at, err := placeOfPull(key)
	if err != nil {
		return err
	}
	pull, _, err := f.client.PullRequests.Get(ctx, at.owner, at.name, at.number)
	if err == nil && pull.GetNumber() != at.number {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "read %s", key)
	}
	item := pullItem(key.Repository, pull)
	if item.State == forge.Merged {
		return nil
	}
	if err := forge.Mergeable(item, head); err != nil {
		return err
	}
	if err := mergeable(key, pull.GetMergeableState()); err != nil {
		return err
	}
	repository, _, err := f.client.Repositories.Get(ctx, at.owner, at.name)
	if err != nil {
		return callError(err, "read the repository %s", key.Repository)
	}
	options := gh.PullRequestOptions{SHA: head, MergeMethod: mergeMethod(repository)}
	merged, _, err := f.client.PullRequests.Merge(ctx, at.owner, at.name, at.number, "", &options)
	if err == nil && !merged.GetMerged() {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "merge %s", key)
	}
	return nil
}

// mergeable refuses a state in which rules are not met. In the state "unstable" there are
// checks that failed, none of which is required.
func mergeable(key task.Key, state string) error {
	switch state {
	case "clean", "has_hooks", "unstable":
		return nil
	case "", "unknown":
		return task.Errorf(task.Unavailable, "GitHub does not know yet whether %s can be merged", key)
	default: // behind, blocked, dirty, draft
		return task.Errorf(task.Conflict, "GitHub does not let %s be merged: it is %s", key, forge.Clean(state))
	}
}

// mergeMethod is the first that the repository allows. GitHub leaves the settings out for
// those who may not see them.
func mergeMethod(repository *gh.Repository) string {
	switch {
	case repository.AllowMergeCommit == nil || repository.GetAllowMergeCommit():
		return "merge"
	case repository.GetAllowSquashMerge():
		return "squash"
	default:
		return "rebase"
	}
}
