package agent

import (
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// workOf is the assignment as a run sees it.
func workOf(a wire.Assignment, past []task.Event) phase.Work {
	work := phase.Work{
		Task: task.ID(a.TaskID), Generation: a.Generation,
		Item: task.Key{Forge: task.Forge(a.Forge), Repository: a.Repository, Kind: task.ItemKind(a.Kind), Number: a.Number},
		Type: task.Type(a.TaskType), Role: task.Role(a.RequiredRole), Cause: task.Reason(a.Cause), Occasion: a.Occasion,
		URL: a.URL, Title: a.Title, Body: a.Body, Author: phase.Person{Login: a.Author, Access: a.AuthorAccess},
		Labels: a.Labels, Comments: a.Comments, Branch: a.Branch, Base: a.Base, Earlier: a.Earlier, Notes: a.ReviewNotes, Approval: a.Approval, Past: past,
	}
	if a.PullRequest != nil {
		work.Pull = pullOf(*a.PullRequest)
	}
	return work
}

func pullOf(p wire.PullRequest) *phase.Pull {
	pull := &phase.Pull{
		Number: p.Number, URL: p.URL, Title: p.Title, Body: p.Body, Author: p.Author,
		Head: p.Head, Base: p.Base, Commit: p.Commit, Summaries: p.Summaries,
	}
	for _, thread := range p.Threads {
		pull.Threads = append(pull.Threads, phase.Thread{
			ID: thread.ID, Path: thread.Path, Line: thread.Line, Comments: thread.Comments,
		})
	}
	for _, check := range p.Checks {
		pull.Checks = append(pull.Checks, phase.FailedCheck(check))
	}
	return pull
}
