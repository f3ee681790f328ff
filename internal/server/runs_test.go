package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

func entry(sequence int64, kind task.EventKind, data string) wire.Entry {
	return wire.Entry{Sequence: sequence, Kind: string(kind), At: time.Now(), Data: json.RawMessage(data)}
}

// A run from its first heartbeat to its pull request and its end.
func TestRunFromStartToEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, running := w.claim(t, made.ID)

		beat, err := held.Renew(t.Context())
		if err != nil || !beat.ExpiresAt.After(running.Lease.ExpiresAt) {
			t.Fatalf("renewed until %v, %v", beat.ExpiresAt, err)
		}
		reported, err := held.Report(t.Context(), []wire.Entry{
			entry(1, task.PhaseChanged, `{"phase":"planning","status":"active"}`), entry(2, task.NoteTaken, `{"text":"hello"}`),
		})
		if err != nil || reported.Acknowledged != 2 {
			t.Fatalf("acknowledged %d, %v", reported.Acknowledged, err)
		}
		if now, err := database.Task(t.Context(), made.ID); err != nil || now.Phase != task.Planning {
			t.Errorf("the phase is %q, %v", now.Phase, err)
		}
		journal, err := held.Journal(t.Context(), 0, 100)
		if err != nil || len(journal.Events) != 5 || string(journal.Events[4].Data) != `{"text":"hello"}` {
			t.Fatalf("the journal is %+v, %v", journal, err)
		}
		if err := held.Progress(t.Context(), "half-way"); err != nil {
			t.Fatal(err)
		}
		if err := held.AddComment(t.Context(), wire.NewComment{Name: "hello", Text: "I begin."}); err != nil {
			t.Fatal(err)
		}
		pulled, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: "toryo/1", Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."})
		if err != nil || !pulled.Opened || pulled.Number == 0 {
			t.Fatalf("the pull request is %+v, %v", pulled, err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "done", Comment: "See the pull request.", Summary: "fixed", Pull: &pulled}); err != nil {
			t.Fatal(err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "done"}); err != nil {
			t.Errorf("ending again: %v", err)
		}
		w.settle(t, made.Key)
		w.wantLabel(t, made.Key, task.Done)
		w.wantComments(t, made.Key, "half-way", "I begin.", "See the pull request.")
		pull := task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Pull, Number: pulled.Number}
		w.settle(t, pull)
		item, err := w.forge.Item(t.Context(), pull)
		if err != nil || !item.AssignedTo("alice") {
			t.Errorf("the author is not asked to look: %v, %v", item.Assignees, err)
		}
	})
}

