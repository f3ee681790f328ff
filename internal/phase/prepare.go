package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
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
	} else if err := r.workbench.restore(ctx); err != nil {
		return err
	}
	if r.state.timesEnded(task.EnvironmentSetup) > 0 {
		return nil
	}
	status := PhaseCompleted
	if !r.state.setup.Handover.EnvironmentReady {
		status = PhaseFailed
		if err := r.warn(ctx, r.text("run.setup_failed")); err != nil {
			return err
		}
	}
	return r.end(ctx, task.EnvironmentSetup, status, r.state.setup.Handover)
}

// setUp runs the sub-phase and writes down what it came to.
func (r *run) setUp(ctx context.Context) error {
	setup := r.setupOf(ctx)
	stop := r.showSteps(ctx, setup)
	defer stop()
	setup.Post = func(ctx context.Context, comment string) error {
		return r.notifyOnce(ctx, "environment-setup-failed", comment, func(name string) error { return r.Forge.AddComment(ctx, name, comment) })
	}
	source, err := r.source(ctx)
	if err != nil {
		return err
	}
	outcome, entry, err := r.setUpKeeping(ctx, setup, environment.Request{Plan: r.state.plan.SelectedEnvironment, Source: source, Spec: r.spec()})
	if err != nil {
		return err
	}
	r.workbench.box = outcome.Sandbox
	entry.Handover, entry.Receipt, entry.Result = outcome.Handover, outcome.Receipt, outcome.Result
	for _, remark := range outcome.Result.Remarks {
		if err := r.warn(ctx, sentence(remark)); err != nil {
			return err
		}
	}
	if err := r.baseline(ctx, entry); err != nil {
		return err
	}
	return r.append(ctx, task.Prepared, Entry{Setup: entry})
}

const (
	// mostMade and longestMade bound how many files that set-up made are told apart, and
	// the bytes of their names. They are in the journal.
	mostMade    = 5000
	longestMade = 512 << 10
	// mostNamed bounds how many other files the journal names.
	mostNamed = 200
)

// setUpKeeping sets an environment up in the workspace. The project's files are as they
// were afterwards, and what was made besides is no part of the work.
func (r *run) setUpKeeping(ctx context.Context, setup *environment.Setup, request environment.Request) (environment.Outcome, *SetupEntry, error) {
	var outcome environment.Outcome
	preserved, err := r.Repository.Preserve(ctx, func(ctx context.Context) error {
		var err error
		if outcome, err = setup.Run(ctx, request); err != nil {
			return cause(ctx, err)
		}
		return r.exclude(ctx)
	})
	if err == nil {
		err = r.leaveOut(ctx, &preserved)
	}
	if err != nil {
		if outcome.Sandbox != nil {
			err = errors.Join(err, outcome.Sandbox.Stop(context.WithoutCancel(ctx)))
		}
		return environment.Outcome{}, nil, err
	}
	return outcome, &SetupEntry{Made: preserved.Made, Restored: preserved.Restored[:min(len(preserved.Restored), mostNamed)]}, nil
}

// leaveOut keeps what was made out of the work, and gives what was put back to the
// sandbox.
func (r *run) leaveOut(ctx context.Context, preserved *Preserved) error {
	if len(preserved.Restored) > 0 {
		if err := r.giveToSandbox(r.Repository.Workspace()); err != nil {
			return fmt.Errorf("give the restored files to the sandbox: %w", err)
		}
	}
	length := 0
	for name := range preserved.Made {
		length += len(name)
	}
	if len(preserved.Made) > mostMade || length > longestMade {
		files, err := r.Repository.BaseFiles(ctx)
		if err != nil {
			return err
		}
		preserved.Made = foldMade(preserved.Made, files)
	}
	return r.Repository.ExcludeUnchanged(ctx, preserved.Made)
}

// foldMade names the folders in which the project has nothing in place of the files that
// were made in them, where those are too many. What is left of others is cut.
func foldMade(made map[string]string, project []string) map[string]string {
	theirs := map[string]bool{}
	for _, name := range project {
		for at := path.Dir(name); at != "." && !theirs[at]; at = path.Dir(at) {
			theirs[at] = true
		}
	}
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		at := 0
		for {
			end := strings.IndexByte(name[at:], '/')
			if end < 0 {
				if len(folded) < mostMade {
					folded[name] = made[name]
				}
				break
			}
			if at += end; !theirs[name[:at]] {
				folded[name[:at]] = ""
				break
			}
			at++
		}
	}
	return folded
}

