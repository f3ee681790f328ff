package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const (
	bot  = "toryo-bot"
	team = "team/app"
)

// office is an intake on a forge in memory, whose clock can be moved.
type office struct {
	*testing.T
	store    store.Store
	forge    *dummy.Forge
	steering *items.Steering
	intake   *intake.Intake
	changes  *items.Feed
	sender   *outbox.Sender // not started
	log      *safeBuffer

	mu    sync.Mutex
	ahead time.Duration
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newOffice(t *testing.T, change ...func(*intake.Options)) *office {
	t.Helper()
	o := &office{
		T: t, store: opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open)), forge: dummy.New(task.GitHub, bot), log: &safeBuffer{},
	}
	o.forge.AddRepository(team, forge.Remote{})
	for _, colleague := range []string{"ann", "bob"} {
		o.forge.SetAccess(team, colleague, forge.WriteAccess)
	}
	rights := items.NewRights(map[task.Forge]forge.Reader{task.GitHub: o.forge}, o.now)
	o.steering = &items.Steering{Access: rights.Access, Log: slog.New(slog.NewTextHandler(o.log, nil))}
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: o.forge}, items.DefaultAges, o.now)
	snapshots.ReadReviews(map[task.Forge]items.ReviewSource{task.GitHub: o.forge})
	t.Cleanup(snapshots.Stop)
	changes := items.NewFeed(snapshots)
	o.sender = outbox.NewSender(outbox.SenderOptions{
		Outbox: o.store, Tasks: o.store, Forges: map[task.Forge]forge.Forge{task.GitHub: o.forge}, Snapshots: snapshots, Changes: changes,
		Now: time.Now, // not o.now: a test that moves the clock on would end the leases of writes that go on
	})
	options := intake.Options{
		Tasks: o.store, Outbox: o.sender, Verdicts: verdicts.Reader{Own: o.store}, Facts: o.store, Changes: changes, Forges: map[task.Forge]forge.Forge{task.GitHub: o.forge}, Snapshots: snapshots,
		Scope:    func(_ task.Forge, repository string) bool { return strings.HasPrefix(repository, "team/") },
		Bot:      func(context.Context, task.Forge) (string, error) { return bot, nil },
		Steering: o.steering, Labels: labels, Now: o.now, Log: slog.New(slog.NewTextHandler(o.log, nil)),
		Rules: intake.Rules{
			Roles: []task.Role{"BACKENDCODER", "FRONTENDCODER"}, DefaultRole: task.DefaultRole,
			Priorities:  map[string]int{"priority:high": 2, "priority:low": -1},
			ReviewLabel: "needs-review", ReviewDelay: 30 * time.Minute, ReviewRounds: 2,
		},
	}
	for _, c := range change {
		c(&options)
	}
	o.intake, o.changes = intake.New(options), options.Changes
	return o
}

func (o *office) now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.ahead)
}

func (o *office) later(by time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ahead += by
}

