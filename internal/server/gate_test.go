package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

var (
	workflow = inspect.Found{Finding: task.Finding{Kind: task.FindingProtected, Path: ".github/workflows/ci.yml"}}
	leak     = inspect.Found{Finding: task.Finding{Kind: task.FindingSecret, Path: "lib/a.txt", Line: 4}}
)

// offer offers a commit to be published.
func offer(t *testing.T, held *wire.RunClient, branch, commit string, again bool) (wire.Pulled, error) {
	t.Helper()
	return held.OpenPull(t.Context(), wire.OpenPull{Branch: branch, Commit: commit, Base: "main", Title: "Fix", Body: "Fixed.", Again: again})
}

func (w *workshop) hasPublished(branch, commit string) bool {
	there, _ := w.published.Load(branch)
	return there == commit
}

// textsOn is what the bot has written on an item.
func (w *workshop) textsOn(t *testing.T, key task.Key) string {
	t.Helper()
	w.settle(t, key)
	comments, err := w.forge.Comments(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, comment := range comments {
		if comment.Author == bot {
			all = append(all, comment.Body)
		}
	}
	return strings.Join(all, "\n")
}

// What nobody asked for is withheld once for each assignment, whatever the agent says,
// over a loss of the agent and on every server; then it is published as a draft.
func TestUnaskedWorkIsWithheldOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the sum")
		held, running := w.claim(t, made.ID)
		for _, commit := range []string{"c1", "c2"} {
			w.findings.Store(commit, []inspect.Found{workflow})
		}
		// An agent that says at once that the model was told, does not decide that.
		for range 2 { // an answer may get lost
			answer, err := offer(t, held, made.Branch, "c1", false)
			if err != nil || !answer.Withheld || !slices.Equal(answer.Findings, []task.Finding{workflow.Finding}) || answer.Number != 0 {
				t.Fatalf("the first answer is %+v, %v", answer, err)
			}
		}
		if w.hasPublished(made.Branch, "c1") {
			t.Fatal("it was published")
		}
		// The agent is lost, and another goes on.
		if _, err := w.store.Move(t.Context(), store.Change{Task: made.ID, Generation: running.Generation, Trigger: task.Lost, Reason: task.ReasonLeaseExpired}); err != nil {
			t.Fatal(err)
		}
		held, _ = w.goOn(t, made.ID)
		for range 2 {
			answer, err := offer(t, held, made.Branch, "c2", true)
			if err != nil || answer.Withheld || answer.Number == 0 || len(answer.Findings) != 1 {
				t.Fatalf("the second answer is %+v, %v", answer, err)
			}
		}
		pull, found, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main")
		if err != nil || !found || !pull.Draft || !strings.Contains(pull.Body, "`.github/workflows/ci.yml`") || !strings.Contains(pull.Body, "Fixed.") {
			t.Errorf("the pull request is %+v, %v", pull, err)
		}
		if said := w.textsOn(t, made.Key); strings.Count(said, ".github/workflows/ci.yml") != 1 || !strings.Contains(said, "draft") {
			t.Errorf("people are told %q", said)
		}
	})
}

func TestWhatPasses(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Change .github/workflows/ci.yml")
	held, _ := w.claim(t, made.ID)
	w.findings.Store("c1", []inspect.Found{workflow})
	answer, err := offer(t, held, made.Branch, "c1", false)
	if err != nil || answer.Withheld || len(answer.Findings) != 0 || !w.hasPublished(made.Branch, "c1") {
		t.Fatalf("what was asked for: %+v, %v", answer, err)
	}
	if pull, _, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main"); err != nil || pull.Draft || strings.Contains(pull.Body, "ci.yml") {
		t.Errorf("the pull request is %+v, %v", pull, err)
	}
}

