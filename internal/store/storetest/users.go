package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var userChecks = []check{
	{"a user is found by login, whatever its case", users},
	{"a login is given once, also at the same moment", userTwice},
	{"an identity is one user's", identities},
	{"a session is its user's until it ends", sessions},
	{"a new password ends the sessions", passwordEndsSessions},
	{"a removed user is signed out", removedUser},
	{"sessions that expired are pruned", pruneSessions},
	{"the audit log is read from its end", audit},
}

func users(t *testing.T, s store.Store) {
	alice := got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "Alice", Role: "admin", Password: "hash", CreatedAt: noon}))
	equal(t, alice, store.User{Login: "Alice", Role: "admin", Password: "hash", CreatedAt: noon})
	bob := got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "bob", CreatedAt: noon}))
	equal(t, got[store.User](t)(s.User(t.Context(), "aLICE")), alice)
	equal(t, got[[]store.User](t)(s.ListUsers(t.Context())), []store.User{alice, bob})
	must(t, s.SetUserRole(t.Context(), "BOB", "viewer"))
	bob.Role = "viewer"
	equal(t, got[store.User](t)(s.User(t.Context(), "bob")), bob)
	for _, login := range []string{"", "nobody", "x' OR '1'='1"} {
		_, err := s.User(t.Context(), login)
		wantCode(t, err, task.NotFound)
		wantCode(t, s.SetUserRole(t.Context(), login, "admin"), task.NotFound)
		wantCode(t, s.SetUserPassword(t.Context(), login, ""), task.NotFound)
		wantCode(t, s.RemoveUser(t.Context(), login), task.NotFound)
	}
	_, err := s.AddUser(t.Context(), store.User{})
	wantCode(t, err, task.Invalid)
	_, err = s.AddUser(t.Context(), store.User{Login: strings.Repeat("x", 2001)})
	wantCode(t, err, task.TooLarge)
}

func userTwice(t *testing.T, s store.Store) {
	failures := make([]error, 8)
	together(len(failures), func(i int) {
		_, failures[i] = s.AddUser(t.Context(), store.User{Login: []string{"Carol", "cAROL"}[i%2]})
	})
	taken := 0
	for _, err := range failures {
		if err != nil {
			wantCode(t, err, task.Conflict)
			taken++
		}
	}
	equal(t, taken, len(failures)-1)
}

func identities(t *testing.T, s store.Store) {
	alice := got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "alice", Identity: "https://example.org 1", CreatedAt: noon}))
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "bob", CreatedAt: noon}))
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "carol", CreatedAt: noon})) // nobody elsewhere either
	equal(t, got[store.User](t)(s.UserOf(t.Context(), "https://example.org 1")), alice)
	for _, unknown := range []string{"", "https://example.org 2", "https://EXAMPLE.org 1"} {
		_, err := s.UserOf(t.Context(), unknown)
		wantCode(t, err, task.NotFound)
	}
	for _, taken := range []store.User{{Login: "dave", Identity: "https://example.org 1"}, {Login: "ALICE", Identity: "https://example.org 2"}} {
		_, err := s.AddUser(t.Context(), taken)
		wantCode(t, err, task.Conflict)
	}
	_, err := s.AddUser(t.Context(), store.User{Login: "dave", Identity: strings.Repeat("x", 2001)})
	wantCode(t, err, task.TooLarge)
}

// signedIn makes a user with a session until noon.
func signedIn(t *testing.T, s store.Store, login string) (hash []byte) {
	t.Helper()
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: login, CreatedAt: noon}))
	hash = []byte{0, 0xff, login[0]}
	must(t, s.AddSession(t.Context(), store.Session{Hash: hash, Login: strings.ToUpper(login), ExpiresAt: noon}))
	return hash
}