func (w *workshop) wantLabel(t *testing.T, key task.Key, state task.State) {
	t.Helper()
	item, err := w.forge.Item(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	names := task.DefaultLabelNames()
	for _, other := range task.States {
		if has := item.HasLabel(names[other.Label()]); has != (other == state) {
			t.Errorf("the item shows %v, want that of %s alone", item.Labels, state)
			return
		}
	}
}

// wantComments wants the bot to have written comments with these texts, in order.
func (w *workshop) wantComments(t *testing.T, key task.Key, texts ...string) {
	t.Helper()
	var written []string
	for _, comment := range w.comments(t, key) {
		if comment.By(bot) {
			written = append(written, comment.Body)
		}
	}
	if len(written) != len(texts) || slices.ContainsFunc(texts, func(text string) bool {
		return !slices.ContainsFunc(written, func(body string) bool { return strings.Contains(body, text) })
	}) {
		t.Errorf("the bot wrote %q, want %q", written, texts)
	}
}

func (w *workshop) comments(t *testing.T, key task.Key) []task.Comment {
	t.Helper()
	comments, err := w.forge.Comments(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return comments
}

// An agent finds out which of the runs that it has paused or lost will not go on.
func TestWhatBecameOfRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		agent := &wire.Client{Server: w.web.URL, HTTP: w.web.Client(), Token: w.token(t, access.Agent)}
		var runs []wire.RunRef
		for _, title := range []string{"goes on", "is stopped", "begins anew"} {
			made := w.issue(t, title)
			_, running := w.claim(t, made.ID)
			runs = append(runs, wire.RunRef{TaskID: string(made.ID), Generation: running.Generation})
			if title == "goes on" {
				continue
			}
			if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonUnassigned); err != nil {
				t.Fatal(err)
			}
			w.pass(11e9)
			if _, err := w.controller.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if title == "begins anew" {
				if _, err := w.controller.Retry(t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		unknown := wire.RunRef{TaskID: "01a1de67-0000-7000-8000-000000000000", Generation: 1}
		over, err := agent.EndedRuns(t.Context(), wire.RunsAsked{Runs: append(runs, unknown)})
		want := []wire.RunOver{
			{RunRef: runs[1], State: "stopped", Reason: string(task.ReasonUnassigned)},
			{RunRef: runs[2], State: "stopped", Reason: string(task.ReasonAssigned)},
		}
		if err != nil || !slices.Equal(over, want) {
			t.Errorf("over are %+v, %v, want %+v", over, err, want)
		}
		viewer := &wire.Client{Server: w.web.URL, HTTP: w.web.Client(), Token: w.token(t, access.Viewer)}
		if _, err := viewer.EndedRuns(t.Context(), wire.RunsAsked{Runs: runs}); task.CodeOf(err) != task.Forbidden {
			t.Errorf("a viewer who asks is told %v", err)
		}
	})
}

// An agent that cannot move the context files of a run of its own says so, and people see it
// once; of others' runs it can say nothing.
func TestFilesThatCannotBeMovedAreNoted(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	_, running := w.claim(t, made.ID)
	say := func(name, cause string) error {
		token, err := access.Tokens{Store: w.store, Now: w.now}.Create(t.Context(), access.Agent, name)
		if err != nil {
			t.Fatal(err)
		}
		agent := &wire.Client{Server: w.web.URL, HTTP: w.web.Client(), Token: token}
		_, err = agent.EndedRuns(t.Context(), wire.RunsAsked{Runs: []wire.RunRef{}, Unmoved: []wire.RunUnmoved{{
			RunRef: wire.RunRef{TaskID: string(made.ID), Generation: running.Generation}, Folder: "completed", Cause: cause,
		}}})
		return err
	}
	if err := say("another", "<nothing> of yours"); err != nil { // it is passed over, or the agent could ask nothing more
		t.Errorf("another agent is told %v", err)
	}
	for range 2 {
		if err := say("a1", "no space left on device"); err != nil {
			t.Fatal(err)
		}
	}
	events, err := w.store.EventsOf(t.Context(), made.ID, task.NoteTaken)
	if err != nil || len(events) != 1 || !strings.Contains(string(events[0].Data), "not in completed/ on the agent a1, because they cannot be moved: no space left on device") {
		t.Errorf("the journal has %+v, %v", events, err)
	}
}

// A lease lets its holder publish the branch of its task, for the base of its task, and
// nothing else: what the agent says is not asked.
func TestALeasePublishesItsOwnBranchOnly(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.forge.SetBranch(repository, "production", "p1")
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	for what, open := range map[string]wire.OpenPull{
		"another branch":          {Branch: "production", Commit: "c1", Base: "main", Title: "t"},
		"the branch of the base":  {Branch: "main", Commit: "c1", Base: "main", Title: "t"},
		"another task's branch":   {Branch: "toryo/2", Commit: "c1", Base: "main", Title: "t"},
		"no branch":               {Commit: "c1", Base: "main", Title: "t"},
		"a ref that is no branch": {Branch: "../tags/v1", Commit: "c1", Base: "main", Title: "t"},
		"another base":            {Branch: made.Branch, Commit: "c1", Base: "production", Title: "t"},
		"no base":                 {Branch: made.Branch, Commit: "c1", Title: "t"},
	} {
		if pulled, err := held.OpenPull(t.Context(), open); err == nil {
			t.Errorf("%s: %+v", what, pulled)
		}
	}
	w.published.Range(func(branch, commit any) bool {
		t.Errorf("%v was moved to %v", branch, commit)
		return true
	})
	if pulls, err := w.forge.List(t.Context(), forge.Query{Repository: repository, Kind: task.Pull}); err != nil || len(pulls) != 0 {
		t.Errorf("there are the pull requests %+v, %v", pulls, err)
	}
	if _, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "t"}); err != nil {
		t.Error(err)
	}
}

