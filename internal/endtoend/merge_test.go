package endtoend

import (
	"context"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// TestAMentionIsDoneAndMerged lets the bot do an issue, and a person mention it in a comment on
// a line of its pull request, which requests nothing formally: the bot makes the change, answers
// in the thread and resolves it. When the person approves, it merges.
func TestAMentionIsDoneAndMerged(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, settings: "merge: {when: approved_and_green}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	s := h.afterIssue(t, board, load(t, "testdata/loop/mention.txtar")[0])
	thread := s.mention(t, board)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for resolved := false; !resolved; {
		if !pause(ctx) {
			t.Fatalf("the thread is not resolved\n%s", s.journal(t))
		}
		threads, err := board.look().ReviewThreads(ctx, s.item)
		must(t, err)
		if resolved = threads[0].Resolved; resolved && (len(threads) != 1 || threads[0].ID != thread || len(threads[0].Comments) != 2 ||
			!strings.Contains(threads[0].Comments[1].Body, "It says so now.")) {
			t.Errorf("the threads are %+v", threads)
		}
	}
	for is := (task.Task{}); is.State != task.Done; {
		if !pause(ctx) {
			t.Fatalf("the task is %+v\n%s", is, s.journal(t))
		}
		is, err = h.store.TaskOf(ctx, s.item, task.Development)
		must(t, err)
	}
	pull, err := board.look().Item(ctx, s.item)
	must(t, err)
	diff, err := board.look().Diff(ctx, s.item)
	must(t, err)
	if pull.State != forge.Open || !strings.Contains(diff.Patch, "+# Prints the sum.") {
		t.Errorf("the pull request is %s and changes:\n%s", pull.State, diff.Patch)
	}

	must(t, board.look().SetStatus(ctx, s.item.Repository, forge.CommitStatus{Commit: pull.HeadCommit, Context: "CI / test", State: forge.StatusSuccess}))
	_, err = board.review(ctx, s.item, "carol", "approve", "Good.", wire.BoardLine{})
	must(t, err)
	for pull.State != forge.Merged {
		if !pause(ctx) {
			checks, err := board.look().Checks(t.Context(), s.item.Repository, pull.HeadCommit)
			comments, _ := board.look().Comments(t.Context(), s.item)
			t.Fatalf("the pull request is %+v, its checks are %+v, %v, its comments are %+v", pull, checks, err, comments)
		}
		pull, err = board.look().Item(ctx, s.item)
		must(t, err)
	}
}

// TestACommentThatAsksForNothing lets the bot do an issue, and a person thank it. The bot
// answers, once, and has not failed: nothing is pushed, and no further task follows.
func TestACommentThatAsksForNothing(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	s := h.afterIssue(t, board, load(t, "testdata/loop/thanks.txtar")[0])
	s.model = script.NewServer(s.Script)
	h.mutex.Lock()
	h.stories[s.item.Repository] = s
	h.mutex.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before, err := board.look().Item(ctx, s.item)
	must(t, err)
	_, err = board.addComment(ctx, s.item, "alice", "@"+board.bot()+" thanks!")
	must(t, err)
	var is task.Task
	for looks := 0; looks < 50; { // it is looked at again after the end
		if !pause(ctx) {
			t.Fatalf("the task is %+v\n%s", is, s.journal(t))
		}
		is, err = h.store.TaskOf(ctx, s.item, task.Development)
		if task.CodeOf(err) != task.NotFound {
			must(t, err)
		}
		if is.State.Terminal() {
			looks++
		}
	}
	if is.State != task.Done || h.assigned(t, is) != 1 {
		t.Errorf("the task is %+v", is)
	}
	pull, err := board.look().Item(ctx, s.item)
	must(t, err)
	if pull.HeadCommit != before.HeadCommit || pull.HasLabel("coding agent failed") {
		t.Errorf("the pull request is %+v, and was %+v", pull, before)
	}
	comments, err := board.look().Comments(ctx, s.item)
	must(t, err)
	answers := 0
	for _, comment := range comments {
		if comment.By(board.bot()) && strings.Contains(comment.Body, "You are welcome.") && strings.Contains(comment.Body, "Nothing was changed") {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("the comments are %+v", comments)
	}
}

// afterIssue lets the bot do an issue, and makes the story of what follows on its pull request.
func (h *house) afterIssue(t *testing.T, board *boardSite, next *phasetest.Scenario) *story {
	t.Helper()
	first, err := phasetest.Load("../phase/testdata/scenarios/shell.txtar")
	must(t, err)
	first.Name = next.Name
	done := h.runStory(t, board, first)
	o := done.read(t)
	if t.Failed() || len(o.pulls) != 1 {
		t.Fatalf("there are %d pull requests, want 1", len(o.pulls))
	}
	return &story{
		Scenario: next, house: h, site: board, item: o.pulls[0].Key, issue: done.item, main: done.main,
		fired: map[int]bool{}, ids: map[string]string{}, threads: map[string]string{}, authors: map[string]string{},
	}
}

// mention lets a person mention the bot on a line of the pull request, and returns the thread.
// The run that comes of it does not begin before the model knows the name of the thread.
func (s *story) mention(t *testing.T, on *boardSite) string {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.house.mutex.Lock()
	s.house.stories[s.item.Repository] = s
	s.house.mutex.Unlock()
	_, err := on.review(t.Context(), s.item, "carol", "comment", "@"+on.bot()+" say in the file what it prints.", wire.BoardLine{Path: "add.sh", Line: 1})
	must(t, err)
	threads, err := on.look().ReviewThreads(t.Context(), s.item)
	must(t, err)
	if len(threads) != 1 {
		t.Fatalf("the threads are %+v", threads)
	}
	for i := range s.Script.Rules {
		answer := &s.Script.Rules[i].Answer
		answer.Text = strings.ReplaceAll(answer.Text, `"T1"`, `"`+threads[0].ID+`"`)
	}
	s.model = script.NewServer(s.Script)
	return threads[0].ID
}
