package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// The tabs of the page of a task. The first one has no name in addresses.
const (
	tabConversation = ""
	tabChanges      = "changes"
	tabChecks       = "checks"
	tabCost         = "cost"
)

// taskTabs are the tabs in their order.
var taskTabs = []string{tabConversation, tabChanges, tabChecks, tabCost}

// taskView is a task with what its journal says.
type taskView struct {
	task.Task
	tab      string
	phases   []phaseView
	plan     *journal.Plan
	planAt   int64 // the position of its entry
	usage    usageView
	setup    *setupView // the last one; nil if there was none
	verdicts []verdictView
	earlier  []verdictView // of earlier work on the item
	receipts []store.Receipt
	ledger   recent[ledgerRow]
	moves    recent[moveView]
	pulls    []forge.LinkedPull // that are about the issue of the task
	opened   []OpenedPull       // that its runs have opened
	changes  *Changes           // nil if there are none, or if nobody knows
	unread   bool               // there are changes, which cannot be read now
	reading  bool               // the changes are still being read
	files    filesPage          // those that the page names
	file     *taskFile          // the one that the reader has opened
	item     *forge.Item        // nil if it cannot be read here
	rows     []string           // entries of the journal as HTML
	waiting  waitingView        // comments that no run has taken up yet
	search   *searchView
	now      *nowView // nil if no run is under way
	question string   // that the run waits for an answer to
	// questionAt is the position of the entry that has the question; 0 if it is not from one.
	questionAt int64
	earliest   int64  // the position of the first entry that is sent
	latest     int64  // of the last one that is sent
	last       int64  // of the last one that there is
	saved      string // the commit that was saved last
	taken      int64  // the position of the last comment that was taken up
	why        explanation
	steered    bool   // buttons do something
	speaks     bool   // the reader can write on the item
	links      bool   // the reader can link an account to do that
	account    string // that the reader has linked
}

type phaseView struct {
	phase   task.Phase
	status  string
	current bool
}

// ledgerRow is what became of a comment.
type ledgerRow struct {
	author, change, refused string
	at                      time.Time
}

// moveView is a state that the task came to.
type moveView struct {
	task.StateChange
	generation int64
	at         time.Time
}

// setupView is what environment set-up came to, and when.
type setupView struct {
	journal.Setup
	at       time.Time
	position int64
}

// verdictView is what a verification came to, and when.
type verdictView struct {
	journal.Verdict
	at       time.Time
	position int64
}

// nowView is what a run does at this moment.
type nowView struct {
	activity journal.Activity
	object   string // the command or the tool
	at       time.Time
}

func (t *taskView) path() string { return "/tasks/" + string(t.ID) }

// searched is what the reader has looked for in the journal.
func (t *taskView) searched() string {
	if t.search == nil {
		return ""
	}
	return t.search.words
}

// searchPath is where the search goes on before a position.
func (t *taskView) searchPath(before int64) string {
	return t.path() + "?q=" + url.QueryEscape(t.searched()) + "&before=" + strconv.FormatInt(before, 10)
}

// tabPath is where a tab of the page is.
func (t *taskView) tabPath(tab string) string {
	if tab == tabConversation {
		return t.path()
	}
	return t.path() + "?tab=" + tab
}

// verdict is what the last verification came to; nil if there was none.
func (t *taskView) verdict() *verdictView {
	if len(t.verdicts) == 0 {
		return nil
	}
	return &t.verdicts[len(t.verdicts)-1]
}

// hasResult reports whether there is something to show for the work.
func (t *taskView) hasResult() bool {
	return len(t.pulls)+len(t.opened)+len(t.verdicts) > 0 || t.changes != nil && len(t.changes.Files) > 0
}

// itemLink is where the item of a task can be read.
func (t *taskView) itemLink() string { return itemLink(t.Task) }

func itemLink(t task.Task) string {
	if t.Key.Forge == task.Board {
		return itemURL(t.Key)
	}
	return t.URL
}

