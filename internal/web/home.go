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

// homeList is how many tasks a list on the home page shows.
const homeList = 8

// recent is how far the queue page looks back for tasks that have ended.
const recent = 30 * 24 * time.Hour

func (p *Pages) registerHome(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.page(access.Viewer, p.showHome))
	mux.HandleFunc("GET /queue", p.page(access.Viewer, p.showQueue))
	everything := func(*http.Request) (string, look, error) { return "tasks", p.tasksRevision, nil }
	mux.HandleFunc("GET /live/tasks", p.changes(everything))
}

// homeView is how things stand.
type homeView struct {
	running, waiting, paused, review, doneToday, failedToday []task.Task
	agents                                                   []agentView
	spent                                                    store.Amount
	budget                                                   Budget
	since                                                    string
}

// agentView is an agent that has a token or a task.
type agentView struct {
	name  string
	tasks []task.Task
}

func (p *Pages) showHome(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	view := homeView{budget: p.Settings.Budget}
	var err error
	if view.since, err = p.tasksRevision(ctx); err != nil {
		return nil, err
	}
	active, err := p.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Queued, task.Running, task.Paused}})
	if err != nil {
		return nil, err
	}
	ended, err := p.Store.ListTasks(ctx, store.TaskFilter{
		States: []task.State{task.Done, task.Failed}, UpdatedSince: v.now.UTC().Truncate(24 * time.Hour),
	})
	if err != nil {
		return nil, err
	}
	for _, one := range append(active, ended...) {
		view.sort(one)
	}
	if view.agents, err = p.agents(ctx, view.running); err != nil {
		return nil, err
	}
	if _, view.spent, err = p.Store.Spent(ctx, "", v.now); err != nil {
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

// agents are those who hold a task and those who have a token.
func (p *Pages) agents(ctx context.Context, running []task.Task) ([]agentView, error) {
	tokens, err := p.Store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	var all []agentView
	place := func(name string) *agentView {
		at := slices.IndexFunc(all, func(a agentView) bool { return a.name == name })
		if at < 0 {
			all = append(all, agentView{name: name})
			at = len(all) - 1
		}
		return &all[at]
	}
	for _, token := range tokens {
		if token.Role == string(access.Agent) && token.RevokedAt.IsZero() {
			place(token.Name)
		}
	}
	for _, one := range running {
		agent := place(one.Lease.Agent)
		agent.tasks = append(agent.tasks, one)
	}
	return all, nil
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
	places, err := p.places(r.Context(), v.now)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		if matches(one, view.search) {
			view.rows = append(view.rows, queueRow{one, places[one.ID]})
		}
	}
	slices.SortStableFunc(view.rows, byTurn)
	return queuePage(v, view), nil
}

// places says at which place in the queue tasks are, from 1.
func (p *Pages) places(ctx context.Context, now time.Time) (map[task.ID]int, error) {
	next, err := p.Store.Candidates(ctx, now, 0)
	places := make(map[task.ID]int, len(next))
	for i, one := range next {
		places[one.ID] = i + 1
	}
	return places, err
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

// why says in words why a task is where it is.
func (q queueRow) why(v visit) string {
	if q.State == task.Queued && q.ReadyAt.After(v.now) {
		return v.t("queue.not_before")
	}
	if q.place > 0 {
		return v.t("queue.place", strconv.Itoa(q.place), strconv.Itoa(q.Priority))
	}
	return ""
}