func (o *office) check(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// issue makes an issue that the bot is assigned to.
func (o *office) issue(title string, labels ...string) task.Key {
	o.Helper()
	key := o.forge.AddItem(team, task.Issue, "ann", title)
	o.check(o.forge.Assign(o.Context(), key, bot))
	for _, label := range labels {
		o.check(o.forge.AddLabel(o.Context(), key, label))
	}
	return key
}

// look reads an item anew.
func (o *office) look(key task.Key) {
	o.Helper()
	o.check(o.intake.Look(o.Context(), key, 0))
}

func (o *office) sync() {
	o.Helper()
	o.later(time.Minute)
	o.check(o.intake.Sync(o.Context(), []task.Forge{task.GitHub}, time.Time{}))
}

func (o *office) task(key task.Key, kind task.Type) task.Task {
	o.Helper()
	t, err := o.store.TaskOf(o.Context(), key, kind)
	o.check(err)
	return t
}

func (o *office) noTask(key task.Key, kind task.Type) {
	o.Helper()
	if t, err := o.store.TaskOf(o.Context(), key, kind); task.CodeOf(err) != task.NotFound {
		o.Fatalf("there is a task: %+v, %v", t, err)
	}
}

// claim hands the task to an agent.
func (o *office) claim(t task.Task, agent string) task.Task {
	o.Helper()
	held, err := o.store.Claim(o.Context(), []store.Claim{{
		Task: t.ID, Generation: t.Generation, Agent: agent, TokenHash: []byte("x"), ExpiresAt: o.now().Add(time.Hour),
	}}, nil)
	o.check(err)
	if len(held) != 1 {
		o.Fatalf("the task %s could not be claimed", t.ID)
	}
	return held[0]
}

func (o *office) finish(t task.Task, agent string) task.Task {
	o.Helper()
	return o.end(o.claim(t, agent))
}

// end ends a task that an agent has.
func (o *office) end(t task.Task) task.Task {
	o.Helper()
	after, err := o.store.Move(o.Context(), store.Change{Task: t.ID, Trigger: task.Finished, Reason: task.ReasonCompleted})
	o.check(err)
	return after
}

func (o *office) pull(head, text string) task.Key {
	o.Helper()
	o.forge.SetBranch(team, head, "c1")
	pull, _, err := o.forge.OpenPull(o.Context(), team, forge.PullPost{Head: head, Base: "main"})
	o.check(err)
	o.forge.Change(pull.Key, func(i *forge.Item) { i.Body, i.Title = text, "A change" })
	return pull.Key
}

func TestAnAssignmentIsATask(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.issue("Fix the gate, please", "FRONTENDCODER", "priority:high")
	o.look(key)
	made := o.task(key, task.Development)
	if made.State != task.Queued || made.Reason != task.ReasonAssigned || made.Cause != task.ReasonAssigned || made.Role != "FRONTENDCODER" ||
		made.Priority != 2 || made.Branch != "toryo/1-fix-the-gate-please" || made.Title != "Fix the gate, please" || made.URL == "" {
		t.Errorf("the task is %+v", made)
	}
	pending, err := o.store.PendingActions(t.Context(), key)
	if err != nil || len(pending) != 1 || !strings.Contains(string(pending[0].Payload), `"label":"coding agent"`) {
		t.Errorf("what is to be written: %+v, %v", pending, err)
	}
	o.look(key)
	o.sync()
	if again := o.task(key, task.Development); again != made {
		t.Errorf("looking again changed it:\n%+v\n%+v", made, again)
	}
}

func TestWhatIsNoTask(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	plain := o.forge.AddItem(team, task.Issue, "ann", "For people")
	closed := o.issue("Over")
	o.forge.Close(closed)
	o.forge.AddRepository("elsewhere/app", forge.Remote{})
	foreign := o.forge.AddItem("elsewhere/app", task.Issue, "ann", "Not ours")
	o.check(o.forge.Assign(t.Context(), foreign, bot))
	o.sync()
	for _, key := range []task.Key{plain, closed, foreign} {
		o.look(key)
		o.noTask(key, task.Development)
	}
}

// The bot that stays on an item that is done is no new assignment; one that was
// taken off and put on again is.
func TestTheSameAssignmentIsOneTask(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.issue("Fix the gate")
	o.sync()
	done := o.finish(o.task(key, task.Development), "a")
	for range 3 {
		o.sync()
		o.look(key)
	}
	if is := o.task(key, task.Development); is.State != task.Done || is.Generation != done.Generation {
		t.Fatalf("it began again by itself: %+v", is)
	}
	o.check(o.forge.Unassign(t.Context(), key, bot))
	o.sync()
	o.check(o.forge.Assign(t.Context(), key, bot))
	o.sync()
	if is := o.task(key, task.Development); is.State != task.Queued || is.Generation != done.Generation+1 || is.Branch != done.Branch {
		t.Fatalf("it did not begin again: %+v", is)
	}
}

func TestWithdrawal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(o *office, key task.Key)
		reason task.Reason
	}{
		"unassigned": {func(o *office, key task.Key) { o.check(o.forge.Unassign(o.Context(), key, bot)) }, task.ReasonUnassigned},
		"closed":     {func(o *office, key task.Key) { o.forge.Close(key) }, task.ReasonItemClosed},
	} {
		for _, state := range []task.State{task.Queued, task.Paused, task.Running} {
			t.Run(name+" while "+string(state), func(t *testing.T) {
				t.Parallel()
				o := newOffice(t)
				key := o.issue("Fix the gate")
				o.look(key)
				is := o.task(key, task.Development)
				if state == task.Running {
					is = o.claim(is, "a")
				}
				if state == task.Paused {
					_, err := o.store.Move(t.Context(), store.Change{Task: is.ID, Trigger: task.PauseSet, Reason: task.ReasonPauseRequested})
					o.check(err)
				}
				test.change(o, key)
				o.sync()
				stopped := o.task(key, task.Development)
				if stopped.State != task.Stopped || stopped.Reason != test.reason || stopped.Generation != is.Generation+1 {
					t.Errorf("the task is %+v", stopped)
				}
			})
		}
	}
}

