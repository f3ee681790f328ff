package server

import (
	"slices"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Whatever a token changes is in the audit log, with how it ended; what it only
// looks at is not.
func TestTokensAreAudited(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	h.issue(t, "alice", "Fix the gate")
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: get, path: "/team/app/issues/1"})
	h.do(t, request{who: "alice", method: post, path: "/team/app/issues", body: wire.NewBoardIssue{}})
	h.do(t, request{who: "root", as: "alice", method: post, path: "/team/app/issues/1/comments", body: wire.BoardText{Body: "Oil it."}})
	h.do(t, request{who: "vera", method: post, path: "/team/app/issues", body: wire.NewBoardIssue{Title: "x"}}) // a viewer gets nowhere
	entries, err := h.store.ListAudit(t.Context(), "", 0)
	must(t, err)
	var log []string
	for _, e := range slices.Backward(entries) {
		log = append(log, e.Actor+" "+e.Action+" "+e.Subject+" "+e.Outcome)
	}
	const path = " /api/board/repositories/team/app/issues"
	want := []string{
		"token alice api.create-board-issue" + path + " done",
		"token alice api.create-board-issue" + path + " invalid",
		"token root api.comment-on-board-issue" + path + "/1/comments as=alice done",
	}
	if !slices.Equal(log, want) {
		t.Errorf("the audit log is %q", log)
	}
}

// A person is the same on the board and in the audit log, with a token that has the person's
// name and as a user of the server's machine.
func TestWhoActsIsOnePerson(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	must(t, access.Accounts{Store: h.store, Now: time.Now}.Create(t.Context(), "Alice", access.Operator, ""))
	_, err := h.store.LinkMachineUser(t.Context(), "deploy", "alice")
	must(t, err)
	h.tokens["own"] = "toryo_own"
	h.server.tokens = access.WithOwnToken(h.store, h.tokens["own"])
	for _, r := range []request{{who: "alice"}, {who: "own", user: "deploy"}, {who: "own", user: "somebody"}, {who: "vera", user: "deploy"}} {
		r.method, r.path, r.body = post, "/team/app/issues", wire.NewBoardIssue{Title: "x"}
		h.do(t, r)
	}
	if made := call[wire.BoardItem](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues/2"}); made.Author != "Alice" {
		t.Errorf("the author is %q", made.Author)
	}
	entries, err := h.store.ListAudit(t.Context(), "", 0)
	must(t, err)
	var log []string
	for _, e := range slices.Backward(entries) {
		log = append(log, e.Actor)
	}
	if want := []string{"Alice (token alice)", "Alice (command line)", "the command line"}; !slices.Equal(log, want) {
		t.Errorf("the audit log is %q", log)
	}
}
