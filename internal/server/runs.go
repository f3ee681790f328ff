package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// longestWait is the longest that a request waits for something to happen.
const longestWait = time.Minute

type (
	heldInput struct{ OfTask }

	heartbeatOutput struct{ Body wire.Heartbeat }

	reportInput struct {
		OfTask
		Body wire.Report
	}
	reportOutput struct{ Body wire.Reported }

	journalInput struct {
		OfTask
		After int64 `query:"after" doc:"Only entries after this position" minimum:"0"`
		Limit int   `query:"limit" default:"500" minimum:"1" maximum:"5000"`
	}

	signalsInput struct {
		OfTask
		After int64  `query:"after" doc:"Only comments after this position" minimum:"0"`
		Wait  string `query:"wait" doc:"How long to wait for something, at most a minute" default:"0s" example:"30s"`
	}
	signalsOutput struct{ Body wire.Signals }

	referencesOutput struct{ Body wire.References }
	imagesOutput     struct{ Body wire.Images }

	progressInput struct {
		OfTask
		Body wire.Progress
	}
	commentInput struct {
		OfTask
		Body wire.NewComment
	}
	openPullInput struct {
		OfTask
		Body wire.OpenPull
	}
	openPullOutput struct{ Body wire.Pulled }
	resultOutput   struct{ Body wire.Ended }
	resultInput    struct {
		OfTask
		Body wire.Result
	}
	spendInput struct {
		OfTask
		Body wire.Spend
	}
	spendOutput struct{ Body wire.Reservation }
	settleInput struct {
		OfTask
		Body wire.Settlement
	}
)

// runStore is what the operations on runs need of the database besides what [broker.Runs]
// has.
type runStore interface {
	Holds(ctx context.Context, id task.ID, generation int64, tokenHash []byte) error
	SpentFor(ctx context.Context, id string) (task.ID, error)
}

// runsAPI is what agents ask about the tasks that they hold.
type runsAPI struct {
	*Server
	runs    *broker.Runs
	reviews *review.Service
	ledger  llm.Ledger
}

func operationOnRun(id, method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: "/v1/tasks/{id}/" + path, Summary: summary}
}

func (a runsAPI) register() {
	registerHeld(a.Server, operationOnRun("renew-lease", http.MethodPost, "heartbeat", "Extend the lease"), a.renew)
	registerHeld(a.Server, operationOnRun("report-events", http.MethodPost, "events", "Add entries to the journal"), a.report)
	registerHeld(a.Server, operationOnRun("read-journal", http.MethodGet, "journal", "The journal of the task since it was last assigned"), a.journal)
	registerHeld(a.Server, operationOnRun("watch-signals", http.MethodGet, "signals", "Wait for a stop, a pause or comments"), a.signals)
	registerHeld(a.Server, operationOnRun("read-images", http.MethodGet, "images", "The images in the text of the task's own item and its comments, of people who may steer the work on it"), a.images)
	registerHeld(a.Server, operationOnRun("read-references", http.MethodGet, "references", "The items that the text of the task's own item names"), a.references)
	registerHeld(a.Server, operationOnRun("show-progress", http.MethodPost, "progress", "Bring the progress comment up to date"), a.progress)
	registerHeld(a.Server, operationOnRun("say", http.MethodPost, "comments", "Write a comment, or answer in a review thread"), a.addComment)
	registerHeld(a.Server, operationOnRun("open-pull", http.MethodPost, "pull", "Publish the branch and open the pull request"), a.openPull)
	registerEnding(a.Server, operationOnRun("end-run", http.MethodPost, "result", "End the run"), a.end)
	registerHeld(a.Server, operationOnRun("reserve-spend", http.MethodPost, "spend", "Ask for leave to call a model"), a.reserve)
	registerHeld(a.Server, operationOnRun("settle-spend", http.MethodPut, "spend", "Say what a call to a model used"), a.settle)
}