// Stop is called in place of stopping, if there is one.
func TestWithdrawIsAsked(t *testing.T) {
	t.Parallel()
	var told []string
	o := newOffice(t, func(options *intake.Options) {
		options.Stop = func(_ context.Context, t task.Task, reason task.Reason) error {
			told = append(told, t.Key.String()+" "+string(reason))
			return nil
		}
	})
	key := o.issue("Fix the gate")
	o.look(key)
	o.claim(o.task(key, task.Development), "a")
	o.forge.Close(key)
	o.look(key)
	if diff := cmp.Diff([]string{"github:team/app#1 item_closed"}, told); diff != "" {
		t.Error(diff)
	}
}

// What cannot be read stops nothing: the item, what is said on it, who we are.
func TestWhatCannotBeReadStopsNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(options *intake.Options) {
		from := options.Forges[task.GitHub]
		options.Bot = func(ctx context.Context, _ task.Forge) (string, error) { return from.Self(ctx) }
	})
	key := o.issue("Fix the gate")
	o.look(key)
	is := o.task(key, task.Development)
	o.check(o.forge.Unassign(t.Context(), key, bot))
	for _, method := range []string{"Item", "Comments", "Repositories", "Self"} {
		o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == method {
				return dummy.Refuse
			}
			return dummy.None
		})
		o.later(time.Hour)
		err := o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{})
		if err == nil {
			t.Errorf("%s failed and nobody was told", method)
		}
		if o.task(key, task.Development) != is {
			t.Errorf("%s failed and the task is %+v", method, o.task(key, task.Development))
		}
	}
}

// flickering shows an item in two states, one after the other.
type flickering struct {
	forge.Forge
	mu   sync.Mutex
	show []func(*forge.Item)
}

func (f *flickering) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	item, err := f.Forge.Item(ctx, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.show) > 0 {
		f.show[0](&item)
		f.show = f.show[1:]
	}
	return item, err
}

// A forge that shows an item in two states does not stop its task: only two
// readings that agree do.
func TestAForgeThatShowsTwoStates(t *testing.T) {
	t.Parallel()
	between := &flickering{}
	o := newOffice(t, func(options *intake.Options) {
		between.Forge = options.Forges[task.GitHub]
		options.Forges[task.GitHub] = between
		snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: between}, items.DefaultAges, nil)
		t.Cleanup(snapshots.Stop)
		options.Snapshots, options.Changes = snapshots, items.NewFeed(snapshots)
	})
	key := o.issue("Fix the gate")
	o.look(key)
	is := o.task(key, task.Development)
	stale := func(i *forge.Item) { i.Assignees = nil }
	closed := func(i *forge.Item) { i.State = forge.Closed }
	for _, show := range []func(*forge.Item){stale, closed} {
		between.show = []func(*forge.Item){show}
		o.look(key)
		if now := o.task(key, task.Development); now != is {
			t.Fatalf("one reading stopped it: %+v", now)
		}
	}
	between.show = []func(*forge.Item){stale, stale}
	o.look(key)
	if now := o.task(key, task.Development); now.State != task.Stopped {
		t.Errorf("two readings did not stop it: %+v", now)
	}
}

// An item that is gone ends its task, if its repository is there.
func TestAnItemThatIsGone(t *testing.T) {
	t.Parallel()
	gone := &missing{}
	o := newOffice(t, func(options *intake.Options) {
		gone.Forge = options.Forges[task.GitHub]
		options.Forges[task.GitHub] = gone
		snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: gone}, items.DefaultAges, nil)
		t.Cleanup(snapshots.Stop)
		options.Snapshots, options.Changes = snapshots, items.NewFeed(snapshots)
	})
	key := o.issue("Fix the gate")
	o.look(key)
	gone.item, gone.repository = true, true
	if err := o.intake.Look(t.Context(), key, 0); task.CodeOf(err) != task.NotFound {
		t.Errorf("without its repository: %v", err)
	}
	if is := o.task(key, task.Development); is.State != task.Queued {
		t.Fatalf("it was stopped though we may only have lost the right to read: %+v", is)
	}
	gone.repository = false
	o.look(key)
	if is := o.task(key, task.Development); is.State != task.Stopped || is.Reason != task.ReasonItemClosed {
		t.Errorf("the task is %+v", is)
	}
}

