package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var commentChecks = []check{
	{"entries are numbered, and the last of each comment is known", logComments},
	{"of two who saw the same log one appends", appendCommentsTogether},
	{"comments of different kinds may have the same id", sameID},
	{"where a task was told to begin is kept", startOfComments},
}

func commentEntry(id, body string, change task.CommentChange) task.CommentEntry {
	return task.CommentEntry{
		Change: change, At: noon, Access: "write",
		Comment: task.Comment{ID: id, Kind: task.ItemComment, Author: "alice", Body: body, CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon.Add(-time.Minute)},
	}
}

func logComments(t *testing.T, s store.Store) {
	x, other := running(t, s), running(t, s)
	known, last, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	equal(t, [2]int64{int64(len(known)), last}, [2]int64{0, 0})
	equal(t, got[int64](t)(s.LastComment(t.Context(), x.ID)), 0)
	refused := commentEntry("2", "two", task.CommentNew)
	refused.Refused = task.ReasonNoWriteAccess
	entries := []task.CommentEntry{commentEntry("1", "one", task.CommentPresent), refused, commentEntry("1", "uno", task.CommentEdited)}
	entries[1].About, entries[2].Before = "main.go:3", "one"
	must(t, s.AppendComments(t.Context(), x.ID, 0, 0, entries))
	must(t, s.AppendComments(t.Context(), x.ID, 0, 3, []task.CommentEntry{commentEntry("1", "uno", task.CommentDeleted)}))
	must(t, s.AppendComments(t.Context(), other.ID, 0, 0, nil))
	for i := range entries {
		entries[i].Position = int64(i + 1)
	}
	equal(t, got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), x.ID, 0, 3)), entries)
	equal(t, got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), x.ID, 2, 1)), entries[2:])
	equal(t, len(got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), other.ID, 0, 0))), 0)
	known, last, err = s.KnownComments(t.Context(), x.ID)
	must(t, err)
	gone := commentEntry("1", "uno", task.CommentDeleted)
	gone.Position = 4
	equal(t, known, []task.CommentEntry{entries[1], gone})
	equal(t, last, 4)
	equal(t, got[int64](t)(s.LastComment(t.Context(), x.ID)), 4)
	wantCode(t, s.AppendComments(t.Context(), x.ID, 0, 3, entries), task.Conflict)
	wantCode(t, s.AppendComments(t.Context(), "nothing", 0, 0, entries), task.NotFound)
	nul := commentEntry("3", "a\x00b", task.CommentNew)
	must(t, s.AppendComments(t.Context(), x.ID, 0, 4, []task.CommentEntry{nul})) // changed, not lost
}

func appendCommentsTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var appended atomic.Int64
	together(8, func(int) {
		err := s.AppendComments(t.Context(), x.ID, 0, 0, []task.CommentEntry{commentEntry("1", "one", task.CommentNew)})
		if err == nil {
			appended.Add(1)
		} else if task.CodeOf(err) != task.Conflict {
			t.Error(err)
		}
	})
	equal(t, appended.Load(), 1)
}

func sameID(t *testing.T, s store.Store) {
	x := running(t, s)
	onLine := commentEntry("1", "on a line", task.CommentNew)
	onLine.Kind = task.ReviewComment
	must(t, s.AppendComments(t.Context(), x.ID, 0, 0, []task.CommentEntry{commentEntry("1", "one", task.CommentNew), onLine}))
	known, _, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	equal(t, len(known), 2)
}

func startOfComments(t *testing.T, s store.Store) {
	x := running(t, s)
	equal(t, got[int64](t)(s.CommentsStart(t.Context(), x.ID)), 0)
	must(t, s.StartComments(t.Context(), x.ID, x.Generation, 5))
	must(t, s.StartComments(t.Context(), x.ID, x.Generation, 7))
	equal(t, got[int64](t)(s.CommentsStart(t.Context(), x.ID)), 7)
	wantCode(t, s.StartComments(t.Context(), "nothing", 1, 1), task.NotFound)
	moved(t, s, x, task.Lost)
	wantCode(t, s.StartComments(t.Context(), x.ID, x.Generation, 9), task.StaleGeneration)
	late := []task.CommentEntry{commentEntry("1", "one", task.CommentPresent)}
	wantCode(t, s.AppendComments(t.Context(), x.ID, x.Generation, 0, late), task.StaleGeneration)
	must(t, s.AppendComments(t.Context(), x.ID, x.Generation+1, 0, late))
	equal(t, got[int64](t)(s.CommentsStart(t.Context(), x.ID)), 7)
}
