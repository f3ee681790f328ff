package program

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toryo-dev/toryo/internal/app"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// The test binary is the program too, when a script or a test calls it so, and
// the inside of the sandboxes that it starts.
func TestMain(m *testing.M) {
	site.ServeAsGuest()
	testscript.Main(withBrowser{m}, map[string]func(){
		"toryo":            func() { os.Exit(app.Main()) },
		"without-landlock": func() { os.Exit(withoutLandlock()) },
	})
}

// withBrowser is the tests, with an end of the browser that they may have started.
type withBrowser struct{ *testing.M }

func (m withBrowser) Run() int {
	defer testkit.StopBrowser()
	return m.M.Run()
}

// The scripts in testdata are what a user types and sees.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Defer(func() { _ = taken.Close() })
			e.Setenv("TAKEN", taken.Addr().String())
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("NOBODY", free.Addr().String()) // nobody listens there
			return free.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until},
	})
}

// exits runs toryo and checks for the exit code that belongs to the code of an
// error: "exits bad_config config check x.yaml". Whatever the error is, standard
// error has one line about it at most.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	exitsOf(ts, []string{"toryo"}, args)
}

// exitsOf is exits for a program that is called by other words.
func exitsOf(ts *testscript.TestScript, program, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits code arguments...")
	}
	want := task.Code(args[0]).Info()
	if string(want.Code) != args[0] {
		ts.Fatalf("there is no code %s", args[0])
	}
	words := slices.Concat(program, args[1:])
	err := ts.Exec(words[0], words[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want.Exit {
		ts.Fatalf("ended with %v, want exit code %d", err, want.Exit)
	}
	if said := ts.ReadFile("stderr"); strings.Count(said, "\n") > 1 || strings.Contains(said, "goroutine ") {
		ts.Fatalf("more than one line on standard error")
	}
}

// until runs toryo again and again until what it says has the pattern: "until 'team/app#2'
// tasks list".
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until pattern arguments...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for end := time.After(5 * time.Minute); ; {
		ts.Check(ts.Exec("toryo", args[1:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-again.C:
		case <-end:
			ts.Fatalf("it does not come to say %s", args[0])
		}
	}
}
