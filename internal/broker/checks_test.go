package broker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// checkedOffice is a loop in which checks count.
type checkedOffice struct {
	*office
	options     intake.Options
	issue, pull task.Key
}

// newChecked is a pull request of ours with the published head c1, on the base b1.
func newChecked(t *testing.T, change ...func(*intake.Options)) *checkedOffice {
	t.Helper()
	c := &checkedOffice{}
	following := func(o *intake.Options) {
		facts, is := o.Tasks.(intake.Facts)
		if !is {
			t.Fatal("the store has no facts")
		}
		o.Facts = facts
		o.Rules.OnCheckFailure, o.Rules.CheckRounds, o.Rules.CheckGiveUp = intake.FixChecks, 2, 24*time.Hour
		o.BranchCommit = func(context.Context, task.Repository, string) (string, error) { return "newest", nil }
	}
	change = append(change, func(o *intake.Options) { c.options = *o })
	c.office = newLoop(t, append([]func(*intake.Options){following}, change...)...)
	c.issue = c.office.issue("Fix the gate", "BACKENDCODER")
	c.look(c.issue)
	c.pull = c.office.pull(c.finish(c.office.task(c.issue, task.Development), "writer").Branch, "Closes #1")
	c.publish("c1")
	return c
}

// publish publishes a head to the pull request, as the end of a run does.
func (c *checkedOffice) publish(commit string) {
	c.Helper()
	c.later(time.Minute)
	c.forge.Change(c.pull, func(i *forge.Item) { i.HeadCommit = commit })
	action, err := outbox.NewVerification(c.pull, outbox.SetStatus{
		Commit: commit, State: forge.StatusSuccess, Of: &outbox.PublishedCommit{Base: "b1", BaseBranch: "main"},
	})
	c.check(err)
	_, err = c.sender.Put(c.Context(), action)
	c.check(err)
}

func (c *checkedOffice) set(commit, name string, state forge.StatusState) {
	c.forge.SetCheck(team, commit, forge.Check{Name: name, State: state, URL: "https://ci.example/" + name}, "log of "+name+"\nerror: it is broken\n")
}

// fixUp is the queued fix-up of the pull request.
func (c *checkedOffice) fixUp() task.Task {
	c.Helper()
	t := c.task(c.pull, task.Development)
	if t.State != task.Queued || t.Cause != task.ReasonChecksFailed {
		c.Fatalf("the task is %+v", t)
	}
	return t
}

// said waits for what is written and returns the comments on the pull request.
func (c *checkedOffice) said() []string {
	c.Helper()
	c.deliver(c.pull)
	return c.comments(c.pull)
}

// saidOnce fails unless there is one comment, with the text in it.
func (c *checkedOffice) saidOnce(text string) {
	c.Helper()
	if said := c.said(); len(said) != 1 || !strings.Contains(said[0], text) {
		c.Fatalf("people are told %q, not %q", said, text)
	}
}

// A failed check leads to a fix-up when all have ended, and the fix-up's agent is told what
// failed.
func TestAFailedCheckLeadsToAFixUp(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusPending)
	c.set("c1", "CI / lint", forge.StatusFailure)
	c.set("c1", "docs", forge.StatusSuccess)
	c.sync()
	c.noTask(c.pull, task.Development)
	c.set("c1", "CI / test", forge.StatusFailure)
	c.sync()
	fix := c.fixUp()
	if fix.Role != "BACKENDCODER" || fix.Lane() != task.FixUpLane || !strings.Contains(fix.Occasion, `checks c1 ["CI / lint","CI / test"]`) {
		t.Errorf("the task is %+v", fix)
	}
	var seeded seeds
	made, err := preparer(c.office, &seeded).Prepare(t.Context(), assignment.Assignment{Task: c.claim(fix, "writer"), Was: fix.Reason})
	c.check(err)
	if len(made.Pull.Checks) != 2 || made.Pull.Checks[1].Name != "CI / test" || !strings.Contains(made.Pull.Checks[1].Log, "it is broken") {
		t.Errorf("the agent is told of %+v", made.Pull.Checks)
	}
	for _, part := range []string{"Checks of the pull request below failed.", `<untrusted source="failed check">` + "\nCI / lint", "log of CI / test"} {
		if !strings.Contains(made.Prompt, part) {
			t.Errorf("the prompt does not say %q:\n%s", part, made.Prompt)
		}
	}
	if strings.Contains(made.Prompt, "docs") {
		t.Errorf("the prompt names what passed:\n%s", made.Prompt)
	}
	if len(c.said()) != 0 {
		t.Errorf("people are told %q", c.said())
	}
}