// What is done on a pull request stays on it, whatever people have made of it meanwhile: another
// one is not opened.
func TestWorkOnAPullStaysThere(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*forge.Item){
		"as it was":                  func(*forge.Item) {},
		"retargeted":                 func(i *forge.Item) { i.Base = "release" },
		"closed":                     func(i *forge.Item) { i.State = forge.Closed },
		"merged":                     func(i *forge.Item) { i.State = forge.Merged },
		"retargeted and then closed": func(i *forge.Item) { i.Base, i.State = "release", forge.Closed },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t)
			w.forge.SetBranch(repository, "feature", "c1")
			pull, _, err := w.forge.OpenPull(t.Context(), repository, forge.PullPost{Head: "feature", Base: "main"})
			if err != nil {
				t.Fatal(err)
			}
			made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: pull.Key, Type: task.Development, Branch: "feature", Reason: task.ReasonChecksFailed}, nil)
			if err != nil {
				t.Fatal(err)
			}
			held, _ := w.claim(t, made.ID)
			w.forge.Change(pull.Key, change)
			want, err := w.forge.Item(t.Context(), pull.Key)
			if err != nil {
				t.Fatal(err)
			}
			pulled, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: "feature", Commit: "c2", Base: "main", Title: "t"})
			if err != nil || pulled.Number != pull.Key.Number || pulled.Opened || pulled.URL != want.URL {
				t.Errorf("%+v, %v", pulled, err)
			}
			if _, published := w.published.Load("feature"); !published {
				t.Error("the work is not on the branch")
			}
			all, err := w.forge.List(t.Context(), forge.Query{Repository: repository, Kind: task.Pull})
			if err != nil || slices.ContainsFunc(all, func(i forge.Item) bool { return i.Key != pull.Key }) {
				t.Errorf("there are the pull requests %+v, %v", all, err)
			}
			if is, err := w.forge.Item(t.Context(), pull.Key); err != nil || is.State != want.State || is.Base != want.Base {
				t.Errorf("the pull request is %+v, %v", is, err)
			}
		})
	}
}

// Nor does a review publish anything, although the branch that it reads is its own; and
// who changes the code does not review it.
func TestARoleWritesWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.forge.SetBranch(repository, "feature", "c1")
	key := w.forge.AddItem(repository, task.Pull, "alice", "Fix")
	for _, kind := range []task.Type{task.Review, task.Development} {
		made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: key, Type: kind, Branch: "feature", Reason: task.ReasonAssigned}, nil)
		if err != nil {
			t.Fatal(err)
		}
		held, _ := w.claim(t, made.ID)
		if kind == task.Review {
			_, err = held.OpenPull(t.Context(), wire.OpenPull{Branch: "feature", Commit: "c2", Base: "main", Title: "t"})
		} else {
			err = held.Finish(t.Context(), wire.Result{Outcome: "done", Review: &wire.ReviewResult{Commit: "c1", Verdict: "approve", Text: "Fine."}})
		}
		if task.CodeOf(err) != task.Forbidden {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The review that a review task makes is stored with the other reviews and submitted
// to the forge.
func TestTheReviewOfATask(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.forge.SetBranch(repository, "feature", "c1")
	key := w.forge.AddItem(repository, task.Pull, "alice", "Fix")
	made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Review, Branch: "feature", Reason: task.ReasonAssigned}, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "done", Review: &wire.ReviewResult{
		Commit: "c1", Verdict: "comment", Text: "Fine.", Question: "Is it right?", Answer: "a diff", Judgement: json.RawMessage(`{"overall_review": "Fine."}`),
	}}); err != nil {
		t.Fatal(err)
	}
	stored, err := w.store.ListReviews(t.Context(), store.ReviewFilter{Pull: key})
	if err != nil || len(stored) != 1 || stored[0].HeadCommit != "c1" || stored[0].CustomQuestionText != "Is it right?" {
		t.Errorf("stored are %+v, %v", stored, err)
	}
	w.settle(t, key)
	if written, err := w.forge.Reviews(t.Context(), key); err != nil || len(written) != 1 || !strings.Contains(written[0].Body, "Fine.") {
		t.Errorf("the forge has %+v, %v", written, err)
	}
}

