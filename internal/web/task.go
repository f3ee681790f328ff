package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// taskStore is what the page of a task needs of the database.
type taskStore interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
	LastPosition(ctx context.Context, id task.ID) (int64, error)
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	ReceiptsOf(ctx context.Context, id task.ID) ([]store.Receipt, error)
}

// journalPage is how many entries of a journal a page has, and olderPage how many
// more are sent when the reader wants to see what was before.
const (
	journalPage = 150
	olderPage   = 500
)

// Steering moves tasks on behalf of people. Each method returns when what is wanted
// is noted; a run that is under way ends a little later. An error says why the
// task cannot go there.
type Steering interface {
	Stop(ctx context.Context, id task.ID) error
	Pause(ctx context.Context, id task.ID) error
	Resume(ctx context.Context, id task.ID) error
	// Approve approves a revision of the plan of a task that waits for that.
	Approve(ctx context.Context, id task.ID, revision int) error
	Retry(ctx context.Context, id task.ID) error
	// ResumeAll takes back the pause of everything that an operator wanted.
	ResumeAll(ctx context.Context) error
}

func (p *Pages) registerTasks(mux *http.ServeMux) {
	mux.HandleFunc("GET /tasks/{id}", p.page(access.Viewer, p.showTask))
	mux.HandleFunc("GET /tasks/{id}/journal", p.page(access.Viewer, p.showJournal))
	mux.HandleFunc("GET /tasks/{id}/live", p.signedIn(access.Viewer, p.followTask))
	if p.Steering == nil {
		return
	}
	mux.HandleFunc("POST /tasks/{id}/approve", p.act(action{name: "task.approve", role: access.Operator, noted: []string{"plan"}, do: p.approvePlan}))
	for name, move := range map[string]func(context.Context, task.ID) error{
		"stop": p.Steering.Stop, "pause": p.Steering.Pause, "resume": p.Steering.Resume, "retry": p.Steering.Retry,
	} {
		mux.HandleFunc("POST /tasks/{id}/"+name, p.act(action{name: "task." + name, role: access.Operator,
			do: func(r *http.Request, _ visit) (string, error) {
				return "/tasks/" + r.PathValue("id"), move(r.Context(), task.ID(r.PathValue("id")))
			}}))
	}
}

// approvePlan approves the plan that the page has shown.
func (p *Pages) approvePlan(r *http.Request, _ visit) (string, error) {
	id := r.PathValue("id")
	revision, err := strconv.Atoi(r.PostForm.Get("plan"))
	if err != nil || revision < 1 {
		return "", task.Errorf(task.Invalid, "the form does not say which plan is approved")
	}
	return "/tasks/" + id, p.Steering.Approve(r.Context(), task.ID(id), revision)
}

// taskView is a task with what its journal says.
type taskView struct {
	task.Task
	phases   []phaseView
	plan     *journal.Plan
	usage    usageView
	receipt  *journal.Setup
	receipts []store.Receipt
	ledger   []ledgerRow
	moves    []journal.Entry
	pulls    []forge.LinkedPull // that are about the issue of the task
	steps    []stepView
	earliest int64 // the position of the first entry that is sent
	last     int64
	steered  bool // buttons do something
	why      explanation
}

type phaseView struct {
	phase  task.Phase
	status string
}

// ledgerRow is what became of a comment.
type ledgerRow struct {
	journal.Comment
	at time.Time
}

// itemLink is where the item of a task can be read.
func (t *taskView) itemLink() string { return itemLink(t.Task) }

func itemLink(t task.Task) string {
	if t.Key.Forge == task.Board {
		return itemURL(t.Key)
	}
	return t.URL
}

// buttons are what can be done with the task in its state.
func (t *taskView) buttons() []string {
	switch {
	case !t.steered:
		return nil
	case t.State == task.Running || t.State == task.Queued:
		return []string{"pause", "stop"}
	case t.AwaitsApproval() && t.plan != nil:
		return []string{"approve", "stop"}
	case t.AwaitsApproval():
		return []string{"stop"} // nobody can have read the plan
	case t.State == task.Paused:
		return []string{"resume", "stop"}
	default:
		return []string{"retry"}
	}
}