func (a runsAPI) renew(ctx context.Context, held broker.Lease, _ *heldInput) (*heartbeatOutput, error) {
	until, err := a.runs.Renew(ctx, held)
	return &heartbeatOutput{wire.Heartbeat{ExpiresAt: until}}, err
}

func (a runsAPI) report(ctx context.Context, held broker.Lease, input *reportInput) (*reportOutput, error) {
	entries := make([]task.Event, 0, len(input.Body.Entries))
	for _, e := range input.Body.Entries {
		entries = append(entries, task.Event{Sequence: e.Sequence, Kind: task.EventKind(e.Kind), At: e.At, Data: e.Data})
	}
	acknowledged, err := a.runs.Report(ctx, held, entries)
	return &reportOutput{wire.Reported{Acknowledged: acknowledged}}, err
}

func (a runsAPI) journal(ctx context.Context, held broker.Lease, input *journalInput) (*eventsOutput, error) {
	found, err := a.runs.Journal(ctx, held, input.After, input.Limit)
	if err != nil {
		return nil, err
	}
	return eventsOf(found), nil
}

func (a runsAPI) signals(ctx context.Context, held broker.Lease, input *signalsInput) (*signalsOutput, error) {
	wait, err := time.ParseDuration(input.Wait)
	if err != nil || wait < 0 {
		return nil, task.Errorf(task.Invalid, "wait is a duration such as 30s, not %q", input.Wait)
	}
	ctx, cancel := a.untilStop(ctx)
	defer cancel()
	signals, err := a.runs.Signals(ctx, held, input.After, min(wait, longestWait))
	switch {
	case err == nil:
		return &signalsOutput{signalsOf(signals)}, nil
	case !errors.Is(context.Cause(ctx), errStopping):
		return nil, err
	case wait == 0: // nothing would be told as there being nothing
		return nil, errStopping
	default:
		return &signalsOutput{}, nil // whoever asks again finds the next server
	}
}

func signalsOf(signals broker.Signals) wire.Signals {
	var shown wire.Signals
	if signals.Stop != nil {
		shown.Stop = &wire.Halt{Reason: string(signals.Stop.Reason), Since: signals.Stop.At}
	}
	if signals.Pause != nil {
		shown.Pause = &wire.Halt{Reason: string(signals.Pause.Reason), Since: signals.Pause.At}
	}
	shown.Comments = withoutRefusedTexts(signals.Comments)
	return shown
}

// withoutRefusedTexts are the comments as a run gets them: what one says that is refused is
// not for the run.
func withoutRefusedTexts(comments []task.CommentEntry) []task.CommentEntry {
	shown := append([]task.CommentEntry{}, comments...)
	for i := range shown {
		if shown[i].Refused != "" {
			shown[i].Body = ""
		}
	}
	return shown
}

func (a runsAPI) images(ctx context.Context, held broker.Lease, _ *heldInput) (*imagesOutput, error) {
	found, err := a.runs.Images(ctx, held)
	if err != nil {
		return nil, err
	}
	shown := wire.Images{Images: []wire.Image{}}
	for _, one := range found {
		shown.Images = append(shown.Images, wire.Image{Link: one.Link, Hash: one.Hash, Type: one.Type, Width: one.Width, Height: one.Height, Data: one.Data})
	}
	return &imagesOutput{shown}, nil
}

func (a runsAPI) references(ctx context.Context, held broker.Lease, _ *heldInput) (*referencesOutput, error) {
	items, err := a.runs.References(ctx, held)
	if err != nil {
		return nil, err
	}
	named := wire.References{Items: []wire.Reference{}}
	for _, item := range items {
		named.Items = append(named.Items, wire.Reference{
			Kind: string(item.Key.Kind), Number: item.Key.Number, URL: item.URL, State: string(item.State),
			Author: item.Author, Title: item.Title, Body: item.Body,
		})
	}
	return &referencesOutput{named}, nil
}

func (a runsAPI) progress(ctx context.Context, held broker.Lease, input *progressInput) (*struct{}, error) {
	return nil, a.runs.Progress(ctx, held, input.Body.Text)
}

