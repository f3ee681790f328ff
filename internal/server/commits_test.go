package server_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// programmer is a person with a clone of team/app.
type programmer struct {
	*testing.T
	clone string
}

func newProgrammer(t *testing.T, as *board.Forge) programmer {
	t.Helper()
	remote, err := as.Remote(t.Context(), "team/app")
	must(t, err)
	p := programmer{t, filepath.Join(t.TempDir(), "clone")}
	git(t, t.TempDir(), "clone", "-q", remote.URL, p.clone)
	return p
}

// push makes a commit with a file on top of another commit, makes a branch of it whatever
// that had, and returns it.
func (p programmer) push(on, branch, file, text string) string {
	p.Helper()
	git(p.T, p.clone, "fetch", "-q", "origin")
	git(p.T, p.clone, "switch", "-q", "--detach", on)
	must(p, os.WriteFile(filepath.Join(p.clone, file), []byte(text), 0o600))
	git(p.T, p.clone, "add", ".")
	git(p.T, p.clone, "commit", "-qm", "Change "+file)
	git(p.T, p.clone, "push", "-q", "--force", "origin", "HEAD:refs/heads/"+branch)
	return git(p.T, p.clone, "rev-parse", "HEAD")
}

// has is the text of a file of a branch on the forge.
func (p programmer) has(branch, file string) string {
	p.Helper()
	git(p.T, p.clone, "fetch", "-q", "origin")
	return git(p.T, p.clone, "show", "origin/"+branch+":"+file)
}

// request asks for a task.
func (c *counter) request(t *testing.T) *wire.Assignment {
	t.Helper()
	a, err := c.agent().RequestTask(t.Context(), "smith", time.Minute)
	must(t, err)
	if a == nil {
		t.Fatal("the agent was given nothing")
	}
	return a
}

// workspace makes the workspace of a run as agents do.
func (c *counter) workspace(t *testing.T, a *wire.Assignment) phase.Repository {
	t.Helper()
	made, remove, err := agent.Workspaces{Dir: t.TempDir(), Server: c.url}.Prepare(t.Context(), *a)
	must(t, err)
	t.Cleanup(func() { must(t, remove()) })
	return made
}

// publish adds a file to the work, and publishes it as the server does when the run asks for
// a pull request.
func (c *counter) publish(t *testing.T, a *wire.Assignment, in phase.Repository, file string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(in.Workspace(), file), []byte("by the bot\n"), 0o600))
	commit, changed, err := in.Commit(t.Context(), "Add "+file, "")
	if err != nil || !changed {
		t.Fatalf("committed: %v, %v", changed, err)
	}
	key := task.Key{Forge: task.Forge(a.Forge), Repository: a.Repository, Kind: task.ItemKind(a.Kind), Number: a.Number}
	published, err := c.mirrors.Publish(t.Context(), mirror.Publication{
		Item: key, Task: task.ID(a.TaskID), Generation: a.Generation, Branch: a.Branch, Commit: commit,
	})
	if err != nil {
		t.Fatalf("the work is not published: %v", err)
	}
	return published
}