// baseline builds and tests the projects once before anything is changed, where verdicts
// are made too.
func (r *run) baseline(ctx context.Context, entry *SetupEntry) error {
	if r.workbench.box == nil || !entry.Handover.EnvironmentReady || len(testable(entry.Receipt)) == 0 && entry.Receipt.Main().BuildCommand == "" {
		return nil
	}
	var err error
	if entry.Base, err = r.before(ctx); err != nil {
		return err
	}
	const attempts = 2 // a sandbox that is lost says nothing of the project
	for range attempts {
		entry.Unrepeatable = ""
		err := r.baselineOnce(ctx, entry)
		if task.CodeOf(err) != task.Unavailable || ctx.Err() != nil {
			return err
		}
		r.Log.WarnContext(ctx, "lost the sandbox of the tests before the change", "error", err)
		entry.Unrepeatable = err.Error()
	}
	return nil
}

func (r *run) baselineOnce(ctx context.Context, entry *SetupEntry) error {
	on, err := r.newVerificationSandbox(ctx, entry.Base, entry.Receipt)
	if err != nil {
		return err
	}
	defer on.close(ctx)
	if on.problem != "" {
		entry.Unrepeatable = on.problem
		return nil
	}
	before, err := workdir.List(on.files.Dir())
	if err != nil {
		return err
	}
	if err := r.runBaseline(ctx, on, entry); err != nil {
		return err
	}
	made, err := workdir.Added(on.files.Dir(), before)
	if err != nil {
		return err
	}
	entry.Products = made[:min(len(made), mostNamed)]
	return r.Repository.Exclude(ctx, entry.Products)
}

// longestBaselines bounds the names of tests that are kept of all projects, in bytes. They
// are in the journal.
const longestBaselines = 1 << 20

// baselineTime is how long the tests of all projects together may take before no further
// ones are run.
const baselineTime = 20 * time.Minute

func (r *run) runBaseline(ctx context.Context, on *verificationSandbox, entry *SetupEntry) (err error) {
	main := entry.Receipt.Main()
	if main.BuildCommand != "" {
		if entry.Build, err = on.build(ctx, main.Command(main.BuildCommand)); err != nil {
			return err
		}
	}
	needed := testable(entry.Receipt)
	begun := time.Now()
	for i := range entry.Receipt.Projects {
		project := &entry.Receipt.Projects[i]
		if !slices.ContainsFunc(needed, func(one environment.ProjectSetup) bool {
			return one.Directory == project.Directory && one.EnvironmentType == project.EnvironmentType
		}) {
			continue
		}
		if time.Since(begun) > baselineTime {
			r.Log.WarnContext(ctx, "skipped the tests of a project before the change: those of the others took too long", "folder", project.Directory)
			continue
		}
		if project.Baseline, err = on.test(ctx, project.Command(project.TestCommand)); err != nil {
			return err
		}
		project.Baseline = project.Baseline.Shorten(longestBaselines / len(needed))
		project.Baseline.Changed = project.Baseline.Changed[:min(len(project.Baseline.Changed), mostNamed)]
	}
	entry.Receipt.Baseline = entry.Receipt.Main().Baseline
	return nil
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
	source := environment.Source{Project: r.Work.project(), Change: r.change()}
	if r.Work.Pull != nil || r.Work.Item.Kind == task.Pull || len(r.Work.Past) > 0 {
		return source, nil
	}
	diff, err := r.Repository.Diff(ctx, "")
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
		return cmp.Or(w.Project, w.Folder)
	}
	at := ""
	if address, err := url.Parse(w.URL); err == nil {
		at = address.Host
	}
	return fmt.Sprintf("%s %s %s", w.Item.Forge, at, w.Item.Repository)
}

// ownBranches is how the branches begin that are made for issues.
const ownBranches = "toryo/"

// before is the commit that the work is compared with. What an earlier run has put on
// the task's own branch is part of the work.
func (r *run) before(ctx context.Context) (string, error) {
	return r.Repository.Before(ctx, !r.ownBranch())
}

// ownBranch reports whether the branch is the task's own. That for the pull request of a
// fork begins with the work of somebody else.
func (r *run) ownBranch() bool {
	pull := r.Work.Pull
	return pull == nil || pull.Head == r.Work.Branch && strings.HasPrefix(r.Work.Branch, ownBranches)
}

// change names what the branch has besides what the project itself has: the commit that
// the work is on top of, of a pull request or of an earlier run of the task.
func (r *run) change() string {
	if r.Work.Pull != nil {
		return r.Work.Item.String() + " " + r.Repository.Below()
	}
	return "task " + string(r.Work.Task) + " " + r.Repository.Below()
}

// setupOf is the sub-phase for this run.
func (r *run) setupOf(ctx context.Context) *environment.Setup {
	setup := r.Setup
	setup.Language = r.language
	setup.Repairer = environment.ChatRepairer{Ask: r.askRepair}
	setup.OnStep = func(step environment.Step) {
		r.Log.DebugContext(ctx, "environment set-up", "step", step.Kind, "command", step.Command, "message", step.Message)
	}
	return &setup
}