// What a run has said is not said again when the run goes on after a loss, although its
// journal does not know that it was said.
func TestWhatWasSaidIsSaidOnceOverALoss(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	say := wire.NewComment{Name: "1-question-7", Text: "Which gate?"}
	if err := held.AddComment(t.Context(), say); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "returned", Reason: string(task.ReasonAgentStopping)}); err != nil {
		t.Fatal(err)
	}
	held, _ = w.goOn(t, made.ID)
	if err := held.AddComment(t.Context(), say); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	asked := 0
	for _, comment := range w.comments(t, made.Key) {
		if strings.Contains(comment.Body, "Which gate?") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("people were asked %d times", asked)
	}
}

// A task that agents hand back because they cannot do it waits longer each time, says once why,
// and fails with the last of its attempts, with what the agent says.
func TestTaskThatAgentsCannotDoEnds(t *testing.T) {
	t.Parallel()
	for reason, first := range map[task.Reason]time.Duration{
		task.ReasonSandboxNotStarted: 5 * time.Minute,
		task.ReasonTooLittleSpace:    30 * time.Second, // there may be more soon
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			taskThatAgentsCannotDo(t, reason, first)
		})
	}
}

// A task that is handed back because of something that passes by itself is tried again at once, then
// later each time. It uses up no attempt.
func TestTaskThatIsHandedBackAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	said := wire.Result{Outcome: "returned", Reason: string(task.ReasonRunFailed)}
	for _, want := range []time.Duration{0, 30 * time.Second, 2 * time.Minute, 270 * time.Second, 8 * time.Minute, 750 * time.Second} {
		if err := held.Finish(t.Context(), said); err != nil {
			t.Fatal(err)
		}
		is, err := w.store.Task(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if waits := max(0, is.ReadyAt.Sub(w.now())).Round(time.Second); is.State != task.Queued || is.Attempts > 0 || waits != want {
			t.Errorf("it waits %v, want %v: %+v", waits, want, is)
		}
		w.pass(time.Hour)
		held, _ = w.goOn(t, made.ID)
	}
}

func taskThatAgentsCannotDo(t *testing.T, reason task.Reason, first time.Duration) {
	t.Helper()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	said := wire.Result{Outcome: "returned", Reason: string(reason), Comment: "The image x is not here."}
	held, _ := w.claim(t, made.ID)
	var before time.Duration
	for attempt := 1; attempt <= workshopAttempts; attempt++ {
		if attempt > 1 {
			w.pass(2 * time.Hour)
			held, _ = w.goOn(t, made.ID)
		}
		if err := held.Finish(t.Context(), said); err != nil {
			t.Fatal(err)
		}
		is, err := w.store.Task(t.Context(), made.ID)
		if err != nil || attempt == workshopAttempts {
			if is.State != task.Failed || is.Reason != reason {
				t.Errorf("in the end it is %+v, %v", is, err)
			}
			break
		}
		waits := is.ReadyAt.Sub(w.now())
		if is.State != task.Queued || is.Reason != reason || is.Attempts != attempt || waits <= before || attempt == 1 && waits > first {
			t.Errorf("after %d attempts it is %+v, and waits %v after %v", attempt, is, waits, before)
		}
		before = waits
	}
	w.settle(t, made.Key)
	waiting, failed := 0, 0
	for _, comment := range w.comments(t, made.Key) {
		if strings.Contains(comment.Body, messages.Fix(task.English, reason)) {
			waiting++
		}
		if strings.Contains(comment.Body, said.Comment) {
			failed++
		}
	}
	if waiting != 1 || failed != 1 {
		t.Errorf("it was said %d times that it waits, and %d times that it failed: %+v", waiting, failed, w.comments(t, made.Key))
	}
}
