package phase

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// prepare sets the environment up. That it fails is no end of the run: it goes on
// with a warning.
func (r *run) prepare(ctx context.Context) error {
	if r.state.setup == nil {
		if err := r.begin(ctx, task.EnvironmentSetup); err != nil {
			return err
		}
		if err := r.setUp(ctx); err != nil {
			return err
		}
	} else if err := r.bench.restore(ctx); err != nil {
		return err
	}
	if r.state.over(task.EnvironmentSetup) > 0 {
		return nil
	}
	status := PhaseCompleted
	if !r.state.setup.Handover.EnvironmentReady {
		status = PhaseFailed
		if err := r.warn(ctx, r.words().setupFailed); err != nil {
			return err
		}
	}
	return r.end(ctx, task.EnvironmentSetup, status, r.state.setup.Handover)
}

// setUp runs the sub-phase and writes down what it came to.
func (r *run) setUp(ctx context.Context) error {
	before, err := sandbox.List(r.Repository.Workspace())
	if err != nil {
		return err
	}
	setup := r.setupOf(ctx)
	setup.Post = func(ctx context.Context, comment string) error {
		return r.tell(ctx, "environment-setup-failed", comment, func(name string) error { return r.Desk.Say(ctx, name, comment) })
	}
	source, err := r.source(ctx)
	if err != nil {
		return err
	}
	outcome, err := setup.Run(ctx, environment.Request{Plan: r.state.plan.SelectedEnvironment, Source: source, Spec: r.spec(), Baseline: true})
	if err != nil {
		return cause(ctx, err)
	}
	r.bench.box = outcome.Sandbox
	for _, remark := range outcome.Result.Remarks {
		if err := r.warn(ctx, sentence(remark)); err != nil {
			return err
		}
	}
	entry := &SetupEntry{Handover: outcome.Handover, Receipt: outcome.Receipt, Result: outcome.Result}
	if entry.Build, err = r.buildBaseline(ctx, outcome); err != nil {
		return err
	}
	if entry.Made, err = sandbox.Added(r.Repository.Workspace(), before); err != nil {
		return err
	}
	if err := r.Repository.Exclude(ctx, entry.Made); err != nil {
		return err
	}
	return r.append(ctx, task.Prepared, Entry{Setup: entry})
}

// sentence is a remark as people read it.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// source says whose files are in the workspace at the first set-up. They are the
// project's own if the task is about no pull request, nothing was done in the workspace
// yet, and nothing differs from the base: a branch of an earlier run may be there.
func (r *run) source(ctx context.Context) (environment.Source, error) {
	source := environment.Source{Project: r.Work.project(), Change: r.Work.change()}
	if r.Work.Pull != nil || r.Work.Item.Kind == task.Pull || len(r.Work.Past) > 0 {
		return source, nil
	}
	diff, err := r.Repository.Diff(ctx)
	if err != nil {
		return environment.Source{}, err
	}
	if len(diff.Files) == 0 {
		source.Change = ""
	}
	return source, nil
}

// project names the repository that the work is in, with its forge and where that is:
// several may use the sandboxes of one machine. It is empty if nobody knows.
func (w Work) project() string {
	if w.Item == (task.Key{}) {
		return w.Folder
	}
	at := ""
	if address, err := url.Parse(w.URL); err == nil {
		at = address.Host
	}
	return fmt.Sprintf("%s %s %s", w.Item.Forge, at, w.Item.Repository)
}

// change names what the workspace has besides what the project itself has: the commit
// of a pull request, or the work of the task.
func (w Work) change() string {
	if w.Pull != nil {
		return w.Item.String() + " " + w.Pull.Commit
	}
	return "task " + string(w.Task)
}

// setupOf is the sub-phase for this run.
func (r *run) setupOf(ctx context.Context) *environment.Setup {
	setup := r.Setup
	setup.Language = r.language
	setup.Repairer = environment.ChatRepairer{Ask: r.askRepair}
	setup.Tell = func(step environment.Step) {
		r.Log.DebugContext(ctx, "environment set-up", "step", step.Kind, "command", step.Command, "message", step.Message)
	}
	return &setup
}

func (r *run) spec() sandbox.Spec {
	spec := r.Spec
	// Python takes a compiled file for fresh if its source is as long and was
	// changed in the same second. A test after a quick change would lie.
	spec.Env = map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}
	maps.Copy(spec.Env, r.Spec.Env)
	spec.Task, spec.Generation, spec.Workspace = string(r.Work.Task), r.Work.Generation, r.Repository.Workspace()
	return spec
}

