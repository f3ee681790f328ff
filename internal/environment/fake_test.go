package environment_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// engine is a sandbox engine that does as it is told: each command has the
// results of its successive runs, the last of which stays.
type engine struct {
	sandbox.Engine
	results   map[string][]any // sandbox.Result or error
	images    bool
	layers    bool
	identity  string // of its images; what is known of one counts for the whole process
	startErrs []error
	restores  func(workspace string) error // is done by starts from snapshots, also by those that fail; may be nil
	ran       []string
	where     []string // the folder and the command of each run
	sessions  []string // of each run
	starts    []sandbox.Spec
	stops     int
	stopErr   error // of each stop
	network   []sandbox.Policy
	snapshots []sandbox.Snapshot
	kept      []string
	keeping   func() (bytes int64, err error) // how keeping one ends; may be nil
	removed   []string
}

func (e *engine) Name() string { return "fake" }

func (e *engine) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Images: e.images, Network: true, Snapshots: true, Layers: e.layers}
}

func (e *engine) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	e.starts = append(e.starts, spec)
	if e.restores != nil && spec.Snapshot != "" {
		if err := e.restores(spec.Workspace); err != nil {
			return nil, err
		}
	}
	if len(e.startErrs) > 0 {
		err := e.startErrs[0]
		e.startErrs = e.startErrs[1:]
		if err != nil {
			return nil, err
		}
	}
	return &box{engine: e, spec: spec}, nil
}

func (e *engine) Identity(context.Context, string) (string, error) { return e.identity, nil }

func (e *engine) Sweep(context.Context) error { return nil }

func (e *engine) Snapshots(context.Context) ([]sandbox.Snapshot, error) { return e.snapshots, nil }

func (e *engine) RemoveSnapshot(_ context.Context, key string) error {
	e.removed = append(e.removed, key)
	return nil
}

type box struct {
	engine *engine
	spec   sandbox.Spec
}

func (b *box) Info() sandbox.Info { return sandbox.Info{ID: "1"} }
func (b *box) Workspace() string  { return b.spec.Workspace }
func (b *box) Stop(context.Context) error {
	b.engine.stops++
	return b.engine.stopErr
}

func (b *box) SetNetwork(_ context.Context, policy sandbox.Policy) error {
	b.engine.network = append(b.engine.network, policy)
	return nil
}

func (b *box) Snapshot(_ context.Context, key string, _ workdir.Listing) (sandbox.Snapshot, error) {
	made := sandbox.Snapshot{Key: key}
	if b.engine.keeping != nil {
		var err error
		if made.Bytes, err = b.engine.keeping(); err != nil {
			return sandbox.Snapshot{}, err
		}
	}
	b.engine.kept = append(b.engine.kept, key)
	return made, nil
}

func (b *box) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if _, err := command.Validate(); err != nil {
		return sandbox.Result{}, err
	}
	b.engine.ran = append(b.engine.ran, command.Text)
	b.engine.where = append(b.engine.where, command.Folder+": "+command.Text)
	b.engine.sessions = append(b.engine.sessions, command.Session)
	left := b.engine.results[command.Text]
	if len(left) == 0 {
		return sandbox.Result{}, nil
	}
	if len(left) > 1 {
		b.engine.results[command.Text] = left[1:]
	}
	switch next := left[0].(type) {
	case error:
		return sandbox.Result{}, next
	case func() (sandbox.Result, error):
		return next()
	case sandbox.Result:
		if command.Output != nil {
			command.Output(sandbox.Stdout, next.Stdout)
		}
		return next, ctx.Err()
	default:
		panic("the fake engine was told nonsense")
	}
}

func printed(text string) sandbox.Result {
	return sandbox.Result{Stdout: []byte(text), Log: []byte(text)}
}

func failedWith(code int, log string) sandbox.Result {
	return sandbox.Result{ExitCode: code, Log: []byte(log)}
}

// repairer answers with one repair after the other.
type repairer struct {
	answers []any // environment.Repair or error
	asked   []environment.Broken
}

func (r *repairer) Repair(_ context.Context, broken environment.Broken) (environment.Repair, error) {
	r.asked = append(r.asked, broken)
	next := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	if err, is := next.(error); is {
		return environment.Repair{}, err
	}
	return next.(environment.Repair), nil
}

// bench is a set-up with everything around it faked.
type bench struct {
	*environment.Setup
	engine   *engine
	repairer *repairer
	waited   []time.Duration
	steps    []environment.Step
	comments []string
	dir      string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{engine: &engine{results: map[string][]any{}}, repairer: &repairer{answers: []any{errors.New("no repair was expected")}}, dir: t.TempDir()}
	b.engine.identity = "sha256:" + b.dir
	if err := os.WriteFile(filepath.Join(b.dir, "requirements.txt"), []byte("requests\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Setup = &environment.Setup{Table: environment.BuiltIn(), Engine: b.engine, Repairer: b.repairer,
		Wait: func(_ context.Context, howLong time.Duration) error {
			b.waited = append(b.waited, howLong)
			return nil
		},
		OnStep: func(step environment.Step) { b.steps = append(b.steps, step) },
		Post: func(_ context.Context, comment string) error {
			b.comments = append(b.comments, comment)
			return nil
		},
		Log: slog.New(slog.DiscardHandler), SetupNetwork: sandbox.Registries}
	return b
}

func (b *bench) run(t *testing.T, plan environment.Selection) environment.Outcome {
	t.Helper()
	outcome, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: environment.Source{Project: "ours"}, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func (b *bench) has(kind environment.StepKind, phase task.Phase) bool {
	for _, step := range b.steps {
		if step.Kind == kind && step.Phase == phase {
			return true
		}
	}
	return false
}
