package gitlab_test

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
)

// Only an address that somebody shows to everybody is used.
func TestAddress(t *testing.T) {
	t.Parallel()
	f, err := gitlab.New(gitlab.Options{URL: "https://gitlab.example", Token: "t", HTTP: &http.Client{Transport: forgetest.Responses(func(r *http.Request) (int, string) {
		switch r.URL.Query().Get("username") {
		case "alice":
			return http.StatusOK, `[{"id": 1, "username": "alice", "name": "Alice A", "public_email": "alice@example.org", "email": "private@example.org"}]`
		case "bob":
			return http.StatusOK, `[{"id": 2, "username": "bob", "name": "Bob", "public_email": "", "email": "private@example.org"}]`
		}
		return http.StatusOK, `[]`
	})}})
	if err != nil {
		t.Fatal(err)
	}
	for login, want := range map[string]forge.Address{"alice": {Name: "Alice A", Email: "alice@example.org"}, "bob": {}, "nobody": {}, forge.Ghost: {}, "": {}} {
		if got, err := f.Address(t.Context(), login); err != nil || got != want {
			t.Errorf("%q has the address %+v, %v", login, got, err)
		}
	}
}
