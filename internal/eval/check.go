package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
const checkVersion = "4"

// checkFile is where the check of a task is kept, by all that it depends on but for the
// digest of the environment, which is in it.
func (e *Evaluation) checkFile(t taskset.Task) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{checkVersion, t.Hash(), e.Scorer.Setup.Engine.Name(), e.Scorer.Timeout.String(), e.Settings}, "\x00")))
	return filepath.Join(e.Cache, checksName, hex.EncodeToString(sum[:16])+".json")
}

// check returns the check of a task, from before if the environment is still the same.
func (e *Evaluation) check(ctx context.Context, t taskset.Task) (Check, error) {
	if t.Missing != "" {
		return Check{Task: t.ID, Error: true, Reason: t.Missing}, nil
	}
	var kept Check
	if !e.Recheck && readJSON(e.checkFile(t), &kept) == nil && e.sameEnvironment(ctx, kept) {
		kept.Cached = true
		now := e.Now()
		_ = os.Chtimes(e.checkFile(t), now, now) // or it is removed too early, and made again
		return kept, nil
	}
	made, err := e.checkNow(ctx, t)
	if err != nil && ctx.Err() == nil && IsPassing(err) {
		e.say("%s: the check is tried again: %v", t.ID, err)
		made, err = e.checkNow(ctx, t)
	}
	if ctx.Err() != nil {
		return Check{}, context.Cause(ctx)
	}
	if err != nil {
		return Check{Task: t.ID, Error: !isOfWork(err), Reason: err.Error()}, nil
	}
	if !made.Usable { // perhaps by chance
		return made, nil
	}
	return made, writeJSON(e.checkFile(t), made)
}

// keptFor is how long a check is kept that nobody uses.
const keptFor = 90 * 24 * time.Hour

// forgetOld removes checks that are too old to be of use.
func (e *Evaluation) forgetOld() error {
	folder := filepath.Join(e.Cache, checksName)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return task.Wrap(task.DataDir, err, "the checks from before cannot be read")
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || e.Now().Sub(info.ModTime()) < keptFor {
			continue // it is gone, or new enough
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return task.Wrap(task.DataDir, err, "an old check cannot be removed")
		}
	}
	return nil
}

// basis identifies what attempts are held against: the tests and the environment.
func (c *Check) basis() string {
	data, err := json.Marshal([]any{c.Expected.FailToPass, c.Expected.PassToPass, c.Expected.Allowed, c.NoChange.Environment.Identity})
	if err != nil { // texts always can be encoded
		data = []byte(c.Task)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// IsPassing reports whether something may go better the next time.
func IsPassing(err error) bool {
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
	if t.Container != nil {
		return e.checkFolder(ctx, t)
	}
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
	check = Check{Task: t.ID, Expected: Expected{Receipt: receipt}}
	if check.Expected.Allowed, err = needed(ctx, from, t, receipt, tests); err != nil {
		return Check{}, err
	}
	before, err := e.twice(ctx, subject{task: t, from: from, commit: tests, receipt: receipt}, func(ran tested) bool { return !ran.finished() })
	if err != nil {
		return Check{}, err
	}
	// Twice, so that a test which passes now and then is not asked for.
	after, err := e.twice(ctx, subject{task: t, from: from, commit: gold, receipt: receipt}, func(tested) bool { return true })
	if err != nil {
		return Check{}, err
	}
	first, last := after[0], after[len(after)-1]
	check.Expected.FailToPass, check.Expected.PassToPass = translated(t.FailToPass, first.statuses()), translated(t.PassToPass, first.statuses())
	if len(t.FailToPass) == 0 {
		check.Expected.FailToPass, check.Expected.PassToPass = expectedOf(before[0].statuses(), both(first.statuses(), last.statuses()))
	}
	check.NoChange, check.Gold = before[len(before)-1].score(check.Expected), first.score(check.Expected)
	if check.Gold.Resolved {
		check.Gold = last.score(check.Expected)
	}
	if err := e.identify(ctx, &check.NoChange.Environment); err != nil {
		return Check{}, err
	}
	check.decide(before)
	return check, nil
}

// twice scores something, and once more if the first run says so.
func (e *Evaluation) twice(ctx context.Context, of subject, again func(tested) bool) ([]tested, error) {
	ran, err := e.Scorer.run(ctx, of)
	if err != nil || !again(ran) {
		return []tested{ran}, err
	}
	second, err := e.Scorer.run(ctx, of)
	return []tested{ran, second}, err
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

// decide says whether the task can be used, and why not. Without the change the tests of
// FailToPass must not pass, and it has to be sure that they do not.
func (c *Check) decide(without []tested) {
	passes := slices.DeleteFunc(slices.Clone(c.Expected.FailToPass), func(name string) bool {
		return !slices.ContainsFunc(without, func(ran tested) bool { return ran.statuses()[name] == testreport.Passed })
	})
	cut := slices.IndexFunc(without, func(ran tested) bool { return ran.cut() != "" })
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
	case cut >= 0:
		c.Reason = "without any change: " + without[cut].cut()
	case len(passes) > 0:
		c.Reason = fmt.Sprintf("%d tests of FAIL_TO_PASS pass without any change, such as %s", len(passes), passes[0])
	case without[0].finished() != without[len(without)-1].finished():
		c.Reason = "without any change the tests end in one way or another by chance"
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
