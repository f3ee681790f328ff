// Bench measures what Toryo promises about its own cost and prints a table. Run
// it with make bench, which gives it a PostgreSQL server and a container engine in
// the environment.
//
// Arguments name the measures to make, all but load by default: go run
// ./tools/bench first-day.
//
// The numbers are of one machine at one moment. They are for comparing within one
// run, and for seeing what got worse; no test depends on them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// row is one line of the table.
type row struct{ measure, value, aim string }

// measures are what is measured, in order: all of them, or those that are named as
// arguments. Each has the folder with the program in it to itself.
var measures = []struct {
	name    string
	measure func(ctx context.Context, folder string) ([]row, error)
}{
	{"program", measureProgram}, {"memory", measureMemory}, {"waiting", measureWaiting}, {"idle", measureIdle}, {"load", measureLoad}, {"claims", measureClaims}, {"hand-out", measureHandOut},
	{"river", measureRiver}, {"reading", measureReading}, {"sandboxes", measureSandboxes}, {"runs", measureRuns}, {"large", measureLarge}, {"turns", measureTurns}, {"journal", measureJournal},
	{"reviews", measureReviews}, {"signals", measureSignals}, {"demo", measureDemo}, {"caches", measureCaches},
	{"first-day", measureFirstDay},
}

// needNoProgram are the measures that do not use the program in the folder.
var needNoProgram = []string{"claims", "hand-out", "river", "first-day"}

// onlyNamed are the measures that are made only if they are named: they take long, and a
// machine that is busy with other things may not carry them.
var onlyNamed = []string{"load"}

func main() {
	guest.Main(nil) // it is also the inside of the sandboxes that it starts
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	folder, err := os.MkdirTemp("", "toryo-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = workdir.Remove(folder) }()
	wanted := os.Args[1:]
	if err := checkNames(wanted); err != nil {
		return err
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(needNoProgram, name) }) {
		if err := buildProgram(ctx, folder); err != nil {
			return err
		}
	}
	var rows []row
	for _, one := range measures {
		if len(wanted) > 0 && !slices.Contains(wanted, one.name) || len(wanted) == 0 && slices.Contains(onlyNamed, one.name) {
			continue
		}
		measured, err := one.measure(ctx, folder)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		rows = append(rows, measured...)
	}
	fmt.Print(table(rows))
	return nil
}

// checkNames refuses what is no measure, and lists those that there are.
func checkNames(wanted []string) error {
	known := make([]string, 0, len(measures))
	for _, one := range measures {
		known = append(known, one.name)
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no measure %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func table(rows []row) string {
	var text strings.Builder
	text.WriteString("| measure | seen | aim |\n| --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", r.measure, r.value, r.aim)
	}
	return text.String()
}
