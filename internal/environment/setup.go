package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Setup is the environment set-up sub-phase. Its fields are set once; runs do not
// share anything else, so several may go on at a time.
type Setup struct {
	Table    *Table
	Engine   sandbox.Engine
	Repairer Repairer // nil: no model is configured, and nothing is repaired
	// Wait waits for a while or until the context ends. Tests count instead.
	Wait func(ctx context.Context, howLong time.Duration) error
	// OnStep is called with each step, from one goroutine; may be nil.
	OnStep func(Step)
	// Post tells the people of a failure, once; may be nil.
	Post func(ctx context.Context, comment string) error
	Log  *slog.Logger

	Language       task.Language // of the comment
	CommandTimeout time.Duration // of one command; zero means the sandbox's own
	OutputLimit    int           // bytes kept of a command's output; zero means the sandbox's own
	Snapshots      int64         // bytes that all snapshots may take; zero keeps none
	SetupNetwork   sandbox.Policy
	WorkNetwork    sandbox.Policy // once set-up is over
}

// Request is one run of the sub-phase.
type Request struct {
	Plan     Selection
	Source   Source // whose files are in the workspace
	Language string // of the task, for detection
	Spec     sandbox.Spec
	// Clone puts the project into the workspace. It is called once; nil when the
	// project is there already.
	Clone func(ctx context.Context, workspace string) error
	// Baseline says that the project's tests are to be run once at the end.
	Baseline bool
	// Again says that the files may have been worked on since the environment was
	// first made for them. A snapshot of before is used; what is made now is not kept,
	// because code of the work ran in it, and nothing that was kept is removed. What
	// set-up has put of the project itself into the snapshot is made anew.
	Again bool
}

// Outcome is what a run leaves. The sandbox goes on running, for the execution
// phase, and is the caller's to stop; it is nil when none could be started.
type Outcome struct {
	Result   Result
	Handover Handover
	Receipt  Receipt
	Sandbox  sandbox.Sandbox
}

// StepKind says what a step is.
type StepKind string

// The steps. Those of the phase are for the progress comment.
const (
	PhaseActive      StepKind = "phase_active"
	PhaseCompleted   StepKind = "phase_completed"
	Starting         StepKind = "starting"
	Cloning          StepKind = "cloning"
	CommandStarted   StepKind = "command_started"
	CommandEnded     StepKind = "command_ended"
	Waiting          StepKind = "waiting"
	Repairing        StepKind = "repairing"
	Verifying        StepKind = "verifying"
	CheckEnded       StepKind = "check_ended"
	KeepingSnapshot  StepKind = "keeping_snapshot"
	RunningBaseline  StepKind = "running_baseline"
	WentWrong        StepKind = "went_wrong"
	CommandPrinted   StepKind = "command_printed"
	EngineProgressed StepKind = "engine_progressed"
)

// Step is one step of a run.
type Step struct {
	Kind    StepKind
	Phase   task.Phase // of phase steps
	Message string
	Command string
	// Directory is the folder in which the command starts.
	Directory string
	Wait      time.Duration // of Waiting
}

// Run goes through the sub-phase. A set-up that fails is an outcome, not an
// error: errors are for a request that makes no sense, for a context that ended, and,
// as [*sandbox.UnusableError], for a machine that has no sandboxes or no room for one; then
// there is no sandbox left.
func (s *Setup) Run(ctx context.Context, request Request) (Outcome, error) {
	run := &setupRun{Setup: s, request: request, began: time.Now()}
	run.result = Result{OverallStatus: Failed, SetupResult: SetupResult{Commands: []CommandRun{}, Sandbox: s.Engine.Name()},
		VerificationResult: VerificationResult{Checks: []CheckRun{}}, Errors: []Failure{}, Warnings: []string{}}
	run.reportStep(Step{Kind: PhaseActive, Phase: task.EnvironmentSetup})

	err := run.prepare(ctx)
	if err == nil {
		err = run.loop(ctx)
	}
	var senseless *requestError
	_, unusable := errors.AsType[*sandbox.UnusableError](err)
	if ctx.Err() != nil || unusable || errors.As(err, &senseless) {
		return Outcome{}, errors.Join(err, run.stop(ctx))
	}
	run.finish(ctx, err)
	receipt := run.receipt(ctx) // which may add to the warnings
	outcome := Outcome{Result: run.result, Handover: run.handover(), Sandbox: run.box, Receipt: receipt}
	if ctx.Err() != nil {
		return Outcome{}, errors.Join(ctx.Err(), run.stop(ctx))
	}
	return outcome, nil
}

