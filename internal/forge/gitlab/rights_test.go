package gitlab

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
)

// The higher one of the levels in the project and in its group counts. Without either it is not
// known what the bot may do.
func TestRightsByLevel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]forge.Rights{
		`{}`: {},
		`{"permissions": {"project_access": null, "group_access": null}}`:                                   {},
		`{"permissions": {"project_access": {"access_level": 10}, "group_access": null}}`:                   {Push: true, Label: true},
		`{"permissions": {"project_access": {"access_level": 20}, "group_access": null}}`:                   {Push: true, Label: true},
		`{"permissions": {"project_access": {"access_level": 10}, "group_access": {"access_level": 30}}}`:   {},
		`{"permissions": {"project_access": {"access_level": 40}, "group_access": null}, "archived": true}`: forge.AllRights,
	} {
		var project gl.Project
		if err := json.Unmarshal([]byte(text), &project); err != nil {
			t.Fatal(err)
		}
		if got := repositoryOf(&project).Lacks; got != want {
			t.Errorf("%s: lacks %+v, want %+v", text, got, want)
		}
	}
}

// A group that was invited to the project gives a level that the project does not tell of itself.
func TestRightsByAnInvitedGroup(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]forge.Rights{
		`{"id": 7, "username": "bot", "access_level": 30}`: {},
		`{"id": 7, "username": "bot", "access_level": 10}`: {Push: true, Label: true},
		"": {Push: true, Label: true}, // it is not told
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch path := r.URL.Path; {
			case strings.HasSuffix(path, "/user"):
				_, _ = io.WriteString(w, `{"id": 7, "username": "bot"}`)
			case strings.HasSuffix(path, "/members/all/7") && member != "":
				_, _ = io.WriteString(w, member)
			case strings.HasSuffix(path, "/projects/team/gate"):
				_, _ = io.WriteString(w, `{"id": 1, "path_with_namespace": "team/gate", "permissions": {"project_access": {"access_level": 10}, "group_access": null}}`)
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		f, err := New(Options{URL: server.URL, Token: "token"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Repository(t.Context(), "team/gate"); err != nil || got.Lacks != want {
			t.Errorf("%s: lacks %+v, want %+v, %v", member, got.Lacks, want, err)
		}
	}
}
