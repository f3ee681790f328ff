package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

type tasksNeeds struct{ onTasks }

func tasksNeedsCommand(p site.Program) *cobra.Command {
	o := tasksNeeds{onTasks{operate{Program: p}}}
	c := &cobra.Command{
		Use:   "needs-you",
		Short: "Show what needs you",
		Long: `Show what needs you: questions, plans to approve, tasks that have failed in the last
seven days with the reason, agents that are offline or do not accept tasks, a pause of everything, and
budgets that are used up. It is what the overview starts with.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	return c
}

func (o *tasksNeeds) run(ctx context.Context) error {
	return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
		found, err := tasks.needs(ctx)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, found)
		}
		if len(found.Needs) == 0 {
			_, err := fmt.Fprintln(o.Stdout, "nothing needs your attention")
			return err
		}
		for _, need := range found.Needs {
			if err := printNeed(o.Stdout, need); err != nil {
				return err
			}
		}
		return nil
	})
}

// printNeed prints what waits, why, what was said about it, and what can be done, in lines of
// their own.
func printNeed(out io.Writer, need wire.Need) error {
	var text strings.Builder
	text.WriteString(printable(need.What))
	if need.Why != "" {
		text.WriteString(": " + need.Why)
	}
	if need.Since != nil {
		text.WriteString(" (since " + need.Since.Format(time.RFC3339) + ")")
	}
	text.WriteByte('\n')
	if need.Detail != "" {
		text.WriteString(quotedLines(need.Detail))
	}
	if need.Fix != "" {
		text.WriteString("  → " + printable(need.Fix) + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// printable is a text of others as one line, which does not command the terminal.
func printable(text string) string {
	return textfmt.Shorten(textfmt.OneLine(strings.Map(cli.Visible, text)), longestDetail)
}

// longestDetail is how many characters of a detail are printed.
const longestDetail = 1000

// quotedLines is a text of others with its lines, none of which commands the terminal.
func quotedLines(detail string) string {
	var text strings.Builder
	for line := range strings.Lines(textfmt.Shorten(strings.TrimSpace(textfmt.Plain(detail)), longestDetail)) {
		text.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
	}
	return text.String()
}

// whyText is what was said about the state of a task, why it waits, and what can be done about it,
// in lines of their own.
func whyText(t wire.Task) string {
	text := quotedLines(t.Detail)
	if waits := waitingText(t.Waits); waits != "" {
		text += "  waiting: " + waits + "\n"
	}
	if t.Fix != "" {
		text += "  → " + printable(t.Fix) + "\n"
	}
	return text
}

// waitingText says why a queued task waits; "" of others.
func waitingText(waits *wire.Waiting) string {
	if waits == nil {
		return ""
	}
	text := waits.Text
	if waits.Reason == string(task.ReasonAllPaused) && waits.By != "" {
		text += " (by " + printable(waits.By) + ")"
	} else if waits.By != "" {
		text += " (" + printable(waits.By) + ")"
	}
	if waits.Detail != "" {
		text += ": " + printable(waits.Detail)
	}
	if waits.Until != nil {
		text += ", until " + waits.Until.Format(time.RFC3339)
	}
	if waits.Place > 0 {
		text += fmt.Sprintf("; position %d in the queue", waits.Place)
	}
	return text
}

// shortWhy is the reason of a task for a list: why it waits if it is queued.
func shortWhy(t wire.Task) string {
	if t.Waits != nil {
		return t.Waits.Text
	}
	if t.State == string(task.Running) || t.State == string(task.Done) {
		return ""
	}
	return t.ReasonText
}
