package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// prepared is how repositories are prepared; methods that doctor does not use are missing.
type prepared struct {
	forge.Setup
	rights    func(repository string) ([]forge.RightCheck, error)
	hooks     func(repository string) ([]forge.Hook, error)
	delivered map[string]forge.HookDelivery // last, by repository; Gitea tells none
}

func (p prepared) CheckRights(_ context.Context, repository string) ([]forge.RightCheck, error) {
	return p.rights(repository)
}

func (p prepared) Hooks(_ context.Context, repository string) ([]forge.Hook, error) {
	return p.hooks(repository)
}

func (p prepared) LastDelivery(_ context.Context, repository, _ string) (forge.HookDelivery, error) {
	return p.delivered[repository], nil
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

// look is what doctor says about a Gitea, or about a GitHub that is one.
type look struct {
	url, token, owner string
	gitHub            bool
	setup             forge.Setup
	secret            bool
	fault             error                // with which every request fails
	counted           []store.WebhookEvent // deliveries to servers
	last              []store.Received     // by servers
}

// faulty fails with an error.
type faulty struct{ error }

func (f faulty) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.error }

func (l look) findings(t *testing.T) []doctor.Finding {
	t.Helper()
	c := config.Default()
	events := map[task.Forge]forge.WebhookEvents{task.Gitea: gitea.WebhookEvents}
	if l.gitHub {
		c.GitHub.URL, c.GitHub.Token, c.GitHub.BotName, c.GitHub.Owner = l.url, "good-token", "bot", l.owner
		events = map[task.Forge]forge.WebhookEvents{task.GitHub: github.WebhookEvents}
	} else {
		c.Gitea.URL, c.Gitea.Token, c.Gitea.BotName, c.Gitea.Owner = l.url, "good-token", "bot", l.owner
	}
	access := doctor.ForgeAccess{
		Received: func(context.Context, task.Forge) (doctor.Received, error) {
			return doctor.Received{Counted: items.ReportWebhooks(l.counted, events, items.DefaultAges, time.Now()), Last: l.last}, nil
		},
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
		access.Events = events
	}
	return doctor.Explore(t.Context(), doctor.Forges(c, access))
}

// want finds what is said under a name, and checks it.
func want(t *testing.T, findings []doctor.Finding, name string, status doctor.Status, says ...string) {
	t.Helper()
	wantCommands(t, findings...)
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
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Please log in</html>") }))
	t.Cleanup(page.Close)
	nobody := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(nobody.Close)
	wanting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(wanting.Close)
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
		"a broken tunnel":   {look{url: there, fault: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("no")}}, []string{"the proxy in HTTPS_PROXY or HTTP_PROXY does not answer", "NO_PROXY"}, "token"},
		"no answer":         {look{url: there, fault: context.DeadlineExceeded}, []string{"no answer in time", "firewalls"}, "token"},
		"a wrong token":     {look{url: there, token: "bad-token"}, []string{"does not accept the token", "expired", "invalid username, password or token", "TORYO_GITEA_TOKEN", "docs/forges.md"}, "does not answer"},
		"a missing scope":   {look{url: there, token: "no-scope"}, []string{"accepts the token", "403", "read:user"}, "does not answer"},
		"another program":   {look{url: other.URL}, []string{"there is no API of gitea", "gitea.url"}, "token"},
		"a broken proxy":    {look{url: broken.URL}, []string{"answers with status 502", "proxy"}, "token"},
		"a proxy's account": {look{url: wanting.URL}, []string{"the proxy requires a user and a password", "HTTP_PROXY"}, "token"},
		"a page":            {look{url: page.URL}, []string{"something answers at " + page.URL + ", but not the API of gitea", "gitea.url", "proxy"}, "requests"},
		"other JSON":        {look{url: nobody.URL}, []string{"something answers at " + nobody.URL + ", but not the API of gitea", "gitea.url"}, "credentials"},
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
	want(t, got, "gitea rights", doctor.OK, "team/all: bot has all permissions")
	want(t, got, "gitea rights", doctor.Warning, "team/less, team/less2: bot has no permission to read checks", "the scope of read_checks")
	want(t, got, "gitea rights", doctor.Missing, "team/little: bot has no permission to push branches", "set labels", "the forge responded: 403", "the scope of push; the scope of label")
	want(t, got, "gitea rights", doctor.OK, "not known: set commit statuses", "team/unknown")
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

// Every repository that something is wrong with is named, for people and for programs: whoever is
// to give rights has to know where.
func TestRepositoriesWithAFaultAreAllNamed(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 26 {
		names = append(names, fmt.Sprintf("team/r%02d", i))
	}
	setup := prepared{rights: func(repository string) ([]forge.RightCheck, error) {
		if repository < "team/r08" {
			return nil, nil
		}
		return []forge.RightCheck{{Right: forge.Push, State: forge.RightMissing}}, nil
	}}
	got := look{url: giteaAt(t, "bot", names...), owner: "team", setup: setup}.findings(t)
	want(t, got, "gitea rights", doctor.Missing, strings.Join(names[8:20], ", ")+": bot has no permission to push branches")
	want(t, got, "gitea rights", doctor.OK, "team/r04 and 3 more repositories: bot has all permissions")
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var read []struct {
		Name, Status string
		Repositories []string
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	about := map[string][]string{}
	for _, finding := range read {
		about[finding.Name+" "+finding.Status] = finding.Repositories
	}
	for name, want := range map[string][]string{
		"gitea rights missing": names[8:20], "gitea rights ok": names[:8], "gitea repositories ok": names[:20],
	} {
		if !slices.Equal(about[name], want) {
			t.Errorf("%s is about %v in %s", name, about[name], text)
		}
	}
}

// Without a way to try each right, what the forge says about the repository has to do.
func TestRightsAsTheForgeDescribesThem(t *testing.T) {
	t.Parallel()
	got := look{url: giteaAt(t, "bot", "team/app", "team/read"), owner: "team"}.findings(t)
	want(t, got, "gitea rights", doctor.OK, "team/app: the bot has permission to push, comment and set labels, as the forge says")
	want(t, got, "gitea rights", doctor.Missing, "team/read: the bot has no permission to push branches")
}
