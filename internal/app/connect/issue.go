package connect

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Issues is where a first issue is opened.
type Issues interface {
	Self(ctx context.Context) (string, error)
	List(ctx context.Context, query forge.Query) ([]forge.Item, error)
	CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error)
}

// HadFirstIssue reports whether a first issue was opened in a repository before.
func (i *Installer) HadFirstIssue(of task.Forge, repository string) (bool, error) {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return false, err
	}
	defer r.close()
	for _, issue := range r.Issues {
		if issue.Forge == of && issue.Repository == repository {
			return true, nil
		}
	}
	return false, nil
}

// FirstIssue opens the suggested issue and assigns it to the bot, unless there is an open one
// of this title: from a FirstIssue whose answer was lost, or which the forge did not assign.
func (i *Installer) FirstIssue(ctx context.Context, on Issues, of task.Forge, repository, bot string, suggested Suggestion) (item forge.Item, opened bool, err error) {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return forge.Item{}, false, err
	}
	defer r.close()
	noted := recordedIssue{Forge: of, Repository: repository}
	query := forge.Query{Repository: repository, Kind: task.Issue}
	if at := slices.IndexFunc(r.Issues, noted.sameRepository); at >= 0 {
		noted = r.Issues[at] // it may be there and have nobody assigned
	} else {
		query.Assignee = bot
		r.Issues = append(r.Issues, noted)
		if err := r.save(); err != nil {
			return forge.Item{}, false, err
		}
	}
	post := forge.IssuePost{Title: suggested.Title, Body: suggested.Body, Assignees: []string{bot}}
	item, found, err := earlierIssue(ctx, on, query, post, bot)
	if err != nil {
		return forge.Item{}, false, err
	}
	if !found {
		if item, err = on.CreateIssue(ctx, repository, post); err != nil {
			return forge.Item{}, false, err
		}
	}
	// The number is kept whatever became of the assignment: the next run must not open another.
	drop(&r.Issues, noted)
	noted.Number = item.Key.Number
	r.Issues = append(r.Issues, noted)
	if err := r.save(); err != nil {
		return item, !found, err
	}
	if !item.AssignedTo(bot) {
		return item, !found, task.Errorf(task.Forbidden, "%s is opened, but the forge has not assigned it to %s", item.URL, bot).
			WithHint("let %s write to %s, and assign it there", bot, repository)
	}
	return item, !found, nil
}

// earlierIssue finds an open issue with the title of a post that is ours: by whom it was opened,
// or whom it is assigned to.
func earlierIssue(ctx context.Context, on Issues, query forge.Query, post forge.IssuePost, bot string) (forge.Item, bool, error) {
	self, err := on.Self(ctx)
	if err != nil {
		return forge.Item{}, false, err
	}
	there, err := on.List(ctx, query)
	if err != nil {
		return forge.Item{}, false, err
	}
	title, _ := post.Texts(query.Repository) // as a forge has it
	for _, one := range there {
		if (one.Title == post.Title || one.Title == title) && (one.AssignedTo(bot) || task.SameLogin(one.Author, self)) {
			return one, true, nil
		}
	}
	return forge.Item{}, false, nil
}
