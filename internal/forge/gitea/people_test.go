package gitea_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
)

// Gitea tells administrators also addresses that people hide. Those are not used.
func TestAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		self, user string
		want       forge.Address
	}{
		"shown":                         {`{"login": "bot"}`, `{"login": "alice", "full_name": "Alice A", "email": "alice@example.org"}`, forge.Address{Name: "Alice A", Email: "alice@example.org"}},
		"hidden":                        {`{"login": "bot"}`, `{"login": "Alice", "email": "alice@noreply.example.org"}`, forge.Address{Email: "alice@noreply.example.org"}},
		"told to an administrator":      {`{"login": "bot", "is_admin": true}`, `{"login": "alice", "email": "alice@example.org"}`, forge.Address{}},
		"made, told to one":             {`{"login": "bot", "is_admin": true}`, `{"login": "Alice", "email": "alice@noreply.example.org"}`, forge.Address{Email: "alice@noreply.example.org"}},
		"of somebody else, told to one": {`{"login": "bot", "is_admin": true}`, `{"login": "alice", "email": "bob@noreply.example.org"}`, forge.Address{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api/v1/user":
				_, _ = w.Write([]byte(test.self))
			case "/api/v1/users/alice":
				_, _ = w.Write([]byte(test.user))
			case "/api/v1/version":
				_, _ = w.Write([]byte(`{"version": "1.24.0"}`))
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		f, err := gitea.New(gitea.Options{URL: server.URL, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Address(t.Context(), "alice"); err != nil || got != test.want {
			t.Errorf("%s: the address is %+v, %v", name, got, err)
		}
		if got, err := f.Address(t.Context(), "nobody"); err != nil || got != (forge.Address{}) {
			t.Errorf("%s: nobody has the address %+v, %v", name, got, err)
		}
	}
}
