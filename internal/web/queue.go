package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// queueView is the tasks, in the order in which they are or were taken unless the reader wants
// another.
type queueView struct {
	listing
	rows    []queueRow
	links   []store.SavedLink
	older   string // the address of the tasks that were not looked at; "" if there are none
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
	view := queueView{listing: readListing(r, stateName, typeName, repositoryName, reasonName, beforeName), steered: p.Steering != nil, did: did(r, v)}
	now, err := p.tasksForPage(r.Context())
	if err != nil {
		return nil, err
	}
	view.since = now.revision
	if view.links, err = p.linksOf(r.Context(), v, view.path); err != nil {
		return nil, err
	}
	rows, err := p.queueRows(r.Context(), v, &view, now)
	if err != nil {
		return nil, err
	}
	view.rows = pageOf(&view.listing, rows)
	return queuePage(v, view), nil
}

// queueRows are the rows of all pages, in order. Tasks that have not ended are known already, and all
// who look at the same list of them share its rows: nobody changes them. Of the others no more are read
// than a list has.
func (p *Pages) queueRows(ctx context.Context, v visit, view *queueView, now tasksNow) ([]queueRow, error) {
	if filter := taskFilter(view.listing); slices.ContainsFunc(filter.States, task.State.Terminal) || len(filter.States) == 0 {
		found, err := p.Store.ListTasks(ctx, filter)
		if err == nil && len(found) == mostListed {
			view.older = view.with(beforeName, string(found[len(found)-1].ID))
		}
		return queueRowsOf(v, view, found, now.turns), err
	}
	return now.rows.get(string(v.language)+" "+view.here(), func() []queueRow {
		filter := taskFilter(view.listing)
		found := slices.DeleteFunc(slices.Clone(now.active), func(t task.Task) bool { return !passes(filter, t) })
		return queueRowsOf(v, view, found, now.turns)
	}), nil
}

// queueRowsOf are the rows of those of the tasks that are searched for, in order.
func queueRowsOf(v visit, view *queueView, found []task.Task, turns []Turn) []queueRow {
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
	return rows
}

// passes reports whether a task passes what a list of tasks can be narrowed to.
func passes(filter store.TaskFilter, t task.Task) bool {
	return slices.Contains(filter.States, t.State) &&
		(filter.Before == "" || t.ID < filter.Before) &&
		(filter.Type == "" || filter.Type == t.Type) &&
		(filter.Repository == "" || filter.Repository == t.Key.Repository) &&
		(len(filter.Reasons) == 0 || slices.Contains(filter.Reasons, t.Reason))
}

// taskFilter is what is read for a list of tasks.
func taskFilter(l listing) store.TaskFilter {
	filter := store.TaskFilter{Repository: l.get(repositoryName), Before: task.ID(l.get(beforeName)), Newest: true, Limit: mostListed}
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
		filter.States = activeStates
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
	"why":   byText(func(row queueRow) string { return row.why.reason }),
	"agent": byText(func(row queueRow) string { return cmp.Or(row.Lease.Agent, row.LastAgent) }),
	"since": byTime(func(row queueRow) timeOf { return row.UpdatedAt }),
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
