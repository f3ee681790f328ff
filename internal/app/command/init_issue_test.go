package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// scriptedModel makes a script for a model, and returns the flags that choose it.
func scriptedModel(t *testing.T) []string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("model: none\nrules:\n  - name: anything\n    answer: {text: \"yes\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--provider", "script", "--script", script}
}

// committed makes the current folder a git repository with something to do in it.
func (n *newcomer) committed() {
	n.Helper()
	n.write("README.md", "# App\n")
	n.write("app.sh", "# TODO: greet everybody who comes\n")
	n.git("init", "-q", "-b", "main")
	n.git("add", ".")
	n.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "first")
}

// The first issue is shown whole before it is opened, and has nothing in it that is not in git.
func TestInitFirstIssueIsShown(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.committed()
	n.write("a.sh", "# TODO: the password is hunter2 until May\n")
	flags := append([]string{"--forge", "board", "--repository", "team/app", "--sandbox", "auto", "--first-issue", "yes", "--yes"}, scriptedModel(t)...)
	if err := n.run(nil, flags...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("because app.sh:1 is marked TODO", "  | # TODO: greet everybody who comes", "  | Done when", "✓ issue http")
	if strings.Contains(n.shown.String(), "hunter2") {
		t.Errorf("what is not in git is shown:\n%s", n.shown.String())
	}
}

// slowForge is a list of writes to an item that gets shorter each time that it is read.
type slowForge struct {
	item        task.Key
	left, looks int
}

func (s *slowForge) PendingActions(_ context.Context, item task.Key) ([]store.Action, error) {
	if item != s.item {
		return nil, nil
	}
	pending := make([]store.Action, s.left)
	s.looks++
	s.left = max(0, s.left-1)
	return pending, nil
}

// Before the server is stopped again, the forge has what was written to the first issue.
func TestInitWaitsForItsWrites(t *testing.T) {
	t.Parallel()
	issue, pull := task.Key{Kind: task.Issue, Number: 1}, task.Key{Kind: task.Pull, Number: 2}
	for name, test := range map[string]struct {
		item  task.Key
		left  int
		says  bool
		looks int
	}{
		"nothing is missing":           {issue, 0, false, 1},
		"the last label is on its way": {issue, 3, false, 4},
		"the commit status is":         {pull, 3, false, 4},
		"the forge does not answer":    {issue, 10 * writesLooks, true, writesLooks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shown strings.Builder
				slow := &slowForge{item: test.item, left: test.left}
				o := &setup{Program: site.Program{Stderr: &shown, Stdout: &shown}}
				if err := o.awaitWrites(t.Context(), slow, issue, pull); err != nil {
					t.Fatal(err)
				}
				if says := strings.Contains(shown.String(), "does not have all comments and labels"); says != test.says || slow.looks != test.looks {
					t.Errorf("%d looks, and it says %q", slow.looks, shown.String())
				}
			})
		})
	}
}

// A task that waits for what only a person can bring is not waited for; that the agent of this
// process has not come yet passes.
func TestLastingWaits(t *testing.T) {
	t.Parallel()
	for reason, want := range map[task.Reason]bool{
		task.ReasonNoAgents: false, task.ReasonAgentsSilent: false,
		task.ReasonNoSandbox: true, task.ReasonNoModel: true, task.ReasonKeyRejected: true, task.ReasonAllPaused: true, task.ReasonNoPushRight: true,
	} {
		waits := []wire.Wait{
			{Reason: string(task.ReasonNoModel), Tasks: []wire.WaitTask{{Task: "other"}}},
			{Reason: string(reason), Tasks: []wire.WaitTask{{Task: "other"}, {Task: "ours"}}},
		}
		if got, is := lastingWait(waits, "ours"); is != want || is && got.Reason != string(reason) {
			t.Errorf("%s: %+v, %t", reason, got, is)
		}
	}
}