// A secret is never published, and no later run begins with it.
func TestSecretsAreNeverPublished(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Write the key to lib/a.txt")
	held, _ := w.claim(t, made.ID)
	w.findings.Store("c1", []inspect.Found{leak})
	answer, err := offer(t, held, made.Branch, "c1", false)
	if err != nil || !answer.Withheld {
		t.Fatalf("the first answer is %+v, %v", answer, err)
	}
	for range 3 {
		_, err = offer(t, held, made.Branch, "c1", true)
		if task.CodeOf(err) != task.Unsafe || !strings.Contains(err.Error(), "lib/a.txt:4") {
			t.Errorf("the second answer is %v", err)
		}
	}
	if _, is := w.retracted.Load("c1"); !is || w.hasPublished(made.Branch, "c1") {
		t.Error("the branch is there still, or was published")
	}
	if pulls, err := w.forge.List(t.Context(), forge.Query{Repository: repository, Kind: task.Pull}); err != nil || len(pulls) > 0 {
		t.Errorf("there are the pull requests %v, %v", pulls, err)
	}
	// Without the secret it is.
	if _, err := offer(t, held, made.Branch, "c2", true); err != nil || !w.hasPublished(made.Branch, "c2") {
		t.Errorf("without the secret: %v", err)
	}
}

// A commit that cannot be published as it is fails the run, and no later one begins with
// it.
func TestCommitsThatGitDoesNotWriteAreRetracted(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	w.findings.Store("c1", task.Errorf(task.Unsafe, "commit c1 has headers that git does not write"))
	if _, err := offer(t, held, made.Branch, "c1", false); task.CodeOf(err) != task.Unsafe {
		t.Errorf("the answer is %v", err)
	}
	if _, is := w.retracted.Load("c1"); !is || w.hasPublished(made.Branch, "c1") {
		t.Error("the branch is there still, or was published")
	}
}

func TestWhatNobodyAskedForCanBeRefused(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{refuse: true})
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	w.findings.Store("c1", []inspect.Found{workflow})
	if answer, err := offer(t, held, made.Branch, "c1", false); err != nil || !answer.Withheld {
		t.Fatalf("the first answer is %+v, %v", answer, err)
	}
	if _, err := offer(t, held, made.Branch, "c1", true); task.CodeOf(err) != task.Unsafe || w.hasPublished(made.Branch, "c1") {
		t.Errorf("the second answer is %v", err)
	}
}

// Only people ask: the author of the item and those who may steer. What the bot wrote
// may be a model's idea.
func TestWhoCanAskForAFile(t *testing.T) {
	t.Parallel()
	const path = ".github/workflows/ci.yml"
	for name, test := range map[string]struct {
		say   func(w *workshop, key task.Key)
		asked bool
	}{
		"a writer":   {func(w *workshop, key task.Key) { w.forge.AddComment(key, "bob", "Change "+path) }, true},
		"a stranger": {func(w *workshop, key task.Key) { w.forge.AddComment(key, "mallory", "Change "+path) }, false},
		"the bot":    {func(w *workshop, key task.Key) { w.forge.AddComment(key, bot, "I shall change "+path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, setting{accept: items.FromWriters})
			w.forge.SetAccess(repository, "bob", forge.WriteAccess)
			w.forge.SetAccess(repository, "mallory", forge.ReadAccess)
			made := w.issue(t, "Fix the sum")
			test.say(w, made.Key)
			held, _ := w.claim(t, made.ID)
			w.findings.Store("c1", []inspect.Found{workflow})
			answer, err := offer(t, held, made.Branch, "c1", false)
			if err != nil || answer.Withheld == test.asked {
				t.Errorf("withheld is %v, %v", answer.Withheld, err)
			}
		})
	}
}

// The item asks for what it said when the task was handed out: whoever may edit it later
// need not be one who may steer.
func TestTheItemCountsAsItWasHandedOut(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	edit := func(key task.Key, text string) {
		w.forge.Change(key, func(item *forge.Item) { item.Body = text })
		w.snapshots.Changed(key)
	}
	withheld := func(made task.Task, edited string) bool {
		t.Helper()
		held, _ := w.claim(t, made.ID)
		edit(made.Key, edited)
		commit := "c" + string(made.ID)
		w.findings.Store(commit, []inspect.Found{workflow})
		answer, err := offer(t, held, made.Branch, commit, false)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Withheld
	}
	if !withheld(w.issue(t, "Fix the sum"), "Change .github/workflows/ci.yml") {
		t.Error("what was written during the run counts")
	}
	made := w.issue(t, "Fix the product")
	edit(made.Key, "Change .github/workflows/ci.yml")
	if withheld(made, "Never mind") {
		t.Error("what the run was given does not count")
	}
}

