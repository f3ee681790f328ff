package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// homeStore is what the first page and the queue need of the database.
type homeStore interface {
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	ListAgents(ctx context.Context) ([]store.Agent, error)
	Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay store.Amount, err error)
	ListBoardRepositories(ctx context.Context) ([]store.BoardRepository, error)
}

// homeList is how many tasks a list on the home page shows.
const homeList = 8

// recent is how far the queue page looks back for tasks that have ended.
const recent = 30 * 24 * time.Hour

func (p *Pages) registerHome(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.page(access.Viewer, p.showHome))
	mux.HandleFunc("GET /queue", p.page(access.Viewer, p.showQueue))
	everything := func(*http.Request) (string, look, error) { return "tasks", p.whenHappened(p.tasksRevision, false), nil }
	mux.HandleFunc("GET /live/tasks", p.changes(everything))
}

// homeView is how things stand.
type homeView struct {
	running, waiting, paused, review, doneToday, failedToday []task.Task
	agents                                                   []agentView
	spent                                                    store.Amount
	budget                                                   Budget
	waits                                                    []Wait
	faults                                                   []Fault
	lacks                                                    Lacks // what is not connected yet
	since                                                    string
}

// idle reports whether nothing has happened today and nothing is to be done, as on the first
// day.
func (h *homeView) idle() bool {
	return len(h.running)+len(h.waiting)+len(h.paused)+len(h.review)+len(h.doneToday)+len(h.failedToday) == 0
}

// Wait is tasks that nobody takes, or that are paused, for the same reason.
type Wait struct {
	Reason task.Reason
	Agent  string // the agent that the reason is about; empty if it is about all
	Detail string // what that agent says is missing
	Tasks  []task.Task
}

// Fault is something that the server needs and cannot use.
type Fault struct {
	Name   string // a key of messages: readiness.NAME
	Detail string
}

// faults are those of now.
func (p *Pages) faults(ctx context.Context) []Fault {
	if p.Faults == nil {
		return nil
	}
	return p.Faults(ctx)
}

// waits are those of tasks that are in the queue. Those that are paused have a list of
// their own.
func (p *Pages) waits(ctx context.Context) ([]Wait, error) {
	if p.Waits == nil {
		return nil, nil
	}
	waits, err := p.Waits(ctx)
	return slices.DeleteFunc(waits, func(w Wait) bool {
		return !slices.ContainsFunc(w.Tasks, func(t task.Task) bool { return t.State == task.Queued })
	}), err
}

// agentView is an agent that has a token or a task.
type agentView struct {
	name   string
	seen   time.Time
	tasks  []task.Task
	unable task.Reason // why it takes no tasks; empty if it does
	detail string      // what it says is missing
}

func (p *Pages) showHome(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	now, err := p.readTasks(ctx)
	if err != nil {
		return nil, err
	}
	view := homeView{budget: p.Settings.Budget, since: now.revision, waits: now.waits, faults: now.faults}
	ended, err := p.Store.ListTasks(ctx, store.TaskFilter{
		States: []task.State{task.Done, task.Failed}, UpdatedSince: v.now.UTC().Truncate(24 * time.Hour),
	})
	if err != nil {
		return nil, err
	}
	for _, one := range append(now.active, ended...) {
		view.sort(one)
	}
	view.agents = agentViews(now.agents, view.running)
	if _, view.spent, err = p.Store.Spent(ctx, "", v.now); err != nil {
		return nil, err
	}
	if view.lacks, err = p.lacks(ctx, v); err != nil {
		return nil, err
	}
	return homePage(v, view), nil
}

func (h *homeView) sort(one task.Task) {
	if one.Type == task.Review && one.State.Active() {
		h.review = append(h.review, one)
	}
	switch one.State {
	case task.Running:
		h.running = append(h.running, one)
	case task.Queued:
		h.waiting = append(h.waiting, one)
	case task.Paused:
		h.paused = append(h.paused, one)
	case task.Done:
		h.doneToday = append(h.doneToday, one)
	case task.Failed:
		h.failedToday = append(h.failedToday, one)
	case task.Stopped:
	}
}