// Each of these changes nothing.
func TestChecksThatLeadToNothing(t *testing.T) {
	t.Parallel()
	failing := func(c *checkedOffice) { c.set("c1", "CI / test", forge.StatusFailure) }
	for name, happen := range map[string]func(c *checkedOffice){
		"all passed":       func(c *checkedOffice) { c.set("c1", "CI / test", forge.StatusSuccess) },
		"no checks":        func(*checkedOffice) {},
		"our own statuses": func(c *checkedOffice) { c.set("c1", "toryo/verification", forge.StatusFailure) },
		"of an old commit": func(c *checkedOffice) { failing(c); c.publish("c2") },
		"a person's commit on top": func(c *checkedOffice) {
			c.forge.Change(c.pull, func(i *forge.Item) { i.HeadCommit = "theirs" })
			c.set("theirs", "CI / test", forge.StatusFailure)
			failing(c)
		},
		"a fork":  func(c *checkedOffice) { failing(c); c.forge.Change(c.pull, func(i *forge.Item) { i.Fork = true }) },
		"a draft": func(c *checkedOffice) { failing(c); c.forge.Change(c.pull, func(i *forge.Item) { i.Draft = true }) },
		"closed":  func(c *checkedOffice) { failing(c); c.forge.Close(c.pull) },
		"taken over": func(c *checkedOffice) {
			c.check(c.forge.Unassign(c.Context(), c.office.task(c.issue, task.Development).Key, bot))
			c.look(c.issue)
			failing(c)
		},
		"a stranger's pull request with our commit": func(c *checkedOffice) {
			failing(c)
			theirs := c.office.pull("theirs", "")
			c.forge.Change(theirs, func(i *forge.Item) { i.Author, i.HeadCommit = "eve", "c1" })
			c.forge.Close(c.pull)
			c.look(theirs)
			c.noTask(theirs, task.Development)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecked(t)
			happen(c)
			for range 3 {
				c.sync()
			}
			c.noTask(c.pull, task.Development)
			if said := c.said(); len(said) != 0 {
				t.Errorf("people are told %q", said)
			}
		})
	}
}

