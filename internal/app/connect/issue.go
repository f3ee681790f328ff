package connect

import (
	"context"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Issues is where a first issue is opened.
type Issues interface {
	List(ctx context.Context, query forge.Query) ([]forge.Item, error)
	CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error)
}

// HadFirstIssue reports whether a first issue was opened in a repository before.
func (i *Installer) HadFirstIssue(of task.Forge, repository string) (bool, error) {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return false, err
	}
	for _, issue := range r.Issues {
		if issue.Forge == of && issue.Repository == repository {
			return true, nil
		}
	}
	return false, nil
}

// FirstIssue opens the suggested issue and assigns it to the bot, unless there is an open one
// of this title that the bot is assigned to: from a FirstIssue whose answer was lost.
func (i *Installer) FirstIssue(ctx context.Context, on Issues, of task.Forge, repository, bot string, suggested Suggestion) (item forge.Item, opened bool, err error) {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return forge.Item{}, false, err
	}
	noted := recordedIssue{Forge: of, Repository: repository}
	if addOnce(&r.Issues, noted) {
		if err := r.save(); err != nil {
			return forge.Item{}, false, err
		}
	}
	there, err := on.List(ctx, forge.Query{Repository: repository, Kind: task.Issue, Assignee: bot})
	if err != nil {
		return forge.Item{}, false, err
	}
	post := forge.IssuePost{Title: suggested.Title, Body: suggested.Body, Assignees: []string{bot}}
	title, _ := post.Texts(repository) // as a forge has it
	found := false
	for _, one := range there {
		if one.Title == suggested.Title || one.Title == title {
			item, found = one, true
			break
		}
	}
	if !found {
		item, err = on.CreateIssue(ctx, repository, post)
		if err != nil {
			return forge.Item{}, false, err
		}
	}
	if !item.AssignedTo(bot) { // forges leave it out without a word
		return item, !found, task.Errorf(task.Forbidden, "%s is opened, but the forge has not assigned it to %s", item.URL, bot).
			WithHint("let %s write to %s, and assign it there", bot, repository)
	}
	drop(&r.Issues, noted)
	noted.Number = item.Key.Number
	addOnce(&r.Issues, noted)
	return item, !found, r.save()
}
