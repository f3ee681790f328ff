package gitea

import (
	"encoding/json"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
)

func TestRightsByPermissions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]forge.Rights{
		`{}`: {},
		`{"permissions": {"admin": false, "push": false, "pull": true}}`:                 {Push: true, Label: true},
		`{"permissions": {"admin": false, "push": true, "pull": true}}`:                  {},
		`{"permissions": {"admin": true, "push": true, "pull": true}, "archived": true}`: forge.AllRights,
	} {
		var found sdk.Repository
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		if got := repositoryOf(&found).Lacks; got != want {
			t.Errorf("%s: lacks %+v, want %+v", text, got, want)
		}
	}
}
