package tool

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed test.md
var testDescription string

// Tests runs the project's tests.
type Tests interface {
	// Run runs them and reports how it went. Output is written as it comes.
	Run(ctx context.Context, output io.Writer) (TestRun, error)
	// Baseline is how it went before anything was changed. False says that it
	// is not known.
	Baseline() (TestRun, bool)
}

// TestRun is how the tests went. Failing has the names of the failing tests, as
// far as they can be told from the output.
type TestRun struct {
	Command string
	Exit    Exit
	Failing []string
}

type testInput struct{}

// Test is the tool that runs the tests against the baseline.
func Test(tests Tests, options RunOptions) Tool {
	options = options.orDefaults()
	return Define("test", testDescription, false, func(ctx context.Context, call llm.Call, _ testInput) (Output, error) {
		var watch func([]byte)
		if options.Watch != nil {
			watch = func(piece []byte) { options.Watch(call, piece) }
		}
		collected := newCollector(options.Recorded, watch)
		now, err := tests.Run(ctx, collected)
		if err != nil {
			return Output{}, fmt.Errorf("run the tests: %w", err)
		}
		before, known := tests.Baseline()
		verdict, failed := compare(before, known, now)
		whole := collected.String()
		return Output{
			Text: options.show(whole, now.Exit.Code != 0 || now.Exit.TimedOut), Origin: "test output", Verdict: strings.TrimRight(verdict, "\n"),
			Whole: whole + "\n" + verdict, Failed: failed, Exit: &now.Exit,
		}, nil
	})
}

// compare says in words how the tests went against the baseline, and whether
// that is worse.
func compare(before TestRun, known bool, now TestRun) (verdict string, worse bool) {
	var b strings.Builder
	switch {
	case now.Exit.TimedOut:
		fmt.Fprintf(&b, "[%s: stopped at the time limit]\n", now.Command)
	default:
		fmt.Fprintf(&b, "[%s: exit code %d]\n", now.Command, now.Exit.Code)
	}
	bad := now.Exit.Code != 0 || now.Exit.TimedOut
	if !known {
		b.WriteString("There is no baseline to compare with.\n")
		return b.String(), bad
	}
	fresh := without(now.Failing, before.Failing)
	list(&b, "New failures", fresh)
	list(&b, "Fixed since the baseline", without(before.Failing, now.Failing))
	list(&b, "Failing before and now", without(now.Failing, fresh))
	passedBefore := before.Exit.Code == 0 && !before.Exit.TimedOut
	switch {
	case !bad:
		b.WriteString("All tests pass.\n")
	case len(fresh) == 0 && !passedBefore && len(now.Failing) > 0:
		b.WriteString("Nothing fails that did not fail before.\n")
		return b.String(), false
	case passedBefore:
		b.WriteString("The tests passed before the changes.\n")
	}
	return b.String(), bad
}

func without(names, others []string) []string {
	var rest []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

func list(b *strings.Builder, title string, names []string) {
	if len(names) == 0 {
		return
	}
	const most = 50
	fmt.Fprintf(b, "%s (%d):\n", title, len(names))
	for _, name := range names[:min(len(names), most)] {
		b.WriteString("- " + llm.QuoteLine(Printable(name)) + "\n")
	}
	if len(names) > most {
		fmt.Fprintf(b, "- and %d more\n", len(names)-most)
	}
}
