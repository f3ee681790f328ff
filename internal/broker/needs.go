package broker

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// failedLately is for how long a failed task, and an agent that is offline, wait for a
	// person. Later they are in the lists only.
	failedLately = 7 * 24 * time.Hour
	// mostFailures is how many failed tasks people are shown, those that failed last, and
	// mostTold how many are listed for those who tell people of each once.
	mostFailures = 100
	mostTold     = 2000
	// nearlySpent is from how many percent of the day's budget on people are told.
	nearlySpent = 90
)

// NeedStore is what is to be known of what waits for people.
type NeedStore interface {
	WaitStore
	Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay store.Amount, err error)
}

// Fault is something that the server needs and cannot use.
type Fault struct {
	Name   string // a key of messages: readiness.NAME
	Detail string
}

// Needs lists what waits for a person. It is the one place that knows: pages, API, command
// line and notifications all ask it. Store and Now have to be set.
type Needs struct {
	Store  NeedStore
	Limits Limits
	// Day is what models may use in a day; 0 means no limit.
	Day store.Amount
	Now func() time.Time
	// Waits says what tasks wait for; nil means that it is read each time.
	Waits func(ctx context.Context) ([]Wait, error)
	// Faults says what the server cannot use; nil means nothing.
	Faults func(ctx context.Context) []Fault
}

// List returns what waits for a person now, in the order of [task.NeedKinds], and within a kind
// what waits longest first, but failures newest first. Of these there are the newest only.
func (n *Needs) List(ctx context.Context) ([]task.Need, error) {
	found, _, err := n.list(ctx, mostFailures)
	return found, err
}

// All is like List with many more failures, for those who remember of what they have told people.
// Whole is false if there may be failures that are not among them: a failure that is not listed
// then may wait still.
func (n *Needs) All(ctx context.Context) (found []task.Need, whole bool, err error) {
	return n.list(ctx, mostTold)
}

func (n *Needs) list(ctx context.Context, failures int) (found []task.Need, whole bool, err error) {
	now := n.Now()
	waits, err := n.waits(ctx, now)
	if err != nil {
		return nil, false, err
	}
	pauses, err := n.Store.GeneralPauses(ctx)
	if err != nil {
		return nil, false, err
	}
	running, err := n.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running}})
	if err != nil {
		return nil, false, err
	}
	agents, err := n.Store.ListAgents(ctx)
	if err != nil {
		return nil, false, err
	}
	failed, err := n.Store.ListTasks(ctx, store.TaskFilter{
		States: []task.State{task.Failed}, UpdatedSince: now.Add(-failedLately), LastChanged: true, Limit: failures,
	})
	if err != nil {
		return nil, false, err
	}
	_, spent, err := n.Store.Spent(ctx, "", now)
	if err != nil {
		return nil, false, err
	}
	if n.Faults != nil {
		found = append(found, faultNeeds(n.Faults(ctx))...)
	}
	found = append(found, pauseNeeds(pauses, waits)...)
	found = append(found, agentNeeds(agents, running, waits, now)...)
	found = append(found, waitNeeds(waits, found)...)
	found = append(found, taskNeeds(task.NeedFailure, failed)...)
	found = append(found, n.budgetNeeds(spent, waits, now)...)
	slices.SortStableFunc(found, compareNeeds)
	return found, len(failed) < failures, nil
}

func (n *Needs) waits(ctx context.Context, now time.Time) ([]Wait, error) {
	if n.Waits != nil {
		return n.Waits(ctx)
	}
	return Waits(ctx, n.Store, n.Limits, now)
}

// compareNeeds orders needs by their kind, and those of one kind by since when they wait.
func compareNeeds(a, b task.Need) int {
	since := a.Since.Compare(b.Since)
	if a.Kind == task.NeedFailure {
		since = -since
	}
	return cmp.Or(
		cmp.Compare(slices.Index(task.NeedKinds, a.Kind), slices.Index(task.NeedKinds, b.Kind)),
		since, cmp.Compare(a.Key, b.Key),
	)
}

func faultNeeds(faults []Fault) (needs []task.Need) {
	for _, fault := range faults {
		needs = append(needs, task.Need{Key: "server/" + fault.Name, Kind: task.NeedServer, Subject: fault.Name, Detail: fault.Detail})
	}
	return needs
}

// pauseNeeds says who has paused everything. It is one need for each who did: it goes on when
// all of them have taken it back.
func pauseNeeds(pauses []store.GeneralPause, waits []Wait) (needs []task.Need) {
	waiting := len(tasksFor(waits, task.ReasonAllPaused))
	for _, pause := range pauses {
		needs = append(needs, task.Need{
			Key: "pause/" + pause.Source + "/" + stamp(pause.At), Kind: task.NeedPause, Reason: task.ReasonAllPaused,
			Since: pause.At, Subject: pause.Source, By: pause.By, Tasks: waiting,
		})
	}
	return needs
}

