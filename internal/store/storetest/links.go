package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var linkChecks = []check{
	{"a saved link is its owner's, whatever the case of the login", savedLinks},
	{"a user has so many links at most", mostLinks},
	{"the links of a removed user are gone", linksOfRemoved},
}

func savedLinks(t *testing.T, s store.Store) {
	for _, login := range []string{"Alice", "bob"} {
		got[store.User](t)(s.AddUser(t.Context(), store.User{Login: login}))
	}
	failed := store.SavedLink{Owner: "Alice", Name: "failed", Path: "/queue?state=failed", CreatedAt: noon}
	must(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "alice", Name: "failed", Path: "/queue", CreatedAt: noon.Add(-time.Hour)}))
	must(t, s.SaveLink(t.Context(), failed))
	agents := store.SavedLink{Owner: "Alice", Name: "agents \u00e9<b>", Path: "/agents?q=a%26b", CreatedAt: noon}
	must(t, s.SaveLink(t.Context(), agents))
	must(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "bob", Name: "failed", Path: "/queue?q=bob"}))
	equal(t, got[[]store.SavedLink](t)(s.LinksOf(t.Context(), "ALICE")), []store.SavedLink{agents, failed})
	must(t, s.RemoveLink(t.Context(), "alice", "failed"))
	must(t, s.RemoveLink(t.Context(), "alice", "failed"))
	equal(t, got[[]store.SavedLink](t)(s.LinksOf(t.Context(), "alice")), []store.SavedLink{agents})
	equal(t, len(got[[]store.SavedLink](t)(s.LinksOf(t.Context(), "bob"))), 1)
	wantCode(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "nobody", Name: "a", Path: "/"}), task.NotFound)
	wantCode(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "bob", Path: "/"}), task.Invalid)
}

func mostLinks(t *testing.T, s store.Store) {
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "alice"}))
	for i := range store.MostSavedLinks {
		must(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "alice", Name: fmt.Sprint(i), Path: "/"}))
	}
	wantCode(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "alice", Name: "one more", Path: "/"}), task.TooLarge)
	must(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "alice", Name: "7", Path: "/agents"})) // in place of another
	equal(t, len(got[[]store.SavedLink](t)(s.LinksOf(t.Context(), "alice"))), store.MostSavedLinks)
}

func linksOfRemoved(t *testing.T, s store.Store) {
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "alice"}))
	must(t, s.SaveLink(t.Context(), store.SavedLink{Owner: "alice", Name: "a", Path: "/"}))
	must(t, s.RemoveUser(t.Context(), "alice"))
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "alice"}))
	equal(t, len(got[[]store.SavedLink](t)(s.LinksOf(t.Context(), "alice"))), 0)
}
