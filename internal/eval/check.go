package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// Check says whether a task can be used: the change that people made has to resolve it, and no
// change must not.
type Check struct {
	Task   string `json:"instance_id"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason,omitempty"` // why it cannot be used
	// Error says that the reason is one of this machine, and not of the task.
	Error    bool     `json:"error,omitempty"`
	Cached   bool     `json:"-"`
	Expected Expected `json:"expected"`
	Gold     Score    `json:"gold"`
	NoChange Score    `json:"no_change"`
}

// checkVersion changes when checks of earlier versions do not count any more.
const checkVersion = "1"

// checkFile is where the check of a task is kept, by all that it depends on but for the
// digest of the environment, which is in it.
func (e *Evaluation) checkFile(t taskset.Task) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{checkVersion, t.Hash(), e.Scorer.Setup.Engine.Name(), e.Scorer.Timeout.String()}, "\x00")))
	return filepath.Join(e.Cache, "checks", hex.EncodeToString(sum[:16])+".json")
}

// check returns the check of a task, from before if the environment is still the same.
func (e *Evaluation) check(ctx context.Context, t taskset.Task) (Check, error) {
	if t.Missing != "" {
		return Check{Task: t.ID, Error: true, Reason: t.Missing}, nil
	}
	var kept Check
	if readJSON(e.checkFile(t), &kept) == nil && e.sameEnvironment(ctx, kept) {
		kept.Cached = true
		return kept, nil
	}
	made, err := e.checkNow(ctx, t)
	if err != nil && ctx.Err() == nil && isPassing(err) {
		e.say("%s: the check is tried again: %v", t.ID, err)
		made, err = e.checkNow(ctx, t)
	}
	if ctx.Err() != nil {
		return Check{}, context.Cause(ctx)
	}
	if err != nil {
		return Check{Task: t.ID, Error: task.CodeOf(err) != task.Invalid && task.CodeOf(err) != task.Unsupported, Reason: err.Error()}, nil
	}
	return made, writeJSON(e.checkFile(t), made)
}

// isPassing reports whether something may go better the next time.
func isPassing(err error) bool {
	switch task.CodeOf(err) {
	case task.Invalid, task.Unsupported, task.NotFound, task.TooLarge, task.BadConfig, task.Unauthorized, task.Forbidden:
		return false
	}
	return true
}

// sameEnvironment reports whether the image or the toolchains are those of an earlier check.
func (e *Evaluation) sameEnvironment(ctx context.Context, kept Check) bool {
	was := kept.NoChange.Environment
	identity, err := e.Scorer.Setup.Engine.Identity(ctx, was.Image)
	return err == nil && identity == was.Identity
}

// checkNow scores no change and the change that people made.
func (e *Evaluation) checkNow(ctx context.Context, t taskset.Task) (check Check, err error) {
	from, remove, err := e.repository(ctx, t)
	if err != nil {
		return Check{}, err
	}
	defer remove()
	tests, gold, err := patched(ctx, from, t)
	if err != nil {
		return Check{}, err
	}
	receipt, err := e.Scorer.prepare(ctx, t, from)
	if err != nil {
		return Check{}, err
	}
	check = Check{Task: t.ID, Expected: Expected{FailToPass: t.FailToPass, PassToPass: t.PassToPass, Receipt: receipt}}
	before, err := e.Scorer.run(ctx, subject{task: t, from: from, commit: tests, receipt: receipt})
	if err != nil {
		return Check{}, err
	}
	changed := subject{task: t, from: from, commit: gold, receipt: receipt}
	after, err := e.Scorer.run(ctx, changed)
	if err != nil {
		return Check{}, err
	}
	if len(t.FailToPass) == 0 {
		// Twice, so that a test which passes now and then is not asked for.
		again, err := e.Scorer.run(ctx, changed)
		if err != nil {
			return Check{}, err
		}
		check.Expected.FailToPass, check.Expected.PassToPass = expectedOf(before.statuses(), both(after.statuses(), again.statuses()))
	}
	check.NoChange, check.Gold = before.score(check.Expected), after.score(check.Expected)
	if err := e.identify(ctx, &check.NoChange.Environment); err != nil {
		return Check{}, err
	}
	check.decide()
	return check, nil
}

// both are the tests that passed both times.
func both(one, other map[string]testreport.Status) map[string]testreport.Status {
	same := map[string]testreport.Status{}
	for name, status := range one {
		if other[name] == status {
			same[name] = status
		}
	}
	return same
}

// identify fills in the digest, which set-up finds out only where it keeps snapshots.
func (e *Evaluation) identify(ctx context.Context, environment *Environment) (err error) {
	environment.Identity, err = e.Scorer.Setup.Engine.Identity(ctx, environment.Image)
	return err
}

// decide says whether the task can be used, and why not.
func (c *Check) decide() {
	switch {
	case c.Gold.Note != "":
		c.Reason = "with the change that people made: " + c.Gold.Note
	case len(c.Expected.FailToPass) == 0:
		c.Reason = "the change that people made fixes no test"
	case !c.Gold.Resolved:
		c.Reason = fmt.Sprintf("with the change that people made %d tests do not pass that should, such as %s", len(c.Gold.Failed), c.Gold.Failed[0])
		if c.Gold.Missing > 0 {
			c.Reason += fmt.Sprintf(" (%d of them are not in the report)", c.Gold.Missing)
		}
	case c.NoChange.Resolved:
		c.Reason = "the tests pass without any change"
	default:
		c.Usable = true
	}
}

// patched makes the commits of the hidden tests alone and of the change with them.
func patched(ctx context.Context, from *source.Repository, t taskset.Task) (tests, gold string, err error) {
	if tests, err = from.Apply(ctx, from.Base, t.TestPatch); err != nil {
		return "", "", task.Wrap(task.Invalid, err, "the test_patch cannot be used")
	}
	change, err := from.Apply(ctx, from.Base, t.Patch)
	if err != nil {
		return "", "", task.Wrap(task.Invalid, err, "the patch cannot be used")
	}
	gold, err = from.With(ctx, change, tests)
	return tests, gold, err
}