// agentNeeds are the agents that are not heard of, and those that say that they can take no
// tasks.
func agentNeeds(agents []store.Agent, running []task.Task, waits []Wait, now time.Time) (needs []task.Need) {
	for _, agent := range agents {
		if !agent.RevokedAt.IsZero() || holdsAny(agent, running) {
			continue
		}
		need := task.Need{Kind: task.NeedAgent, Subject: agent.Name, Since: agent.SeenAt}
		switch {
		case agent.Silent(now):
			if now.Sub(agent.SeenAt) > failedLately && now.Sub(agent.EnrolledAt) > failedLately {
				continue
			}
			need.Reason = task.ReasonAgentsSilent
			need.Key = "agent/" + agent.Token + "/offline"
		case agent.Unable != "":
			// It is heard of all the time: since when it is so is not known.
			need.Reason, need.Detail, need.Since = agent.Unable, agent.Detail, time.Time{}
			need.Key = "agent/" + agent.Token + "/" + string(agent.Unable)
			need.Tasks = len(tasksOf(waits, agent.Unable, agent.Name))
		default:
			continue
		}
		needs = append(needs, need)
	}
	return needs
}

// waitNeeds are the questions and the plans of tasks, and the reasons for which nobody takes
// tasks that no other need tells of.
func waitNeeds(waits []Wait, told []task.Need) (needs []task.Need) {
	for _, wait := range waits {
		switch wait.Reason { //nolint:exhaustive // the others are about many tasks at once
		case task.ReasonAwaitingAnswer:
			needs = append(needs, taskNeeds(task.NeedAnswer, wait.Tasks)...)
		case task.ReasonAwaitingApproval:
			needs = append(needs, taskNeeds(task.NeedApproval, wait.Tasks)...)
		case task.ReasonBudgetExhausted:
			needs = append(needs, taskNeeds(task.NeedBudget, wait.Tasks)...)
		case task.ReasonPauseRequested, task.ReasonAllPaused:
			// A person wants it so; a pause of everything is a need of its own.
		default:
			if toldOf(told, wait) {
				continue
			}
			need := task.Need{
				Key: "tasks/" + string(wait.Reason) + "/" + wait.Agent, Kind: task.NeedTasks, Reason: wait.Reason,
				Subject: wait.Agent, Detail: wait.Detail, Tasks: len(wait.Tasks),
				OfTasks: !slices.ContainsFunc(wait.Tasks, func(t task.Task) bool { return t.Reason != wait.Reason }),
			}
			for _, t := range wait.Tasks {
				if need.Since.IsZero() || t.UpdatedAt.Before(need.Since) {
					need.Since = t.UpdatedAt
				}
			}
			needs = append(needs, need)
		}
	}
	return needs
}

// toldOf reports whether a need about an agent says already what the wait says.
func toldOf(needs []task.Need, wait Wait) bool {
	return slices.ContainsFunc(needs, func(need task.Need) bool {
		return need.Kind == task.NeedAgent && need.Reason == wait.Reason && need.Subject == wait.Agent
	})
}

func taskNeeds(kind task.NeedKind, tasks []task.Task) (needs []task.Need) {
	for _, t := range tasks {
		needs = append(needs, taskNeed(kind, t))
	}
	return needs
}

// taskNeed is a need about one task. Each time that the task comes to its state it is another
// one: a resumed task can ask again in the same generation only after it was queued in a new one.
func taskNeed(kind task.NeedKind, t task.Task) task.Need {
	return task.Need{
		Key: string(kind) + "/" + string(t.ID) + "/" + strconv.FormatInt(t.Generation, 10), Kind: kind, Reason: t.Reason,
		Since: t.UpdatedAt, Task: &t, Detail: t.Detail, Hint: t.Hint,
	}
}

// budgetNeeds says that the budget of the day is used up, or nearly. Each task that waits for a
// budget, that of the day or its own, is a need besides: it does not go on by itself.
func (n *Needs) budgetNeeds(spent store.Amount, waits []Wait, now time.Time) []task.Need {
	day := now.UTC().Format(time.DateOnly)
	need := task.Need{Kind: task.NeedBudget, Percent: shareOf(spent, n.Day)}
	switch {
	case need.Percent >= 100:
		need.Key, need.Reason, need.Tasks = "budget/used/"+day, task.ReasonBudgetExhausted, len(tasksFor(waits, task.ReasonBudgetExhausted))
	case need.Percent >= nearlySpent:
		need.Key = "budget/nearly/" + day // nothing has stopped: there is no reason yet
	default:
		return nil
	}
	return []task.Need{need}
}

// shareOf is how many percent of a limit are used, the larger of both; 0 without a limit.
func shareOf(spent, limit store.Amount) int {
	percent := int64(0)
	if limit.Money > 0 {
		percent = spent.Money * 100 / limit.Money
	}
	if limit.Tokens > 0 {
		percent = max(percent, spent.Tokens*100/limit.Tokens)
	}
	return int(percent)
}

// tasksFor are the tasks that wait for a reason.
func tasksFor(waits []Wait, reason task.Reason) (tasks []task.Task) {
	for _, wait := range waits {
		if wait.Reason == reason {
			tasks = append(tasks, wait.Tasks...)
		}
	}
	return tasks
}

// tasksOf are the tasks that wait for a reason that is about an agent, or about nobody in
// particular.
func tasksOf(waits []Wait, reason task.Reason, agent string) (tasks []task.Task) {
	for _, wait := range waits {
		if wait.Reason == reason && (wait.Agent == agent || wait.Agent == "") {
			tasks = append(tasks, wait.Tasks...)
		}
	}
	return tasks
}

// stamp is a moment in a key.
func stamp(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return strconv.FormatInt(at.Unix(), 10)
}
