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
