package broker

import (
	"cmp"
	"container/heap"
	"maps"
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
	// Served says for each repository when a task of it was handed out last. What is not
	// in it was never served.
	Served map[task.Repository]time.Time
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
//     that has waited longer: since a task of it was handed out last or, if that is later,
//     since its oldest task was assigned. So no repository waits for another's queue, and
//     one that was served does not wait for all that come after it.
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
		waiting := o.byRepository(queued[:same])
		queued = queued[same:]
		for range same {
			verdicts = append(verdicts, o.judge(waiting.next()))
			waiting.taken()
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

// line is the tasks of one repository that wait, in order. There is at least one.
type line struct {
	in    task.Repository
	tasks []task.Task
}

// lines is a heap of them: first comes the repository whose turn it is. What a decision
// changes about that is the place of the repository that it was about, and of no other.
type lines struct {
	*ordering
	all []line
}

// byRepository makes lines of sorted tasks.
func (o *ordering) byRepository(sorted []task.Task) *lines {
	at, made := map[task.Repository]int{}, &lines{ordering: o}
	for _, t := range sorted {
		in := t.Key.Repo()
		place, found := at[in]
		if !found {
			place = len(made.all)
			at[in] = place
			made.all = append(made.all, line{in: in})
		}
		made.all[place].tasks = append(made.all[place].tasks, t)
	}
	heap.Init(made)
	return made
}

// next is the task whose turn it is.
func (l *lines) next() task.Task { return l.all[0].tasks[0] }

// taken removes the task whose turn it was.
func (l *lines) taken() {
	if first := &l.all[0]; len(first.tasks) > 1 {
		first.tasks = first.tasks[1:]
		heap.Fix(l, 0)
	} else {
		heap.Pop(l)
	}
}

// Less reports whether it is the turn of one repository before another.
func (l *lines) Less(i, j int) bool {
	a, b := l.all[i], l.all[j]
	return cmp.Or(
		cmp.Compare(l.running[a.in], l.running[b.in]),
		l.waitsSince(a.in, a.tasks[0]).Compare(l.waitsSince(b.in, b.tasks[0])),
		compareAge(a.tasks[0], b.tasks[0]),
	) < 0
}

// Len is for the heap.
func (l *lines) Len() int { return len(l.all) }

// Swap is for the heap.
func (l *lines) Swap(i, j int) { l.all[i], l.all[j] = l.all[j], l.all[i] }

// Push is for the heap; nothing is put into it.
func (l *lines) Push(one any) {
	added, _ := one.(line) // there is nothing else in it
	l.all = append(l.all, added)
}

// Pop is for the heap.
func (l *lines) Pop() any {
	last := l.all[len(l.all)-1]
	l.all = l.all[:len(l.all)-1]
	return last
}

// ordering is a situation that changes with each decision.
type ordering struct {
	Situation
	items     map[task.Key]bool
	branches  map[branch]bool
	running   map[task.Repository]int
	held      map[string]int
	served    map[task.Repository]time.Time
	lastTurn  time.Time
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
		held: map[string]int{}, served: make(map[task.Repository]time.Time, len(s.Served)),
		agentUsed: make([]bool, len(s.Agents)), lastTurn: s.Now,
	}
	maps.Copy(o.served, s.Served)
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

// waitsSince is since when a repository waits whose oldest task is the given one.
func (o *ordering) waitsSince(in task.Repository, oldest task.Task) time.Time {
	if served := o.served[in]; served.After(oldest.AssignedAt) {
		return served
	}
	return oldest.AssignedAt
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
		o.lastTurn = o.lastTurn.Add(1) // so that what was served first is known
		o.served[in] = o.lastTurn
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
