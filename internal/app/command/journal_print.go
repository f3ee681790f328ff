package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// journalPrinter prints the entries of a journal for people, whether they come from a server,
// from a database or from the files of a run. What a run wrote is data: nothing in it commands
// the terminal.
type journalPrinter struct {
	out  io.Writer
	full bool // long texts are printed whole

	from  time.Time // of the first entry
	count int
}

// show prints one entry: when it was, what it is, and what it says. Number is by which it is
// known where it comes from.
func (p *journalPrinter) show(number int64, event task.Event) error {
	if p.count == 0 {
		p.from = event.At
	}
	p.count++
	entry := journal.Read(event)
	text := strings.TrimRight(textfmt.Plain(describe(entry)), "\n")
	if entry.Unreadable != nil { // an agent of another version, or one that is not to be trusted, has written it
		text = "cannot be read: " + textfmt.Plain(string(event.Data))
	}
	if !p.full {
		text = shortened(text, "--full")
	}
	_, err := fmt.Fprintf(p.out, "%5d %9s  %-8s %s\n", number, event.At.Sub(p.from).Round(time.Millisecond), event.Kind,
		strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 26)))
	return err
}

// ending says how many entries there were, and how the task or the run stands.
func (p *journalPrinter) ending(state string, reason task.Reason) error {
	if text := messages.Reason(task.English, reason); text != "" {
		state += ": " + text
	}
	_, err := fmt.Fprintf(p.out, "\n%d entries; %s\n", p.count, state)
	return err
}

// heading prints what a journal is of, in lines of a name and a text.
func (p *journalPrinter) heading(lines ...[2]string) error {
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "%-8s %s\n", line[0], textfmt.Shorten(textfmt.OneLine(textfmt.Plain(line[1])), 200))
	}
	_, err := fmt.Fprintln(p.out, text.String())
	return err
}

// shortened keeps the first lines of a long text, and says how the rest is seen.
func shortened(text, how string) string {
	const lines, columns = 12, 300
	all := strings.Split(text, "\n")
	left := len(all) - lines
	all = all[:min(lines, len(all))]
	for i, line := range all {
		all[i] = textfmt.Shorten(line, columns)
	}
	if left > 0 {
		all = append(all, fmt.Sprintf("… %d more lines (%s)", left, how))
	}
	return strings.Join(all, "\n")
}

// describe says what an entry records, without what is only for the model.
func describe(entry journal.Entry) string {
	switch {
	case entry.Kind == task.StateChanged:
		return describeState(entry.StateChange)
	case entry.Kind == task.PhaseChanged:
		return entry.Phase.DisplayName() + ": " + entry.Status
	case entry.IsOutput():
		return entry.Text
	case entry.Call != nil:
		return describeCall(*entry.Call, entry.Result)
	case entry.Usage != nil:
		return fmt.Sprintf("step %d: %s%s, %s tokens in, %s out, cost %s", entry.Step, entry.Usage.Model, scriptedMark(entry.Usage.Scripted),
			textfmt.Count(entry.Usage.Tokens.Input), textfmt.Count(entry.Usage.Tokens.Output), llm.Money(entry.Usage.Cost))
	case entry.Plan != nil:
		return describePlan(*entry.Plan)
	case entry.Setup != nil:
		return "environment " + entry.Setup.Handover.Environment + ": " + entry.Setup.Handover.Status
	case entry.Kind == task.Saved:
		return strings.TrimSpace("commit " + cmp.Or(entry.Commit, "none") + " " + entry.Status)
	case entry.Signal != nil:
		return describeSignal(*entry.Signal)
	case entry.Message != nil:
		return "[" + entry.Conversation + "] " + describeMessage(entry)
	case entry.Text != "":
		return entry.Text
	}
	return describeServer(entry)
}

// describeState says where a task went, and why.
func describeState(change task.StateChange) string {
	text := string(change.To)
	if change.From != "" {
		text = string(change.From) + " → " + text
	}
	if reason := messages.Reason(task.English, change.Reason); reason != "" {
		text += ": " + reason
	}
	return text
}

// describeServer says what the server has written down besides: what was asked for, and who
// approved a plan.
func describeServer(entry journal.Entry) string {
	switch {
	case entry.Kind == task.Requested:
		return strings.TrimSpace(entry.Title + "\n" + entry.Body)
	case entry.Kind == task.Remembered:
		return "notes from past reviews: " + strings.Join(entry.Notes, ", ")
	case entry.Kind != task.PlanApproved || entry.Approval.Plan == 0:
		return ""
	case entry.By != "":
		return fmt.Sprintf("plan %d was approved by %s (%s)", entry.Approval.Plan, entry.By, entry.How)
	}
	return fmt.Sprintf("plan %d was approved (%s)", entry.Approval.Plan, entry.How)
}

func describeCall(call journal.Call, result *journal.Result) string {
	switch {
	case result == nil:
		return "call " + call.Name + " " + call.Arguments
	case result.Failed:
		return "result of " + call.Name + " (failed)\n" + result.Output()
	}
	return "result of " + call.Name + "\n" + result.Output()
}

func scriptedMark(scripted bool) string {
	if scripted {
		return " (scripted)"
	}
	return ""
}

func describePlan(plan journal.Plan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "plan %d: %s", plan.Revision, plan.Goal.Goal)
	for _, action := range plan.Actions.Actions {
		mark := " "
		if action.Done {
			mark = "x"
		}
		fmt.Fprintf(&text, "\n[%s] %s %s", mark, action.ID, action.What)
	}
	return text.String()
}

func describeSignal(signal journal.Signal) string {
	var text strings.Builder
	text.WriteString(string(signal.Signal))
	if reason := messages.Reason(task.English, signal.Reason); reason != "" {
		text.WriteString(": " + reason)
	}
	for _, comment := range signal.Comments {
		fmt.Fprintf(&text, "\ncomment %s by %s (%s)", comment.ID, comment.Author, comment.Change)
		if comment.Refused != "" {
			text.WriteString(", not included: " + cmp.Or(messages.Reason(task.English, task.Reason(comment.Refused)), comment.Refused))
		}
	}
	return text.String()
}

func describeMessage(entry journal.Entry) string {
	switch message := entry.Message; {
	case message.Said != nil:
		lines := []string{message.Said.Role + ": " + journal.ForPeople(strings.Join(entry.Texts(), "\n"))}
		for _, part := range message.Said.Parts {
			if part.Call != nil {
				lines = append(lines, "wants "+part.Call.Name+" "+part.Call.Arguments)
			}
			if part.Result != nil {
				lines = append(lines, "answer of "+part.Result.Name)
			}
		}
		return strings.Join(lines, "\n")
	case message.Compaction != nil:
		return fmt.Sprintf("%s: shortened from about %s to %s tokens", message.Compaction.Method,
			textfmt.Count(message.Compaction.Before), textfmt.Count(message.Compaction.After))
	case message.Block != nil:
		return "pinned " + message.Block.Name + "\n" + journal.ForPeople(message.Block.Text)
	}
	return "begins"
}