func (p *Pages) showTask(r *http.Request, v visit) (templ.Component, error) {
	view, err := p.readTask(r.Context(), task.ID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	if view.pulls, err = p.pullsOf(r.Context(), v, view.Key); err != nil {
		return nil, err
	}
	if view.receipts, err = p.Store.ReceiptsOf(r.Context(), view.ID); err != nil {
		return nil, err
	}
	if view.why, err = p.explain(r.Context(), v, view.Task); err != nil {
		return nil, err
	}
	if r.URL.Query().Has("parts") { // the script asks for what is around the journal
		return taskPage(v, view), nil
	}
	events, earliest, err := p.journalBefore(r.Context(), view.ID, view.last+1, journalPage)
	if err != nil {
		return nil, err
	}
	view.earliest = earliest
	view.steps = stepsOf(v, events)
	if len(view.steps) > 0 {
		view.steps[len(view.steps)-1].open = true
	}
	return taskPage(v, view), nil
}

// pullsOf are the pull requests about an issue of the board, as far as the reader
// may see them.
func (p *Pages) pullsOf(ctx context.Context, v visit, key task.Key) ([]forge.LinkedPull, error) {
	if p.Board == nil || key.Forge != task.Board || key.Kind != task.Issue {
		return nil, nil
	}
	hands, err := p.person(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := hands.LinkedPulls(ctx, key)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Forbidden {
		return nil, nil // the task can be read nevertheless
	}
	return found, err
}

// readTask reads a task and what its journal says about it as a whole.
func (p *Pages) readTask(ctx context.Context, id task.ID) (view taskView, err error) {
	view.steered = p.Steering != nil
	if view.Task, err = p.Store.Task(ctx, id); err != nil {
		return view, err
	}
	if view.last, err = p.Store.LastPosition(ctx, id); err != nil {
		return view, err
	}
	events, err := p.Store.EventsOf(ctx, id, task.StateChanged, task.PhaseChanged, task.Planned, task.Prepared, task.SignalTaken, task.ModelUsed)
	if err != nil {
		return view, err
	}
	statuses := make(map[task.Phase]string)
	for _, event := range events {
		entry := journal.Read(event)
		switch event.Kind {
		case task.StateChanged:
			view.moves = append(view.moves, entry)
		case task.PhaseChanged:
			if event.Generation == view.Generation {
				statuses[entry.Phase] = entry.Status
			}
		case task.Planned:
			view.plan = entry.Plan
		case task.Prepared:
			view.receipt = entry.Setup
		case task.ModelUsed:
			view.usage.add(entry)
		case task.SignalTaken:
			view.addComments(entry)
		}
	}
	for _, phase := range task.Phases {
		one := phaseView{phase, statuses[phase]}
		if phase == view.Phase && view.State == task.Running {
			one.status = "active"
		}
		view.phases = append(view.phases, one)
	}
	return view, nil
}

func (t *taskView) addComments(entry journal.Entry) {
	if entry.Signal == nil {
		return
	}
	for _, comment := range entry.Signal.Comments {
		t.ledger = append(t.ledger, ledgerRow{comment, entry.At})
	}
}

// showJournal is a piece of the journal that comes before what is on the page.
func (p *Pages) showJournal(r *http.Request, v visit) (templ.Component, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 {
		return nil, task.Errorf(task.Invalid, "before is not a position")
	}
	events, earliest, err := p.journalBefore(r.Context(), task.ID(r.PathValue("id")), before, olderPage)
	if err != nil {
		return nil, err
	}
	return journalSteps(v, stepsOf(v, events), earliest), nil
}

// journalBefore reads the last entries before a position, and the position of the first of them:
// 1 if there are no earlier ones. Positions have gaps where old entries were removed.
func (p *Pages) journalBefore(ctx context.Context, id task.ID, before int64, limit int) (events []task.Event, earliest int64, err error) {
	events, err = p.Store.EventsBefore(ctx, id, before, limit)
	if len(events) < limit {
		return events, 1, err
	}
	return events, events[0].Position, err
}

// live is an entry of the journal on its way to a page.
type live struct {
	Kind   string `json:"kind"`
	Begins bool   `json:"begins"`
	Call   string `json:"call,omitempty"`
	HTML   string `json:"html"`
}

// followTask sends the journal as it grows.
func (p *Pages) followTask(w http.ResponseWriter, r *http.Request, v visit) {
	id := task.ID(r.PathValue("id"))
	if _, err := p.Store.Task(r.Context(), id); err != nil {
		p.fail(w, r, v, err)
		return
	}
	see := func(ctx context.Context) (string, error) {
		last, err := p.Store.LastPosition(ctx, id)
		return strconv.FormatInt(last, 10), err
	}
	p.listen(w, r, "task "+string(id), see, p.wakeOf(id), func(to stream, last, _ string) (string, error) {
		position, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			position = 0
		}
		for {
			events, err := p.Store.EventsAfter(r.Context(), id, position, journalPage)
			if err != nil || len(events) == 0 {
				return strconv.FormatInt(position, 10), err
			}
			for _, event := range events {
				if err := p.sendEntry(r.Context(), v, to, event); err != nil {
					return "", err
				}
				position = event.Position
			}
		}
	})
}

func (p *Pages) sendEntry(ctx context.Context, v visit, to stream, event task.Event) error {
	entry := journal.Read(event)
	sent := live{Kind: string(entry.Kind), Begins: entry.Begins(), Call: entry.CallID()}
	var html bytes.Buffer
	var err error
	switch {
	case entry.Empty():
	case sent.Begins:
		err = stepCard(v, stepView{title: titleOf(v, entry), Step: journal.Step{Entries: []journal.Entry{entry}}, open: true}).Render(ctx, &html)
	default:
		err = entryCard(v, entry).Render(ctx, &html)
	}
	if err != nil {
		return err
	}
	sent.HTML = html.String()
	data, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return to.send("entry", strconv.FormatInt(entry.Position, 10), string(data))
}
