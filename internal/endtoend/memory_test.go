package endtoend

import (
	"context"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// TestALaterTaskIsGivenWhatReviewersAskedFor lets a person with rights and a stranger ask for something
// on a pull request of the bot's. The bot changes it, and it is merged. The model that carries out the
// next issue has the words of the person before it, and not those of the stranger. What people change
// by commands is what the issue after that is given.
func TestALaterTaskIsGivenWhatReviewersAskedFor(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, settings: "merge: {when: approved_and_green}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	s := h.afterIssue(t, board, load(t, "testdata/loop/mention.txtar")[0])
	s.mention(t, board)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = board.review(ctx, s.item, "mallory", "comment", "The file add.sh should say everything in capital letters.", wire.BoardLine{Path: "add.sh", Line: 1})
	must(t, err)
	for is := (task.Task{}); is.State != task.Done; {
		if !pause(ctx) {
			t.Fatalf("the task is %+v\n%s", is, s.journal(t))
		}
		if is, err = h.store.TaskOf(ctx, s.item, task.Development); task.CodeOf(err) != task.NotFound {
			must(t, err)
		}
	}
	pull, err := board.look().Item(ctx, s.item)
	must(t, err)
	must(t, board.look().SetStatus(ctx, s.item.Repository, forge.CommitStatus{Commit: pull.HeadCommit, Context: "CI / test", State: forge.StatusSuccess}))
	_, err = board.review(ctx, s.item, "carol", "approve", "Good.", wire.BoardLine{})
	must(t, err)
	var found wire.Notes
	for len(found.Notes) == 0 {
		if !pause(ctx) {
			t.Fatal("nothing was learned")
		}
		found, err = h.client.Notes(ctx, "board:"+s.item.Repository, "", "", 0)
		must(t, err)
	}
	note := found.Notes[0]
	if len(found.Notes) != 1 || note.Author != "carol" || note.Path != "add.sh" || note.Ending != "resolved" || note.Source != pull.URL || !strings.Contains(note.Text, "say in the file what it prints") {
		t.Errorf("it has learned %+v", found.Notes)
	}
	if given := s.executing(ctx, t, board, "add.sh prints nothing without arguments"); !strings.Contains(given, "say in the file what it prints") || strings.Contains(given, "capital letters") {
		t.Errorf("the model is given:\n%s", given)
	}

	command := func(args ...string) string {
		t.Helper()
		said, err := h.toryo(ctx, append(append([]string{"memory"}, args...), "--data", h.data(0))...)
		must(t, err)
		return said
	}
	command("edit", note.ID, "Each file says in its first line what it does.")
	if said := command("list", "--search", "FIRST line"); !strings.Contains(said, note.ID) || !strings.Contains(said, "Each file says") || !strings.Contains(said, pull.URL) {
		t.Errorf("the list is %s", said)
	}
	if given := s.executing(ctx, t, board, "add.sh is slow"); !strings.Contains(given, "Each file says in its first line") || strings.Contains(given, "say in the file what it prints") {
		t.Errorf("after the edit the model is given:\n%s", given)
	}
	command("forget", note.ID)
	if said := command("list"); !strings.Contains(said, "there are no notes") {
		t.Errorf("the list is %s", said)
	}
}

// executing lets the bot do another issue of the repository, and returns the block with the notes that
// the model has before it when it carries out the plan.
func (s *story) executing(ctx context.Context, t *testing.T, on *boardSite, title string) string {
	t.Helper()
	issue, err := on.open(ctx, s.item.Repository, "alice", &phasetest.Scenario{Title: title})
	must(t, err)
	must(t, on.assign(ctx, issue, true))
	const begins = `<pinned name="review_notes">`
	for {
		for _, record := range s.model.Records() {
			if record.Request.Phase != task.Execution || !strings.Contains(record.Request.Messages[0].Text(), title) {
				continue
			}
			_, notes, _ := strings.Cut(record.Request.Messages[0].Text(), begins)
			notes, _, _ = strings.Cut(notes, "</pinned>")
			return notes
		}
		if !pause(ctx) {
			t.Fatalf("the model is not asked\n%s", s.journal(t))
		}
	}
}
