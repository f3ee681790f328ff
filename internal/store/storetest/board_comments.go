package storetest

import (
	"encoding/json"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var boardTalkChecks = []check{
	{"comments are kept, edited and deleted", boardComments},
	{"every comment changes the item", boardCommentsTouch},
	{"reviews are of pull requests", boardReviews},
}

func boardComments(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Issue)
	say := func(body string) store.BoardComment {
		return got[store.BoardComment](t)(s.AddBoardComment(t.Context(), store.BoardComment{Repository: x.Repository, Number: x.Number, Author: "alice", Body: body, CreatedAt: noon}))
	}
	first, second := say("one"), say("two")
	equal(t, first, store.BoardComment{ID: first.ID, Repository: x.Repository, Number: x.Number, Author: "alice", Body: "one", CreatedAt: noon, UpdatedAt: noon})
	equal(t, got[[]store.BoardComment](t)(s.BoardComments(t.Context(), x.Repository, x.Number)), []store.BoardComment{first, second})

	same := got[store.BoardComment](t)(s.EditBoardComment(t.Context(), first.ID, "one"))
	equal(t, same, first)
	edited := got[store.BoardComment](t)(s.EditBoardComment(t.Context(), first.ID, "changed"))
	equal(t, edited.ID, first.ID)
	equal(t, edited.Body, "changed")
	equal(t, edited.CreatedAt, first.CreatedAt)
	if !edited.UpdatedAt.After(first.UpdatedAt) {
		t.Fatal("the comment does not look edited")
	}
	must(t, s.DeleteBoardComment(t.Context(), second.ID))
	equal(t, got[[]store.BoardComment](t)(s.BoardComments(t.Context(), x.Repository, x.Number)), []store.BoardComment{edited})

	wantCode(t, s.DeleteBoardComment(t.Context(), second.ID), task.NotFound)
	_, err := s.EditBoardComment(t.Context(), second.ID, "x")
	wantCode(t, err, task.NotFound)
	_, err = s.AddBoardComment(t.Context(), store.BoardComment{Repository: x.Repository, Number: 99})
	wantCode(t, err, task.NotFound)
	_, err = s.BoardComments(t.Context(), x.Repository, 99)
	wantCode(t, err, task.NotFound)
}

func boardCommentsTouch(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Pull)
	last := x.UpdatedAt
	changed := func(what string) {
		t.Helper()
		now := boardNow(t, s, x).UpdatedAt
		if !now.After(last) {
			t.Fatalf("after %s the item looks unchanged", what)
		}
		last = now
	}
	comment := got[store.BoardComment](t)(s.AddBoardComment(t.Context(), store.BoardComment{Repository: x.Repository, Number: x.Number, Body: "a"}))
	changed("a comment")
	got[store.BoardComment](t)(s.EditBoardComment(t.Context(), comment.ID, "b"))
	changed("an edit")
	must(t, s.DeleteBoardComment(t.Context(), comment.ID))
	changed("a deletion")
	got[store.BoardReview](t)(s.AddBoardReview(t.Context(), store.BoardReview{Repository: x.Repository, Number: x.Number, Verdict: store.BoardRemark}))
	changed("a review")
}

func boardReviews(t *testing.T, s store.Store) {
	repository := boardRepository(t, s)
	issue, pull := boardAdd(t, s, repository, task.Issue), boardAdd(t, s, repository, task.Pull)
	want := store.BoardReview{
		Repository: repository, Number: pull.Number, Author: "bob", Verdict: store.BoardRequestChanges, Body: "no",
		Commit: "abc", Comments: json.RawMessage(`[{"path": "a.go", "line": 3}]`), CreatedAt: noon,
	}
	first := got[store.BoardReview](t)(s.AddBoardReview(t.Context(), want))
	want.ID = first.ID
	equal(t, first, want)
	second := got[store.BoardReview](t)(s.AddBoardReview(t.Context(), store.BoardReview{Repository: repository, Number: pull.Number, Verdict: store.BoardApprove}))
	equal(t, got[[]store.BoardReview](t)(s.BoardReviews(t.Context(), repository, pull.Number)), []store.BoardReview{first, second})

	for _, number := range []int64{issue.Number, 99} {
		want.Number = number
		_, err := s.AddBoardReview(t.Context(), want)
		wantCode(t, err, task.NotFound)
		_, err = s.BoardReviews(t.Context(), repository, number)
		wantCode(t, err, task.NotFound)
	}
	want.Number, want.Verdict = pull.Number, "maybe"
	_, err := s.AddBoardReview(t.Context(), want)
	wantCode(t, err, task.Invalid)
}
