package storetest

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var boardPeopleChecks = []check{
	{"users are kept under their logins", boardUsers},
	{"a login is never given twice", boardLogins},
	{"reactions go on and off, in order", boardReactions},
	{"the last status of a context counts", boardStatuses},
}

func boardUsers(t *testing.T, s store.Store) {
	alice := got[store.BoardUser](t)(s.AddBoardUser(t.Context(), store.BoardUser{Login: "Alice", Access: store.BoardWrite, CreatedAt: noon}))
	equal(t, alice, store.BoardUser{Login: "Alice", Access: store.BoardWrite, CreatedAt: noon})
	bob := got[store.BoardUser](t)(s.AddBoardUser(t.Context(), store.BoardUser{Login: "bob", Access: store.BoardNone}))
	equal(t, got[store.BoardUser](t)(s.BoardUser(t.Context(), "aLICE")), alice)
	must(t, s.SetBoardAccess(t.Context(), "ALICE", store.BoardAdmin))
	alice.Access = store.BoardAdmin
	equal(t, got[[]store.BoardUser](t)(s.ListBoardUsers(t.Context())), []store.BoardUser{alice, bob})

	_, err := s.BoardUser(t.Context(), "carol")
	wantCode(t, err, task.NotFound)
	wantCode(t, s.SetBoardAccess(t.Context(), "carol", store.BoardRead), task.NotFound)
	wantCode(t, s.SetBoardAccess(t.Context(), "bob", "owner"), task.Invalid)
	_, err = s.AddBoardUser(t.Context(), store.BoardUser{Login: "carol"})
	wantCode(t, err, task.Invalid)
	_, err = s.AddBoardUser(t.Context(), store.BoardUser{Access: store.BoardRead})
	wantCode(t, err, task.Invalid)
}

func boardLogins(t *testing.T, s store.Store) {
	got[store.BoardUser](t)(s.AddBoardUser(t.Context(), store.BoardUser{Login: "alice", Access: store.BoardRead}))
	_, err := s.AddBoardUser(t.Context(), store.BoardUser{Login: "ALICE", Access: store.BoardRead})
	wantCode(t, err, task.Conflict)
	must(t, s.RemoveBoardUser(t.Context(), "Alice", noon))
	must(t, s.RemoveBoardUser(t.Context(), "alice", noon.Add(time.Hour)))
	equal(t, got[store.BoardUser](t)(s.BoardUser(t.Context(), "alice")).RemovedAt, noon)
	_, err = s.AddBoardUser(t.Context(), store.BoardUser{Login: "alice", Access: store.BoardRead})
	wantCode(t, err, task.Conflict)
	wantCode(t, s.RemoveBoardUser(t.Context(), "bob", noon), task.NotFound)
}

func boardReactions(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Issue)
	other := boardAdd(t, s, x.Repository, task.Issue)
	comment := got[store.BoardComment](t)(s.AddBoardComment(t.Context(), store.BoardComment{Repository: x.Repository, Number: x.Number, Author: "alice", Body: "hi"}))
	of := func(comment, login, reaction string) store.BoardReaction {
		return store.BoardReaction{Repository: x.Repository, Number: x.Number, Comment: comment, Login: login, Reaction: reaction}
	}
	before := boardNow(t, s, x).UpdatedAt
	for _, one := range []store.BoardReaction{of("", "bob", "eyes"), of("", "alice", "heart"), of("", "Bob", "eyes"), of(comment.ID, "bob", "+1")} {
		must(t, s.SetBoardReaction(t.Context(), one, true))
	}
	if !boardNow(t, s, x).UpdatedAt.After(before) {
		t.Fatal("after reactions the item looks unchanged")
	}
	equal(t, got[[]store.BoardReaction](t)(s.BoardReactions(t.Context(), x.Repository, x.Number, "")), []store.BoardReaction{of("", "bob", "eyes"), of("", "alice", "heart")})
	must(t, s.SetBoardReaction(t.Context(), of("", "BOB", "eyes"), false))
	must(t, s.SetBoardReaction(t.Context(), of("", "BOB", "eyes"), false))
	equal(t, got[[]store.BoardReaction](t)(s.BoardReactions(t.Context(), x.Repository, x.Number, "")), []store.BoardReaction{of("", "alice", "heart")})
	equal(t, got[[]store.BoardReaction](t)(s.BoardReactions(t.Context(), x.Repository, x.Number, comment.ID)), []store.BoardReaction{of(comment.ID, "bob", "+1")})

	_, err := s.BoardReactions(t.Context(), x.Repository, other.Number, comment.ID)
	wantCode(t, err, task.NotFound)
	wantCode(t, s.SetBoardReaction(t.Context(), of("no-such-id", "bob", "eyes"), true), task.NotFound)
	wantCode(t, s.SetBoardReaction(t.Context(), of("", "", "eyes"), true), task.Invalid)
	wantCode(t, s.SetBoardReaction(t.Context(), of("", "bob", ""), true), task.Invalid)
	_, err = s.BoardReactions(t.Context(), x.Repository, 99, "")
	wantCode(t, err, task.NotFound)
}

func boardStatuses(t *testing.T, s store.Store) {
	repository := boardRepository(t, s)
	status := func(context, state string) store.BoardStatus {
		return store.BoardStatus{Repository: repository, Commit: "abc", Context: context, State: state, Description: "why", URL: "https://x.example", UpdatedAt: noon}
	}
	must(t, s.SetBoardStatus(t.Context(), status("tests", "pending")))
	must(t, s.SetBoardStatus(t.Context(), status("lint", "success")))
	must(t, s.SetBoardStatus(t.Context(), status("tests", "failure")))
	equal(t, got[[]store.BoardStatus](t)(s.BoardStatuses(t.Context(), repository, "abc")), []store.BoardStatus{status("lint", "success"), status("tests", "failure")})
	equal(t, len(got[[]store.BoardStatus](t)(s.BoardStatuses(t.Context(), repository, "def"))), 0)
	lost := status("tests", "failure")
	lost.Repository = "no/where"
	wantCode(t, s.SetBoardStatus(t.Context(), lost), task.NotFound)
	wantCode(t, s.SetBoardStatus(t.Context(), status("", "failure")), task.Invalid)
}