func (c *counter) finish(t *testing.T, a *wire.Assignment) {
	t.Helper()
	_, err := c.store.Move(t.Context(), store.Change{Task: task.ID(a.TaskID), Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
}

// assignAgain takes the bot off an item whose task has ended, and puts it on again.
func (c *counter) assignAgain(t *testing.T, by *board.Forge, key task.Key) {
	t.Helper()
	must(t, by.Unassign(t.Context(), key, "toryo"))
	eventually(t, func() bool {
		is, err := c.store.TaskOf(t.Context(), key, task.Development)
		return err == nil && is.Released
	})
	must(t, by.Assign(t.Context(), key, "toryo"))
}

// wantFile fails unless a workspace has a file with the text; an empty one is for none.
func wantFile(t *testing.T, in phase.Repository, file, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(in.Workspace(), file))
	if want == "" && !os.IsNotExist(err) || want != "" && string(text) != want {
		t.Errorf("the workspace has %s as %q, %v; want %q", file, text, err, want)
	}
}

// Whoever works on a pull request begins with the commit that the assignment names, though
// the mirror is believed to be up to date: after a push, after the task's own publication, and
// after somebody has put another history in the place of the task's.
func TestWorkOnAPullRequestBeginsWithItsHead(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	person := newProgrammer(t, ann)
	person.push("origin/main", "feature", "first.txt", "1\n")
	pull, _, err := ann.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Oil the gate", Head: "feature", Base: "main"})
	must(t, err)
	must(t, ann.Assign(t.Context(), pull.Key, "toryo"))
	begin := func(want string) (*wire.Assignment, phase.Repository) {
		a := c.request(t)
		if a.PullRequest.Commit != want || a.StartCommit != want {
			t.Errorf("the assignment names %s and begins with %s, want %s", a.PullRequest.Commit, a.StartCommit, want)
		}
		return a, c.workspace(t, a)
	}
	a, in := begin(git(t, person.clone, "rev-parse", "HEAD"))
	wantFile(t, in, "first.txt", "1\n")
	published := c.publish(t, a, in, "bot.txt")
	c.finish(t, a)

	c.assignAgain(t, ann, pull.Key) // right after our own publication
	a, in = begin(published)
	wantFile(t, in, "bot.txt", "by the bot\n")
	c.finish(t, a)

	second := person.push("origin/feature", "feature", "second.txt", "2\n")
	c.assignAgain(t, ann, pull.Key) // right after somebody has pushed
	a, in = begin(second)
	wantFile(t, in, "second.txt", "2\n")
	c.publish(t, a, in, "more.txt")
	c.finish(t, a)

	other := person.push("origin/main", "feature", "other.txt", "o\n")
	c.assignAgain(t, ann, pull.Key) // right after somebody has replaced all of it
	a, in = begin(other)
	wantFile(t, in, "other.txt", "o\n")
	wantFile(t, in, "first.txt", "")
	c.publish(t, a, in, "again.txt")
	if person.has("feature", "other.txt") != "o" || person.has("feature", "again.txt") != "by the bot" {
		t.Error("the branch does not have both the commit of the person and that of the bot")
	}
}

// A review looks at the head of the pull request, also when somebody has replaced the history
// that an earlier review looked at.
func TestReviewsLookAtTheHead(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	person := newProgrammer(t, ann)
	person.push("origin/main", "feature", "first.txt", "1\n")
	pull, _, err := ann.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Oil the gate", Head: "feature", Base: "main"})
	must(t, err)
	c.later(-2 * time.Hour)
	must(t, ann.AddLabel(t.Context(), pull.Key, "needs-review"))
	for _, file := range []string{"second.txt", "third.txt"} {
		head := person.push("origin/main", "feature", file, "x\n")
		c.later(3 * time.Hour)
		must(t, c.intake.Look(t.Context(), pull.Key, 0))
		a := c.request(t)
		if a.TaskType != "review" || a.PullRequest.Commit != head || a.StartCommit != head {
			t.Errorf("the review is of %s and begins with %s, want %s", a.PullRequest.Commit, a.StartCommit, head)
		}
		in := c.workspace(t, a)
		wantFile(t, in, file, "x\n")
		wantFile(t, in, "first.txt", "")
		c.finish(t, a)
	}
}

// Work on an issue goes on with what people have added to its branch.
func TestWorkOnAnIssueGoesOnWithItsBranch(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	person := newProgrammer(t, ann)
	issue, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Oil the gate", Assignees: []string{"toryo"}})
	must(t, err)
	a := c.request(t)
	if a.StartCommit != a.BaseCommit || a.BaseCommit != git(t, person.clone, "rev-parse", "origin/main") {
		t.Errorf("the work begins with %s, from %s", a.StartCommit, a.BaseCommit)
	}
	c.publish(t, a, c.workspace(t, a), "bot.txt")
	c.finish(t, a)
	c.assignAgain(t, ann, issue.Key)
	c.finish(t, c.request(t)) // fetches what was published
	for _, on := range []string{"origin/" + a.Branch, "origin/main"} {
		head := person.push(on, a.Branch, "person.txt", on+"\n")
		c.assignAgain(t, ann, issue.Key)
		a = c.request(t)
		in := c.workspace(t, a)
		if a.StartCommit != head {
			t.Errorf("the work begins with %s, want %s", a.StartCommit, head)
		}
		wantFile(t, in, "person.txt", on+"\n")
		c.publish(t, a, in, "more.txt")
		c.finish(t, a)
	}
}

// What the assignment names is what the agent gets, also when people push between the
// hand-out and the clone; and an interrupted run goes on with what it has saved.
func TestTheCloneHasWhatTheAssignmentNames(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	person := newProgrammer(t, ann)
	head := person.push("origin/main", "feature", "first.txt", "1\n")
	pull, _, err := ann.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Oil the gate", Head: "feature", Base: "main"})
	must(t, err)
	must(t, ann.Assign(t.Context(), pull.Key, "toryo"))
	a := c.request(t)
	base := git(t, person.clone, "rev-parse", "origin/main")
	person.push("origin/main", "main", "later.txt", "l\n")
	person.push("origin/feature", "feature", "later.txt", "l\n")
	c.mirrors.Changed(task.Repository{Forge: task.Board, Name: "team/app"})
	in := c.workspace(t, a)
	if a.BaseCommit != base || a.StartCommit != head {
		t.Errorf("the assignment names %s from %s, want %s from %s", a.StartCommit, a.BaseCommit, head, base)
	}
	wantFile(t, in, "first.txt", "1\n")
	wantFile(t, in, "later.txt", "")
	if files, err := in.BaseFiles(t.Context()); err != nil || len(files) != 1 {
		t.Errorf("the base has %v, %v; want it as it was handed out", files, err)
	}

	must(t, os.WriteFile(filepath.Join(in.Workspace(), "work.txt"), []byte("w\n"), 0o600))
	saved, err := in.Save(t.Context(), "Work")
	must(t, err)
	_, err = c.store.Append(t.Context(), []task.Event{{
		Task: task.ID(a.TaskID), Generation: a.Generation, Source: task.FromAgent, Kind: task.Saved, At: time.Now(), Data: []byte(`{"commit":"` + saved + `"}`),
	}})
	must(t, err)
	_, err = c.store.Move(t.Context(), store.Change{Task: task.ID(a.TaskID), Trigger: task.Returned, Reason: task.ReasonAgentStopping})
	must(t, err)
	again := c.request(t)
	if again.Resume == nil || again.Resume.WIPCommit != saved {
		t.Fatalf("the run goes on with %+v, want %s", again.Resume, saved)
	}
	wantFile(t, c.workspace(t, again), "work.txt", "w\n")
}
