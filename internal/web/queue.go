package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// mostListed is how many tasks a list is made of at most, the newest.
const mostListed = 5000

// queueView is the tasks, in the order in which they are or were taken unless the reader wants
// another.
type queueView struct {
	listing
	rows    []queueRow
	links   []store.SavedLink
	cut     bool   // there are more tasks than were looked at
	did     string // what was done with many tasks
	steered bool   // buttons do something
	since   string
}

type queueRow struct {
	task.Task
	why explanation
}

// place is where a task stands in the queue; 0 for one that does not wait for its turn.
func (q queueRow) place() int { return q.why.place }

// The names in the address that narrow the list of tasks.
const (
	stateName      = "state"
	typeName       = "type"
	repositoryName = "repository"
	reasonName     = "reason"
	allStates      = "all"
)

func (p *Pages) showQueue(r *http.Request, v visit) (templ.Component, error) {
	view := queueView{listing: readListing(r, stateName, typeName, repositoryName, reasonName), steered: p.Steering != nil, did: did(r, v)}
	var err error
	if view.since, err = p.tasksRevision(r.Context()); err != nil {
		return nil, err
	}
	if view.links, err = p.linksOf(r.Context(), v, view.path); err != nil {
		return nil, err
	}
	rows, err := p.queueRows(r.Context(), v, &view)
	if err != nil {
		return nil, err
	}
	view.rows = pageOf(&view.listing, rows)
	return queuePage(v, view), nil
}

// queueRows are the rows of all pages, in order.
func (p *Pages) queueRows(ctx context.Context, v visit, view *queueView) ([]queueRow, error) {
	found, err := p.Store.ListTasks(ctx, taskFilter(view.listing))
	if err != nil {
		return nil, err
	}
	view.cut = len(found) == mostListed
	turns, err := p.turns(ctx)
	if err != nil {
		return nil, err
	}
	of, at := byTask(turns), make(map[task.ID]int, len(turns))
	for i, turn := range turns {
		at[turn.Task] = i
	}
	rows := make([]queueRow, 0, len(found))
	for _, one := range found {
		row := queueRow{one, explanationOf(v, one, of[one.ID])}
		if one.State == task.Running && one.Phase != "" {
			row.why.reason = v.t("phase." + string(one.Phase))
		}
		if contains(view.search(), one.Title, one.Key.String(), string(one.ID), string(one.Role), one.Lease.Agent, one.LastAgent, string(row.why.code), row.why.reason, one.Detail) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b queueRow) int { return byTurn(a, b, at) })
	inOrder(view.listing, rows, queueColumns)
	return rows, nil
}

// taskFilter is what is read for a list of tasks.
func taskFilter(l listing) store.TaskFilter {
	filter := store.TaskFilter{Repository: l.get(repositoryName), Newest: true, Limit: mostListed}
	if kind := task.Type(l.get(typeName)); kind.Valid() {
		filter.Type = kind
	}
	if reason := l.get(reasonName); reason != "" {
		filter.Reasons = []task.Reason{task.Reason(reason)}
	}
	switch state := task.State(l.get(stateName)); {
	case state.Valid():
		filter.States = []task.State{state}
	case state != allStates:
		filter.States = []task.State{task.Queued, task.Running, task.Paused}
	}
	return filter
}

// queueColumns are the columns by which tasks can be put in order.
var queueColumns = columns[queueRow]{
	"place": func(a, b queueRow) int { return cmp.Compare(lastIfZero(a.place()), lastIfZero(b.place())) },
	"state": func(a, b queueRow) int {
		return cmp.Compare(slices.Index(task.States, a.State), slices.Index(task.States, b.State))
	},
	"title": byText(func(row queueRow) string { return row.Title }),
	"item": func(a, b queueRow) int {
		return cmp.Or(cmp.Compare(a.Key.Repo().String(), b.Key.Repo().String()), cmp.Compare(a.Key.Number, b.Key.Number))
	},
	"why":      byText(func(row queueRow) string { return row.why.reason }),
	"agent":    byText(func(row queueRow) string { return cmp.Or(row.Lease.Agent, row.LastAgent) }),
	"since":    byTime(func(row queueRow) timeOf { return row.UpdatedAt }),
	"priority": func(a, b queueRow) int { return cmp.Compare(a.Priority, b.Priority) },
}

// lastIfZero puts what has no place behind what has one.
func lastIfZero(place int) int {
	if place == 0 {
		return 1 << 30
	}
	return place
}

// byTurn puts what runs first, then the queue in its order, then what is paused, then the rest,
// newest first.
func byTurn(a, b queueRow, at map[task.ID]int) int {
	rank := func(row queueRow) int {
		switch place, waits := at[row.ID]; {
		case row.State == task.Running:
			return -1
		case row.State == task.Queued && waits:
			return place
		case row.State == task.Queued:
			return 1 << 30
		case row.State == task.Paused:
			return 1<<30 + 1
		default:
			return 1<<30 + 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), b.UpdatedAt.Compare(a.UpdatedAt))
}

// maxPicked is how many rows of a list something is done with at once.
const maxPicked = 200

// moves are what can be done with many tasks at once.
func (p *Pages) moves() map[string]func(context.Context, task.ID) error {
	return map[string]func(context.Context, task.ID) error{
		"stop": p.Steering.Stop, "pause": p.Steering.Pause, "resume": p.Steering.Resume, "retry": p.Steering.Retry,
	}
}

// steerMany does the same with several tasks. Each is in the audit log by itself. Those with
// which it cannot be done stay as they are, and are counted.
func (p *Pages) steerMany(w http.ResponseWriter, r *http.Request, v visit) {
	what := r.PostForm.Get("do")
	move, known := p.moves()[what]
	if !known {
		p.fail(w, r, v, task.Errorf(task.Invalid, "the form does not say what is to be done with the tasks"))
		return
	}
	done, refused := 0, 0
	for _, id := range r.PostForm["pick"] {
		err := p.audited(r.Context(), v.user.Login, "task."+what, "/tasks/"+id, func() error { return move(r.Context(), task.ID(id)) })
		switch task.CodeOf(err) {
		case "":
			done++
		case task.IllegalMove, task.NotFound, task.Conflict, task.Invalid, task.Forbidden:
			refused++
		default:
			p.fail(w, r, v, err)
			return
		}
	}
	next, err := url.Parse(safeNext(r.PostForm.Get("next")))
	if err != nil { // it was parsed before
		next = &url.URL{Path: "/queue"}
	}
	query := next.Query()
	query.Set(didName, fmt.Sprintf("%s-%d-%d", what, done, refused))
	next.RawQuery = query.Encode()
	http.Redirect(w, r, next.String(), http.StatusSeeOther)
}

// didName is where the address says what was done with many tasks.
const didName = "did"

// did says what was done with many tasks, by the address to which that has led.
func did(r *http.Request, v visit) string {
	parts := strings.Split(r.URL.Query().Get(didName), "-")
	if len(parts) != 3 || !slices.Contains([]string{"stop", "pause", "resume", "retry"}, parts[0]) {
		return ""
	}
	done, failed := strconv.Atoi(parts[1])
	refused, failedToo := strconv.Atoi(parts[2])
	if failed != nil || failedToo != nil || done < 0 || refused < 0 {
		return ""
	}
	text := v.t("queue.did", v.t("task."+parts[0]), done)
	if refused > 0 {
		text += " " + v.t("queue.refused", refused)
	}
	return text
}
