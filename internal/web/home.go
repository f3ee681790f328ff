package web

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// homeStore is what the first page and the lists of tasks and agents need of the database.
type homeStore interface {
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	CountTasks(ctx context.Context, filter store.TaskFilter) (map[task.State]int, error)
	ListAgents(ctx context.Context) ([]store.Agent, error)
	Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay store.Amount, err error)
	ListBoardRepositories(ctx context.Context) ([]store.BoardRepository, error)
}

// homeList is how many tasks a list on the home page shows.
const homeList = 8

func (p *Pages) registerHome(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.page(access.Viewer, p.showHome))
	mux.HandleFunc("GET /queue", p.page(access.Viewer, p.showQueue))
	mux.HandleFunc("GET /agents", p.page(access.Viewer, p.showAgents))
	everything := func(*http.Request) (string, look, error) { return "tasks", p.whenHappened(p.tasksRevision, false), nil }
	mux.HandleFunc("GET /live/tasks", p.changes(everything))
	if p.Steering != nil {
		mux.HandleFunc("POST /queue/steer", p.signedIn(access.Operator, p.steerMany))
		mux.HandleFunc("POST /resume", p.act(action{name: "all.resume", role: access.Operator, do: func(r *http.Request, _ visit) (string, error) {
			return "/", p.Steering.ResumeAll(r.Context())
		}}))
	}
	p.registerLinks(mux)
}

// homeView is how things stand.
type homeView struct {
	needs                            []needGroup
	steered                          bool // buttons do something
	running, waiting, paused, review []task.Task
	done                             []task.Task        // today, those that were done last
	ended                            map[task.State]int // how many have ended today
	turns                            map[task.ID]Turn
	agents                           []agentRow
	spent                            store.Amount
	budget                           Budget
	lacks                            Lacks // what is not connected yet
	since                            string
}

// idle reports whether nothing has happened today and nothing is to be done, as on the first
// day.
func (h *homeView) idle() bool {
	return len(h.running)+len(h.waiting)+len(h.paused)+len(h.review)+h.ended[task.Done]+h.ended[task.Failed] == 0
}

func (p *Pages) showHome(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	now, err := p.tasksForPage(ctx)
	if err != nil {
		return nil, err
	}
	view := homeView{budget: p.Settings.Budget, since: now.revision, needs: needGroups(v, now.needs), steered: p.Steering != nil}
	today := store.TaskFilter{States: []task.State{task.Done, task.Failed}, UpdatedSince: v.now.UTC().Truncate(24 * time.Hour)}
	if view.ended, err = p.Store.CountTasks(ctx, today); err != nil {
		return nil, err
	}
	today.States, today.LastChanged, today.Limit = []task.State{task.Done}, true, homeList
	if view.done, err = p.Store.ListTasks(ctx, today); err != nil {
		return nil, err
	}
	for _, one := range now.active {
		view.sort(one)
	}
	view.addTurns(now.turns)
	view.agents = agentRows(v, now.agents, view.running)
	if _, view.spent, err = p.Store.Spent(ctx, "", v.now); err != nil {
		return nil, err
	}
	if view.lacks, err = p.lacks(ctx, v); err != nil {
		return nil, err
	}
	return homePage(v, view), nil
}

// addTurns puts the tasks that wait in the order in which they are handed out, with why each
// waits.
func (h *homeView) addTurns(turns []Turn) {
	h.turns = byTask(turns)
	queued := make(map[task.ID]task.Task, len(h.waiting))
	for _, one := range h.waiting {
		queued[one.ID] = one
	}
	var sorted []task.Task
	for _, turn := range turns {
		if one, found := queued[turn.Task]; found {
			sorted = append(sorted, one)
			delete(queued, turn.Task)
		}
	}
	for _, one := range h.waiting { // what came into the queue at this moment
		if _, left := queued[one.ID]; left {
			sorted = append(sorted, one)
		}
	}
	h.waiting = sorted
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
	case task.Done, task.Failed, task.Stopped:
	}
}
