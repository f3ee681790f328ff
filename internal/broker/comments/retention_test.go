package comments_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A comment that a run was told of is known as such also when the texts of the task are gone:
// else it would lead to a second task. One that was edited since is not, nor one that came too
// late for the run.
func TestTakenUpIsKnownAfterTheTextsAreGone(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	must(t, err)
	t.Cleanup(func() { _ = database.Close() })
	x, _, err := database.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.GitHub, Repository: "o/n", Kind: task.Pull, Number: 1},
		Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	must(t, err)
	held, err := database.Claim(t.Context(), []store.Claim{{Task: x.ID, Generation: x.Generation, Agent: "a", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	must(t, err)
	said := func(id, body string) task.Comment {
		return task.Comment{ID: id, Kind: task.ItemComment, Author: "alice", Body: body, CreatedAt: time.Now()}
	}
	var entries []task.CommentEntry
	for _, one := range []task.Comment{said("1", "there when it began"), said("2", "while it worked"), said("3", "too late")} {
		entries = append(entries, task.CommentEntry{Comment: one, Change: task.CommentNew})
	}
	must(t, database.AppendComments(t.Context(), x.ID, 0, 0, entries))
	must(t, database.StartComments(t.Context(), x.ID, x.Generation, 1))
	_, err = database.Append(t.Context(), []task.Event{{
		Task: x.ID, Generation: held[0].Generation, Source: task.FromAgent, Sequence: 1, Kind: task.SignalTaken,
		Data: json.RawMessage(`{"signal": {"signal": "comments", "position": 2}}`),
	}})
	must(t, err)
	ended, err := database.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
	log := comments.New(comments.Options{Store: database})
	look := func(when string) {
		for comment, want := range map[task.Comment]bool{
			entries[0].Comment: true, entries[1].Comment: true, entries[2].Comment: false, said("2", "edited since"): false,
		} {
			if got, err := log.TakenUp(t.Context(), ended, comment); err != nil || got != want {
				t.Errorf("%s: %q was taken up: %v, %v", when, comment.Body, got, err)
			}
		}
	}
	look("before")
	for more := true; more; {
		_, more, err = database.Prune(t.Context(), store.KeptJournals, time.Now().Add(time.Hour), 2)
		must(t, err)
	}
	known, _, err := database.KnownComments(t.Context(), x.ID)
	must(t, err)
	if len(known) != 3 || known[0].Body == entries[0].Body {
		t.Fatalf("the texts are still there: %+v", known)
	}
	look("after")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