// unwanted are the reasons for which the item wants no work any more: a run that is begun again is
// stopped for the same reason.
var unwanted = []task.Reason{
	task.ReasonUnassigned, task.ReasonItemClosed, task.ReasonReviewNotNeeded, task.ReasonUnlabeled, task.ReasonDraft, task.ReasonChecksPassed,
}

// mayRetry reports whether a task that has ended can be begun again.
func (t *taskView) mayRetry() bool {
	return t.State.Terminal() && !slices.Contains(unwanted, t.Reason) && (t.item == nil || t.item.State == forge.Open)
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
	case t.mayRetry():
		return []string{"retry"}
	default:
		return nil
	}
}

// consequence says what a button does to the task in its state.
func (t *taskView) consequence(v visit, button string) string {
	switch {
	case button == "approve":
		return v.t("task.approve_sure", t.plan.Revision)
	case button == "pause" && t.State == task.Queued:
		return v.t("task.pause_queued")
	case button == "stop" && t.State == task.Paused:
		return v.t("task.stop_paused")
	case button == "stop" && t.State != task.Running:
		return v.t("task.stop_idle")
	case button == "retry" && t.Type == task.Review:
		return v.t("task.retry_review")
	case button == "retry" && t.State == task.Done && t.hasPull():
		return v.t("task.retry_done")
	default:
		return v.t("task." + button + "_sure")
	}
}

// hasPull reports whether the work is in a pull request.
func (t *taskView) hasPull() bool {
	return t.Key.Kind == task.Pull || len(t.opened)+len(t.pulls) > 0
}

// speaker is who a comment is by that the reader writes here.
func (t *taskView) speaker(v visit) string {
	if t.account != "" {
		return t.account
	}
	return v.user.Login
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
	if err := p.readNewest(ctx, &view); err != nil {
		return view, err
	}
	progress := newProgress(view.Task)
	for position := int64(0); ; {
		events, err := p.Store.EventsOfAfter(ctx, id, position, olderPage, task.StateChanged, task.PhaseChanged, task.SignalTaken, task.ModelUsed)
		if err != nil {
			return view, err
		}
		if len(events) == 0 {
			view.phases = progress.phases()
			return view, nil
		}
		for _, event := range events {
			entry := journal.Read(event)
			if event.Kind == task.PhaseChanged {
				progress.add(entry)
			}
			view.add(entry)
			position = event.Position
		}
	}
}

// readNewest reads what only the last entry counts of. Each is whole, and there can be many: a plan is
// written again whenever an action is done.
func (p *Pages) readNewest(ctx context.Context, view *taskView) error {
	for _, kind := range []task.EventKind{task.Planned, task.Prepared, task.Saved} {
		event, found, err := store.Optional(p.Store.LastEvent(ctx, view.ID, kind))
		if err != nil {
			return err
		}
		if found && event.Generation >= view.FirstGeneration {
			view.addWork(journal.Read(event))
		}
	}
	return nil
}

// add takes in an entry. What earlier assignments came to is other work: of it only what was verified is
// kept, apart. An agent decides how many entries there are, so that of each kind a bounded part is kept.
func (t *taskView) add(entry journal.Entry) {
	switch entry.Kind {
	case task.StateChanged:
		t.moves.add(moveView{entry.StateChange, entry.Generation, entry.At})
	case task.ModelUsed:
		t.usage.add(entry)
	case task.SignalTaken:
		t.addComments(entry)
	case task.PhaseChanged:
		t.addVerdict(entry)
	default:
	}
}

func (t *taskView) addVerdict(entry journal.Entry) {
	verdict, is := entry.Verdict()
	switch view := (verdictView{verdict, entry.At, entry.Position}); {
	case !is:
	case entry.Generation < t.FirstGeneration:
		view.Verdict = outlineOf(verdict)
		t.earlier = lastVerdicts(append(t.earlier, view))
	default:
		if last := t.verdict(); last != nil {
			last.Verdict = outlineOf(last.Verdict) // only the newest is shown whole
		}
		t.verdicts = lastVerdicts(append(t.verdicts, view))
	}
}

