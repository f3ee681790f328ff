package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/receipt"
)

// meanings says what a result means.
var meanings = map[string]string{
	receipt.Passed: "passed",
	receipt.Warned: "no regressions, but see below: not everything passed or could be run",
	receipt.Failed: "NOT passed",
}

// printReceipt says in words what a receipt states. Most texts in it come from a
// repository: what would command the terminal is left out.
func printReceipt(to io.Writer, statement receipt.Statement) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, strings.Map(cli.Visible, fmt.Sprintf(format, args...)))
	}
	facts, verdict := statement.Predicate.Toryo.Facts, statement.Predicate.Toryo.Verdict
	result := statement.Predicate.Result
	if meaning, known := meanings[result]; known {
		result = meaning
	}
	line("result", "%s", result)
	line("repository", "%s", statement.Subject[0].Name)
	line("commit", "%s", statement.Commit())
	if facts.Base != "" {
		line("base", "%s (%s)", facts.Base, facts.BaseBranch)
	}
	line("signed at", "%s", facts.SignedAt.Format(time.RFC3339))
	line("asked for by", "%s (task %s, run %d)", facts.Item, facts.Task, facts.Generation)
	if facts.Draft {
		line("draft", "the work has something in it that nobody asked for; the pull request lists it")
	}
	printEnvironment(line, verdict.Environment)
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			printRun(line, project.Folder, run)
		}
	}
	if verdict.NotRun != "" {
		line("not run", "%s", verdict.NotRun)
	}
	for _, finding := range verdict.Findings {
		line("finding", "%s", finding)
	}
	if verdict.Cut > 0 {
		line("left out", "%d commands, names and findings were too many for the receipt", verdict.Cut)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func printEnvironment(line func(name, format string, args ...any), e receipt.Environment) {
	state := "ready"
	if !e.Ready {
		state = "NOT ready"
	}
	parts := []string{state}
	for _, part := range []struct{ name, text string }{
		{"", e.Name}, {"sandbox ", e.Sandbox}, {"image ", e.Image}, {"digest ", e.Identity}, {"snapshot ", e.Snapshot},
	} {
		if part.text != "" {
			parts = append(parts, part.name+part.text)
		}
	}
	line("environment", "%s", strings.Join(parts, ", "))
	for _, command := range e.SetupCommands {
		line("set-up", "%s", command)
	}
}

func printRun(line func(name, format string, args ...any), folder string, run receipt.Run) {
	how := "passed"
	switch {
	case run.TimedOut:
		how = "did not end in time"
	case run.ExitCode != 0:
		how = fmt.Sprintf("exit code %d", run.ExitCode)
	}
	if run.Milliseconds > 0 {
		how += fmt.Sprintf(" in %s", time.Duration(run.Milliseconds)*time.Millisecond)
	}
	if counts := run.Counts; counts != nil {
		how += fmt.Sprintf("; %d tests passed, %d failed, %d were skipped", counts.Passed, counts.Failed, counts.Skipped)
	}
	if !run.Compared {
		how += "; not compared with the base"
	}
	if folder != "." {
		how += "; in " + folder
	}
	line(run.Kind, "%s: %s", run.Command, how)
	for _, list := range []struct {
		title string
		names []string
	}{
		{"failing, and not before the change", run.Failed}, {"failing, before the change too", run.FailedBefore}, {"fixed by the change", run.Fixed},
		{"skipped", run.Skipped}, {"not the same in every run", run.Flaky},
	} {
		for _, name := range list.names {
			line("", "%s: %s", list.title, name)
		}
	}
}