// What fails in the base too is said once and left alone; what fails only here is fixed.
func TestChecksThatFailInTheBase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		base  string // commit of the base that was checked
		happy bool   // whether it is a fix-up all the same
		more  func(c *checkedOffice)
	}{
		"where the work began":                 {base: "b1"},
		"in the newest, and nothing was known": {base: "newest"},
		"in the newest, but not where it began": {base: "newest", happy: true, more: func(c *checkedOffice) {
			c.set("b1", "CI / test", forge.StatusSuccess)
		}},
		"another one fails besides": {base: "b1", happy: true, more: func(c *checkedOffice) { c.set("c1", "CI / lint", forge.StatusError) }},
		"where it began, to be merged into another branch": {base: "b1", happy: true, more: func(c *checkedOffice) {
			c.forge.Change(c.pull, func(i *forge.Item) { i.Base = "release" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecked(t)
			c.set(test.base, "CI / test", forge.StatusFailure)
			c.set("c1", "CI / test", forge.StatusFailure)
			if test.more != nil {
				test.more(c)
			}
			for range 3 {
				c.sync()
			}
			if test.happy {
				if name == "another one fails besides" && !strings.HasSuffix(c.fixUp().Occasion, `["CI / lint"]`) {
					t.Errorf("the task is for %s", c.fixUp().Occasion)
				}
				c.fixUp()
				return
			}
			c.noTask(c.pull, task.Development)
			c.saidOnce("also fail in the base branch")
		})
	}
}

// Fix-ups for checks have an end. A person who assigns the bot begins anew, and a review, which
// may be our own, does not.
func TestFixUpsForChecksHaveAnEnd(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	for round := 1; round <= 2; round++ {
		c.set(fmt.Sprint("c", round), "CI / test", forge.StatusFailure)
		c.sync()
		c.finish(c.fixUp(), "writer")
		c.sync()
		if again := c.task(c.pull, task.Development); again.State != task.Done {
			t.Fatalf("the same failure leads to two tasks: %+v", again)
		}
		c.publish(fmt.Sprint("c", round+1))
	}
	c.set("c3", "CI / test", forge.StatusFailure)
	for range 3 {
		c.sync()
	}
	if is := c.task(c.pull, task.Development); is.State != task.Done {
		t.Fatalf("it does not end: %+v", is)
	}
	c.saidOnce("after 2 attempts")
	c.later(time.Minute)
	c.forge.AddReview(c.pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c3"})
	c.sync()
	asked := c.task(c.pull, task.Development)
	if asked.State != task.Queued || asked.Cause != task.ReasonChangesRequested {
		t.Fatalf("a person's request leads to %+v", asked)
	}
	c.finish(asked, "writer")
	c.publish("c4")
	c.set("c4", "CI / test", forge.StatusFailure)
	c.sync()
	if said := c.said(); len(said) != 2 || c.is(task.Queued) {
		t.Fatalf("after a review it goes on: %q", said)
	}
	c.check(c.forge.Assign(t.Context(), c.pull, bot))
	c.sync()
	c.finish(c.task(c.pull, task.Development), "writer")
	c.publish("c5")
	c.set("c5", "CI / test", forge.StatusFailure)
	c.sync()
	c.fixUp()
}

// A check that passes when it is run again needs no fix-up. What flips afterwards is said and
// left alone.
func TestAFlippingCheck(t *testing.T) {
	t.Parallel()
	flip := func(c *checkedOffice, state forge.StatusState) {
		c.set("c1", "CI / test", state)
		c.forge.Change(c.pull, func(*forge.Item) {})
		c.told("c1")
	}
	t.Run("before an agent has the task", func(t *testing.T) {
		t.Parallel()
		c := newChecked(t)
		c.startIntake()
		flip(c, forge.StatusFailure)
		until(t, "the fix-up is queued", func() bool { return c.is(task.Queued) })
		c.later(time.Minute)
		flip(c, forge.StatusPending)
		c.later(time.Minute)
		flip(c, forge.StatusSuccess)
		until(t, "the fix-up is withdrawn", func() bool { return c.is(task.Stopped) })
		if is := c.task(c.pull, task.Development); is.Reason != task.ReasonChecksPassed {
			t.Errorf("the task is %+v", is)
		}
		until(t, "people are told", func() bool { return len(c.said()) == 1 })
		c.saidOnce("now pass without a change")
		c.later(time.Minute)
		flip(c, forge.StatusFailure)
		c.sync()
		if is := c.task(c.pull, task.Development); is.State != task.Stopped {
			t.Errorf("it begins again: %+v", is)
		}
	})
	t.Run("when it is handed out", func(t *testing.T) {
		t.Parallel()
		c := newChecked(t)
		c.set("c1", "CI / test", forge.StatusFailure)
		c.sync()
		fix := c.fixUp()
		c.set("c1", "CI / test", forge.StatusSuccess)
		h, _ := handsOut(t, c.store, func(o *broker.HandOutOptions) { o.Prepare, o.Now = preparer(c.office, &seeds{}).Prepare, c.now })
		waiting := ask(t, h, "writer")
		until(t, "the fix-up is withdrawn", func() bool { return c.is(task.Stopped) })
		c.saidOnce("now pass without a change")
		if is := c.task(c.pull, task.Development); is.ID != fix.ID || is.Reason != task.ReasonChecksPassed {
			t.Errorf("the task is %+v", is)
		}
		select {
		case made := <-waiting:
			t.Errorf("an agent was given %+v", made)
		default:
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		c := newChecked(t)
		c.startIntake()
		flip(c, forge.StatusFailure)
		until(t, "the fix-up is queued", func() bool { return c.is(task.Queued) })
		c.claim(c.fixUp(), "writer")
		c.later(time.Minute)
		read := c.forge.Count("Checks")
		flip(c, forge.StatusSuccess)
		until(t, "the checks are read", func() bool { return c.forge.Count("Checks") > read })
		c.sync()
		if said := c.said(); len(said) != 0 || !c.is(task.Running) {
			t.Errorf("people are told %q, and the task is %+v", said, c.task(c.pull, task.Development))
		}
	})
}

// When it is handed out, all checks of the commit count.
func TestAFixUpIsHandedOutByAllChecks(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusFailure)
	c.sync()
	fix := c.claim(c.fixUp(), "writer")
	prepare := func() (assignment.Assignment, error) {
		return preparer(c.office, &seeds{}).Prepare(t.Context(), assignment.Assignment{Task: fix, Was: fix.Reason})
	}
	c.set("c1", "CI / lint", forge.StatusFailure)
	made, err := prepare()
	c.check(err)
	if all := made.Pull.Checks; len(all) != 2 || all[0].Name != "CI / test" || all[1].Name != "CI / lint" {
		t.Errorf("the agent is told of %+v", all)
	}
	c.set("c1", "CI / test", forge.StatusSuccess)
	for _, undecided := range []forge.Check{{State: forge.StatusPending}, {State: forge.StatusError, Canceled: true}} {
		undecided.Name = "CI / lint"
		c.forge.SetCheck(team, "c1", undecided, "")
		if made, err := prepare(); task.CodeOf(err) != task.Unavailable {
			t.Errorf("while one is %+v, the agent is told of %+v, %v", undecided, made.Pull, err)
		}
	}
	c.set("c1", "CI / lint", forge.StatusSuccess)
	if _, err := prepare(); !strings.Contains(fmt.Sprint(err), "pass now") {
		t.Errorf("when all pass: %v", err)
	}
}

// hiding is a forge that shows no checks, or refuses to.
type hiding struct {
	forge.Forge
	hides atomic.Bool
	err   error
}

func (h *hiding) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	if h.hides.Load() {
		return nil, h.err
	}
	return h.Forge.Checks(ctx, repository, commit)
}

// Checks that are not shown any more have not passed, and break nothing.
func TestChecksThatAreHidden(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, task.Errorf(task.Forbidden, "no"), task.Errorf(task.Unavailable, "down")} {
		t.Run(fmt.Sprint(err), func(t *testing.T) {
			t.Parallel()
			hidden := &hiding{err: err}
			c := newChecked(t, func(o *intake.Options) {
				hidden.Forge = o.Forges[task.GitHub]
				o.Forges = map[task.Forge]forge.Forge{task.GitHub: hidden}
			})
			c.set("c1", "CI / test", forge.StatusFailure)
			c.sync()
			c.fixUp()
			hidden.hides.Store(true)
			for range 3 {
				c.sync()
			}
			c.fixUp()
			hidden.hides.Store(false)
			c.set("c1", "CI / test", forge.StatusSuccess)
			c.later(10 * time.Minute) // when it is read again at the latest
			c.sync()
			c.saidOnce("now pass without a change")
		})
	}
}