// handover is the result for the execution phase, with where things are.
func (r *setupRun) handover() Handover {
	handover := r.result.Handover()
	for i, p := range r.projects {
		switch {
		case i > 0:
			handover.Others = append(handover.Others, *p)
		case p.Directory != ".":
			handover.Directory = p.Directory
		}
	}
	return handover
}

// requestError marks an error of the request itself.
type requestError struct{ error }

func (r *requestError) Unwrap() error { return r.error }

// setupRun is one run in progress.
type setupRun struct {
	*Setup
	request  Request
	selected Selection
	entry    Environment
	detected Detection
	projects []*ProjectSetup // the main one first
	folders  folders
	identity string
	before   workdir.Listing
	// manifests are the contents of manifests and lock files, as they are in keys, once they
	// were read.
	manifests *string
	box       sandbox.Sandbox
	result    Result
	began     time.Time
	cold      bool   // snapshots of the project are not looked at any more
	kept      string // as what and where the snapshot is kept
	keepAs    string // the key under which one is kept
	noCaches  bool   // compilers do not fill their caches, as the sandbox was lost by that
	noKeeping bool   // none is kept, as the sandbox was lost by that or one was left
	left      string // the snapshot that the run began with, if it did not pass verification
}

func (r *setupRun) reportStep(step Step) {
	if r.OnStep != nil {
		r.OnStep(step)
	}
}

func (r *setupRun) stop(ctx context.Context) error {
	if r.box == nil {
		return nil
	}
	box := r.box
	r.box = nil
	return box.Stop(context.WithoutCancel(ctx))
}

// giveUp leaves a sandbox that is dead: what cannot be stopped of it is reaped later.
func (r *setupRun) giveUp(ctx context.Context) { _ = r.stop(ctx) }

// prepare clones, looks at the project, fills in the plan and starts the sandbox.
// The project comes first: what it holds decides which snapshot to start from.
func (r *setupRun) prepare(ctx context.Context) error {
	if err := checkCommands(r.request.Plan.SetupCommands, r.request.Plan.Verification); err != nil {
		return &requestError{err}
	}
	if r.request.Clone != nil {
		r.reportStep(Step{Kind: Cloning})
		if err := r.request.Clone(ctx, r.request.Spec.Workspace); err != nil {
			return r.fatal("the project could not be cloned", err)
		}
	}
	files, err := workdir.Open(r.request.Spec.Workspace)
	if err != nil {
		return &requestError{task.Wrap(task.NotFound, err, "the workspace cannot be opened")}
	}
	defer func() { _ = files.Close() }()
	if r.detected, err = r.Table.Detect(files.FS(), r.request.Language); err != nil {
		return &requestError{err}
	}
	r.folders = folders{r.request.Spec.Workspace}
	warnings := r.choose(files.FS())
	r.result.SetupResult.Environment = r.selected.Name
	for _, warning := range warnings {
		r.Log.WarnContext(ctx, "environment set-up: completed the plan", "warning", warning)
	}
	if r.before, err = workdir.List(r.request.Spec.Workspace); err != nil {
		return &requestError{err}
	}
	return r.start(ctx)
}