func (a runsAPI) addComment(ctx context.Context, held broker.Lease, input *commentInput) (*struct{}, error) {
	said := input.Body
	if said.Thread == "" {
		return nil, a.runs.AddComment(ctx, held, said.Name, said.Text)
	}
	return nil, a.runs.Reply(ctx, held, broker.ThreadReply{Name: said.Name, Text: said.Text, Thread: said.Thread, Resolved: said.Resolved})
}

func (a runsAPI) openPull(ctx context.Context, held broker.Lease, input *openPullInput) (*openPullOutput, error) {
	open := input.Body
	answer, err := a.runs.OpenPull(ctx, held, broker.PullWish{
		Branch: open.Branch, Commit: open.Commit, Base: open.Base, Title: open.Title, Text: open.Body, Draft: open.Draft, Again: open.Again,
		Verdict: open.Verdict,
	})
	return &openPullOutput{wire.Pulled{
		Number: answer.Number, URL: answer.URL, Opened: answer.Opened, Commit: answer.Commit, Withheld: answer.Withheld, Findings: answer.Findings,
		Moved: answer.Moved,
	}}, err
}

func (a runsAPI) end(ctx context.Context, held broker.Lease, input *resultInput) (*resultOutput, error) {
	result := input.Body
	if result.Review != nil && held.Type != task.Review {
		return nil, task.Errorf(task.Forbidden, "a %s task reviews nothing", held.Type)
	}
	if result.Review != nil && result.Outcome == task.OutcomeDone && held.State == task.Running {
		if err := a.reviewed(ctx, held, result); err != nil {
			return nil, err
		}
	}
	after, err := a.runs.Finish(ctx, held, broker.RunResult{
		Outcome: result.Outcome, Reason: task.Reason(result.Reason), Comment: result.Comment, Summary: result.Summary,
		Detail: result.Detail, Hint: result.Hint,
		Progress: result.Progress, Kept: result.Kept, CutAfter: time.Duration(result.CutAfter) * time.Millisecond,
	})
	return &resultOutput{wire.Ended{State: string(after.State), Reason: string(after.Reason)}}, err
}

// reviewed stores the result of a review task while the lease is held, before the run
// ends. If it fails, the run does not end.
func (a runsAPI) reviewed(ctx context.Context, held broker.Lease, result wire.Result) error {
	if err := a.store.Holds(ctx, held.ID, held.Generation, held.TokenHash); err != nil {
		return err
	}
	if err := a.runs.MayFinish(ctx, held); err != nil {
		return err
	}
	if a.reviews == nil {
		return task.Errorf(task.Unsupported, "this server stores no reviews")
	}
	_, err := a.reviews.Reviewed(ctx, held.Key, reportOf(*result.Review))
	return err
}

func (a runsAPI) reserve(ctx context.Context, held broker.Lease, input *spendInput) (*spendOutput, error) {
	account := llm.Account{Task: held.ID, Generation: held.Generation}
	id, err := a.ledger.Reserve(ctx, account, llm.Amount{Tokens: input.Body.Tokens, Money: llm.Money(input.Body.Money)})
	if over, is := errors.AsType[*llm.BudgetError](err); is {
		err = task.Errorf(task.OverBudget, "%s", over.Error())
	}
	return &spendOutput{wire.Reservation{ID: string(id)}}, err
}

func (a runsAPI) settle(ctx context.Context, held broker.Lease, input *settleInput) (*struct{}, error) {
	owner, err := a.store.SpentFor(ctx, input.Body.Reservation)
	if err == nil && owner != held.ID {
		err = task.Errorf(task.NotFound, "there is no reservation %s", input.Body.Reservation)
	}
	if err != nil {
		return nil, err
	}
	used := llm.Amount{Tokens: input.Body.Tokens, Money: llm.Money(input.Body.Money)}
	return nil, a.ledger.Settle(ctx, llm.Reservation(input.Body.Reservation), used)
}