// A canceled check is named, and no reason for a fix-up.
func TestACanceledCheck(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.forge.SetCheck(team, "c1", forge.Check{Name: "CI / test", State: forge.StatusError, Canceled: true}, "")
	for range 3 {
		c.sync()
	}
	c.noTask(c.pull, task.Development)
	c.saidOnce("CI / test")
}

// told publishes what a webhook says about a commit.
func (c *checkedOffice) told(commit string) {
	c.changes.Publish(items.Change{Repository: c.pull.Repo(), Checked: commit})
}

func (c *checkedOffice) startIntake() {
	c.intake.Start(c.Context())
	c.Cleanup(c.intake.Stop)
}

func (c *checkedOffice) is(state task.State) bool {
	t, err := c.store.TaskOf(c.Context(), c.pull, task.Development)
	return err == nil && t.State == state
}

// A fix-up for a head that somebody has pushed upon is withdrawn, and theirs is left alone.
func TestAPushEndsTheFixUpForChecks(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusFailure)
	c.sync()
	c.fixUp()
	c.forge.Change(c.pull, func(i *forge.Item) { i.HeadCommit = "theirs" })
	c.set("theirs", "CI / test", forge.StatusFailure)
	c.sync()
	c.sync()
	if is := c.task(c.pull, task.Development); is.State != task.Stopped || is.Reason != task.ReasonChecksPassed {
		t.Errorf("the task is %+v", is)
	}
	if said := c.said(); len(said) != 0 {
		t.Errorf("people are told %q", said)
	}
}

