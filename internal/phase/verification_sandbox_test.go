package phase_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// numbered tells each sandbox its number, so that tests can go otherwise in each: the first
// is that of the work, the second that of the tests before it.
type numbered struct {
	sandbox.Engine
	started atomic.Int64
	last    int64     // that can be started; 0 for all
	dies    bool      // the first one is gone when the model uses it
	code    task.Code // of the error of those that cannot be started; Unavailable if it is empty
}

// dying is a sandbox that is gone after its set-up.
type dying struct{ sandbox.Sandbox }

func (d dying) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if strings.Contains(command.Text, "test.sh") {
		_ = d.Stop(ctx)
		return sandbox.Result{}, task.Errorf(task.Unavailable, "the sandbox is gone")
	}
	return d.Sandbox.Run(ctx, command)
}

func (n *numbered) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	number := n.started.Add(1)
	if n.last != 0 && number > n.last {
		return nil, task.Errorf(cmp.Or(n.code, task.Unavailable), "no sandbox can be started any more")
	}
	spec.Env = maps.Clone(spec.Env)
	spec.Env["SANDBOX"] = strconv.FormatInt(number, 10)
	box, err := n.Engine.Start(ctx, spec)
	if err == nil && n.dies && number == 1 {
		box = dying{box}
	}
	return box, err
}

