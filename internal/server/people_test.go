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

// Who may read a review is said in one change: a name that nobody has changes nothing, and a
// name that comes twice, in whichever letters, counts once.
func TestSharesAreOneChange(t *testing.T) {
	t.Parallel()
	inChatHouses(t, func(h chatHouse) {
		t := h.t
		h.tokenFor("carol", "laptop")
		h.tokenFor("dave", "desk")
		path := "/v1/reviews/" + h.review().ID
		ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{People: []string{"carol"}})
		for _, people := range [][]string{{"dave", "nobody"}, {"dave", " "}, {"dave", ""}} {
			ask[wire.Problem](h, 422, "alice", "PUT", path+"/shares", wire.Shares{People: people})
			if now := ask[wire.Review](h, 200, "alice", get, path, nil).Shares; now == nil || !slices.Equal(now.People, []string{"carol"}) || now.Everyone {
				t.Errorf("after %q it is shared with %+v", people, now)
			}
		}
		many := strings.Split(strings.Repeat("dave,DAVE,", 400)+"Dave", ",")
		if shares := ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{People: many}); !slices.Equal(shares.People, []string{"dave"}) || shares.Everyone {
			t.Errorf("it is shared with %+v", shares)
		}
	})
}

// A question belongs to who keeps it: others read it with a review of it, and only so long.
func TestQuestionsOfOthers(t *testing.T) {
	t.Parallel()
	inChatHouses(t, func(h chatHouse) {
		t := h.t
		h.tokenFor("carol", "laptop")
		made := h.review()
		path, question := "/v1/reviews/"+made.ID, "/v1/questions/"+made.QuestionID
		sees := func(who string, status int) {
			t.Helper()
			ask[struct{}](h, status, who, get, question, nil)
			if all := ask[wire.Questions](h, 200, who, get, "/v1/questions", nil).Questions; (len(all) == 1) != (status == 200) {
				t.Errorf("%s is listed %+v", who, all)
			}
		}
		sees("laptop", 404)
		sees("vera", 404)
		// Nobody reads one by guessing its id.
		ask[wire.Problem](h, 404, "laptop", post, "/v1/reviews", wire.NewReview{QuestionID: made.QuestionID, Answer: "x", Review: []byte(`{}`)})
		ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{People: []string{"carol"}})
		sees("laptop", 200)
		ask[wire.Shares](h, 200, "alice", "PUT", path+"/shares", wire.Shares{})
		sees("laptop", 404)
		// The same again is the same; and it goes with its last review.
		if again := h.review(); again.QuestionID != made.QuestionID {
			t.Errorf("the same question is %s and %s", again.QuestionID, made.QuestionID)
		}
		if page := ask[wire.Questions](h, 200, "alice", get, "/v1/questions?limit=1&after="+made.QuestionID, nil).Questions; len(page) != 0 {
			t.Errorf("the next page is %+v", page)
		}
		for _, one := range ask[wire.ReviewEntries](h, 200, "alice", get, "/v1/reviews", nil).Reviews {
			ask[struct{}](h, 204, "alice", "DELETE", "/v1/reviews/"+one.ID, nil)
		}
		sees("alice", 404)
	})
}