type missing struct {
	forge.Forge
	item, repository bool
}

func (m *missing) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	if m.item {
		return forge.Item{}, task.Errorf(task.NotFound, "gone")
	}
	return m.Forge.Item(ctx, key)
}

func (m *missing) Repository(ctx context.Context, name string) (forge.Repository, error) {
	if m.repository {
		return forge.Repository{}, task.Errorf(task.NotFound, "gone")
	}
	return m.Forge.Repository(ctx, name)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		labels  []string
		role    task.Role
		warning string
	}{
		{nil, "CODER", ""},
		{[]string{"bug"}, "CODER", ""},
		{[]string{"BACKENDCODER"}, "BACKENDCODER", ""},
		{[]string{"FRONTENDCODER", "bug", "BACKENDCODER"}, "BACKENDCODER", "several role labels"},
		{[]string{"DATABASECODER"}, "CODER", "no such role is configured"},
		{[]string{"DATABASECODER", "FRONTENDCODER"}, "FRONTENDCODER", ""},
	} {
		t.Run(fmt.Sprint(test.labels), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			key := o.issue("x", test.labels...)
			o.look(key)
			if is := o.task(key, task.Development); is.Role != test.role {
				t.Errorf("the role is %s", is.Role)
			}
			if warned := strings.Contains(o.log.String(), "level=WARN"); warned != (test.warning != "") || !strings.Contains(o.log.String(), test.warning) {
				t.Errorf("the log says %s", o.log)
			}
		})
	}
}

// What people change about an item that waits is taken over.
func TestAQueuedTaskFollowsItsItem(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.issue("Fix the gate")
	o.look(key)
	o.forge.Change(key, func(i *forge.Item) { i.Title = "Paint the gate" })
	o.check(o.forge.AddLabel(t.Context(), key, "BACKENDCODER"))
	o.check(o.forge.AddLabel(t.Context(), key, "priority:low"))
	o.look(key)
	is := o.task(key, task.Development)
	if is.Title != "Paint the gate" || is.Role != "BACKENDCODER" || is.Priority != -1 || is.Branch != "toryo/1-fix-the-gate" || is.Generation != 1 {
		t.Errorf("the task is %+v", is)
	}
}

func TestBlockedItemsWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.forge.AddItem(team, task.Issue, "ann", "First")
	second := o.forge.AddItem(team, task.Issue, "ann", "Second")
	key := o.issue("Third")
	o.forge.Change(key, func(i *forge.Item) {
		i.Body = "Blocked by #1, team/app#2 and #99.\nSee also #7. Depends on: #" + fmt.Sprint(key.Number)
	})
	o.look(key)
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(first, second) {
		t.Fatalf("it is blocked by %q", is.BlockedBy)
	}
	o.forge.Close(first)
	o.sync()
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(second) {
		t.Fatalf("it is blocked by %q", is.BlockedBy)
	}
	// A hint about what blocks it is enough.
	o.intake.Start(t.Context())
	defer o.intake.Stop()
	o.forge.Close(second)
	o.later(2 * time.Minute)
	o.changes.Publish(items.Change{Items: []task.Key{second}})
	until(t, "nothing blocks it", func() bool { return o.task(key, task.Development).BlockedBy == "" })
}

// What blocks an item is read anew by every look at the forge, so that the item is free within one
// interval of polling, however short that is and without webhooks.
func TestBlockedItemIsFreedByOneSync(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.forge.AddItem(team, task.Issue, "ann", "First")
	key := o.issue("Second")
	o.forge.Change(key, func(i *forge.Item) { i.Body = "Blocked by #1." })
	o.look(key)
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(first) {
		t.Fatalf("it is blocked by %q", is.BlockedBy)
	}
	o.forge.Close(first)
	o.later(5 * time.Second)
	o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
	if is := o.task(key, task.Development); is.BlockedBy != "" {
		t.Errorf("after one look at the forge it is blocked by %q", is.BlockedBy)
	}
}

