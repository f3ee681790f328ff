package storetest

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var tokenChecks = []check{
	{"a token is found by its hash", tokens},
	{"a hash is kept once", tokenTwice},
	{"revoking is for good", revokeToken},
	{"revoking an agent's token ends its leases", revokeAgentToken},
}

func tokens(t *testing.T, s store.Store) {
	hash := []byte{0, 0xff, 1}
	first := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "laptop", Role: "admin", Hash: hash, CreatedAt: noon}))
	equal(t, first, store.Token{ID: first.ID, Name: "laptop", Role: "admin", Hash: hash, CreatedAt: noon})
	second := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Hash: []byte("other")}))
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), hash)), first)
	equal(t, got[[]store.Token](t)(s.ListTokens(t.Context())), []store.Token{first, second})
	for _, unknown := range [][]byte{nil, {}, {0}, {0, 0xff}, []byte("x' OR '1'='1")} {
		_, err := s.TokenByHash(t.Context(), unknown)
		wantCode(t, err, task.NotFound)
	}
}

func tokenTwice(t *testing.T, s store.Store) {
	got[store.Token](t)(s.AddToken(t.Context(), store.Token{Hash: []byte("h")}))
	_, err := s.AddToken(t.Context(), store.Token{Hash: []byte("h")})
	wantCode(t, err, task.Conflict)
	_, err = s.AddToken(t.Context(), store.Token{})
	wantCode(t, err, task.Invalid)
	equal(t, len(got[[]store.Token](t)(s.ListTokens(t.Context()))), 1)
}

func revokeToken(t *testing.T, s store.Store) {
	token := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Hash: []byte("h")}))
	must(t, s.RevokeToken(t.Context(), token.ID, noon))
	must(t, s.RevokeToken(t.Context(), token.ID, noon.Add(time.Hour)))
	token.RevokedAt = noon
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), token.Hash)), token)
	wantCode(t, s.RevokeToken(t.Context(), "nothing", noon), task.NotFound)
}

// The agent is known by the name of its token, or by that and a name of its own.
func revokeAgentToken(t *testing.T, s store.Store) {
	holders := []string{"smith", "smith/left", "smithy", "sm", "smith é/left"}
	held := map[string]task.Task{}
	for _, agent := range holders {
		claim := claimOf(assigned(t, s))
		claim.Agent = agent
		held[agent] = got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))[0]
	}
	lost := func(agent string) bool {
		x := held[agent]
		holds, renews := s.Holds(t.Context(), x.ID, x.Generation, tokenHash), s.Renew(t.Context(), x.ID, x.Generation, tokenHash, noon)
		if (holds == nil) != (renews == nil) {
			t.Errorf("%s holds its task: %v; and renews: %v", agent, holds, renews)
		}
		if holds != nil {
			wantCode(t, holds, task.LeaseLost)
			wantCode(t, renews, task.LeaseLost)
		}
		return holds != nil
	}
	revoke := func(name, role string) {
		token := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: name, Role: role, Hash: []byte(name + role)}))
		must(t, s.RevokeToken(t.Context(), token.ID, noon))
	}
	for _, c := range []struct {
		name, role string
		lost       []bool
	}{
		{"smith", "operator", []bool{false, false, false, false, false}},
		{"", "agent", []bool{false, false, false, false, false}},
		{"smith", "agent", []bool{true, true, false, false, false}},
		{"smith é", "agent", []bool{true, true, false, false, true}},
	} {
		revoke(c.name, c.role)
		var is []bool
		for _, agent := range holders {
			is = append(is, lost(agent))
		}
		equal(t, is, c.lost)
	}
	equal(t, len(got[[]task.Task](t)(s.Expired(t.Context(), noon.Add(-time.Hour), 0))), 3)
	back := moved(t, s, held["smith"], task.Lost)
	equal(t, back.State, task.Queued)
}
