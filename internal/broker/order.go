package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Limits says how many tasks may run at the same time. 0 means no limit.
type Limits struct {
	PerRepository int
	PerAgent      int
}

// Situation is everything that what is next depends on.
type Situation struct {
	Now     time.Time
	Queued  []task.Task
	Running []task.Task
	// Agents are those that ask for a task, longest waiting first; an agent that
	// asks twice is there twice.
	Agents []string
	Limits Limits
	// Served says for each repository when a task of it was handed out last: any
	// numbers that grow. What is not in it was never served.
	Served map[task.Repository]int64
}

// Verdict is what the order says of one queued task.
type Verdict struct {
	Task task.Task
	// Reason is [task.ReasonNext] if the task is handed out, and else why not.
	Reason task.Reason
	Agent  int       // index of the agent that is given the task; -1 for none
	Until  time.Time // when the reason may be over by itself; zero if that is not known
}

// reviewerGrace is how long a review that only its author could take waits for
// another agent, who may be asking another server.
const reviewerGrace = 2 * time.Second

// itsAgentGrace is how long a task whose agent was started again waits for that agent,
// which is about to ask and has the files of the run.
const itsAgentGrace = 2 * time.Second

// Order decides what is next: which of the queued tasks are handed out now, and to
// which of the agents. It is the only place that does. The verdicts stand in the
// order of the decision, those that are next first among those that could be.
//
//  1. What an agent had in its hands that was started again comes first, since it
//     was running; for a moment only that agent may have it. Then come reviews that are due, then what reviewers asked for, then
//     development.
//  2. Within these, the higher priority comes first.
//  3. Then the repository of which fewer tasks are running, and of those the one
//     that was served longer ago: so no repository waits for another's queue.
//  4. Then what was assigned longer ago.
//
// A task is passed over while its time has not come, while an item that it is
// blocked by is open, while another task on its item or branch is running, while
// its repository runs as many tasks as it may, and while no agent is there that
// may take it. An agent may hold so many tasks, and does not review what it wrote
// itself if another one is there or may come soon.
func Order(s Situation) []Verdict {
	o := newOrdering(s)
	verdicts := make([]Verdict, 0, len(s.Queued))
	queued := slices.SortedFunc(slices.Values(s.Queued), compareAlone)
	for len(queued) > 0 {
		same := sameRank(queued)
		lines := byRepository(queued[:same])
		queued = queued[same:]
		for range same {
			in := o.nextRepository(lines)
			verdicts = append(verdicts, o.judge(lines[in][0]))
			if lines[in] = lines[in][1:]; len(lines[in]) == 0 {
				delete(lines, in)
			}
		}
	}
	return verdicts
}

// compareAlone orders two tasks by what they are, whatever else is going on.
func compareAlone(a, b task.Task) int {
	return cmp.Or(compareRank(a, b), compareAge(a, b))
}

func compareRank(a, b task.Task) int {
	return cmp.Or(compareInterrupted(a, b), cmp.Compare(a.Lane(), b.Lane()), cmp.Compare(b.Priority, a.Priority))
}

func compareInterrupted(a, b task.Task) int {
	switch {
	case a.Interrupted() == b.Interrupted():
		return 0
	case a.Interrupted():
		return -1
	default:
		return 1
	}
}

func compareAge(a, b task.Task) int {
	return cmp.Or(a.AssignedAt.Compare(b.AssignedAt), cmp.Compare(a.ID, b.ID))
}

// sameRank returns how many of the sorted tasks are in one lane with one priority.
func sameRank(sorted []task.Task) int {
	for i := range sorted {
		if compareRank(sorted[0], sorted[i]) != 0 {
			return i
		}
	}
	return len(sorted)
}

func byRepository(sorted []task.Task) map[task.Repository][]task.Task {
	lines := map[task.Repository][]task.Task{}
	for _, t := range sorted {
		in := t.Key.Repo()
		lines[in] = append(lines[in], t)
	}
	return lines
}

// ordering is a situation that changes with each decision.
type ordering struct {
	Situation
	items     map[task.Key]bool
	branches  map[branch]bool
	running   map[task.Repository]int
	held      map[string]int
	served    map[task.Repository]int64
	nextTurn  int64
	agentUsed []bool
	agentFrom int // those before are used
}

