package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// mostRegenerations is how often the model is asked in one run of the sub-phase.
const mostRegenerations = 3

// waits are the specification's: how long to wait before each further try of a
// command that failed with a retryable kind. When they are used up the failure
// counts as fixable: a mirror or an address may be wrong.
var waits = map[Kind][]time.Duration{
	Network: {5 * time.Second, 10 * time.Second, 20 * time.Second},
	Server:  {10 * time.Second, 10 * time.Second, 10 * time.Second},
	Lock:    {3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second},
}

// loop sets up and verifies until that succeeds or nothing more can be done.
func (r *setupRun) loop(ctx context.Context) error {
	if r.result.SetupResult.FromSnapshot != "" {
		err := r.setUpAgain(ctx)
		if err == nil {
			err = r.verifyAll(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := r.leaveSnapshot(ctx); err != nil {
			return err
		}
	}
	if err := r.setUpAll(ctx); err != nil {
		return err
	}
	r.removeLeft(ctx)
	return nil
}

// leaveSnapshot begins anew without a snapshot that did not pass verification. No other is made
// in this run: if the verification is what is wrong, the next one would be left like this one.
func (r *setupRun) leaveSnapshot(ctx context.Context) error {
	r.left, r.noKeeping = r.result.SetupResult.FromSnapshot, true
	r.result.Warnings = append(r.result.Warnings, "the snapshot "+r.left+" did not pass verification and was not used")
	r.result.SetupResult.FromSnapshot, r.kept = "", ""
	r.result.Errors = r.result.Errors[:0]
	return r.startAnew(ctx)
}

// removeLeft removes the snapshot that was left, if what was then set up by the same commands has
// passed the same verification: the snapshot is out of date, and the next run makes it anew.
// Otherwise it stays, as the verification may be what is wrong, and other plans, which say that in
// other words, share the snapshot. So does one of the project that a change started from.
func (r *setupRun) removeLeft(ctx context.Context) {
	if r.left == "" || r.left != r.keepAs || r.result.SetupResult.Regenerations > 0 || !r.allReady() {
		return
	}
	if err := r.Engine.RemoveSnapshot(ctx, r.left); err != nil {
		r.result.Warnings = append(r.result.Warnings, "the snapshot "+r.left+" could not be removed: "+err.Error())
		r.Log.WarnContext(ctx, "environment set-up: failed to remove a snapshot that is out of date", "snapshot", r.left, "error", err)
	}
}

// startAnew starts another sandbox with nothing of an earlier set-up of the project.
func (r *setupRun) startAnew(ctx context.Context) error {
	if err := r.stop(ctx); err != nil {
		return r.fatal("the sandbox could not be stopped", err)
	}
	if err := workdir.RemoveAdded(r.request.Spec.Workspace, r.before); err != nil {
		return r.fatal("the workspace could not be cleaned", err)
	}
	r.cold = true
	for _, p := range r.projects {
		p.Ready = false
	}
	return r.start(ctx)
}

// setUp runs those of the set-up commands of a project that are needed, one by one. Each
// starts in the project's folder, or in the one to which a line before it goes.
func (r *setupRun) setUp(ctx context.Context, p *ProjectSetup, needed func(folder, command string) bool) error {
	at := p.Directory
	for _, command := range p.SetupCommands {
		if target, only := changedFolder(onlyChanges, command); only {
			if next, found := r.folders.goTo(at, target); found {
				at = next
				continue
			}
		}
		folder := r.folders.start(at, command)
		if !needed(folder, command) {
			continue
		}
		if err := r.setUpOne(ctx, p, folder, command); err != nil {
			return err
		}
	}
	return nil
}

// setUpOne runs a command, and again after a wait while it fails with a kind
// that may pass.
func (r *setupRun) setUpOne(ctx context.Context, p *ProjectSetup, folder, command string) error {
	retries := map[Kind]int{}
	for {
		failure, err := r.try(ctx, p, folder, command)
		if err != nil || failure == nil {
			return err
		}
		kind := failure.Classification.Kind
		steps := waits[kind]
		if retries[kind] >= len(steps) {
			return &failureError{*failure}
		}
		wait := steps[retries[kind]]
		retries[kind]++
		r.result.SetupResult.Retries++
		if kind == Network {
			r.result.SetupResult.NetworkRetries++
		}
		r.reportStep(Step{Kind: Waiting, Command: command, Wait: wait, Message: string(kind)})
		if err := r.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// try runs a command once. It returns a failure that may be retried or repaired,
// or an error for one that may not.
func (r *setupRun) try(ctx context.Context, p *ProjectSetup, folder, command string) (*Failure, error) {
	r.reportStep(Step{Kind: CommandStarted, Command: command, Directory: folder})
	ran, err := r.box.Run(ctx, sandbox.Command{Text: command, Folder: folder, Session: p.Session, Timeout: r.CommandTimeout, OutputLimit: r.OutputLimit,
		Output: func(_ sandbox.Stream, data []byte) {
			r.reportStep(Step{Kind: CommandPrinted, Command: command, Message: string(data)})
		}})
	if err != nil {
		return r.notRun(ctx, command, err)
	}
	record := CommandRun{Command: command, Directory: folder, ExitCode: ran.ExitCode, Exceeded: ran.Exceeded,
		Milliseconds: milliseconds(ran.Duration), Output: ending(ran.Log)}
	defer func() {
		r.result.SetupResult.Commands = append(r.result.SetupResult.Commands, record)
		r.reportStep(Step{Kind: CommandEnded, Command: command, Message: fmt.Sprintf("exit code %d", ran.ExitCode)})
	}()
	if ran.ExitCode == 0 && ran.Exceeded == sandbox.NoLimit {
		return nil, nil
	}
	failure := r.failed(folder, command, ran)
	record.Classification = &failure.Classification
	r.result.Errors = append(r.result.Errors, failure)
	if failure.Classification.Class == Fatal {
		return nil, &failureError{failure}
	}
	return &failure, nil
}

// failed says what a command's end means.
func (r *setupRun) failed(folder, command string, ran sandbox.Result) Failure {
	failure := Failure{Command: command, Directory: folder, ExitCode: ran.ExitCode, Log: Excerpt(ran.Log, shownOutput),
		Message: fmt.Sprintf("the command %q ended with exit code %d", textfmt.Shorten(command, longestShown), ran.ExitCode)}
	switch ran.Exceeded {
	case sandbox.NoLimit:
		failure.Classification = Classify(ran.Log, ran.ExitCode)
	case sandbox.TimeLimit:
		failure.Message = fmt.Sprintf("the command %q did not end within its time limit", textfmt.Shorten(command, longestShown))
		failure.Classification = Classify(ran.Log, 0)
		if failure.Classification.Class == Fatal {
			failure.Classification = Classification{Kind: Unknown, Class: Fixable, Line: failure.Classification.Line}
		}
	default:
		failure.Message = fmt.Sprintf("the command %q exceeded the sandbox's limit of %s", textfmt.Shorten(command, longestShown), ran.Exceeded)
		failure.Classification = Classification{Class: Fatal, Kind: Resource, Line: "limit exceeded: " + string(ran.Exceeded)}
	}
	return failure
}

// notRun is for a command that the sandbox could not carry out.
func (r *setupRun) notRun(ctx context.Context, command string, err error) (*Failure, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if code := task.CodeOf(err); code == task.TooLarge || code == task.Invalid {
		failure := Failure{Message: err.Error(), Command: textfmt.Shorten(command, longestShown), ExitCode: -1,
			Classification: Classification{Class: Fixable, Kind: Unknown, Line: err.Error()}}
		r.result.Errors = append(r.result.Errors, failure)
		return &failure, nil
	}
	fatal := r.fatal("the sandbox failed while the command "+textfmt.Shorten(command, longestShown)+" ran", err)
	r.giveUp(ctx)
	return nil, fatal
}

// verify runs the verification commands. Exit code 0 and exactly the expected
// output are needed, byte for byte after one final line break is removed.
func (r *setupRun) verify(ctx context.Context, p *ProjectSetup) error {
	r.reportStep(Step{Kind: Verifying})
	result := VerificationResult{Passed: true, Checks: []CheckRun{}}
	var failure *Failure
	for _, check := range p.Verification {
		ran, err := r.box.Run(ctx, sandbox.Command{Text: check.Command, Folder: r.folders.start(p.Directory, check.Command), Session: p.Session,
			Timeout: r.CommandTimeout, OutputLimit: r.OutputLimit})
		if err != nil {
			notRun, err := r.notRun(ctx, check.Command, err)
			if err != nil {
				return err
			}
			result.Passed, failure = false, notRun
			continue
		}
		actual := bytes.TrimSuffix(ran.Stdout, []byte("\n"))
		passed := ran.ExitCode == 0 && ran.Exceeded == sandbox.NoLimit && !ran.Cut && string(actual) == check.ExpectedOutput
		result.Checks = append(result.Checks, CheckRun{Check: check, ActualOutput: ending(actual), ExitCode: ran.ExitCode, Passed: passed})
		r.reportStep(Step{Kind: CheckEnded, Command: check.Command, Directory: p.Directory, Message: fmt.Sprintf("passed: %v", passed)})
		if !passed {
			result.Passed = false
			if failure == nil {
				failure = mismatch(check, ran, actual)
			}
		}
	}
	if p == r.main() {
		r.result.VerificationResult = result
	}
	if failure == nil {
		return nil
	}
	r.result.Errors = append(r.result.Errors, *failure)
	return &failureError{*failure}
}

func mismatch(check Check, ran sandbox.Result, actual []byte) *Failure {
	return &Failure{Command: check.Command, ExitCode: ran.ExitCode, Log: Excerpt(ran.Log, shownOutput),
		Message: fmt.Sprintf("verification failed: %q printed %q with exit code %d; expected were %q and 0",
			textfmt.Shorten(check.Command, longestShown), textfmt.Shorten(string(actual), longestShown), ran.ExitCode, textfmt.Shorten(check.ExpectedOutput, longestShown)),
		Classification: Classification{Class: Fixable, Kind: Classify(ran.Log, ran.ExitCode).fixableKind()}}
}

// fixableKind is the kind, where that is fixable: a verification that fails counts
// as fixable whatever it printed.
func (c Classification) fixableKind() Kind {
	if c.Class == Fixable {
		return c.Kind
	}
	return Unknown
}

// repair asks for other commands, if the failure may be repaired and attempts are
// left. It returns the failure if nothing more can be done.
func (r *setupRun) repair(ctx context.Context, p *ProjectSetup, err error) error {
	var failed *failureError
	if !errors.As(err, &failed) || failed.failure.Classification.Class == Fatal {
		return err
	}
	if r.Repairer == nil {
		r.result.Warnings = append(r.result.Warnings, "the commands were not repaired: no model is configured")
		return err
	}
	for r.result.SetupResult.Regenerations < mostRegenerations {
		r.result.SetupResult.Regenerations++
		attempt := r.result.SetupResult.Regenerations
		r.reportStep(Step{Kind: Repairing, Message: fmt.Sprintf("%d/%d", attempt, mostRegenerations)})
		answer, err := r.Repairer.Repair(ctx, Broken{Environment: p.EnvironmentType, Directory: p.Directory, Commands: p.SetupCommands,
			Verification: p.Verification, Failure: failed.failure, Attempt: attempt})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = checkCommands(answer.SetupCommands, answer.Verification)
		}
		if err == nil {
			if len(answer.SetupCommands) > 0 {
				p.SetupCommands = answer.SetupCommands
			}
			if len(answer.Verification) > 0 {
				p.Verification = answer.Verification
			}
			return nil
		}
		r.result.Errors = append(r.result.Errors, Failure{Message: fmt.Sprintf("repair %d/%d: %v", attempt, mostRegenerations, err),
			Classification: Classification{Class: Fixable, Kind: Unknown}})
	}
	failed.failure.Message += fmt.Sprintf(" (after %d repairs)", r.result.SetupResult.Regenerations)
	return failed
}

// longestShown is how many characters of a command or an output a message has.
const longestShown = 200