// A pull request that is closed and opened again is fixed then, and that is not another round.
func TestChecksOfAReopenedPull(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusFailure)
	for range 4 {
		c.sync()
		c.fixUp()
		c.forge.Close(c.pull)
		c.look(c.pull)
		if is := c.task(c.pull, task.Development); is.State != task.Stopped || is.Reason != task.ReasonItemClosed {
			t.Fatalf("when it is closed, the task is %+v", is)
		}
		c.later(time.Minute)
		c.forge.Change(c.pull, func(i *forge.Item) { i.State = forge.Open })
	}
}

// Checks that never end hold up nothing for ever, and are not read for ever.
func TestChecksThatNeverEnd(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "deploy", forge.StatusPending)
	for range 15 {
		c.sync()
	}
	if asked := c.forge.Count("Checks"); asked < 5 || asked > 14 {
		t.Errorf("in the first minutes the checks were read %d times", asked)
	}
	c.later(24 * time.Hour)
	c.sync()
	before := c.forge.Count("Checks")
	for range 20 {
		c.sync()
	}
	if asked := c.forge.Count("Checks") - before; asked != 0 {
		t.Errorf("after a day the checks were read %d times more", asked)
	}

	stuck := newChecked(t)
	stuck.set("c1", "deploy", forge.StatusPending)
	stuck.set("c1", "CI / test", forge.StatusFailure)
	for range 5 {
		stuck.sync()
	}
	stuck.noTask(stuck.pull, task.Development)
	for range 10 {
		stuck.sync()
	}
	stuck.fixUp()
}

// What cannot have changed is not read again. For a while after the head was published, more
// checks may appear.
func TestChecksAreReadSeldom(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusSuccess)
	c.sync()
	c.later(40 * time.Minute)
	for range 20 {
		c.sync()
		c.look(c.pull)
	}
	if asked := c.forge.Count("Checks"); asked != 2 {
		t.Errorf("checks that have ended were read %d times", asked)
	}
	late := newChecked(t)
	late.set("c1", "CI / lint", forge.StatusSuccess)
	late.sync()
	late.set("c1", "CI / test", forge.StatusFailure)
	late.sync()
	late.fixUp()
	none := newChecked(t)
	none.sync()
	none.later(40 * time.Minute)
	for range 20 {
		none.sync()
	}
	if asked := none.forge.Count("Checks"); asked != 2 {
		t.Errorf("without checks they were read %d times", asked)
	}
}