type branch struct {
	in   task.Repository
	name string
}

func newOrdering(s Situation) *ordering {
	o := &ordering{
		Situation: s, items: map[task.Key]bool{}, branches: map[branch]bool{}, running: map[task.Repository]int{},
		held: map[string]int{}, served: make(map[task.Repository]int64, len(s.Served)),
		agentUsed: make([]bool, len(s.Agents)),
	}
	for repository, turn := range s.Served {
		o.served[repository] = turn
		o.nextTurn = max(o.nextTurn, turn)
	}
	for _, t := range s.Running {
		o.begin(t, t.Lease.Agent)
	}
	return o
}

// begin counts a task as running.
func (o *ordering) begin(t task.Task, agent string) {
	in := t.Key.Repo()
	o.items[t.Key] = true
	if t.Branch != "" {
		o.branches[branch{in, t.Branch}] = true
	}
	o.running[in]++
	o.held[agent]++
}

// nextRepository returns the repository whose turn it is.
func (o *ordering) nextRepository(lines map[task.Repository][]task.Task) (next task.Repository) {
	found := false
	for in, line := range lines {
		if !found || cmp.Or(
			cmp.Compare(o.running[in], o.running[next]),
			cmp.Compare(o.served[in], o.served[next]),
			compareAge(line[0], lines[next][0]),
		) < 0 {
			next, found = in, true
		}
	}
	return next
}

// judge decides on one task, and if it is handed out counts it as running.
func (o *ordering) judge(t task.Task) Verdict {
	in := t.Key.Repo()
	verdict := Verdict{Task: t, Agent: -1}
	switch {
	case t.ReadyAt.After(o.Now):
		verdict.Reason, verdict.Until = task.ReasonNotReady, t.ReadyAt
	case t.BlockedBy != "":
		verdict.Reason = task.ReasonBlocked
	case o.items[t.Key] || t.Branch != "" && o.branches[branch{in, t.Branch}]:
		verdict.Reason = task.ReasonItemBusy
	case o.Limits.PerRepository > 0 && o.running[in] >= o.Limits.PerRepository:
		verdict.Reason = task.ReasonRepositoryFull
	default:
		o.choose(&verdict)
	}
	if verdict.Reason == task.ReasonNext {
		o.agentUsed[verdict.Agent] = true
		o.begin(t, o.Agents[verdict.Agent])
		o.nextTurn++
		o.served[in] = o.nextTurn
	}
	return verdict
}

// choose finds the agent for a task that could be handed out.
func (o *ordering) choose(verdict *Verdict) {
	verdict.Reason = task.ReasonNoAgent
	for o.agentFrom < len(o.Agents) && o.agentUsed[o.agentFrom] {
		o.agentFrom++
	}
	itsAgent, until := o.itsAgent(verdict.Task)
	author := -1
	for i := o.agentFrom; i < len(o.Agents); i++ {
		agent := o.Agents[i]
		switch {
		case o.agentUsed[i]:
		case itsAgent != "" && agent != itsAgent:
			verdict.Reason, verdict.Until = task.ReasonWaitsForItsAgent, until
		case o.Limits.PerAgent > 0 && o.held[agent] >= o.Limits.PerAgent:
			verdict.Reason = task.ReasonAgentsFull
		case verdict.Task.Author != "" && agent == verdict.Task.Author:
			author = i
		default:
			verdict.Reason, verdict.Agent, verdict.Until = task.ReasonNext, i, time.Time{}
			return
		}
	}
	if author < 0 {
		return
	}
	if until := verdict.Task.AssignedAt.Add(reviewerGrace); o.Now.Before(until) {
		verdict.Reason, verdict.Until = task.ReasonWaitsForReviewer, until
		return
	}
	verdict.Reason, verdict.Agent = task.ReasonNext, author
}

// itsAgent is the agent that alone may have a task, and until when: the one that was
// started again in the middle of it. It is empty if any may.
func (o *ordering) itsAgent(t task.Task) (agent string, until time.Time) {
	until = t.UpdatedAt.Add(itsAgentGrace)
	if !t.Interrupted() || !o.Now.Before(until) {
		return "", time.Time{}
	}
	return t.LastAgent, until
}