// Links that a forge keeps apart from the text count like what the text says. While
// they cannot be read, what was known of them counts.
func TestLinkedItemsWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.forge.AddItem(team, task.Issue, "ann", "First")
	second := o.forge.AddItem(team, task.Issue, "ann", "Second")
	key := o.issue("Third")
	o.forge.Change(key, func(i *forge.Item) { i.Body = "Blocked by #1." })
	o.forge.Block(key, first, second)
	o.look(key)
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(first, second) {
		t.Fatalf("it is blocked by %q", is.BlockedBy)
	}
	o.forge.Block(key)
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Dependencies" {
			return dummy.Refuse
		}
		return dummy.None
	})
	o.later(2 * time.Minute)
	o.look(key)
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(first, second) {
		t.Fatalf("while the links cannot be read it is blocked by %q", is.BlockedBy)
	}
	o.forge.SetFaults(nil)
	o.look(key)
	if is := o.task(key, task.Development); is.BlockedBy != task.KeysOf(first) {
		t.Fatalf("without the links it is blocked by %q", is.BlockedBy)
	}
}

func TestReviewsAreDueAfterTheDelay(t *testing.T) {
	t.Parallel()
	for name, onIssue := range map[string]bool{"label on the pull request": false, "label on its issue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			issue := o.issue("Fix the gate", "BACKENDCODER")
			o.look(issue)
			done := o.finish(o.task(issue, task.Development), "writer")
			pull := o.pull(done.Branch, "Closes #1")
			labeled := pull
			if onIssue {
				labeled = issue
			}
			o.look(pull)
			o.noTask(pull, task.Review)
			o.check(o.forge.AddLabel(t.Context(), labeled, "needs-review"))
			o.look(labeled)
			o.later(28 * time.Minute)
			o.sync()
			o.noTask(pull, task.Review)
			o.later(2 * time.Minute)
			o.sync()
			is := o.task(pull, task.Review)
			if is.State != task.Queued || is.Reason != task.ReasonReviewDue || is.Author != "writer" || is.Role != "BACKENDCODER" {
				t.Errorf("the task is %+v", is)
			}
			pending, err := o.store.PendingActions(t.Context(), pull)
			if err != nil || len(pending) != 0 {
				t.Errorf("a review writes labels: %+v, %v", pending, err)
			}
			// The same head commit is reviewed once, another one again.
			o.finish(is, "reviewer")
			o.sync()
			if now := o.task(pull, task.Review); now.State != task.Done {
				t.Errorf("it is reviewed again: %+v", now)
			}
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
			o.sync()
			if now := o.task(pull, task.Review); now.State != task.Queued || now.Generation <= is.Generation {
				t.Errorf("the new commit is not reviewed: %+v", now)
			}
			o.forge.Close(pull)
			o.sync()
			if now := o.task(pull, task.Review); now.State != task.Stopped {
				t.Errorf("a closed pull request is reviewed: %+v", now)
			}
		})
	}
}

// The delay counts from the forge's own event, and from the last time that the
// label was put on.
func TestTheDelayIsOfTheLabel(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	pull := o.pull("feature", "")
	o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
	o.later(time.Hour) // nobody looked meanwhile
	o.sync()
	if is := o.task(pull, task.Review); is.State != task.Queued {
		t.Errorf("the task is %+v", is)
	}
}

func TestNoReviewIsNeeded(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *office, pull task.Key){
		"a person has reviewed": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve, At: o.now()})
		},
		"it is a draft":     func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Draft = true }) },
		"it is closed":      func(o *office, pull task.Key) { o.forge.Close(pull) },
		"the label is gone": func(o *office, pull task.Key) { o.check(o.forge.RemoveLabel(o.Context(), pull, "needs-review")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			pull := o.pull("feature", "")
			o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
			change(o, pull)
			o.later(time.Hour)
			o.sync()
			o.look(pull)
			o.noTask(pull, task.Review)
		})
	}
	t.Run("a review from before the label does not count", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t)
		pull := o.pull("feature", "")
		o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve, At: o.now().Add(-time.Hour)})
		o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
		o.later(time.Hour)
		o.sync()
		if is := o.task(pull, task.Review); is.State != task.Queued {
			t.Errorf("the task is %+v", is)
		}
	})
	t.Run("a person reviews while it waits for an agent, and the label comes again", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t)
		pull := o.pull("feature", "")
		o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
		o.later(time.Hour)
		o.sync()
		o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Commit: "c1"})
		o.sync()
		if is := o.task(pull, task.Review); is.State != task.Stopped || is.Reason != task.ReasonReviewNotNeeded {
			t.Fatalf("the task is %+v", is)
		}
		o.sync()
		if is := o.task(pull, task.Review); is.State != task.Stopped {
			t.Fatalf("it began again by itself: %+v", is)
		}
	})
}

