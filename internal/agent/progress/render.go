package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// What is shown at most.
const (
	maxActions = 60
	maxLedger  = 40
)

// text is a text in the language of the comment.
func (c *Comment) text(key string, args ...any) string {
	return messages.Text(c.language, key, args...)
}

// Text is the comment as it is to be now.
func (c *Comment) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := []string{"## " + c.heading(), c.about(), c.phaseLine()}
	for _, part := range []string{c.planList(), c.list("progress.warnings_heading", c.warnings), c.list("progress.notes_heading", c.notes), c.counts(), c.ledgerTable()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "\n\n") + "\n"
	if room := c.options.Limit - len(text); room > 0 {
		return text + c.folded(room)
	}
	return c.cut(text)
}

// cut shortens at the end of a line, and says so.
func (c *Comment) cut(text string) string {
	note := "\n\n" + c.text("progress.cut") + "\n"
	keep := text[:max(0, c.options.Limit-len(note))]
	if at := strings.LastIndex(keep, "\n"); at > 0 {
		keep = keep[:at]
	}
	return keep + note
}

// heading says how the run stands.
func (c *Comment) heading() string {
	state := task.Running
	switch {
	case c.halt != nil && c.halt.Signal == task.SignalStop:
		state = task.Stopped
	case c.halt != nil:
		state = task.Paused
	case c.ended != "":
		state = c.ended
	}
	if heading, found := notice.Heading(state, c.language); found {
		return heading
	}
	if state == task.Done {
		return c.text("progress.finished")
	}
	return c.text("progress.working")
}

// about names the task.
func (c *Comment) about() string {
	work := c.options.Work
	lines := []string{c.text("progress.task", inline(work.Title, 200))}
	if work.Role != "" {
		lines = append(lines, c.text("progress.role", inline(string(work.Role), 60)))
	}
	if work.Branch != "" {
		lines = append(lines, c.text("progress.branch", strings.ReplaceAll(work.Branch, "`", "'")))
	}
	if c.setup != nil {
		status := c.text("progress.succeeded")
		if c.setup.Handover.SetupStatus != environment.Succeeded {
			status = c.text("progress.failed")
		}
		lines = append(lines, c.text("progress.environment", inline(c.setup.Handover.EnvironmentName, 60), status))
	}
	if c.halt != nil {
		if text := messages.Reason(c.language, c.halt.Reason); text != "" {
			lines = append(lines, c.text("progress.reason", text))
		}
	}
	text := strings.Join(lines, "  \n")
	if c.scripted {
		text += "\n\n> " + c.text("progress.scripted")
	}
	return text
}

// phaseName is a phase in the language of the comment. In English it is the name that the
// specification gives it.
func (c *Comment) phaseName(p task.Phase) string {
	if c.language == task.Japanese {
		return c.text("phase." + string(p))
	}
	return p.DisplayName()
}

// phaseLine shows all phases, with the active one marked.
func (c *Comment) phaseLine() string {
	var names []string
	for _, p := range task.Phases {
		name := c.phaseName(p)
		switch {
		case p == c.active:
			name = "**▶ " + name + "**"
		case c.phases[p] == phase.PhaseCompleted:
			name = "✔ " + name
		case c.phases[p] == phase.PhaseFailed:
			name = "✖ " + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " → ")
}

func (c *Comment) planList() string {
	if c.plan == nil || len(c.plan.ActionPlan.Actions) == 0 {
		return ""
	}
	actions := c.plan.ActionPlan.Actions
	done := 0
	var lines []string
	for i, action := range actions {
		mark := " "
		if action.Done {
			mark = "x"
			done++
		}
		if i < maxActions {
			lines = append(lines, fmt.Sprintf("- [%s] %s", mark, inline(action.What, 200)))
		}
	}
	if left := len(actions) - maxActions; left > 0 {
		lines = append(lines, "- "+c.text("progress.more", left))
	}
	return c.text("progress.plan_heading", done, len(actions)) + "\n\n" + strings.Join(lines, "\n")
}

// list shows lines that are fit to be shown.
func (c *Comment) list(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return c.text(heading) + "\n\n- " + strings.Join(lines, "\n- ")
}

func (c *Comment) counts() string {
	if c.step == 0 && c.calls == 0 {
		return ""
	}
	return c.text("progress.counts", c.step, c.calls, c.failed, textfmt.Count(c.usage.Input), textfmt.Count(c.usage.Cached), textfmt.Count(c.usage.Output), c.cost)
}

// ledgerTable says what became of each comment, the last ones if there are many.
func (c *Comment) ledgerTable() string {
	if len(c.ledger) == 0 {
		return ""
	}
	rows := c.ledger[max(0, len(c.ledger)-maxLedger):]
	lines := []string{c.text("progress.comments_heading"), "", c.text("progress.ledger_titles"), "| --- | --- | --- |"}
	if before := len(c.ledger) - len(rows); before > 0 {
		lines = append(lines, "| "+c.text("progress.earlier", before)+" | | |")
	}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |", inline(row.ID, 60), inline(row.Author, 60), c.fate(row)))
	}
	return strings.Join(lines, "\n")
}

func (c *Comment) fate(row ledgerRow) string {
	switch {
	case row.Refused != "":
		return c.text("progress.refused", inline(cmp.Or(messages.Reason(c.language, row.Refused), string(row.Refused)), 200))
	case row.Change == "edited":
		return c.text("progress.edited", row.step)
	case row.Change == "deleted":
		return c.text("progress.deleted", row.step)
	}
	return c.text("progress.taken", row.step)
}

// folded is the history, as much of its end as there is room for.
func (c *Comment) folded(room int) string {
	if len(c.history) == 0 {
		return ""
	}
	all := c.dropped + len(c.history)
	open := "\n<details>\n<summary>" + c.text("progress.history_heading", all) + "</summary>\n\n"
	const end = "\n</details>\n"
	room -= len(open) + len(end) + len(c.text("progress.earlier", all)) + len("- \n")
	var lines []string
	for _, event := range slices.Backward(c.history) {
		line := fmt.Sprintf("- %s %s\n", event.at.UTC().Format("15:04:05"), event.text)
		if room -= len(line); room < 0 {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	if before := all - len(lines); before > 0 {
		lines = append(lines, "- "+c.text("progress.earlier", before)+"\n")
	}
	slices.Reverse(lines)
	return open + strings.Join(lines, "") + end
}
