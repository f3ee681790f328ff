package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
)

// prepared is how repositories are prepared; methods that doctor does not use are missing.
type prepared struct {
	forge.Setup
	rights func(repository string) ([]forge.RightCheck, error)
	hooks  func(repository string) ([]forge.Hook, error)
}

func (p prepared) CheckRights(_ context.Context, repository string) ([]forge.RightCheck, error) {
	return p.rights(repository)
}

func (p prepared) Hooks(_ context.Context, repository string) ([]forge.Hook, error) {
	return p.hooks(repository)
}

// giteaAt is a Gitea in a program of its own, as far as doctor asks it anything.
func giteaAt(t *testing.T, login string, repositories ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/user", func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "token good-token":
			_ = json.NewEncoder(w).Encode(map[string]any{"id": 1, "login": login})
		case "token no-scope":
			http.Error(w, `{"message":"token does not have at least one of required scope(s): [read:user]"}`, http.StatusForbidden)
		default:
			http.Error(w, `{"message":"invalid username, password or token"}`, http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("GET /api/v1/user/repos", func(w http.ResponseWriter, r *http.Request) {
		var all []map[string]any
		for i, name := range repositories {
			owner, short, _ := strings.Cut(name, "/")
			all = append(all, map[string]any{"id": i + 1, "name": short, "full_name": name, "owner": map[string]any{"login": owner}, "permissions": map[string]bool{"push": true}})
		}
		if page := r.URL.Query().Get("page"); page != "" && page != "1" {
			all = nil
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("GET /api/v1/repos/{owner}/{name}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": 1, "name": r.PathValue("name"), "full_name": r.PathValue("owner") + "/" + r.PathValue("name"),
			"permissions": map[string]bool{"pull": true, "push": r.PathValue("name") != "read"},
		})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// look is what doctor says about a Gitea.
type look struct {
	url, token, owner string
	setup             forge.Setup
	secret            bool
	fault             error // with which every request fails
}

// faulty fails with an error.
type faulty struct{ error }

func (f faulty) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.error }

func (l look) findings(t *testing.T) []doctor.Finding {
	t.Helper()
	c := config.Default()
	c.Gitea.URL, c.Gitea.Token, c.Gitea.BotName, c.Gitea.Owner = l.url, "good-token", "bot", l.owner
	access := doctor.ForgeAccess{
		Connect: func(task.Forge) (forge.Reader, forge.Setup, error) {
			token := l.token
			if token == "" {
				token = "good-token"
			}
			options := gitea.Options{URL: l.url, Token: token}
			if l.fault != nil {
				options.HTTP = &http.Client{Transport: faulty{l.fault}}
			}
			connected, err := gitea.New(options)
			return connected, l.setup, err
		},
		Scope: func(_ task.Forge, repository string) bool {
			owner, _, _ := strings.Cut(repository, "/")
			return owner == l.owner
		},
		URL: "https://toryo.example.com",
	}
	if l.secret {
		access.Events = map[task.Forge]forge.WebhookEvents{task.Gitea: gitea.WebhookEvents}
	}
	return doctor.Explore(t.Context(), doctor.Forges(c, access))
}

// want finds what is said under a name, and checks it.
func want(t *testing.T, findings []doctor.Finding, name string, status doctor.Status, says ...string) {
	t.Helper()
	for _, finding := range findings {
		said := finding.Found + " → " + finding.Hint
		if finding.Name != name || finding.Status != status {
			continue
		}
		missing := ""
		for _, part := range says {
			if !strings.Contains(said, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
	}
	t.Errorf("no finding %s is %s and says %q among %+v", name, status, says, findings)
}

func TestForgeThatIsNotFullyConfigured(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if got := doctor.Explore(t.Context(), doctor.Forges(c, doctor.ForgeAccess{})); len(got) != 1 || got[0].Status != doctor.Warning || got[0].Command == "" {
		t.Errorf("with none: %+v", got)
	}
	c.GitHub.Owner = "team"
	want(t, doctor.Explore(t.Context(), doctor.Forges(c, doctor.ForgeAccess{})), "github", doctor.Missing, "without a token", "TORYO_GITHUB_TOKEN")
	c.GitHub.Token = "hunter2hunter2"
	got := doctor.Explore(t.Context(), doctor.Forges(c, doctor.ForgeAccess{}))
	want(t, got, "github", doctor.Missing, "not whose it is", "github.bot_name")
	if strings.Contains(fmt.Sprint(got), "hunter2") {
		t.Errorf("the token is in %+v", got)
	}
}

// A forge that does not answer is told from one that does not accept the token.
func TestForgeThatDoesNotSayWhoWeAre(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	private := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(private.Close)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(broken.Close)
	limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	t.Cleanup(limited.Close)
	there := giteaAt(t, "bot")
	for name, c := range map[string]struct {
		look look
		says []string
		not  string
	}{
		"nobody listens":    {look{url: closed.URL}, []string{"the forge does not answer at " + closed.URL, "connection refused", "gitea.url", "NO_PROXY"}, "token"},
		"a private CA":      {look{url: private.URL}, []string{"the forge does not answer", "authority that this machine does not know", "SSL_CERT_FILE"}, "token"},
		"HTTP for HTTPS":    {look{url: strings.Replace(there, "http:", "https:", 1)}, []string{"speaks HTTP", "http://"}, "token"},
		"no such host":      {look{url: "http://forge.invalid", fault: &net.DNSError{Err: "no such host", Name: "forge.invalid", IsNotFound: true}}, []string{"the forge does not answer", "forge.invalid", "DNS"}, "token"},
		"a broken tunnel":   {look{url: there, fault: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("no")}}, []string{"the proxy does not answer", "NO_PROXY"}, "token"},
		"no answer":         {look{url: there, fault: context.DeadlineExceeded}, []string{"no answer in time", "firewalls"}, "token"},
		"a wrong token":     {look{url: there, token: "bad-token"}, []string{"does not accept the token", "expired", "TORYO_GITEA_TOKEN", "docs/forges.md"}, "does not answer"},
		"a missing scope":   {look{url: there, token: "no-scope"}, []string{"accepts the token", "403", "read:user"}, "does not answer"},
		"another program":   {look{url: other.URL}, []string{"there is no API of gitea", "gitea.url"}, "token"},
		"a broken proxy":    {look{url: broken.URL}, []string{"answers with status 502", "proxy"}, "token"},
		"too many requests": {look{url: limited.URL}, []string{"allows no more requests", "try again later"}, "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.look.owner = "team"
			got := c.look.findings(t)
			want(t, got, "gitea", doctor.Missing, c.says...)
			if len(got) != 1 || strings.Contains(got[0].Found, c.not) || strings.Contains(fmt.Sprint(got), "-token") {
				t.Errorf("it says %+v", got)
			}
		})
	}
}

func TestRepositoriesOfAForge(t *testing.T) {
	t.Parallel()
	there := giteaAt(t, "Bot", "team/app", "team/lib", "alice/notes")
	got := look{url: there, owner: "team"}.findings(t)
	want(t, got, "gitea", doctor.OK, "knows us as Bot")
	want(t, got, "gitea repositories", doctor.OK, "2 worked on: team/app, team/lib", "1 others are not, by gitea.owner")

	// A wrong owner is no small matter: nothing would ever happen.
	got = look{url: there, owner: "teem"}.findings(t)
	want(t, got, "gitea repositories", doctor.Missing, `gitea.owner is "teem"`, "bot has access to no repository there", "alice/notes, team/app, team/lib", "change gitea.owner")
	if doctor.Healthy(got) {
		t.Errorf("a wrong owner is healthy: %+v", got)
	}
	want(t, look{url: there}.findings(t), "gitea repositories", doctor.Missing, "gitea.owner is not set")
	want(t, look{url: giteaAt(t, "bot"), owner: "team"}.findings(t), "gitea repositories", doctor.Missing, "nor to any other")
	want(t, look{url: giteaAt(t, "someone", "team/app"), owner: "team"}.findings(t), "gitea", doctor.Warning, "someone", "bot_name")
}

// Projects that are named one by one are all looked for.
func TestProjectsThatAreNotFound(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.GitLab.Token, c.GitLab.BotName, c.GitLab.Projects = "good-token", "bot", []string{"team/app", "team/gone"}
	url := giteaAt(t, "bot", "team/app")
	access := doctor.ForgeAccess{
		Connect: func(task.Forge) (forge.Reader, forge.Setup, error) {
			connected, err := gitea.New(gitea.Options{URL: url, Token: "good-token"}) // any forge will do
			return connected, prepared{rights: func(string) ([]forge.RightCheck, error) { return nil, nil }}, err
		},
		Scope: func(_ task.Forge, repository string) bool {
			return repository == "team/app" || repository == "team/gone"
		},
	}
	want(t, doctor.Explore(t.Context(), doctor.Forges(c, access)), "gitlab repositories", doctor.Missing, "not found", "team/gone", "gitlab.projects")
}

func TestRightsOneByOne(t *testing.T) {
	t.Parallel()
	there := giteaAt(t, "bot", "team/all", "team/less", "team/less2", "team/little", "team/unknown", "team/gone")
	given := func(state forge.RightState, rights ...forge.Right) (checks []forge.RightCheck) {
		for _, needed := range forge.NeededRights {
			check := forge.RightCheck{Right: needed.Right, State: forge.RightGiven, Given: "the scope of " + string(needed.Right)}
			for _, right := range rights {
				if right == needed.Right {
					check.State, check.Found = state, "403\x1b[31m no"
				}
			}
			checks = append(checks, check)
		}
		return checks
	}
	setup := prepared{rights: func(repository string) ([]forge.RightCheck, error) {
		switch repository {
		case "team/less", "team/less2":
			return given(forge.RightMissing, forge.ReadChecks), nil
		case "team/little":
			return given(forge.RightMissing, forge.Push, forge.LabelItems, forge.ReadChecks), nil
		case "team/unknown":
			return given(forge.RightUnknown, forge.SetStatuses), nil
		case "team/gone":
			return nil, task.Errorf(task.NotFound, "team/gone is not there")
		}
		return given(forge.RightMissing, forge.ManageHooks), nil
	}}
	got := look{url: there, owner: "team", setup: setup}.findings(t)
	want(t, got, "gitea rights", doctor.OK, "team/all: bot may do all that is needed")
	want(t, got, "gitea rights", doctor.Warning, "team/less, team/less2: bot may not read checks", "the scope of read_checks")
	want(t, got, "gitea rights", doctor.Missing, "team/little: bot may not push branches", "put labels on items", "the forge said: 403", "the scope of push; the scope of label")
	want(t, got, "gitea rights", doctor.OK, "not known: set statuses of commits", "team/unknown")
	want(t, got, "gitea rights", doctor.Missing, "team/gone is not there")
	if strings.Contains(fmt.Sprint(got), "\x1b") {
		t.Errorf("what a forge says reaches the terminal as it is: %q", fmt.Sprint(got))
	}
}

// Of many repositories the first are looked at, and that is said.
func TestManyRepositories(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 57 {
		names = append(names, fmt.Sprintf("team/r%02d", i))
	}
	asked := make(chan string, len(names))
	setup := prepared{rights: func(repository string) ([]forge.RightCheck, error) {
		asked <- repository
		return nil, nil
	}}
	got := look{url: giteaAt(t, "bot", names...), owner: "team", setup: setup}.findings(t)
	want(t, got, "gitea repositories", doctor.OK, "57 worked on", "and 52 more repositories")
	want(t, got, "gitea", doctor.OK, "the first 20 of 57 repositories")
	if len(asked) != 20 {
		t.Errorf("%d repositories were looked at", len(asked))
	}
}

func TestHooksOfRepositories(t *testing.T) {
	t.Parallel()
	var all []string
	for _, event := range gitea.WebhookEvents {
		all = append(all, event.Name)
	}
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	const ours = "https://toryo.example.com/webhooks/gitea"
	hooks := map[string][]forge.Hook{
		"team/good":    {{URL: "https://ci.example.com"}, {URL: ours + "/", Events: all, Active: true, LastAt: at, LastStatus: 204}},
		"team/none":    {{URL: "https://ci.example.com"}},
		"team/old":     {{URL: "https://chat.example.com/hooks/hunter2"}, {URL: "https://me:hunter2@old.example.com/webhooks/gitea", Events: all, Active: true}},
		"team/off":     {{URL: ours, Events: all}},
		"team/events":  {{URL: ours, Events: all[1:], Active: true}},
		"team/lost":    {{URL: ours, Events: all, Active: true, LastAt: at}},
		"team/secret":  {{URL: ours, Events: all, Active: true, LastAt: at, LastStatus: 401}},
		"team/nowhere": {{URL: ours, Events: all, Active: true, LastAt: at, LastStatus: 404}},
	}
	names := []string{"team/hidden", "team/away"}
	for name := range hooks {
		names = append(names, name)
	}
	setup := prepared{
		rights: func(string) ([]forge.RightCheck, error) { return nil, nil },
		hooks: func(repository string) ([]forge.Hook, error) {
			switch repository {
			case "team/hidden":
				return nil, task.Errorf(task.Forbidden, "only for administrators")
			case "team/away":
				return nil, errors.New("the connection broke")
			}
			return hooks[repository], nil
		},
	}
	there := giteaAt(t, "bot", names...)
	got := look{url: there, owner: "team", setup: setup, secret: true}.findings(t)
	want(t, got, "gitea webhook", doctor.OK, "delivers to "+ours, "2031-05-06", "team/good")
	want(t, got, "gitea webhook", doctor.Warning, "team/none: none for "+ours, "polled")
	want(t, got, "gitea webhook", doctor.Warning, "team/old", "https://old.example.com/webhooks/gitea", "server.public_url")
	want(t, got, "gitea webhook", doctor.Warning, "team/off", "switched off")
	want(t, got, "gitea webhook", doctor.Warning, "team/events", "does not tell of "+gitea.WebhookEvents[0].Title)
	want(t, got, "gitea webhook", doctor.Warning, "team/lost", "did not arrive", "ALLOWED_HOST_LIST")
	want(t, got, "gitea webhook", doctor.Warning, "team/secret", "401", "gitea.webhook_secret")
	want(t, got, "gitea webhook", doctor.Warning, "team/nowhere", "404", "server.public_url")
	want(t, got, "gitea webhook", doctor.OK, "team/hidden", "administrators")
	want(t, got, "gitea webhook", doctor.Warning, "team/away", "the connection broke")
	for _, finding := range got {
		if strings.Contains(fmt.Sprint(finding), "hunter2") {
			t.Errorf("the address of a webhook of others may be a secret: %+v", finding)
		}
		if finding.Name == "gitea webhook" && finding.Status == doctor.Missing {
			t.Errorf("Toryo works without webhooks, but %+v", finding)
		}
	}
	want(t, look{url: there, owner: "team", setup: setup}.findings(t), "gitea webhook", doctor.OK, "gitea.webhook_secret is not set")
}

// Without a way to try each right, what the forge says about the repository has to do.
func TestRightsAsTheForgeDescribesThem(t *testing.T) {
	t.Parallel()
	got := look{url: giteaAt(t, "bot", "team/app", "team/read"), owner: "team"}.findings(t)
	want(t, got, "gitea rights", doctor.OK, "team/app: the bot may push, comment and label, as the forge says")
	want(t, got, "gitea rights", doctor.Missing, "team/read: the bot may not push branches")
}
