package gitea

import (
	"context"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// draftPrefixes are the starts of a title by which Gitea knows a draft, unless a
// server has others configured. The first is the one that is written.
var draftPrefixes = []string{"WIP:", "[WIP]"}

func cutDraft(title string) (rest string, draft bool) {
	for _, prefix := range draftPrefixes {
		if len(title) >= len(prefix) && strings.EqualFold(title[:len(prefix)], prefix) {
			return strings.TrimSpace(title[len(prefix):]), true
		}
	}
	return title, false
}

// draftTitle is the title as Gitea gets it. What someone wrote at its start must
// not make a draft of what is none.
func draftTitle(title string, draft bool) string {
	for rest, cut := cutDraft(title); cut && rest != ""; rest, cut = cutDraft(title) {
		title = rest
	}
	if draft {
		return draftPrefixes[0] + " " + title
	}
	return title
}

func pullOf(repository string, pull *sdk.PullRequest) forge.Item {
	item := forge.Item{
		Key:       task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Pull, Number: pull.Index},
		Body:      forge.Clean(pull.Body),
		State:     forge.Open,
		Labels:    labelNames(pull.Labels),
		Assignees: logins(pull.Assignees),
		Author:    login(pull.Poster),
		URL:       pull.HTMLURL,
		CreatedAt: moment(pull.Created),
		UpdatedAt: moment(pull.Updated),
	}
	item.Title, item.Draft = cutDraft(forge.Clean(pull.Title))
	item.Draft = item.Draft || pull.Draft
	switch {
	case pull.HasMerged:
		item.State = forge.Merged
	case pull.State != sdk.StateOpen:
		item.State = forge.Closed
	}
	if pull.Base != nil {
		item.Base = pull.Base.Ref
	}
	if pull.Head != nil {
		item.HeadCommit = pull.Head.Sha
		item.Head = pull.Head.Ref
		if pull.Base != nil && pull.Head.RepoID != pull.Base.RepoID {
			item.Head, item.Fork = "", true
		}
	}
	return item
}

func moment(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

// OpenPull opens a pull request, or returns the one that is open.
func (f *Forge) OpenPull(ctx context.Context, repository string, post forge.PullPost) (forge.Item, bool, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.Item{}, false, err
	}
	pull, answer, err := f.client(ctx).CreatePullRequest(owner, name, sdk.CreatePullRequestOption{
		Head: post.Head, Base: post.Base, Title: draftTitle(post.Title.String(), post.Draft), Body: post.Text.String(),
	})
	if err == nil {
		return pullOf(repository, pull), true, nil
	}
	err = callError("open a pull request in "+repository, answer, err)
	if task.CodeOf(err) == task.Conflict {
		item, found, findErr := f.FindPull(ctx, repository, post.Head, post.Base)
		if found || findErr != nil {
			return item, false, findErr
		}
	}
	return forge.Item{}, false, err
}

// FindPull looks for the open pull request of a branch.
func (f *Forge) FindPull(ctx context.Context, repository, head, base string) (forge.Item, bool, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.Item{}, false, err
	}
	pulls, answer, err := pages(func(p *sdk.PullRequest) int64 { return p.ID },
		func(page sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
			return f.client(ctx).ListRepoPullRequests(owner, name, sdk.ListPullRequestsOptions{
				ListOptions: page, State: sdk.StateOpen, Sort: "oldest",
			})
		})
	if err != nil {
		return forge.Item{}, false, callError("list the pull requests of "+repository, answer, err)
	}
	slices.SortFunc(pulls, func(a, b *sdk.PullRequest) int { return int(a.Index - b.Index) })
	for _, pull := range pulls {
		item := pullOf(repository, pull)
		if item.Head == head && !item.Fork && (base == "" || item.Base == base) {
			return item, true, nil
		}
	}
	return forge.Item{}, false, nil
}

// EditPull changes a pull request.
func (f *Forge) EditPull(ctx context.Context, key task.Key, edit forge.PullEdit) (forge.Item, error) {
	at, err := locatePull(key)
	if err != nil {
		return forge.Item{}, err
	}
	var option sdk.EditPullRequestOption
	if edit.Title != nil || edit.Draft != nil {
		now, err := f.Item(ctx, key)
		if err != nil {
			return forge.Item{}, err
		}
		if edit.Title != nil {
			now.Title = edit.Title.String()
		}
		if edit.Draft != nil {
			now.Draft = *edit.Draft
		}
		option.Title = draftTitle(now.Title, now.Draft)
	}
	if edit.Text != nil {
		body := edit.Text.String()
		option.Body = &body
	}
	pull, answer, err := f.client(ctx).EditPullRequest(at.owner, at.name, at.number, option)
	if err != nil {
		return forge.Item{}, callError("edit "+key.String(), answer, err)
	}
	return pullOf(key.Repository, pull), nil
}
