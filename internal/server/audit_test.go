package server

import (
	"slices"
	"testing"

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
