package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// agentLately is how far back it is counted what an agent did.
const agentLately = 7 * 24 * time.Hour

// The states of agents, as people see them.
const (
	agentWorking = "working"
	agentIdle    = "idle"
	agentUnable  = "unable"
	agentOffline = "offline"
	agentRevoked = "revoked"
)

// agentStates lists them in the order in which they are shown.
var agentStates = []string{agentWorking, agentIdle, agentUnable, agentOffline, agentRevoked}

// agentRow is an agent, what it does and what it did.
type agentRow struct {
	store.Agent
	state  string
	tasks  []task.Task // that it holds
	done   int         // tasks that it has ended lately
	failed int
	last   *task.Task // the one that it has ended last
}

// is reports whether a run was one of the agent: of its own name, or of one of those that share
// its token, which are known by its name and theirs.
func (a *agentRow) is(agent string) bool {
	return agent == a.Name || strings.HasPrefix(agent, a.Name+"/")
}

// agentRows are those that have a token, and those that hold a task.
func agentRows(v visit, known []store.Agent, running []task.Task) []agentRow {
	all := make([]agentRow, 0, len(known))
	for _, one := range known {
		all = append(all, agentRow{Agent: one})
	}
	for _, one := range running {
		at := agentOf(all, one.Lease.Agent)
		if at < 0 {
			all = append(all, agentRow{Agent: store.Agent{Name: one.Lease.Agent, SeenAt: v.now, EnrolledAt: v.now}})
			at = len(all) - 1
		}
		all[at].tasks = append(all[at].tasks, one)
	}
	for i := range all {
		all[i].state = all[i].stateAt(v.now)
	}
	return all
}

// agentOf is where the agent is whose run it was, -1 if it is not there. A new agent may have the
// name of one whose token was revoked.
func agentOf(all []agentRow, name string) int {
	found := -1
	for i, one := range all {
		if !one.is(name) {
			continue
		}
		if found = i; one.RevokedAt.IsZero() {
			return i
		}
	}
	return found
}

func (a *agentRow) stateAt(now time.Time) string {
	switch {
	case !a.RevokedAt.IsZero():
		return agentRevoked
	case len(a.tasks) > 0:
		return agentWorking
	case a.Silent(now):
		return agentOffline
	case a.Unable != "":
		return agentUnable
	default:
		return agentIdle
	}
}

// badge is the colour of the state of an agent.
func (a *agentRow) badge() string {
	switch a.state {
	case agentWorking:
		return "running"
	case agentIdle:
		return "ok"
	case agentUnable, agentOffline:
		return "bad"
	default:
		return "stopped"
	}
}

// agentsView is the agents.
type agentsView struct {
	listing
	rows    []agentRow
	links   []store.SavedLink
	revoked int // how many are out of sight
	since   string
}

func (p *Pages) showAgents(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	view := agentsView{listing: readListing(r, stateName)}
	now, err := p.readTasks(ctx)
	if err != nil {
		return nil, err
	}
	view.since = now.revision
	if view.links, err = p.linksOf(ctx, v, view.path); err != nil {
		return nil, err
	}
	all, err := p.readAgents(ctx, v, now.active)
	if err != nil {
		return nil, err
	}
	rows := make([]agentRow, 0, len(all))
	for _, row := range all {
		switch wanted := view.get(stateName); {
		case !contains(view.search(), row.Name, row.Detail):
		case wanted == row.state, wanted == allStates, wanted == "" && row.state != agentRevoked:
			rows = append(rows, row)
		case wanted == "" && row.state == agentRevoked:
			view.revoked++
		}
	}
	slices.SortStableFunc(rows, byState)
	inOrder(view.listing, rows, agentColumns)
	view.rows = pageOf(&view.listing, rows)
	return agentsPage(v, view), nil
}

// agentColumns are the columns by which agents can be put in order.
var agentColumns = columns[agentRow]{
	"name":  byText(func(row agentRow) string { return row.Name }),
	"state": byState,
	"seen":  byTime(func(row agentRow) timeOf { return row.SeenAt }),
	"done":  func(a, b agentRow) int { return cmp.Compare(a.done+a.failed, b.done+b.failed) },
}

func byState(a, b agentRow) int {
	return cmp.Compare(slices.Index(agentStates, a.state), slices.Index(agentStates, b.state))
}

// readAgents reads all agents, what they do, and what they did lately. Active is all tasks that
// have not ended.
func (p *Pages) readAgents(ctx context.Context, v visit, active []task.Task) ([]agentRow, error) {
	known, err := p.Store.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	lately, err := p.Store.ListTasks(ctx, store.TaskFilter{
		States: endedStates, UpdatedSince: v.now.Add(-agentLately), LastChanged: true, Limit: mostListed,
	})
	if err != nil {
		return nil, err
	}
	running := slices.DeleteFunc(slices.Clone(active), func(t task.Task) bool { return t.State != task.Running })
	rows := agentRows(v, known, running)
	at := map[string]int{} // by what the runs are known by
	for _, one := range lately {
		if one.LastAgent == "" {
			continue
		}
		i, known := at[one.LastAgent]
		if !known {
			i = agentOf(rows, one.LastAgent)
			at[one.LastAgent] = i
		}
		if i >= 0 {
			rows[i].add(one)
		}
	}
	return rows, nil
}

// add counts a task that the agent has ended.
func (a *agentRow) add(one task.Task) {
	switch one.State { //nolint:exhaustive // one that was stopped is neither
	case task.Done:
		a.done++
	case task.Failed:
		a.failed++
	}
	if a.last == nil || one.UpdatedAt.After(a.last.UpdatedAt) {
		a.last = &one
	}
}
