package doctor_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
)

// A page is no API, also where the client of the forge does not say with which status it came.
func TestPageInPlaceOfAnAPI(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"<html>Please log in</html>", "{}", "[1]"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		t.Cleanup(server.Close)
		c := config.Default()
		c.GitHub.URL, c.GitHub.Token, c.GitHub.BotName, c.GitHub.Owner = server.URL, "good-token", "bot", "team"
		c.GitLab.URL, c.GitLab.Token, c.GitLab.BotName, c.GitLab.Projects = server.URL, "good-token", "bot", []string{"team/app"}
		access := doctor.ForgeAccess{Connect: func(name task.Forge) (forge.Reader, forge.Setup, error) {
			if name == task.GitLab {
				connected, err := gitlab.New(gitlab.Options{URL: server.URL, Token: "good-token"})
				return connected, connected, err
			}
			connected, err := github.New(github.Options{URL: server.URL, Token: "good-token"})
			return connected, connected, err
		}}
		got := doctor.Explore(t.Context(), doctor.Forges(c, access))
		for _, name := range []string{"github", "gitlab"} {
			want(t, got, name, doctor.Missing, "something answers at "+server.URL+", but not the API of "+name, name+".url", "proxy")
		}
		if len(got) != 2 || strings.Contains(got[0].Found+got[1].Found, "does not answer") {
			t.Errorf("for %s it says %+v", answer, got)
		}
	}
}
