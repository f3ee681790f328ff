package web

import (
	"context"
	"net/url"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// needsOfKind is how many needs of one kind the first page shows.
	needsOfKind = 5
	// longestSaid is how many characters of a text of others a list shows.
	longestSaid = 600
)

// needGroup is the needs of one kind.
type needGroup struct {
	kind  task.NeedKind
	shown []needRow
	more  int    // that are not shown
	all   string // where all are; empty if only here, and then all are shown
}

// needRow is one need, in words.
type needRow struct {
	task.Need
	messages.NeedText
	link string // where something can be done about it
}

// resumable reports whether it is a pause that the button of an operator ends. One that a file asks
// for ends with the file.
func (n needRow) resumable() bool { return n.Kind == task.NeedPause && n.Subject == "operator" }

// needs are what waits for a person.
func (p *Pages) needs(ctx context.Context) ([]task.Need, error) {
	if p.Needs == nil {
		return nil, nil
	}
	return p.Needs(ctx)
}

// needLists are the lists in which all needs of a kind are.
var needLists = map[task.NeedKind]string{
	task.NeedAnswer: "/queue?reason=awaiting_answer&state=paused", task.NeedApproval: "/queue?reason=awaiting_approval&state=paused",
	task.NeedFailure: "/queue?state=failed", task.NeedAgent: "/agents", task.NeedBudget: "/queue?reason=budget_exhausted&state=paused", task.NeedTasks: "/queue",
	task.NeedPause: "/queue?state=queued",
}

// needList is the list in which all is that a need is about.
func needList(need task.Need) string {
	switch {
	case need.Task != nil:
		return "/tasks/" + string(need.Task.ID)
	case need.Kind == task.NeedTasks && need.OfTasks:
		return "/queue?" + url.Values{reasonName: {string(need.Reason)}}.Encode()
	case need.Kind == task.NeedBudget:
		return "/settings"
	default:
		return needLists[need.Kind]
	}
}

// needGroups puts needs together by their kind, in the order in which they come.
func needGroups(v visit, needs []task.Need) (groups []needGroup) {
	for _, need := range needs {
		if len(groups) == 0 || groups[len(groups)-1].kind != need.Kind {
			groups = append(groups, needGroup{kind: need.Kind, all: needLists[need.Kind]})
		}
		group := &groups[len(groups)-1]
		if len(group.shown) == needsOfKind && group.all != "" {
			group.more++
			continue
		}
		row := needRow{Need: need, NeedText: messages.Need(v.language, need), link: needList(need)}
		row.Detail, row.Why = textfmt.Shorten(need.Detail, longestSaid), textfmt.UpperFirst(row.Why)
		group.shown = append(group.shown, row)
	}
	return groups
}

// needBadge is the colour of a kind of need.
func needBadge(kind task.NeedKind) string {
	switch kind {
	case task.NeedServer, task.NeedFailure, task.NeedAgent:
		return "bad"
	case task.NeedAnswer, task.NeedApproval:
		return "open"
	case task.NeedPause, task.NeedTasks, task.NeedBudget:
	}
	return "wait"
}