// Failed checks are only named, or nothing happens, if so configured.
func TestChecksAreReported(t *testing.T) {
	t.Parallel()
	c := newChecked(t, func(o *intake.Options) { o.Rules.OnCheckFailure = intake.ReportChecks })
	c.set("c1", "CI / @ann`s test", forge.StatusFailure)
	for range 3 {
		c.sync()
	}
	c.noTask(c.pull, task.Development)
	c.saidOnce("- `CI / @ann's test` (<https://ci.example/CI%20/%20@ann%60s%20test>)")
	read := c.forge.Count("Checks")
	for range 3 {
		c.look(c.pull)
	}
	if again := c.forge.Count("Checks") - read; again != 0 {
		t.Errorf("checks that were reported are read %d times more", again)
	}

	off := newChecked(t, func(o *intake.Options) { o.Rules.OnCheckFailure = intake.IgnoreChecks })
	off.set("c1", "CI / test", forge.StatusFailure)
	off.sync()
	off.noTask(off.pull, task.Development)
	if len(off.said()) != 0 || off.forge.Count("Checks") != 0 {
		t.Errorf("people are told %q, after %d readings", off.said(), off.forge.Count("Checks"))
	}
}

// A failure that was acted on is known after a restart.
func TestChecksAfterARestart(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "CI / test", forge.StatusFailure)
	c.sync()
	c.fail(c.fixUp())
	restarted := intake.New(c.options)
	c.check(restarted.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
	if is := c.task(c.pull, task.Development); is.State != task.Failed {
		t.Errorf("after a restart the failure leads to another task: %+v", is)
	}
}

// A webhook that names the commit leads to the fix-up at once, and a commit that is not ours
// to no request. Without webhooks the next sync finds it. What both take and cost is logged as a
// table; without webhooks it is the time of the clock that the office has.
func TestFromAFailedCheckToTheHandOut(t *testing.T) {
	t.Parallel()
	t.Log("| in memory | failed check to hand-out | requests to the forge |")
	for way, find := range map[string]func(c *checkedOffice, waiting asked) (assignment.Assignment, time.Duration){
		"webhooks": func(c *checkedOffice, waiting asked) (assignment.Assignment, time.Duration) {
			began := time.Now()
			c.told("c1")
			made := waiting.get(c.T)
			return made, time.Since(began)
		},
		"polling": func(c *checkedOffice, waiting asked) (assignment.Assignment, time.Duration) {
			began := c.now()
			for minutes := 0; !c.is(task.Queued) && !c.is(task.Running); minutes++ {
				if minutes == 60 {
					t.Fatal("a failed check leads to no task in an hour")
				}
				c.sync() // a minute later
			}
			made := waiting.get(c.T)
			return made, c.now().Sub(began)
		},
	} {
		c := newChecked(t)
		c.set("c1", "CI / test", forge.StatusPending)
		c.sync()
		c.startIntake()
		h, _ := handsOut(t, c.store, func(o *broker.HandOutOptions) { o.Prepare, o.Now = preparer(c.office, &seeds{}).Prepare, c.now })
		waiting := ask(t, h, "writer")
		until(t, "the agent waits", func() bool { return h.Waiting() == 1 })
		c.told("somebody-elses")
		c.later(time.Minute) // since they were read last
		c.set("c1", "CI / test", forge.StatusFailure)
		before := len(c.forge.Calls())
		made, took := find(c, waiting)
		if made.Task.Key != c.pull || len(made.Pull.Checks) != 1 {
			t.Errorf("%s: given %+v", way, made)
		}
		calls := c.forge.Calls()[before:]
		t.Logf("| %s | %s | %d |", way, took.Round(time.Millisecond), len(calls))
		calls = slices.DeleteFunc(calls, func(call dummy.Call) bool { return call.Method != "Checks" })
		if len(calls) > 4 { // of the head and of the base, and once more for the agent
			t.Errorf("%s: checks were read %d times", way, len(calls))
		}
	}
}

