// Bench measures what Toryo promises about its own cost and prints a table. Run
// it with make bench, which gives it a PostgreSQL server and a container engine in
// the environment.
//
// Arguments name the measures to make, those that are not long by default: go run ./tools/bench
// first-day. The name long stands for all that are.
//
// The numbers are of one machine at one moment. They are for comparing within one
// run, and for seeing what got worse; no test depends on them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// row is one line of the table.
type row struct{ measure, value, aim string }

// measures are what is measured, in order: all of them but those that are long, or those that are
// named as arguments. Each has the folder with the program in it to itself.
var measures = []struct {
	name    string
	measure func(ctx context.Context, folder string) ([]row, error)
	set     set
}{
	{"program", measureProgram, 0},
	{"runs", measureRuns, 0},
	{"memory", measureMemory, 0},
	{"turns", measureTurns, noProgram},
	{"tokens", goBenchmarks("./internal/phase/turn", "TokensSent", "-benchtime", "1x"), noProgram},
	{"caches", measureCaches, 0},
	{"large", measureLarge, 0},
	{"claims", measureClaims, noProgram},
	{"hand-out", measureHandOut, noProgram},
	{"river", measureRiver, noProgram},
	{"waiting", measureWaiting, 0},
	{"pages", goBenchmarks("./internal/web", "PageWeight|Lists|ToScreen|LivePages", "-benchtime", "3x"), noProgram},
	{"sandboxes", measureSandboxes, 0},
	{"pods", measurePods, 0},
	{"demo", measureDemo, 0},
	{"first-day", measureFirstDay, noProgram | long},

	{"large-run", measureLargeRun, long},
	{"load", measureLoad, long},
	{"idle", measureIdle, long},
	{"reading", measureReading, long},
	{"journal", measureJournal, long},
	{"reviews", measureReviews, long},
	{"signals", measureSignals, long},
	{"run", goBenchmarks("./internal/phase", "BenchmarkRun", "-benchtime", "5x"), noProgram | long},
	{"verdicts", goBenchmarks("./internal/phase/verdicts", "BenchmarkVerdict", "-benchtime", "1x"), noProgram | long},
	{"forge", goBenchmarks("./internal/server", "RequestsPerTaskHour|Clone", "-benchtime", "1x"), noProgram | long},
	{"unassigned", goBenchmarks("./internal/endtoend/program", "UnassignOnGitea", "-benchtime", "1x", "-timeout", "30m"), noProgram | long},
	{"assigned", goBenchmarks("./internal/endtoend/program", "RunOnGitea", "-benchtime", "1x", "-timeout", "30m"), noProgram | long},
	{"restart", goBenchmarks("./internal/endtoend/program", "BenchmarkRestart", "-benchtime", "1x"), noProgram | long},
	{"retention", goBenchmarks("./internal/retention", "BytesPerTask", "-benchtime", "1x"), noProgram | long},
}

// set says what a measure is.
type set int

const (
	// noProgram measures do not use the program in the folder.
	noProgram set = 1 << iota
	// long measures are made only if they are named, or with "long": all others together take less
	// than 15 minutes.
	long
)

// chosen reports whether a measure is to be made.
func chosen(name string, is set, wanted []string) bool {
	if len(wanted) == 0 {
		return is&long == 0
	}
	return slices.Contains(wanted, name) || is&long != 0 && slices.Contains(wanted, "long")
}

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
	for _, one := range measures {
		if !chosen(one.name, one.set, wanted) || one.set&noProgram != 0 {
			continue
		}
		if err := buildProgram(ctx, folder); err != nil {
			return err
		}
		break
	}
	var rows []row
	var failures []error
	for _, one := range measures {
		if !chosen(one.name, one.set, wanted) || ctx.Err() != nil {
			continue
		}
		begun := time.Now()
		measured, err := one.measure(ctx, folder)
		rows = append(rows, measured...)
		if err != nil { // the others are worth something without it
			failures = append(failures, fmt.Errorf("%s: %w", one.name, err))
			if failed := (row{one.name, "failed", ""}); !slices.Contains(rows, failed) { // a program of its own may have said so
				rows = append(rows, failed)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", one.name, time.Since(begun).Seconds())
	}
	fmt.Print(table(rows))
	return errors.Join(append(failures, ctx.Err())...)
}

// checkNames refuses what is no measure, and lists those that there are.
func checkNames(wanted []string) error {
	known := []string{"long"}
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

// readTable reads the rows of a table.
func readTable(text string) (rows []row) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 3 && strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| measure |") && !strings.HasPrefix(line, "| --- |") {
			rows = append(rows, row{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
	return rows
}
