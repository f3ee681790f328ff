package github

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func key(repository string, kind task.ItemKind, number int) task.Key {
	return task.Key{Forge: task.GitHub, Repository: repository, Kind: kind, Number: int64(number)}
}

func loginOf(user *gh.User) string { return cmp.Or(user.GetLogin(), forge.Ghost) }

func timeOf(stamp gh.Timestamp) time.Time { return stamp.UTC() }

func idOf(id int64) string { return strconv.FormatInt(id, 10) }

// issueItem makes an item of what the issues' side of the API knows, where pull
// requests are issues too.
func issueItem(repository string, issue *gh.Issue) forge.Item {
	item := forge.Item{
		Key:       key(repository, task.Issue, issue.GetNumber()),
		Title:     forge.Clean(issue.GetTitle()),
		Body:      forge.Clean(issue.GetBody()),
		State:     stateOf(issue.GetState(), issue.GetPullRequestLinks().GetMergedAt()),
		Labels:    labelsOf(issue.Labels),
		Assignees: loginsOf(issue.Assignees),
		Author:    loginOf(issue.User),
		URL:       issue.GetHTMLURL(),
		CreatedAt: timeOf(issue.GetCreatedAt()),
		UpdatedAt: timeOf(issue.GetUpdatedAt()),
	}
	if issue.IsPullRequest() {
		item.Key.Kind = task.Pull
		item.Draft = issue.GetDraft()
	}
	return item
}

func pullItem(repository string, pull *gh.PullRequest) forge.Item {
	item := forge.Item{
		Key:        key(repository, task.Pull, pull.GetNumber()),
		Title:      forge.Clean(pull.GetTitle()),
		Body:       forge.Clean(pull.GetBody()),
		State:      stateOf(pull.GetState(), pull.GetMergedAt()),
		Labels:     labelsOf(pull.Labels),
		Assignees:  loginsOf(pull.Assignees),
		Author:     loginOf(pull.User),
		URL:        pull.GetHTMLURL(),
		CreatedAt:  timeOf(pull.GetCreatedAt()),
		UpdatedAt:  timeOf(pull.GetUpdatedAt()),
		HeadCommit: pull.GetHead().GetSHA(),
		Base:       pull.GetBase().GetRef(),
		Draft:      pull.GetDraft(),
	}
	// The repository of the head is missing when the fork was deleted.
	if sameRepository(pull.GetHead().GetRepo().GetFullName(), pull.GetBase().GetRepo().GetFullName()) {
		item.Head = pull.GetHead().GetRef()
	} else {
		item.Fork = true
	}
	return item
}

func stateOf(state string, mergedAt gh.Timestamp) forge.ItemState {
	switch {
	case !mergedAt.IsZero():
		return forge.Merged
	case state == "closed":
		return forge.Closed
	default:
		return forge.Open
	}
}

func labelsOf(labels []*gh.Label) []string {
	var names []string
	for _, label := range labels {
		names = append(names, label.GetName())
	}
	return names
}

func loginsOf(users []*gh.User) []string {
	var logins []string
	for _, user := range users {
		logins = append(logins, loginOf(user))
	}
	return logins
}

func issueComment(comment *gh.IssueComment) task.Comment {
	return task.Comment{
		ID:        idOf(comment.GetID()),
		Kind:      task.ItemComment,
		Author:    loginOf(comment.User),
		Body:      forge.Clean(comment.GetBody()),
		CreatedAt: timeOf(comment.GetCreatedAt()),
		UpdatedAt: timeOf(comment.GetUpdatedAt()),
	}
}

func lineComment(comment *gh.PullRequestComment) task.Comment {
	return task.Comment{
		ID:        idOf(comment.GetID()),
		Kind:      task.ReviewComment,
		Author:    loginOf(comment.User),
		Body:      forge.Clean(comment.GetBody()),
		CreatedAt: timeOf(comment.GetCreatedAt()),
		UpdatedAt: timeOf(comment.GetUpdatedAt()),
	}
}

// repositoryOf finds the name in the API's address of a repository.
func repositoryOf(address string) string {
	_, name, found := strings.Cut(address, "/repos/")
	if !found || strings.Count(name, "/") != 1 {
		return ""
	}
	return name
}

func sameRepository(a, b string) bool { return a != "" && strings.EqualFold(a, b) }