// boardFor makes options those of an intake on a board, with the clock of the office.
func (o *office) boardFor(options *intake.Options) *dummy.Forge {
	board := dummy.New(task.Board, bot)
	board.SetClock(o.now)
	board.AddRepository(team, forge.Remote{})
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.Board: board}, items.DefaultAges, o.now)
	o.Cleanup(snapshots.Stop)
	options.Forges, options.Snapshots, options.Changes = map[task.Forge]forge.Forge{task.Board: board}, snapshots, items.NewFeed(snapshots)
	return board
}

// A sync reads those items of the board that wait for a review only if something has happened
// to them.
func TestPullsThatWaitOnTheBoardAreReadOnce(t *testing.T) {
	t.Parallel()
	var options intake.Options
	o := newOffice(t, func(o *intake.Options) { options = *o })
	board := o.boardFor(&options)
	on := intake.New(options)
	var pulls []task.Key
	for n := range 5 {
		branch := fmt.Sprint("feature-", n)
		board.SetBranch(team, branch, "c1")
		pull, _, err := board.OpenPull(t.Context(), team, forge.PullPost{Head: branch, Base: "main"})
		o.check(err)
		if n > 0 { // the first one has changed a moment ago, and does not wait
			board.Label(pull.Key, "ann", options.Rules.ReviewLabel, true)
		}
		pulls = append(pulls, pull.Key)
	}
	last := time.Time{}
	reads := func() int {
		begun, before := o.now(), board.Count("Item")
		o.check(on.Sync(t.Context(), []task.Forge{task.Board}, last))
		last = begun
		o.later(10 * time.Second)
		return board.Count("Item") - before
	}
	if read := reads(); read < len(pulls) {
		t.Errorf("the first sync reads %d times", read)
	}
	if read := reads(); read != 0 {
		t.Errorf("nothing has happened, and a sync reads %d times", read)
	}
	board.AddComment(pulls[2], "ann", "Please look")
	if read := reads(); read != 1 {
		t.Errorf("one has a comment, and a sync reads %d times", read)
	}
	o.later(6 * time.Minute) // ann may have been given rights
	if read := reads(); read < len(pulls) {
		t.Errorf("after a while a sync reads %d times", read)
	}
	// What an issue waits for happens to its pull requests.
	board.Label(board.AddItem(team, task.Issue, "ann", "Review it"), "ann", options.Rules.ReviewLabel, true)
	for range 3 {
		if read := reads(); read == 0 {
			t.Error("a sync does not read the issue")
		}
	}
}

// Checks on the board are read again when there is a notice of them, and otherwise as seldom as
// those of other forges, however often it is asked whether it is time.
func TestChecksOnTheBoardAreReadSeldom(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	options := c.options
	board := c.boardFor(&options)
	on := intake.New(options)
	board.SetBranch(team, "feature", "c1")
	opened, _, err := board.OpenPull(t.Context(), team, forge.PullPost{Head: "feature", Base: "main"})
	c.check(err)
	c.verified(opened.Key)
	board.SetCheck(team, "c1", forge.Check{Name: "CI / test", State: forge.StatusPending}, "")
	c.check(on.Look(t.Context(), opened.Key, 0))
	for range 10 {
		c.later(time.Second)
		c.check(on.LookAtChecks(t.Context(), task.Board))
	}
	if read := board.Count("Checks"); read != 1 {
		t.Errorf("they were read %d times in ten seconds", read)
	}
	c.later(time.Minute)
	c.check(on.LookAtChecks(t.Context(), task.Board))
	if read := board.Count("Checks"); read != 2 {
		t.Errorf("they were read %d times after a minute", read)
	}
	board.SetCheck(team, "c1", forge.Check{Name: "CI / test", State: forge.StatusFailure}, "")
	on.Start(t.Context())
	t.Cleanup(on.Stop)
	options.Changes.Publish(items.Change{Repository: opened.Key.Repo(), Checked: "c1"})
	until(t, "a fix-up is queued", func() bool {
		fix, err := c.store.TaskOf(t.Context(), opened.Key, task.Development)
		return err == nil && fix.Cause == task.ReasonChecksFailed
	})
}