// choose makes of the plan and of what was detected which projects are set up, and how.
// It returns what was filled in.
func (r *setupRun) choose(files fs.FS) []string {
	plan := r.request.Plan
	if plan.Directory != "" && !r.folders.has(plan.Directory) {
		r.remark(fmt.Sprintf("the plan names the folder %s, which is not there", code(textfmt.Shorten(plan.Directory, longestShown))))
		plan.Directory = ""
	}
	// What the plan selects may be something else than all that was detected.
	entry, unknown := r.Table.Named(plan.Name)
	if plan.Name != "" && unknown != "" {
		r.remark(unknown)
		plan.Name = entry.Name
	}
	if _, found := r.detected.find(entry.Name, path.Clean(plan.Directory)); !found && plan.Directory != "" {
		r.detected.Projects = append(r.detected.Projects, r.Table.projectAt(files, path.Clean(plan.Directory), entry))
	}
	selected, entry, filled := r.Table.Complete(plan, r.detected)
	r.selected, r.entry = selected, entry
	r.result.Warnings = append(r.result.Warnings, filled...)
	if r.detected.Guess && entry.Name == r.detected.EnvironmentType {
		r.result.SetupResult.Guess = r.detected.Reason
		r.remark(fmt.Sprintf("the environment %s is a guess: %s", entry.Name, r.detected.Reason))
	}
	r.projects = r.needed(files)
	return filled
}

// remark records a warning that people should know of.
func (r *setupRun) remark(text string) {
	r.result.Warnings = append(r.result.Warnings, text)
	r.result.Remarks = append(r.result.Remarks, text)
}

// start starts the sandbox, from a snapshot if there is one for this project.
func (r *setupRun) start(ctx context.Context) error {
	r.reportStep(Step{Kind: Starting, Message: r.Engine.Name()})
	spec := r.request.Spec
	spec.Image = r.image()
	spec.Network = r.SetupNetwork
	spec.Progress = func(message string) { r.reportStep(Step{Kind: EngineProgressed, Message: message}) }
	env := map[string]string{}
	for _, p := range slices.Backward(r.projects) { // the main one's go over the others'
		entry, _ := r.Table.Find(p.EnvironmentType)
		maps.Copy(env, entry.Env)
	}
	maps.Copy(env, spec.Env)
	spec.Env = env
	r.manifests = nil // what ran before may have changed them
	r.nameSnapshot(ctx, spec.Image)
	for _, warm := range r.warm(ctx, spec.Image) {
		box, err := r.startFrom(ctx, spec, warm.Key)
		if err == nil {
			r.box, r.result.SetupResult.FromSnapshot, r.kept = box, warm.Key, warm.Kept
			return nil
		}
		if _, fatal := errors.AsType[*failureError](err); fatal {
			return err
		}
		r.result.Warnings = append(r.result.Warnings, "the snapshot could not be used: "+err.Error())
	}
	box, err := r.startCold(ctx, spec)
	if err != nil {
		return r.notStarted(sandbox.StartError(err))
	}
	r.box = box
	return nil
}

// startFrom starts the sandbox from a snapshot. If that fails, what it has put into the workspace by then
// is removed: it would be taken for the project's own.
func (r *setupRun) startFrom(ctx context.Context, spec sandbox.Spec, key string) (sandbox.Sandbox, error) {
	spec.Snapshot = key
	box, err := r.Engine.Start(ctx, spec)
	if err == nil {
		return box, nil
	}
	if left := workdir.RemoveAdded(spec.Workspace, r.before); left != nil {
		return nil, r.fatal("the workspace could not be cleaned", errors.Join(left, err))
	}
	return nil, err
}

// notStarted is the failure of a start. That of a machine without sandboxes says nothing about
// the project.
func (r *setupRun) notStarted(err error) error {
	if _, unusable := errors.AsType[*sandbox.UnusableError](err); unusable {
		return err
	}
	return r.fatal("the sandbox could not be started", err)
}

// image is the one that the sandbox is started from.
func (r *setupRun) image() string { return cmp.Or(r.request.Spec.Image, r.entry.Image) }

// keeps reports whether snapshots are kept and used.
func (r *setupRun) keeps() bool { return r.Snapshots > 0 && r.request.Source.Project != "" }

// nameSnapshot settles the key under which a snapshot is kept: that of the files as they
// are now, before set-up changes them.
func (r *setupRun) nameSnapshot(ctx context.Context, image string) {
	if !r.keeps() || r.request.Again || r.keepAs != "" {
		return
	}
	var err error
	if r.keepAs, err = r.key(ctx, image, r.request.Source); err != nil {
		r.Log.WarnContext(ctx, "environment set-up: failed to name the snapshot; none is kept", "error", err)
	}
}