// showSteps puts what set-up does and what its commands write into the journal as it comes, for
// those who watch the run, until stop is called. That it cannot be written is noticed by the next
// entry that has to be.
func (r *run) showSteps(ctx context.Context, setup *environment.Setup) (stop func()) {
	live := &LiveOutput{Journal: ownJournal{r}, Phase: task.EnvironmentSetup}
	flush := func() {
		if err := live.Flush(ctx); err != nil {
			r.Log.WarnContext(ctx, "failed to write the output of set-up to the journal", "error", err)
		}
	}
	logged := setup.OnStep
	setup.OnStep = func(step environment.Step) {
		logged(step)
		switch step.Kind {
		case environment.CommandStarted, environment.RunningBaseline:
			live.Write(ctx, []byte("$ "+step.Command+"\n"))
			flush() // the program may write nothing for long
		case environment.CommandPrinted:
			live.Write(ctx, []byte(step.Message))
		case environment.CommandEnded:
			live.Write(ctx, []byte("["+step.Message+"]\n"))
			flush()
		case environment.CheckEnded:
			live.Write(ctx, []byte("$ "+step.Command+"\n["+step.Message+"]\n"))
			flush()
		case environment.EngineProgressed:
			live.Write(ctx, []byte(step.Message+"\n"))
		case environment.WentWrong, environment.PhaseCompleted:
			if step.Message != "" {
				live.Write(ctx, []byte(step.Message+"\n"))
			}
			flush()
		default:
		}
	}
	return live.Stop
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
	name := fmt.Sprintf("%s-%d", task.EnvironmentSetup, 1+r.state.countConversations(string(task.EnvironmentSetup)+"-"))
	t, err := r.open(ctx, opening{name: name, phase: task.EnvironmentSetup, system: system, tools: []tool.Tool{r.readComments(task.EnvironmentSetup)}})
	if err != nil {
		return "", err
	}
	if err := t.conversation.AddUserMessage(ctx, prompt); err != nil {
		return "", err
	}
	outcome, err := t.goOn(ctx)
	if err == nil && outcome.Reason != task.ReasonCompleted {
		err = &overError{reason: outcome.Reason, text: t.detail(outcome.Reason), said: outcome.Text}
	}
	return outcome.Text, err
}

func (s *state) countConversations(prefix string) int {
	count := 0
	for name := range s.conversations {
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

// restore prepares the workbench for a run that goes on. The sandbox is made again
// when it is first used: a run that only has to hand its work over needs none.
func (b *workbench) restore(ctx context.Context) error {
	setup := b.run.state.setup
	if err := b.run.Repository.ExcludeUnchanged(ctx, setup.Made); err != nil {
		return err
	}
	if err := b.run.Repository.Exclude(ctx, setup.Products); err != nil {
		return err
	}
	b.using.Lock()
	defer b.using.Unlock()
	b.lost = b.box == nil
	return nil
}

// rebuild makes the sandbox again from what the receipt says, and from its
// snapshot where there is one. The caller holds the lock.
func (b *workbench) rebuild(ctx context.Context) error {
	if b.box != nil {
		_ = b.box.Stop(context.WithoutCancel(ctx)) // it is dead
		b.box = nil
	}
	outcome, _, err := b.run.setUpKeeping(ctx, b.run.setupOf(ctx), b.run.setUpAgain(b.run.state.setup.Receipt, b.run.Repository.Workspace()))
	if err != nil {
		return err
	}
	b.box, b.lost = outcome.Sandbox, false
	text := "The sandbox was made again from the receipt of the set-up"
	if key := outcome.Result.SetupResult.FromSnapshot; key != "" {
		text = "The sandbox was made again from the snapshot " + key
	}
	if b.box == nil {
		lost := b.run.text("run.sandbox_lost", tool.Shorten(lastFailure(outcome.Result), 500))
		if err := b.run.notifyOnce(ctx, "sandbox-lost", lost, func(name string) error { return b.run.Forge.AddComment(ctx, name, lost) }); err != nil {
			return err
		}
		return b.run.warn(ctx, lost)
	}
	if !outcome.Handover.EnvironmentReady {
		text += ", but the environment is not ready: " + tool.Shorten(lastFailure(outcome.Result), 500)
	}
	return b.run.note(ctx, text+".")
}

// setUpAgain asks for the environment that a receipt names, for the files in a folder.
func (r *run) setUpAgain(receipt environment.Receipt, folder string) environment.Request {
	spec := r.spec()
	spec.Workspace = folder
	return environment.Request{Plan: receipt.Selection(), Source: environment.Source{Project: r.Work.project(), Change: r.change()}, Spec: spec, Again: true}
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