// agentViews are those who have a token and those who hold a task.
func agentViews(known []store.Agent, running []task.Task) (all []agentView) {
	for _, one := range known {
		all = append(all, agentView{name: one.Name, seen: one.SeenAt, unable: one.Unable, detail: one.Detail})
	}
	for _, one := range running {
		at := slices.IndexFunc(all, func(a agentView) bool {
			return a.name == one.Lease.Agent || strings.HasPrefix(one.Lease.Agent, a.name+"/")
		})
		if at < 0 {
			all = append(all, agentView{name: one.Lease.Agent})
			at = len(all) - 1
		}
		all[at].tasks = append(all[at].tasks, one)
	}
	return all
}

// Turn says of a task that waits why it is next, or is not. Turns stand in the
// order in which tasks are handed out.
type Turn struct {
	Task   task.ID
	Reason task.Reason
	Until  time.Time // when the reason may be over by itself; zero if that is not known
}

// queueView is the tasks, in the order in which they are or were taken.
type queueView struct {
	search, repository string
	state              string
	kind               string
	rows               []queueRow
	since              string
}

type queueRow struct {
	task.Task
	place int // in the queue; 0 for tasks that do not wait
	turn  Turn
}

func (p *Pages) showQueue(r *http.Request, v visit) (templ.Component, error) {
	query := r.URL.Query()
	view := queueView{search: query.Get("q"), state: query.Get("state"), kind: query.Get("type"), repository: query.Get("repository")}
	var err error
	if view.since, err = p.tasksRevision(r.Context()); err != nil {
		return nil, err
	}
	filter := store.TaskFilter{Repository: view.repository, States: []task.State{task.Queued, task.Running, task.Paused}}
	if task.Type(view.kind).Valid() {
		filter.Type = task.Type(view.kind)
	}
	switch state := task.State(view.state); {
	case state.Valid():
		filter.States = []task.State{state}
		if state.Terminal() {
			filter.UpdatedSince = v.now.Add(-recent)
		}
	case view.state == "all":
		filter.States, filter.UpdatedSince = nil, v.now.Add(-recent)
	}
	found, err := p.Store.ListTasks(r.Context(), filter)
	if err != nil {
		return nil, err
	}
	turns, err := p.turns(r.Context())
	if err != nil {
		return nil, err
	}
	places := make(map[task.ID]int, len(turns))
	for i, turn := range turns {
		places[turn.Task] = i + 1
	}
	for _, one := range found {
		if matches(one, view.search) {
			row := queueRow{Task: one, place: places[one.ID]}
			if row.place > 0 {
				row.turn = turns[row.place-1]
			}
			view.rows = append(view.rows, row)
		}
	}
	slices.SortStableFunc(view.rows, byTurn)
	return queuePage(v, view), nil
}

func (p *Pages) turns(ctx context.Context) ([]Turn, error) {
	if p.Order == nil {
		return nil, nil
	}
	return p.Order(ctx)
}

// byTurn puts what runs first, then the queue in its order, then the rest.
func byTurn(a, b queueRow) int {
	rank := func(row queueRow) int {
		switch {
		case row.State == task.Running:
			return 0
		case row.place > 0:
			return row.place
		case row.State == task.Queued:
			return 1 << 30
		case row.State == task.Paused:
			return 1<<30 + 1
		default:
			return 1<<30 + 2
		}
	}
	return rank(a) - rank(b)
}

func matches(one task.Task, search string) bool {
	text := strings.ToLower(one.Title + " " + one.Key.String() + " " + string(one.Role) + " " + one.Lease.Agent)
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// why says in words when it is the turn of a task that waits.
func (q queueRow) why(v visit) string {
	if q.place == 0 {
		return ""
	}
	return v.t("queue.place", strconv.Itoa(q.place), strconv.Itoa(q.Priority)) + " " + v.reason(q.turn.Reason)
}