// warm are the snapshots to start from, if there are any: that of the project before
// that of the change.
func (r *setupRun) warm(ctx context.Context, image string) []sandbox.Snapshot {
	if !r.keeps() || r.cold {
		return nil
	}
	kept, err := r.Engine.Snapshots(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "environment set-up: failed to list snapshots", "error", err)
		return nil
	}
	var found []sandbox.Snapshot
	for _, source := range slices.Compact([]Source{{Project: r.request.Source.Project}, r.request.Source}) {
		key, err := r.key(ctx, image, source)
		if err != nil {
			r.Log.WarnContext(ctx, "environment set-up: failed to look for a snapshot", "error", err)
			return nil
		}
		for _, snapshot := range kept {
			if snapshot.Key == key {
				found = append(found, snapshot)
			}
		}
	}
	return found
}

func (r *setupRun) key(ctx context.Context, image string, source Source) (string, error) {
	identity, err := r.Engine.Identity(ctx, image)
	if err != nil {
		return "", err
	}
	r.identity = identity
	if r.manifests == nil {
		files, err := workdir.Open(r.request.Spec.Workspace)
		if err != nil {
			return "", err
		}
		defer func() { _ = files.Close() }()
		manifests, err := r.Table.manifestsOf(onlyListed{files.FS(), r.before})
		if err != nil {
			return "", err
		}
		r.manifests = &manifests
	}
	return r.Table.snapshotKey(source, r.Engine.Name(), identity, r.projects, *r.manifests)
}

// fatal makes a fatal failure of an error of the engine or of the clone.
func (r *setupRun) fatal(message string, err error) error {
	kind := Container
	if sandbox.IsExhausted(err) {
		kind = Resource
	}
	return &failureError{Failure{Message: message + ": " + err.Error(),
		Classification: Classification{Class: Fatal, Kind: kind, Line: err.Error()}}}
}

// failureError carries a failure up to where it is decided on.
type failureError struct{ failure Failure }

func (f *failureError) Error() string { return f.failure.oneLine() }

// finish records how it went, and tells.
func (r *setupRun) finish(ctx context.Context, err error) {
	r.result.SetupResult.Milliseconds = milliseconds(time.Since(r.began))
	if err == nil {
		r.result.OverallStatus = Succeeded
		r.reportStep(Step{Kind: PhaseCompleted, Phase: task.EnvironmentSetup})
	} else {
		r.record(err)
		r.reportStep(Step{Kind: WentWrong, Message: err.Error()})
		r.post(ctx)
	}
	if r.box == nil {
		return
	}
	if err := r.box.SetNetwork(ctx, r.workNetwork()); err != nil {
		r.result.Warnings = append(r.result.Warnings, "the network policy could not be changed: "+err.Error())
	}
}

// record adds the failure that ended the run, if it is not the last one anyway.
func (r *setupRun) record(err error) {
	failure := Failure{Message: err.Error(), Classification: Classification{Class: Fatal, Kind: Unknown}}
	if failed, is := errors.AsType[*failureError](err); is {
		failure = failed.failure
	}
	if last := len(r.result.Errors) - 1; last < 0 || r.result.Errors[last] != failure {
		r.result.Errors = append(r.result.Errors, failure)
	}
}

func (r *setupRun) workNetwork() sandbox.Policy {
	if r.WorkNetwork == "" {
		return sandbox.NoNetwork
	}
	return r.WorkNetwork
}

func (r *setupRun) post(ctx context.Context) {
	if r.Post == nil {
		return
	}
	language := r.Language
	if language == "" {
		language = task.Japanese
	}
	if err := r.Post(ctx, r.result.Comment(language)); err != nil {
		r.result.Warnings = append(r.result.Warnings, "the comment about the failure could not be posted: "+err.Error())
		r.Log.WarnContext(ctx, "environment set-up: failed to post the comment", "error", err)
	}
}
