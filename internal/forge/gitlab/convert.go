package gitlab

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// draftPrefix is what makes a merge request a draft: it stands in the title.
var draftPrefix = lazyregexp.New(`(?i)^(\s*(\[draft\]|\(draft\)|draft:|\[wip\]|wip:)\s*)+`)

func undraft(title string) string { return draftPrefix.ReplaceAllString(title, "") }

// titleOf writes a title as GitLab wants it for a draft, or for one that is none.
func titleOf(title string, draft bool) string {
	title = undraft(title)
	if draft {
		return "Draft: " + title
	}
	return title
}

var ghostLogin = lazyregexp.New(`^ghost\d*$`)

// loginOf makes a login. What deleted accounts wrote belongs to an account that
// GitLab calls "Ghost User", with a number behind its login if need be.
func loginOf(login, name string) string {
	if login == "" || name == "Ghost User" && ghostLogin.MatchString(login) {
		return forge.Ghost
	}
	return login
}

func userLogin(user *gl.BasicUser) string {
	if user == nil {
		return forge.Ghost
	}
	return loginOf(user.Username, user.Name)
}

func timeOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

func idOf(id int64) string { return strconv.FormatInt(id, 10) }

func issueItem(repository string, issue *gl.Issue) forge.Item {
	item := forge.Item{
		Key:       task.Key{Forge: task.GitLab, Repository: repository, Kind: task.Issue, Number: issue.IID},
		Title:     forge.Clean(issue.Title),
		Body:      forge.Clean(issue.Description),
		State:     stateOf(issue.State),
		Labels:    labelsOf(issue.Labels),
		Author:    forge.Ghost,
		URL:       issue.WebURL,
		CreatedAt: timeOf(issue.CreatedAt),
		UpdatedAt: timeOf(issue.UpdatedAt),

		Confidential: issue.Confidential,
	}
	if issue.Author != nil {
		item.Author = loginOf(issue.Author.Username, issue.Author.Name)
	}
	for _, assignee := range issue.Assignees {
		if assignee != nil {
			item.Assignees = append(item.Assignees, loginOf(assignee.Username, assignee.Name))
		}
	}
	return item
}

func pullItem(repository string, request *gl.BasicMergeRequest) forge.Item {
	item := forge.Item{
		Key:        task.Key{Forge: task.GitLab, Repository: repository, Kind: task.Pull, Number: request.IID},
		Title:      forge.Clean(request.Title),
		Body:       forge.Clean(request.Description),
		State:      stateOf(request.State),
		Labels:     labelsOf(request.Labels),
		Author:     userLogin(request.Author),
		URL:        request.WebURL,
		CreatedAt:  timeOf(request.CreatedAt),
		UpdatedAt:  timeOf(request.UpdatedAt),
		HeadCommit: request.SHA,
		Base:       request.TargetBranch,
		Draft:      request.Draft,
		Fork:       request.SourceProjectID != request.TargetProjectID,
	}
	if item.Draft {
		item.Title = undraft(item.Title)
	}
	if !item.Fork {
		item.Head = request.SourceBranch
	}
	for _, assignee := range request.Assignees {
		item.Assignees = append(item.Assignees, userLogin(assignee))
	}
	return item
}

func stateOf(state string) forge.ItemState {
	switch state {
	case "merged":
		return forge.Merged
	case "closed":
		return forge.Closed
	default: // "opened", and "locked" while it is being merged
		return forge.Open
	}
}

func commentOf(note *gl.Note) task.Comment {
	kind := task.ItemComment
	if onLine(note) {
		kind = task.ReviewComment
	}
	return task.Comment{
		ID:        idOf(note.ID),
		Kind:      kind,
		Author:    loginOf(note.Author.Username, note.Author.Name),
		Body:      forge.Clean(note.Body),
		CreatedAt: timeOf(note.CreatedAt),
		UpdatedAt: timeOf(note.UpdatedAt),
	}
}

// onLine reports whether a note belongs to a diff.
func onLine(note *gl.Note) bool {
	return note.Type == gl.DiffNote || note.Type == gl.LegacyDiffNote
}

// parseReference reads a full reference: "group/project#12" or "group/project!12".
func parseReference(text string) (task.Key, bool) {
	key, err := task.ParseKey(string(task.GitLab) + ":" + strings.TrimSpace(text))
	return key, err == nil
}

func oldestFirst(a, b task.Comment) int {
	if at := a.CreatedAt.Compare(b.CreatedAt); at != 0 || len(a.ID) == len(b.ID) {
		return cmp.Or(at, cmp.Compare(a.ID, b.ID))
	}
	return cmp.Compare(len(a.ID), len(b.ID))
}

// labelsOf returns nil for no labels, as every adapter does.
func labelsOf(labels gl.Labels) []string { return append([]string(nil), labels...) }
