package gitlab_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
)

// wire answers requests to GitLab as GitLab does.
type wire func(r *http.Request) (status int, body string)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := w(r)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// Only an address that somebody shows to everybody is used.
func TestAddress(t *testing.T) {
	t.Parallel()
	f, err := gitlab.New(gitlab.Options{URL: "https://gitlab.example", Token: "t", HTTP: &http.Client{Transport: wire(func(r *http.Request) (int, string) {
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