// On a pull request of the bot its own description asks for nothing, but the issue that
// it is for does, and so do reviewers. A pull request that was ready becomes a draft
// before anything is pushed to it.
func TestUnaskedWorkOnAPullRequest(t *testing.T) {
	t.Parallel()
	const path = ".github/workflows/ci.yml"
	for name, test := range map[string]struct {
		author, description, issue string
		review                     func(w *workshop, key task.Key)
		asked                      bool
	}{
		"its own description":    {author: bot, description: "It changes " + path},
		"another's description":  {author: "alice", description: "It changes " + path, asked: true},
		"the issue":              {author: bot, issue: "Change " + path, asked: true},
		"a review":               {author: bot, asked: true, review: func(w *workshop, key task.Key) { w.judge(key, "alice", "Change "+path) }},
		"its own review":         {author: bot, review: func(w *workshop, key task.Key) { w.judge(key, bot, "Change "+path) }},
		"a thread on the file":   {author: bot, asked: true, review: func(w *workshop, key task.Key) { w.forge.AddThread(key, "alice", path, 1, "No.") }},
		"its own thread":         {author: bot, review: func(w *workshop, key task.Key) { w.forge.AddThread(key, bot, path, 1, "No.") }},
		"a thread on other file": {author: bot, review: func(w *workshop, key task.Key) { w.forge.AddThread(key, "alice", "a.go", 1, "No.") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t)
			branch := "feature"
			if test.issue != "" {
				branch = w.issue(t, test.issue).Branch
			}
			w.forge.SetBranch(repository, branch, "c0")
			key := w.forge.AddItem(repository, task.Pull, test.author, "Fix")
			w.forge.Change(key, func(item *forge.Item) { item.Body, item.Head, item.Base = test.description, branch, "main" })
			if test.review != nil {
				test.review(w, key)
			}
			made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Branch: branch, Reason: task.ReasonChangesRequested}, nil)
			if err != nil {
				t.Fatal(err)
			}
			held, _ := w.claim(t, made.ID)
			w.findings.Store("c1", []inspect.Found{workflow})
			answer, err := offer(t, held, branch, "c1", false)
			if err != nil || answer.Withheld == test.asked {
				t.Fatalf("withheld is %v, %v", answer.Withheld, err)
			}
			if test.asked {
				return
			}
			if _, err := offer(t, held, branch, "c1", true); err != nil {
				t.Fatal(err)
			}
			pull, err := w.forge.Item(t.Context(), key)
			if err != nil || !pull.Draft || pull.Body != test.description {
				t.Errorf("the pull request is %+v, %v", pull, err)
			}
			if was, _ := w.drafts.Load("c1"); was != true {
				t.Error("it was pushed to a pull request that was ready")
			}
			if said := w.textsOn(t, key); !strings.Contains(said, path) {
				t.Errorf("people are told %q", said)
			}
		})
	}
}

func (w *workshop) judge(key task.Key, author, text string) {
	w.forge.AddReview(key, forge.Review{Author: author, Verdict: forge.RequestChanges, Body: text, At: w.now()})
}

// What an agent writes has no secret of the server in it on the forge, whatever the agent
// knows of secrets.
func TestTheServerMasksWhatAgentsWrite(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	_, err := held.OpenPull(t.Context(), wire.OpenPull{
		Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix " + maskedSecret, Body: "It was\x01 " + maskedSecret[:4] + "\x01" + maskedSecret[4:] + ".",
	})
	if err != nil {
		t.Fatal(err)
	}
	pull, found, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main")
	if err != nil || !found || pull.Title != "Fix [masked]" || !strings.Contains(pull.Body, "It was [masked].") {
		t.Errorf("the pull request is %q, %q, %v", pull.Title, pull.Body, err)
	}
}

// Agents do not write what the server decides by.
func TestAgentsCannotSayThatTheModelWasTold(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	held, _ := w.claim(t, w.issue(t, "Fix the sum").ID)
	_, err := held.Report(t.Context(), []wire.Entry{{Sequence: 1, Kind: string(task.Inspected), At: w.now(), Data: []byte(`{"commit":"c1","outcome":"withheld"}`)}})
	if task.CodeOf(err) != task.Invalid {
		t.Errorf("the entry was taken: %v", err)
	}
}
