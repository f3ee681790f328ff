package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/wire"
)

// tokenFor makes an account and a token of another name that acts for it.
func (h chatHouse) tokenFor(login, name string) {
	h.t.Helper()
	accounts := access.Accounts{Store: h.store, Now: time.Now}
	must(h.t, accounts.Create(h.t.Context(), login, access.Operator, ""))
	user, err := h.store.User(h.t.Context(), login)
	must(h.t, err)
	h.tokens[name], err = access.Tokens{Store: h.store, Now: time.Now}.CreateFor(h.t.Context(), access.Operator, name, user)
	must(h.t, err)
}

// A person is one person with every token that acts for the person, and with one that has
// the person's login for its name, however that is written.
func TestOnePersonWithManyTokens(t *testing.T) {
	t.Parallel()
	inChatHouses(t, func(h chatHouse) {
		t := h.t
		h.tokenFor("Carol", "laptop")
		h.tokens["cAROL"] = h.namedToken(t, access.Operator, "cAROL")
		made := ask[wire.Review](h, 201, "laptop", post, "/v1/reviews", wire.NewReview{CustomQuestion: "Why?", Answer: "$$[1] So.", Review: []byte(`{}`)})
		if made.Owner != "Carol" {
			t.Errorf("the review belongs to %q", made.Owner)
		}
		ask[wire.Thread](h, 201, "cAROL", post, "/v1/threads", wire.NewThread{ReviewID: made.ID})
		if seen := ask[wire.Review](h, 200, "laptop", get, "/v1/reviews/"+made.ID, nil); len(seen.Threads) != 1 {
			t.Errorf("with another token there is %+v", seen)
		}
		ask[struct{}](h, 404, "alice", get, "/v1/reviews/"+made.ID, nil)
		me := ask[wire.Me](h, 200, "laptop", get, "/v1/me", nil)
		if me.Name != "laptop" || me.Person != "Carol" {
			t.Errorf("the token is of %+v", me)
		}
		if me := ask[wire.Me](h, 200, "alice", get, "/v1/me", nil); me.Person != "" {
			t.Errorf("a token of nobody's is of %+v", me)
		}
		entries, err := h.store.ListAudit(t.Context(), "", 0)
		must(t, err)
		if !slices.ContainsFunc(entries, func(e store.AuditEntry) bool {
			return e.Actor == "Carol (token laptop)" && e.Action == "api.add-review"
		}) {
			t.Errorf("the audit log has %+v", entries)
		}
	})
}

func TestShareOverHTTP(t *testing.T) {
	t.Parallel()
	inChatHouses(t, func(h chatHouse) {
		t := h.t
		h.tokenFor("carol", "laptop")
		h.tokenFor("dave", "desk")
		path := "/v1/reviews/" + h.review().ID
		ask[struct{}](h, 404, "laptop", get, path, nil)
		ask[struct{}](h, 422, "alice", "PUT", path+"/shares", wire.Shares{People: []string{"nobody"}})
		shares := ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{People: []string{"CAROL", "dave"}})
		if !slices.Equal(shares.People, []string{"carol", "dave"}) || shares.Everyone {
			t.Errorf("it is shared with %+v", shares)
		}
		seen := ask[wire.Review](h, 200, "laptop", get, path, nil)
		if seen.Owner != "alice" || seen.Shares != nil {
			t.Errorf("carol sees %+v", seen)
		}
		if list := ask[wire.ReviewEntries](h, 200, "laptop", get, "/v1/reviews", nil).Reviews; len(list) != 1 {
			t.Errorf("carol's list is %+v", list)
		}
		thread := ask[wire.Thread](h, 201, "laptop", post, "/v1/threads", wire.NewThread{ReviewID: seen.ID})
		ask[struct{}](h, 404, "alice", get, "/v1/threads/"+thread.ID, nil) // it is carol's alone
		ask[struct{}](h, 403, "laptop", "PUT", path+"/shares", wire.Shares{Everyone: true})
		ask[struct{}](h, 403, "laptop", "DELETE", path, nil)

		shares = ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{People: []string{"dave"}})
		if !slices.Equal(shares.People, []string{"dave"}) {
			t.Errorf("it is shared with %+v", shares)
		}
		ask[struct{}](h, 404, "laptop", get, path, nil)
		ask[struct{}](h, 404, "laptop", post, "/v1/threads/"+thread.ID+"/messages", wire.NewMessage{Content: "why?"})
		ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{Everyone: true})
		ask[wire.Review](h, 200, "bob", get, path, nil)
		if own := ask[wire.Review](h, 200, "alice", get, path, nil); own.Shares == nil || !own.Shares.Everyone || strings.Join(own.Shares.People, "") != "" {
			t.Errorf("alice sees %+v", own.Shares)
		}
	})
}