func sessions(t *testing.T, s store.Store) {
	hash := signedIn(t, s, "alice")
	before := noon.Add(-time.Microsecond)
	equal(t, got[store.User](t)(s.SessionUser(t.Context(), hash, before)).Login, "alice")
	_, err := s.SessionUser(t.Context(), hash, noon)
	wantCode(t, err, task.NotFound)
	for _, unknown := range [][]byte{nil, {}, {0}, hash[:2]} {
		_, err := s.SessionUser(t.Context(), unknown, before)
		wantCode(t, err, task.NotFound)
	}
	wantCode(t, s.AddSession(t.Context(), store.Session{Hash: hash, Login: "alice", ExpiresAt: noon}), task.Conflict)
	wantCode(t, s.AddSession(t.Context(), store.Session{Hash: []byte("other"), Login: "nobody", ExpiresAt: noon}), task.NotFound)
	wantCode(t, s.AddSession(t.Context(), store.Session{Login: "alice", ExpiresAt: noon}), task.Invalid)
	must(t, s.EndSession(t.Context(), hash))
	must(t, s.EndSession(t.Context(), hash))
	_, err = s.SessionUser(t.Context(), hash, before)
	wantCode(t, err, task.NotFound)
}

func passwordEndsSessions(t *testing.T, s store.Store) {
	alice, bob := signedIn(t, s, "alice"), signedIn(t, s, "bob")
	must(t, s.SetUserPassword(t.Context(), "Alice", "new"))
	equal(t, got[store.User](t)(s.User(t.Context(), "alice")).Password, "new")
	_, err := s.SessionUser(t.Context(), alice, noon.Add(-time.Hour))
	wantCode(t, err, task.NotFound)
	got[store.User](t)(s.SessionUser(t.Context(), bob, noon.Add(-time.Hour)))
}

func removedUser(t *testing.T, s store.Store) {
	hash := signedIn(t, s, "alice")
	must(t, s.RemoveUser(t.Context(), "ALICE"))
	_, err := s.SessionUser(t.Context(), hash, noon.Add(-time.Hour))
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.User](t)(s.ListUsers(t.Context()))), 0)
	wantCode(t, s.RemoveUser(t.Context(), "alice"), task.NotFound)
	// The login is free again, and nobody is signed in with it.
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "alice"}))
	_, err = s.SessionUser(t.Context(), hash, noon.Add(-time.Hour))
	wantCode(t, err, task.NotFound)
}

func pruneSessions(t *testing.T, s store.Store) {
	hash := signedIn(t, s, "alice")
	equal(t, pruned(t, s, store.KeptSessions, noon.Add(-time.Second)), 0)
	got[store.User](t)(s.SessionUser(t.Context(), hash, noon.Add(-time.Second)))
	equal(t, pruned(t, s, store.KeptSessions, noon.Add(time.Second)), 1)
	equal(t, pruned(t, s, store.KeptSessions, noon), 0)
}

func audit(t *testing.T, s store.Store) {
	var all []store.AuditEntry
	for i, action := range []string{"task.stop", "task.pause", "issue.create"} {
		entry := store.AuditEntry{At: noon.Add(time.Duration(i) * time.Second), Actor: "alice", Action: action, Subject: "板\n"}
		made := got[store.AuditEntry](t)(s.AddAudit(t.Context(), entry))
		entry.ID = made.ID
		equal(t, made, entry)
		all = append([]store.AuditEntry{made}, all...)
	}
	must(t, s.EndAudit(t.Context(), all[1].ID, "done"))
	all[1].Outcome = "done"
	wantCode(t, s.EndAudit(t.Context(), "nothing", "done"), task.NotFound)
	equal(t, got[[]store.AuditEntry](t)(s.ListAudit(t.Context(), "", 0)), all)
	equal(t, got[[]store.AuditEntry](t)(s.ListAudit(t.Context(), "", 2)), all[:2])
	equal(t, got[[]store.AuditEntry](t)(s.ListAudit(t.Context(), all[1].ID, 2)), all[2:])
	_, err := s.ListAudit(t.Context(), "", -1)
	wantCode(t, err, task.Invalid)
	// What cannot be stored as it is must not keep the entry from being written.
	odd := got[store.AuditEntry](t)(s.AddAudit(t.Context(), store.AuditEntry{Actor: "a\x00", Action: "x", Subject: "\xff"}))
	equal(t, odd.Subject, "\uFFFD")
}
