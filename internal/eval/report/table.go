package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/tally"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Print writes the table for the terminal, and what people should know besides.
func Print(to io.Writer, results eval.Results) error {
	usable := 0
	for _, check := range results.Checks {
		if check.Usable {
			usable++
		}
	}
	fmt.Fprintf(to, "%s: %d of %d tasks can be used\n", results.Set, usable, len(results.Checks))
	if results.Play != "" {
		fmt.Fprintf(to, "a script has played the model (%s): this says nothing about any model\n", results.Play)
	}
	if len(results.Attempts) > 0 {
		if err := printModels(to, tally.Of(results)); err != nil {
			return err
		}
	}
	for _, check := range results.Checks {
		if !check.Usable {
			fmt.Fprintf(to, "left out: %s: %s\n", check.Task, line(check.Reason))
		}
	}
	for _, attempt := range results.Attempts {
		if attempt.Status == eval.Failed {
			fmt.Fprintf(to, "error: %s by %s, attempt %d: %s\n", attempt.Task, attempt.Model, attempt.Number, line(attempt.Error))
		}
	}
	if results.Stopped != "" {
		fmt.Fprintf(to, "stopped: %s\n", results.Stopped)
	}
	return nil
}

// longestLine is how much of a reason is shown on the terminal.
const longestLine = 300

func line(text string) string {
	return textfmt.Shorten(textfmt.OneLine(textfmt.Plain(text)), longestLine)
}

func printModels(to io.Writer, models []tally.Model) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MODEL\tRESOLVED\t95 %\tTASKS\tATTEMPTS\tERRORS\tSAID DONE\tCOST\tPER RESOLVED\tTOKENS\tCACHED\tOUTPUT\tTIME")
	for _, m := range models {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, rate(m), interval(m), m.Tasks, m.Attempts, m.Errors, delivered(m),
			m.Cost, perResolved(m), textfmt.Count(m.Usage.Input), textfmt.Count(m.Usage.Cached), textfmt.Count(m.Usage.Output), perAttempt(m))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, m := range models {
		for _, flag := range slices.Sorted(maps.Keys(m.Flags)) {
			fmt.Fprintf(to, "flag: %s: %s in %d of %d attempts\n", m.Name, flag, m.Flags[flag], m.Attempts)
		}
	}
	return nil
}

// rate is the share of tasks that are resolved, with its standard error.
func rate(m tally.Model) string {
	if m.Tasks < 2 {
		return fmt.Sprintf("%.1f %%", 100*m.Rate)
	}
	return fmt.Sprintf("%.1f ± %.1f %%", 100*m.Rate, 100*m.StandardError)
}

func interval(m tally.Model) string { return fmt.Sprintf("%.0f–%.0f", 100*m.Low, 100*m.High) }

// delivered is how often the program itself said that the work is done, and how often that was wrong.
func delivered(m tally.Model) string {
	return fmt.Sprintf("%d (%d wrong)", m.Delivered, m.Wrong)
}

func perResolved(m tally.Model) string {
	if m.Resolved == 0 {
		return "-"
	}
	return (m.Cost / llm.Money(m.Resolved)).String()
}

func perAttempt(m tally.Model) string {
	seconds := m.Seconds / float64(cmp.Or(m.Attempts+m.Errors, 1))
	return (time.Duration(seconds*1000) * time.Millisecond).Round(time.Second).String()
}
