package github_test

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
)

// On github.com everybody has an address that GitHub made. Elsewhere none is made up.
func TestAddress(t *testing.T) {
	t.Parallel()
	asked := 0
	client := &http.Client{Transport: forgetest.Responses(func(r *http.Request) (int, string) {
		asked++
		switch r.URL.Path {
		case "/users/octocat":
			return http.StatusOK, `{"id": 583231, "login": "octocat", "name": "The Octocat", "email": "private@example.org"}`
		case "/users/gone":
			return http.StatusNotFound, `{"message": "Not Found"}`
		}
		return http.StatusBadGateway, `{}`
	})}
	public, err := github.New(github.Options{Token: "t", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	want := forge.Address{Name: "The Octocat", Email: "583231+octocat@users.noreply.github.com"}
	if got, err := public.Address(t.Context(), "octocat"); err != nil || got != want {
		t.Errorf("the address is %+v, %v", got, err)
	}
	for _, login := range []string{"gone", "../orgs", ""} {
		if got, err := public.Address(t.Context(), login); err != nil || got != (forge.Address{}) {
			t.Errorf("%q has the address %+v, %v", login, got, err)
		}
	}
	if _, err := public.Address(t.Context(), "broken"); err == nil {
		t.Error("that GitHub does not answer was taken for an answer")
	}
	before := asked
	own, err := github.New(github.Options{URL: "https://github.corp.example/api/v3/", Token: "t", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := own.Address(t.Context(), "octocat"); err != nil || got != (forge.Address{}) || asked != before {
		t.Errorf("on an Enterprise server the address is %+v, %v", got, err)
	}
}
