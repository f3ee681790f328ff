package github

import (
	"encoding/json"
	"testing"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
)

// What the documentation of the REST API calls permissions of a repository, for an account, says
// what the bot lacks. What is not told is not missing.
func TestRightsOfAnAccount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]forge.Rights{
		`{}`: {},
		`{"permissions": {"admin": false, "maintain": false, "push": false, "triage": false, "pull": true}}`: {Push: true, Label: true},
		`{"permissions": {"admin": false, "maintain": false, "push": false, "triage": true, "pull": true}}`:  {Push: true},
		`{"permissions": {"admin": false, "maintain": false, "push": true, "triage": true, "pull": true}}`:   {},
		`{"permissions": {"admin": true, "push": true, "pull": true}, "archived": true}`:                     forge.AllRights,
	} {
		var found gh.Repository
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		if got := new(Forge).lacks(&found); got != want {
			t.Errorf("%s: lacks %+v, want %+v", text, got, want)
		}
	}
}

// An App may what its installation was given.
func TestRightsOfAnApp(t *testing.T) {
	t.Parallel()
	const others = `{"permissions": {"push": false, "pull": false}}` // says nothing of an App
	for text, want := range map[string]forge.Rights{
		`{"contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}`: {},
		`{"contents": "read", "issues": "write", "pull_requests": "write"}`:                      {Push: true},
		`{"contents": "write", "issues": "read", "pull_requests": "write"}`:                      {Issues: true},
		`{"contents": "write", "issues": "read", "pull_requests": "read"}`:                       forge.AllRights,
		`{"metadata": "read"}`: forge.AllRights,
	} {
		var found gh.Repository
		var given gh.InstallationPermissions
		if err := json.Unmarshal([]byte(others), &found); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
		f := &Forge{app: new(appTokens)}
		if got := f.lacks(&found); got != (forge.Rights{}) {
			t.Errorf("before it is told: lacks %+v", got)
		}
		f.app.permissions.Store(&given)
		if got := f.lacks(&found); got != want {
			t.Errorf("%s: lacks %+v, want %+v", text, got, want)
		}
	}
}
