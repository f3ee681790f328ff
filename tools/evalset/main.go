// Program evalset makes a set of tasks for toryo eval from modules of the Go module proxy.
//
//	evalset --out DIR [--pairs 25] [--modules FILE]
//
// A task is a pair of consecutive versions of a module: the repository has the source of the
// older one, the hidden tests are those of the newer one, and the gold patch is what else
// differs. A pair becomes a task only if its tests, in a sandbox without a network, fail in
// part before the gold patch and pass without exception after it, twice. docs/eval-set.md
// describes the files and the rules.
package main

import (
	"context"
	_ "embed" // the list of modules
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// builtIn is the list of modules that is used when no other is named.
//
//go:embed modules.txt
var builtIn string

func main() {
	guest.Main(nil) // it is also the inside of the sandboxes that it starts
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "evalset:", err)
		os.Exit(1)
	}
}

// options say what set to make.
type options struct {
	out     string        // the folder for it
	modules string        // the text of the list
	pairs   int           // how many tasks
	tries   int           // pairs of a module to look at, if the list names none
	timeout time.Duration // of one run of the tests
	warm    string        // packages to compile once for all runs
	environ []string      // for the go command besides that of this program
	log     io.Writer
}

func run(ctx context.Context, arguments []string, log io.Writer) error {
	o := options{log: log, modules: builtIn, warm: "std"}
	flags := flag.NewFlagSet("evalset", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.out, "out", "", "folder for the set; with a set that was begun there, it goes on")
	list := flags.String("modules", "", "file with the modules, one on a line, each with a pair of versions and their sums or without (default: the list of this program)")
	flags.IntVar(&o.pairs, "pairs", 25, "how many tasks to make")
	flags.IntVar(&o.tries, "tries", 6, "how many pairs of versions to look at, the newest first, of a module whose line names none")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long one run of the tests may take")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if o.out == "" {
		return errors.New("--out is missing: the folder for the set")
	}
	if o.pairs < 1 || o.tries < 1 || o.timeout <= 0 {
		return errors.New("--pairs, --tries and --timeout are larger than nothing")
	}
	if *list != "" {
		text, err := os.ReadFile(*list)
		if err != nil {
			return err
		}
		o.modules = string(text)
	}
	return makeSet(ctx, o)
}

// makeSet makes the folder with the set. What it needs besides is in a folder that it
// removes.
func makeSet(ctx context.Context, o options) (err error) {
	modules, err := parseList(o.modules)
	if err != nil {
		return err
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	if found, err := os.ReadDir(o.out); err == nil && len(found) > 0 && !isSet(o.out) {
		return fmt.Errorf("%s is not empty and has no set in it: name another folder", o.out)
	}
	if err := begin(o.out); err != nil {
		return err
	}
	place := filepath.Join(o.out, workFolder)
	if err := workdir.Remove(place); err != nil { // of a call that was killed
		return err
	}
	for _, folder := range []string{place, filepath.Join(o.out, repositories)} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // nothing in it is secret
			return err
		}
	}
	defer func() { err = errors.Join(err, workdir.Remove(place)) }()
	sandboxes, err := newTester(ctx, place, o)
	if err != nil {
		return err
	}
	maker := &maker{options: o, place: place, tester: sandboxes, client: client{dir: place, environ: o.environ}}
	if err := errors.Join(maker.goOn(), maker.write()); err != nil {
		return err
	}
	if err := maker.search(ctx, modules); err != nil {
		return err
	}
	fmt.Fprintf(o.log, "%d tasks of %d modules, of %d pairs that were tried\n", len(maker.tasks), maker.modules(), len(maker.tried))
	if len(maker.tasks) < o.pairs {
		return fmt.Errorf("%d of %d pairs are good: name more modules or allow more tries", len(maker.tasks), o.pairs)
	}
	return nil
}

// begin makes the folder of a set, before anything else is in it that the next call would take
// for files of others.
func begin(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // nothing in it is secret
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, triedFile), os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the same
	if err != nil {
		return err
	}
	return file.Close()
}

// isSet says whether an earlier call has begun a set in the folder.
func isSet(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, triedFile))
	return err == nil
}

// firstLine shortens what a program has said to a reason.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 300
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