func TestFixUps(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	issue := o.issue("Fix the gate", "BACKENDCODER")
	o.look(issue)
	done := o.finish(o.task(issue, task.Development), "writer")
	pull := o.pull(done.Branch, "Closes #1")
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Body: "Nice."})
	o.sync()
	o.noTask(pull, task.Development)

	at := o.now()
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Body: "Oil it.", At: at})
	o.sync()
	is := o.task(pull, task.Development)
	if is.State != task.Queued || is.Reason != task.ReasonChangesRequested || is.Branch != done.Branch || is.Role != "BACKENDCODER" || is.Lane() != task.FixUpLane {
		t.Fatalf("the task is %+v", is)
	}
	o.look(pull) // nobody has assigned the bot to the pull request, and that stops nothing
	o.sync()
	if now := o.task(pull, task.Development); now.State != task.Queued {
		t.Fatalf("the task is %+v", now)
	}
	// The same review is answered once.
	o.finish(is, "writer")
	o.sync()
	o.sync()
	if now := o.task(pull, task.Development); now.State != task.Done {
		t.Fatalf("it began again: %+v", now)
	}
	// Another reviewer, and then an approval by both.
	o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, At: at.Add(time.Minute)})
	o.sync()
	if now := o.task(pull, task.Development); now.State != task.Queued || now.Generation != is.Generation+1 {
		t.Fatalf("the second review is not answered: %+v", now)
	}
	o.finish(o.task(pull, task.Development), "writer")
	for _, author := range []string{"ann", "bob"} {
		o.forge.AddReview(pull, forge.Review{Author: author, Verdict: forge.Approve, At: at.Add(2 * time.Minute)})
	}
	o.sync()
	if now := o.task(pull, task.Development); now.State != task.Done {
		t.Fatalf("an approval is answered: %+v", now)
	}
}

func TestNoFixUp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *office, pull task.Key){
		"of a stranger": func(o *office, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Author = "ann" })
		},
		"from a fork":    func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Fork = true }) },
		"that is closed": func(o *office, pull task.Key) { o.forge.Close(pull) },
		"after dismissal": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, Dismissed: true, At: o.now().Add(time.Minute)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			pull := o.pull("feature", "")
			o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges})
			change(o, pull)
			o.sync()
			o.noTask(pull, task.Development)
		})
	}
}

// A webhook is a hint, and the same one twice is one task.
func TestHints(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.intake.Start(t.Context())
	defer o.intake.Stop()
	keys := []task.Key{o.issue("One"), o.issue("Two"), o.issue("Three")}
	for range 5 {
		o.changes.Publish(items.Change{Repository: task.Repository{Forge: task.GitHub, Name: team}, Items: keys})
	}
	until(t, "there are three tasks", func() bool {
		all, err := o.store.ListTasks(t.Context(), store.TaskFilter{States: []task.State{task.Queued}})
		return err == nil && len(all) == 3
	})
	for _, key := range keys {
		if is := o.task(key, task.Development); is.Generation != 1 {
			t.Errorf("%s is %+v", key, is)
		}
	}
}

// A review falls due while nobody says anything.
func TestAReviewFallsDueByItself(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(options *intake.Options) { options.Rules.ReviewDelay = 2 * time.Second })
	o.intake.Start(t.Context())
	defer o.intake.Stop()
	pull := o.pull("feature", "")
	o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
	o.changes.Publish(items.Change{Items: []task.Key{pull}})
	until(t, "the review is due", func() bool {
		_, err := o.store.TaskOf(t.Context(), pull, task.Review)
		return err == nil
	})
}