// askRepair asks the model for other set-up commands.
func (r *run) askRepair(ctx context.Context, prompt string) (string, error) {
	system, err := r.system(task.EnvironmentSetup)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%d", task.EnvironmentSetup, 1+r.state.countTalks(string(task.EnvironmentSetup)+"-"))
	t, err := r.open(ctx, opening{name: name, phase: task.EnvironmentSetup, system: system})
	if err != nil {
		return "", err
	}
	if err := t.conversation.Say(ctx, prompt); err != nil {
		return "", err
	}
	outcome, err := t.goOn(ctx)
	if err == nil && outcome.Reason != task.ReasonCompleted {
		err = &overError{outcome.Reason, outcome.Text}
	}
	return outcome.Text, err
}

func (s *state) countTalks(prefix string) int {
	count := 0
	for name := range s.talks {
		if strings.HasPrefix(name, prefix) {
			count++
		}
	}
	return count
}

// neverWork are folders that package managers and interpreters make wherever
// they run. A project that has them under git keeps them there.
var neverWork = []string{".venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".gradle"}

// mostNeverWork bounds how many of them are looked for.
const mostNeverWork = 10_000

// exclude keeps what is never work out of it, wherever it has come up since.
func (r *run) exclude(ctx context.Context) error {
	var found []string
	err := workdir.Walk(r.Repository.Workspace(), func(name string, entry fs.DirEntry) error {
		switch { // what cannot be read now cannot be committed either
		case !entry.IsDir():
			return nil
		case name == ".git":
			return fs.SkipDir
		case slices.Contains(neverWork, entry.Name()):
			if found = append(found, name); len(found) > mostNeverWork {
				return task.Errorf(task.TooLarge, "the workspace has more than %d folders of package managers", mostNeverWork)
			}
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return r.Repository.Exclude(ctx, found)
}

// buildBaseline builds the project once before anything is changed.
func (r *run) buildBaseline(ctx context.Context, outcome environment.Outcome) (*environment.Baseline, error) {
	main := outcome.Receipt.Main()
	if main.BuildCommand == "" || outcome.Sandbox == nil || !outcome.Handover.EnvironmentReady {
		return nil, nil // running the tests has to do
	}
	command := main.Command(main.BuildCommand)
	command.Timeout = r.Setup.CommandTimeout
	ran, err := environment.RunTests(ctx, outcome.Sandbox, command)
	if err != nil {
		return nil, cause(ctx, err)
	}
	return &ran, nil
}

// restore prepares the bench for a run that goes on. The sandbox is made again
// when it is first used: a run that only has to hand its work over needs none.
func (b *bench) restore(ctx context.Context) error {
	if err := b.run.Repository.Exclude(ctx, b.run.state.setup.Made); err != nil {
		return err
	}
	b.using.Lock()
	defer b.using.Unlock()
	b.lost = b.box == nil
	return nil
}

// rebuild makes the sandbox again from what the receipt says, and from its
// snapshot where there is one. The caller holds the lock.
func (b *bench) rebuild(ctx context.Context) error {
	if b.box != nil {
		_ = b.box.Stop(context.WithoutCancel(ctx)) // it is dead
		b.box = nil
	}
	plan := b.run.state.setup.Receipt.Selection()
	source := environment.Source{Project: b.run.Work.project(), Change: b.run.Work.change()}
	outcome, err := b.run.setupOf(ctx).Run(ctx, environment.Request{Plan: plan, Source: source, Spec: b.run.spec()})
	if err != nil {
		return cause(ctx, err)
	}
	b.box, b.lost = outcome.Sandbox, false
	text := "The sandbox was made again from the receipt of the set-up"
	if key := outcome.Result.SetupResult.FromSnapshot; key != "" {
		text = "The sandbox was made again from the snapshot " + key
	}
	if !outcome.Handover.EnvironmentReady {
		text += ", but the environment is not ready: " + tool.Shorten(lastFailure(outcome.Result), 500)
	}
	return b.run.note(ctx, text+".")
}

func lastFailure(result environment.Result) string {
	if len(result.Errors) == 0 {
		return "nothing is known"
	}
	return result.Errors[len(result.Errors)-1].Message
}

// cause is the reason for which a context ended, or the error itself.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
