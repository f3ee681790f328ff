package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

type replay struct {
	site.Program
	settings cli.Settings
	json     bool
	step     bool
	full     bool
}

// Replay is the command toryo replay.
func Replay(p site.Program) *cobra.Command {
	o := replay{Program: p}
	c := &cobra.Command{
		Use:   "replay UUID",
		Short: "Replay a run from its files, entry by entry",
		Long: `Show what a run did, from its journal in the context files of this machine. Nothing is
run, asked or sent. On a terminal it waits after each entry: Enter goes on, a shows the
rest at once, q ends. The start of the uuid is enough.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print the entries as they are in the journal, one to a line")
	c.Flags().BoolVar(&o.step, "step", false, "wait after each entry also without a terminal")
	c.Flags().BoolVar(&o.full, "full", false, "print long texts whole")
	return c
}

func (o replay) run(id string) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	recording, err := contexts.Read(loaded.ContextsPath(), id)
	if err != nil {
		return err
	}
	if o.json {
		encoder := json.NewEncoder(o.Stdout)
		for _, line := range recording.Lines {
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
		return nil
	}
	if err := o.heading(recording); err != nil {
		return err
	}
	return o.steps(recording)
}

// steps shows the entries, and waits between them if somebody is there.
func (o replay) steps(recording contexts.Recording) error {
	waits := o.step || interactive(o.Stdin) && interactive(o.Stdout)
	keys := bufio.NewReader(o.Stdin)
	for i, line := range recording.Lines {
		if waits && i > 0 {
			answer, err := keys.ReadString('\n')
			switch strings.TrimSpace(answer) {
			case "q":
				return nil
			case "a":
				waits = false
			}
			waits = waits && err == nil // without input the rest is shown at once
		}
		if err := o.show(line, recording.Lines[0].At); err != nil {
			return err
		}
	}
	return o.ending(recording)
}

// interactive reports whether a person sits at the other end.
func interactive(end any) bool {
	file, is := end.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (o replay) heading(r contexts.Recording) error {
	_, err := fmt.Fprintf(o.Stdout, "run      %s\ntask     %s  %s\ntitle    %s\ntype     %s  %s\nbegan    %s\n\n", r.UUID, r.Task, r.Item,
		textfmt.Shorten(textfmt.OneLine(textfmt.Plain(r.Title)), 200), r.Type, r.Role, r.BeganAt.Format(time.RFC3339))
	return err
}

func (o replay) ending(r contexts.Recording) error {
	state := r.State
	if text := messages.Reason(task.English, r.Reason); text != "" {
		state += ": " + text
	}
	if _, err := fmt.Fprintf(o.Stdout, "\n%d entries; %s\n", len(r.Lines), state); err != nil || r.Torn == 0 {
		return err
	}
	_, err := fmt.Fprintf(o.Stdout, "the last %d bytes of the journal were torn by a crash and are left out\n", r.Torn)
	return err
}

// show prints one entry: when it was, what it is, and what it says.
func (o replay) show(line contexts.Line, from time.Time) error {
	entry := journal.Read(task.Event{Kind: line.Kind, Data: line.Data})
	if entry.Unreadable != nil {
		return task.Wrap(task.Invalid, entry.Unreadable, fmt.Sprintf("entry %d of the journal cannot be read", line.Sequence))
	}
	text := strings.TrimRight(textfmt.Plain(describe(entry)), "\n")
	if !o.full {
		text = shortened(text)
	}
	_, err := fmt.Fprintf(o.Stdout, "%5d %9s  %-8s %s\n", line.Sequence, line.At.Sub(from).Round(time.Millisecond), line.Kind,
		strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 26)))
	return err
}

// shortened keeps the first lines of a long text.
func shortened(text string) string {
	const lines, columns = 12, 300
	all := strings.Split(text, "\n")
	left := len(all) - lines
	all = all[:min(lines, len(all))]
	for i, line := range all {
		all[i] = textfmt.Shorten(line, columns)
	}
	if left > 0 {
		all = append(all, fmt.Sprintf("… %d more lines (--full)", left))
	}
	return strings.Join(all, "\n")
}

// describe says what an entry records.
func describe(entry journal.Entry) string {
	switch {
	case entry.Kind == task.PhaseChanged:
		return entry.Phase.DisplayName() + ": " + entry.Status
	case entry.Call != nil:
		return describeCall(*entry.Call, entry.Result)
	case entry.Usage != nil:
		return fmt.Sprintf("step %d: %s%s, %d tokens in, %d out, cost %s", entry.Step, entry.Usage.Model, scriptedMark(entry.Usage.Scripted),
			entry.Usage.Tokens.Input, entry.Usage.Tokens.Output, llm.Money(entry.Usage.Cost))
	case entry.Plan != nil:
		return describePlan(*entry.Plan)
	case entry.Setup != nil:
		return "environment " + entry.Setup.Handover.Environment + ": " + entry.Setup.Handover.Status
	case entry.Kind == task.Saved:
		return "commit " + entry.Commit + " " + entry.Status
	case entry.Signal != nil:
		return describeSignal(*entry.Signal)
	case entry.Message != nil:
		return "[" + entry.Conversation + "] " + describeMessage(entry)
	}
	return entry.Text
}

func describeCall(call journal.Call, result *journal.Result) string {
	switch {
	case result == nil:
		return "call " + call.Name + " " + call.Arguments
	case result.Failed:
		return "result of " + call.Name + " (failed)\n" + result.Text
	}
	return "result of " + call.Name + "\n" + result.Text
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
			text.WriteString(", refused: " + comment.Refused)
		}
	}
	return text.String()
}

func describeMessage(entry journal.Entry) string {
	switch message := entry.Message; {
	case message.Said != nil:
		lines := []string{message.Said.Role + ": " + strings.Join(entry.Texts(), "\n")}
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
		return fmt.Sprintf("%s: about %d tokens became %d", message.Compaction.Method, message.Compaction.Before, message.Compaction.After)
	case message.Block != nil:
		return "pinned " + message.Block.Name + "\n" + message.Block.Text
	}
	return "begins"
}
