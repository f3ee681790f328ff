package messages

import (
	"cmp"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// NeedText is what is said of something that waits for a person. What is empty is not said.
// Names and titles of others are in What as they are, of any length: who shows it makes it fit.
type NeedText struct {
	What string // a headline
	Why  string // the reason, where the headline does not say it
	Fix  string // what can be done, as a part of a sentence
}

// Need says in words what waits for a person.
func Need(in task.Language, need task.Need) NeedText {
	said := NeedText{Why: Reason(in, need.Reason), Fix: cmp.Or(need.Hint, Fix(in, need.Reason))}
	switch need.Kind {
	case task.NeedServer:
		said.What, said.Why = Text(in, "needs.server"), cmp.Or(texts(in)["readiness."+need.Subject], need.Subject)
	case task.NeedPause:
		said.What, said.Why = Text(in, "needs.paused", PausedBy(in, cmp.Or(need.By, need.Subject))), waiting(in, need.Tasks)
	case task.NeedTasks:
		said.What = Text(in, "needs.tasks", need.Tasks)
	case task.NeedAnswer:
		said.What, said.Why = about(in, "needs.answer", need), ""
	case task.NeedApproval:
		said.What, said.Why = about(in, "needs.approval", need), ""
	case task.NeedFailure:
		said.What = about(in, "needs.failure", need)
	case task.NeedAgent:
		said.What = Text(in, "needs.agent_unable", need.Subject)
		if need.Reason == task.ReasonAgentsSilent {
			said.What, said.Why = Text(in, "needs.agent_offline", need.Subject), ""
		}
	case task.NeedBudget:
		return budget(in, need, said)
	}
	return said
}

// PausedBy is who has paused everything: logins, and sources of pauses.
func PausedBy(in task.Language, who ...string) string {
	named := make([]string, len(who))
	for i, one := range who {
		named[i] = one
		if one == "operator" { // nobody knows which
			named[i] = Text(in, "needs.operator")
		}
	}
	return strings.Join(named, Text(in, "needs.and"))
}

// about is a headline about one task.
func about(in task.Language, key string, need task.Need) string {
	if need.Task == nil {
		return Text(in, key, "", "")
	}
	return Text(in, key, need.Task.Title, need.Task.Key.String())
}

// budget is what is said of a task that waits for a budget, and of the budget of the day.
func budget(in task.Language, need task.Need, said NeedText) NeedText {
	switch {
	case need.Task != nil:
		said.What, said.Why = about(in, "needs.budget_task", need), ""
	case need.Percent >= 100:
		said.What, said.Why = Text(in, "needs.budget_used"), waiting(in, need.Tasks)
	default:
		said.What, said.Fix = Text(in, "needs.budget_nearly", need.Percent), Text(in, "needs.budget_nearly_fix")
	}
	return said
}

// waiting says how many tasks wait; nothing if none does.
func waiting(in task.Language, tasks int) string {
	if tasks == 0 {
		return ""
	}
	return Text(in, "needs.tasks", tasks)
}
