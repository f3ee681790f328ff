package endtoend

import (
	"context"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// theirLine is what a person makes of the line that the bot changes.
var theirLine = map[string]string{"add.sh": "# a person's line\necho $(($1 - $2 - 0))\n"}

// TestTheBaseIsMerged lets a person change the base of a pull request of the bot so that it
// no longer merges. Nobody asks the bot for anything.
func TestTheBaseIsMerged(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	theBaseIsMerged(t, h, board)
}

func theBaseIsMerged(t *testing.T, h *house, at site) {
	t.Helper()
	s := h.begin(t, at, load(t, "testdata/loop/base.txtar")[0])
	s.await(t, "done", func(is task.Task) bool { return is.State == task.Done })
	first := s.onlyPull(t)
	main, err := commit(t.Context(), at.address(s.item.Repository), "main", theirLine)
	must(t, err)

	s.item = first.Key
	is := s.await(t, "done", func(is task.Task) bool { return is.State.Terminal() })
	if is.State != task.Done || is.Cause != task.ReasonBaseConflict {
		t.Fatalf("the task is %+v\n%s", is, s.journal(t))
	}
	now := s.onlyPull(t)
	if got, want := s.git(t, "rev-parse", now.HeadCommit+"^@"), first.HeadCommit+"\n"+main; got != want {
		t.Errorf("the parents are %s, want %s", got, want)
	}
	s.git(t, "merge-tree", "--write-tree", "main", now.HeadCommit)
	s.checkBoth(t, now)
	if got := s.git(t, "diff", "--name-only", "main", now.HeadCommit); got != "add.sh" {
		t.Errorf("the pull request changes %s", got)
	}
}

// TestAPersonsPushIsKept lets a person push to the branch of the bot while its run goes on.
func TestAPersonsPushIsKept(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	var s *story
	var theirs string
	scenario := load(t, "testdata/loop/push.txtar")[0]
	scenario.Events = []phasetest.Event{{When: phasetest.When{Kind: task.ToolCalled, Tool: "tick"}, Do: func(ctx context.Context) error {
		is, err := h.store.TaskOf(ctx, s.item, task.Development)
		if err == nil {
			theirs, err = commit(ctx, board.address(s.item.Repository), is.Branch, theirLine)
		}
		return err
	}}}
	s = h.begin(t, board, scenario)
	if is := s.await(t, "done", func(is task.Task) bool { return is.State.Terminal() }); is.State != task.Done {
		t.Fatalf("the task is %+v\n%s", is, s.journal(t))
	}
	now := s.onlyPull(t)
	if got := s.git(t, "rev-parse", now.HeadCommit+"^@"); got != theirs {
		t.Errorf("the parents are %s, want %s", got, theirs)
	}
	s.checkBoth(t, now)
}

// onlyPull is the pull request of the story.
func (s *story) onlyPull(t *testing.T) forge.Item {
	t.Helper()
	listed, err := s.site.look().List(t.Context(), forge.Query{Repository: s.item.Repository, Kind: task.Pull})
	must(t, err)
	if len(listed) != 1 {
		t.Fatalf("there are %d pull requests", len(listed))
	}
	pull, err := s.site.look().Item(t.Context(), listed[0].Key)
	must(t, err)
	return pull
}

// git runs git in the repository of the story, or in a copy if it is on a server.
func (s *story) git(t *testing.T, args ...string) string {
	t.Helper()
	folder := s.site.address(s.item.Repository)
	if strings.HasPrefix(folder, "http") {
		folder = t.TempDir()
		_, err := git(t.Context(), "", "clone", "--quiet", "--mirror", s.site.address(s.item.Repository), folder)
		must(t, err)
	}
	output, err := git(t.Context(), folder, args...)
	must(t, err)
	return strings.TrimSpace(output)
}

// checkBoth checks that what the person and the bot did are both there.
func (s *story) checkBoth(t *testing.T, pull forge.Item) {
	t.Helper()
	if got := s.git(t, "show", pull.HeadCommit+":add.sh"); got != "# a person's line\necho $(($1 + $2))" {
		t.Errorf("add.sh has %q", got)
	}
}