// addWork takes in what the runs since the assignment have come to.
func (t *taskView) addWork(entry journal.Entry) {
	switch entry.Kind {
	case task.Planned:
		t.plan, t.planAt = entry.Plan, entry.Position
	case task.Prepared:
		if entry.Setup != nil {
			t.setup = &setupView{*entry.Setup, entry.At, entry.Position}
		}
	case task.Saved:
		t.saved = entry.Commit
	default:
	}
}

func (t *taskView) addComments(entry journal.Entry) {
	if entry.Signal == nil {
		return
	}
	// Positions only grow, and what an earlier run has read does not wait either: that the next run
	// begins behind it is noted when an agent takes the task.
	t.taken = max(t.taken, entry.Signal.Position)
	for _, comment := range entry.Signal.Comments {
		t.ledger.add(ledgerRow{oneLabel(comment.Author), oneLabel(comment.Change), oneLabel(comment.Refused), entry.At})
	}
}

// progress is how far the work has come since the task was assigned. A run that goes on after a
// pause or a loss has another generation, and goes on in the phase that the one before was in.
type progress struct {
	of       task.Task
	statuses map[task.Phase]string
	furthest int // the last phase that was begun, by its place
}

func newProgress(of task.Task) *progress {
	return &progress{of: of, statuses: make(map[task.Phase]string), furthest: -1}
}

func (p *progress) add(entry journal.Entry) {
	at := slices.Index(task.Phases, entry.Phase)
	if entry.Generation < p.of.FirstGeneration || at < 0 {
		return
	}
	if entry.Status == task.PhaseActive && entry.Phase != task.Reflection {
		// What comes after it is done again.
		for _, later := range task.Phases[at+1:] {
			delete(p.statuses, later)
		}
		p.furthest = at
	}
	p.furthest = max(p.furthest, at)
	p.statuses[entry.Phase] = entry.Status
}

// halted is what a phase is called in which the work stands still, by the state of the task.
var halted = map[task.State]string{
	task.Queued: "waiting", task.Paused: "paused", task.Stopped: "stopped", task.Failed: "failed", task.Done: "completed",
}

// phases are the phases with how far each is. A review goes through some of them only.
func (p *progress) phases() (views []phaseView) {
	current := -1
	for i, phase := range task.Phases {
		status := p.statuses[phase]
		if status == task.PhaseActive {
			if current = i; p.of.State != task.Running {
				status = halted[p.of.State]
			}
		}
		if status == "" && i < p.furthest {
			status = "skipped"
		}
		views = append(views, phaseView{phase: phase, status: status})
	}
	if current >= 0 && p.of.State.Active() {
		views[current].current = true
	}
	if p.of.Type == task.Review {
		views = slices.DeleteFunc(views, func(one phaseView) bool { return one.status == "" || one.status == "skipped" })
	}
	return views
}

// nowOf is what the run does, by its last entries. Output says only that something runs: what it is
// stands before it, if that is among them.
func nowOf(of task.Task, events []task.Event) (now *nowView) {
	if of.State != task.Running {
		return nil
	}
	for _, event := range slices.Backward(events) {
		if event.Generation != of.Generation {
			return now
		}
		entry := journal.Read(event)
		switch activity, says := entry.Activity(); {
		case !says:
		case entry.IsOutput():
			now = newNow(entry, activity)
		default:
			return newNow(entry, activity)
		}
	}
	return now
}

// newNow is what the run does after an entry; nil if it does nothing.
func newNow(entry journal.Entry, activity journal.Activity) *nowView {
	if activity == journal.Halted {
		return nil
	}
	now := nowView{activity: activity, at: entry.At}
	if entry.Call != nil && activity == journal.Calling {
		if in := argumentsOf(entry.Call); in.Command != "" && entry.Call.Name != "edit" {
			now.object = oneLabel(in.Command)
		} else {
			now.object = oneLabel(entry.Call.Name)
		}
	}
	return &now
}

// questionOf is the entry with what people were asked last, among the last entries.
func questionOf(events []task.Event) journal.Entry {
	for _, event := range slices.Backward(events) {
		if event.Kind != task.NoteTaken {
			continue
		}
		if entry := journal.Read(event); strings.HasPrefix(entry.Name, "question-") {
			return entry
		}
	}
	return journal.Entry{}
}