// numberedWorld is one whose tests know in which sandbox they are. They pass before the
// work.
func numberedWorld(t *testing.T, test string, last int64) (*phasetest.World, *numbered) {
	t.Helper()
	scenario, err := phasetest.Load("testdata/long/lost.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scenario.Files["test.sh"] = test
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	engine := &numbered{last: last}
	world.Adjust = func(options *phase.Options) {
		engine.Engine = options.Setup.Engine
		options.Setup.Engine = engine
	}
	return world, engine
}

func TestFlakyTestsDoNotCount(t *testing.T) {
	t.Parallel()
	const changed = "grep -q + add.sh && "
	for name, one := range map[string]struct {
		test        string
		state       task.State
		verdicts    int
		has, hasNot []string
	}{
		// 3 is the verdict, 4 to 6 are with the change, the next without it.
		"with and without the change":                    {"case $SANDBOX in 3|6) exit 1;; esac\n", task.Done, 1, []string{"## Flaky tests", "- `sh test.sh`"}, []string{"Unexplained", "as before the change"}},
		"a command that fails each time with the change": {"case $SANDBOX in 3|4|5|6|8) exit 1;; esac\n", task.Done, 2, nil, []string{"Unexplained", "## Flaky"}},
		"never":                 {changed + "exit 1\nexit 0\n", task.Failed, 0, []string{"`sh test.sh`: failed with exit code 1"}, []string{"## Flaky"}},
		"once, with the change": {changed + "case $SANDBOX in 3) exit 1;; esac\n:\n", task.Done, 2, nil, []string{"Unexplained", "## Flaky"}},
		"each time, with the change": {changed + "case $SANDBOX in 3|8) exit 1;; esac\n:\n", task.Failed, 2,
			[]string{"## Unexplained changes to tests", "did not fail before the change"}, []string{"`sh test.sh`: passed", "as before the change"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world, engine := numberedWorld(t, one.test, 0)
			outcome, err := world.Run(t.Context())
			if err != nil || outcome.State != one.state {
				t.Fatalf("%+v, %v", outcome, err)
			}
			if verdicts := len(world.Requests(task.Verification)); one.verdicts > 0 && verdicts != one.verdicts {
				t.Errorf("there were %d verdicts, want %d, with %d sandboxes", verdicts, one.verdicts, engine.started.Load())
			}
			body := world.Pulls()[len(world.Pulls())-1].Body
			for _, part := range one.has {
				if !strings.Contains(body, part) {
					t.Errorf("the pull request does not have %q:\n%s", part, body)
				}
			}
			for _, part := range one.hasNot {
				if strings.Contains(body, part) {
					t.Errorf("the pull request has %q:\n%s", part, body)
				}
			}
		})
	}
}

// What cannot be verified because there is no sandbox any more is not called verified.
func TestNoSandboxForTheVerdict(t *testing.T) {
	t.Parallel()
	world, _ := numberedWorld(t, "exit 0\n", 2)
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Failed || outcome.Reason != task.ReasonNotVerified {
		t.Fatalf("%+v, %v", outcome, err)
	}
	pull := world.Pulls()[len(world.Pulls())-1]
	if !pull.Draft || !strings.Contains(pull.Body, "The tests were **not run**: ") || !strings.Contains(pull.Body, "no sandbox can be started any more") {
		t.Errorf("%+v", pull)
	}
}

// A machine that has no sandboxes any more says nothing about the work: the run can be carried on
// elsewhere.
func TestMachineWithoutSandboxes(t *testing.T) {
	t.Parallel()
	for last, dies := range map[int64]bool{1: false, 2: true} {
		world, engine := numberedWorld(t, "exit 0\n", last)
		engine.dies, engine.code = dies, task.NotReady
		outcome, err := world.Run(t.Context())
		if _, unusable := errors.AsType[*sandbox.UnusableError](err); !unusable || outcome.State != "" || len(world.Pulls()) != 0 {
			t.Errorf("after %d sandboxes: %+v, %v, pull requests %+v", last, outcome, err, world.Pulls())
		}
	}
}

// A sandbox that is lost in the middle and cannot be made again is told to people, in a
// comment and where the work is handed over.
func TestASandboxThatIsLostForGood(t *testing.T) {
	t.Parallel()
	world, engine := numberedWorld(t, "exit 0\n", 2)
	engine.dies = true
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Failed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	const lost = "The sandbox was lost and could not be recreated"
	said := ""
	for _, text := range world.Comments() {
		said += text + "\n"
	}
	for place, text := range map[string]string{"the comments": said, "the last comment": outcome.Comment, "the pull request": world.Pulls()[len(world.Pulls())-1].Body} {
		if !strings.Contains(text, lost) || !strings.Contains(text, "no sandbox can be started any more") {
			t.Errorf("%s do not say that it was lost:\n%s", place, text)
		}
	}
}

// imaged is an engine that makes its sandboxes from images, each of which is for one language.
type imaged struct{ sandbox.Engine }

func (i imaged) Capabilities() sandbox.Capabilities {
	capabilities := i.Engine.Capabilities()
	capabilities.Images = true
	return capabilities
}

// Tests of a project that needs another image are not run. That is said when the work touches
// them, or when there are no others: a repository that has tests is not one without.
func TestProjectsOfAnotherImage(t *testing.T) {
	t.Parallel()
	const (
		header = "A repository of two languages.\n-- scenario.yaml --\ntitle: add.sh gives a wrong result\nbody: It should add.\n-- repo/add.sh --\necho $(($1 - $2))\n"
		other  = "-- repo/api/go.mod --\nmodule example.com/api\n\ngo 1.24\n-- repo/api/api_test.go --\npackage api\n"
		tests  = "-- repo/test.sh --\n[ $(sh add.sh 2 2) = 4 ]\n"
		work   = "-- work/add.sh --\necho $(($1 + $2))\n"
	)
	for name, one := range map[string]struct {
		archive string
		noTests bool
		unrun   string
	}{
		"not touched":    {header + tests + other + work, false, ""},
		"touched":        {header + tests + other + work + "-- work/api/api.go --\npackage api\n", false, "not ready for the projects in api"},
		"no other tests": {header + other + work, false, "not ready for the projects in api"},
		"no tests":       {header + work, true, "not known how"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "scenario.txtar")
			if err := os.WriteFile(file, []byte(one.archive), 0o600); err != nil {
				t.Fatal(err)
			}
			scenario, err := phasetest.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			world := phasetest.New(t, phasetest.Engine(t), scenario)
			world.Adjust = func(options *phase.Options) { options.Setup.Engine = imaged{options.Setup.Engine} }
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := world.Verdict()
			if got.NoTests != one.noTests || !strings.Contains(got.Unrun, one.unrun) || one.unrun == "" && (got.Unrun != "" || len(got.Tests) != 1) {
				t.Errorf("the verdict is %+v", got)
			}
		})
	}
}
