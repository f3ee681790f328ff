package web

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// connections is a [Connecting] that says what the test says, and remembers what it was asked.
type connections struct {
	mu     sync.Mutex
	shown  Connections
	lacks  Lacks
	fails  error
	unused bool   // the code can be tried again
	at     string // where GitHub sends people back
	called []string
	forge  ForgeForm
	model  ModelForm
	app    AppForm
}

func (c *connections) note(what string, keep func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called = append(c.called, what)
	if keep != nil {
		keep()
	}
	return c.fails
}

func (c *connections) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *connections) Connections(context.Context) (Connections, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown, nil
}

func (c *connections) Lacks(context.Context) (Lacks, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacks, nil
}

func (c *connections) TestForge(_ context.Context, of task.Forge) error {
	return c.note("test "+string(of), nil)
}

func (c *connections) TestModel(_ context.Context, provider string) error {
	return c.note("test "+provider, nil)
}

func (c *connections) ConnectForge(_ context.Context, form ForgeForm) error {
	return c.note("connect "+string(form.Forge), func() { c.forge = form })
}

func (c *connections) ConnectModel(_ context.Context, form ModelForm) error {
	return c.note("connect "+form.Provider, func() { c.model = form })
}

func (c *connections) Prepare(_ context.Context, of task.Forge, repositories []string) error {
	return c.note("prepare "+string(of)+" "+strings.Join(repositories, "+"), nil)
}

func (c *connections) OfferApp(_ context.Context, form AppForm, back string) (AppOffer, error) {
	return AppOffer{
		Action: form.URL + "/settings/apps/new", Manifest: `{"redirect_url":"` + back + `","name":"</script>"}`,
		Back: c.at + back, Permissions: []string{"contents: write"}, Events: []string{"issues"}, Webhook: "https://toryo.example.com/webhooks/github",
	}, c.note("offer", nil)
}

func (c *connections) FinishApp(_ context.Context, form AppForm, code string) (used bool, err error) {
	err = c.note("finish "+code, func() { c.app = form })
	return !c.unused, err
}

// connectable is something on every card.
func connectable() *connections {
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	return &connections{shown: Connections{
		File: "/etc/toryo/toryo.yaml", Restart: "toryo up --config /etc/toryo/toryo.yaml", Service: "toryo-up", ReadOnly: "the folder is read-only: run sudo toryo init",
		Forges: []ForgeConnection{
			{Forge: task.GitHub, Title: "GitHub", URL: "https://github.com", TokenPage: "https://github.com/settings", Credential: Origin{Kind: "none"}, Remaining: -1},
			{
				Forge: task.Gitea, Title: "Gitea or Forgejo", Connected: true, URL: "https://git.example.com", Bot: "toryo-bot", Watched: "gitea.owner: team",
				Credential: Origin{"file", "/var/lib/toryo/secrets/gitea-token"}, HookURL: "https://toryo.example.com/webhooks/gitea", Asked: true,
				Requests: 1200, Remaining: 77, Reset: at, Failure: "GET /api/v1/user: status 403 Forbidden", FailedAt: at,
				Deliveries: []store.Received{{Forge: task.Gitea, At: at, Event: "push", Repository: "team/app", Status: 204}},
				Events:     []WebhookEvent{{Name: "issue_comment", Title: "Issue Comment", Delivered: 41, LastAt: at}},
				Check: ForgeCheck{At: at, Login: "somebody", Repositories: []RepositoryCheck{{
					Name: "team/<app>", Hook: HookCheck{State: "events", Missing: []string{"issue_label"}},
					Rights: []forge.RightCheck{
						{Right: forge.ReadCode, State: forge.RightGiven, Given: "the scope read:repository"},
						{Right: forge.Push, State: forge.RightMissing, Given: "the scope write:repository", Found: "403 <b>Forbidden</b>"},
						{Right: forge.ReadChecks, State: forge.RightUnknown},
					},
				}}},
				Done: StepList{At: at, Steps: []DoneStep{{What: "labels of team/app", State: "left_out", Detail: "no right"}}},
			},
		},
		Models: []ModelConnection{
			{Provider: "anthropic", Connected: true, Running: true, Models: []ModelUse{{"", "some-model"}, {"planning", "another-model"}}, Key: Origin{"variable", "ANTHROPIC_API_KEY"}, Check: ModelCheck{At: at, Said: "rejected", Hint: "see the key"}},
			{Provider: "openai", Key: Origin{Kind: "none"}, Variable: "OPENAI_API_KEY"},
		},
	}}
}

func withConnections(c *connections) with { return func(o *Options) { o.Connecting = c } }

// The page shows of each forge and model what is known, one right after the other, in both
// languages, and what others wrote as text.
func TestConnectPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withConnections(connectable()))
	root := h.visitor(t, "root")
	for language, wanted := range map[string][]string{
		"en": {
			"Run: <code>sudo systemctl restart toryo-up</code>", "Nothing can be connected here: the folder is read-only: run sudo toryo init.", "https://git.example.com", "<strong>somebody</strong>", "Configured as toryo-bot",
			"/var/lib/toryo/secrets/gitea-token", "gitea.owner: team", "https://toryo.example.com/webhooks/gitea", "77 requests left until", "status 403 Forbidden", "1200 requests since the server started",
			"team/&lt;app&gt;", "Missing permissions: 1", "push branches", "403 &lt;b&gt;Forbidden&lt;/b&gt;", "the scope write:repository", ">Unknown<", "issue_label",
			"Issue Comment", "<td>41</td>", "labels of team/app", "Skipped", "some-model", "another-model", "for planning", "ANTHROPIC_API_KEY", "Not working", "see the key",
			"Not connected", "Register a GitHub App", `href="/connect" data-key="c" aria-current="page"`,
		},
		"ja": {"アカウント", "ブランチをプッシュする", "不足している権限: 1 件", "残り 77 リクエスト", "未接続", "GitHub App を登録", "次を実行してください"},
	} {
		root.header.Set("Accept-Language", language)
		status, page := root.get("/connect")
		if status != http.StatusOK {
			t.Fatalf("the page answers %d", status)
		}
		for _, text := range wanted {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not on the page", language, text)
			}
		}
	}
}

// Only administrators see the page, follow it and connect anything.
func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	actions := []string{"/connect/forge", "/connect/forge/test", "/connect/forge/prepare", "/connect/model", "/connect/model/test", "/connect/github/app"}
	for _, login := range []string{"vera", "alice"} {
		v := h.visitor(t, login)
		for _, path := range []string{"/connect", callbackPath + "?code=c&state=s"} {
			if status, _ := v.get(path); status != http.StatusForbidden {
				t.Errorf("%s gets %d from %s", login, status, path)
			}
		}
		for _, path := range actions {
			if status, _ := v.post(path, url.Values{"forge": {"gitea"}}); status != http.StatusForbidden {
				t.Errorf("%s gets %d from %s", login, status, path)
			}
		}
		if _, page := v.get("/"); strings.Contains(page, `href="/connect"`) {
			t.Errorf("%s is shown the way to the page", login)
		}
		v.header.Set("Accept", "text/event-stream")
		if status, _ := v.get("/live/connect"); status != http.StatusForbidden {
			t.Errorf("%s gets %d from the live connection", login, status)
		}
	}
	stranger := h.visitor(t, "")
	for _, path := range actions {
		if status, _ := stranger.post(path, nil); status != http.StatusUnauthorized {
			t.Errorf("a stranger gets %d from %s", status, path)
		}
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		root := h.visitor(t, "root")
		root.header.Set(name, value)
		for _, path := range actions {
			if status, _ := root.post(path, url.Values{"forge": {"gitea"}}); status != http.StatusForbidden {
				t.Errorf("a form of another site answers %d at %s", status, path)
			}
		}
	}
	if len(c.called) > 0 {
		t.Errorf("this was done: %v", c.called)
	}
	without := newHouse(t)
	if status, _ := without.visitor(t, "root").get("/connect"); status != http.StatusNotFound {
		t.Errorf("where nothing can be connected the page answers %d", status)
	}
}

// Forms arrive as they were filled in, and what was done is in the audit log without secrets.
func TestConnectForms(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	root := h.visitor(t, "root")
	for _, send := range []struct {
		path string
		form url.Values
	}{
		{"/connect/forge", url.Values{"forge": {"gitea"}, "url": {" https://git.example.com "}, "token": {" s3cret-token\n"}, "repositories": {"team/app\r\nteam/web, team/x"}, "webhook": {"yes"}}},
		{"/connect/forge/test", url.Values{"forge": {"gitea"}}},
		{"/connect/forge/prepare", url.Values{"forge": {"gitea"}, "repositories": {"team/app team/web"}}},
		{"/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}, "key": {"s3cret-key"}, "base_url": {""}}},
		{"/connect/model/test", url.Values{"provider": {"openai"}}},
	} {
		if status, page := root.post(send.path, send.form); status != http.StatusOK || !strings.Contains(page, "<h1>Connections</h1>") {
			t.Errorf("%s answers %d", send.path, status)
		}
	}
	if want := []string{"connect gitea", "test gitea", "prepare gitea team/app+team/web", "connect openai", "test openai"}; !slices.Equal(c.called, want) {
		t.Errorf("this was asked for: %v", c.called)
	}
	if c.forge.URL != "https://git.example.com" || c.forge.Token.Reveal() != "s3cret-token" || !slices.Equal(c.forge.Repositories, []string{"team/app", "team/web", "team/x"}) || !c.forge.Webhook {
		t.Errorf("the form arrived as %+v", c.forge)
	}
	if c.model.Key.Reveal() != "s3cret-key" || c.model.Model != "m" {
		t.Errorf("the form arrived as %+v", c.model)
	}
	log := strings.Join(h.audit(t), "\n")
	if !strings.Contains(log, "root connect.forge /connect/forge forge=gitea repositories=team/app\nteam/web, team/x url=https://git.example.com done") || strings.Contains(log, "s3cret") {
		t.Errorf("the audit log has\n%s", log)
	}
}

// After an error the form is shown as it was, with what went wrong, but without its secrets.
func TestFailedConnectForms(t *testing.T) {
	t.Parallel()
	c := connectable()
	c.fails = task.Errorf(task.Forbidden, "team/app: it may not push <branches>").WithHint("give it the scope write:repository")
	h := newHouse(t, withConnections(c))
	root := h.visitor(t, "root")
	for path, form := range map[string]url.Values{
		"/connect/forge":      {"forge": {"gitea"}, "url": {"https://ann:s3cret-password@typed.example.com"}, "token": {"s3cret-token"}, "repositories": {"team/typed"}, "webhook": {"no"}},
		"/connect/model":      {"provider": {"openai"}, "model": {"typed.example.com"}, "key": {"s3cret-key"}},
		"/connect/github/app": {"url": {"https://typed.example.com"}, "owner": {"typed"}, "organisation": {"no"}, "account": {"typed-bot"}},
	} {
		status, page := root.post(path, form)
		if status != http.StatusForbidden || strings.Contains(page, "s3cret") {
			t.Errorf("%s answers %d, or shows a secret", path, status)
		}
		for _, text := range []string{"it may not push &lt;branches&gt;", "give it the scope write:repository", `role="alert"`, "typed.example.com"} {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not on the page", path, text)
			}
		}
	}
	if log := strings.Join(h.audit(t), "\n"); strings.Contains(log, "s3cret") || !strings.Contains(log, "connect.model /connect/model provider=openai model=typed.example.com forbidden") {
		t.Errorf("the audit log has\n%s", log)
	}
	if status, page := root.get("/connect/forge"); status != http.StatusOK || !strings.Contains(page, "<h1>Connections</h1>") {
		t.Errorf("loading the answer again leads to %d", status)
	}
}

var registration = regexp.MustCompile(`action="https://github\.com/settings/apps/new\?state=([^"]+)"`)

// beginApp sends the form of an App and returns the state that goes to GitHub.
func beginApp(t *testing.T, v *visitor) string {
	t.Helper()
	status, page := v.post("/connect/github/app", url.Values{"url": {"https://github.com"}, "owner": {"team"}, "organisation": {"yes"}, "name": {"toryo"}})
	found := registration.FindStringSubmatch(page)
	if status != http.StatusOK || found == nil {
		t.Fatalf("no form for GitHub: %d %s", status, page)
	}
	if !strings.Contains(page, `name="manifest"`) || strings.Contains(page, "</script>&#34;}\"") {
		t.Error("the manifest is not in the form, or not as text")
	}
	state, err := url.QueryUnescape(html.UnescapeString(found[1]))
	must(t, err)
	return state
}

// back is the way on which GitHub sends people back.
func back(state string) string {
	return callbackPath + "?" + url.Values{"code": {"c0de"}, "state": {state}}.Encode()
}

// The state of a registration is good once, for an hour, and in the session that it was made
// in: tried elsewhere it is used up.
func TestStateOfAnAppIsBoundAndUsedOnce(t *testing.T) {
	t.Parallel()
	c := connectable()
	var mu sync.Mutex
	later := time.Duration(0)
	h := newHouse(t, withConnections(c), func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
	})
	c.at = h.web.URL
	root, other := h.visitor(t, "root"), h.visitor(t, "root")
	refused := func(who *visitor, state string) {
		t.Helper()
		if status, page := who.get(back(state)); status != http.StatusForbidden || strings.Contains(page, "c0de") {
			t.Errorf("the state answers %d", status)
		}
	}
	if status, page := h.visitor(t, "").get(back("guessed")); status != http.StatusUnauthorized || !strings.Contains(page, `name="password"`) || strings.Contains(page, "c0de") ||
		!strings.Contains(page, "nobody is signed in at this address ("+strings.TrimPrefix(h.web.URL, "http://")+")") {
		t.Errorf("somebody who is not signed in is not asked to and told of the App, or the code is on the page: %d", status)
	}
	refused(root, "")
	refused(root, "guessed")
	stolen := beginApp(t, root)
	refused(other, stolen)
	refused(root, stolen) // somebody else knew it
	late := beginApp(t, root)
	mu.Lock()
	later = appLasts + time.Minute
	mu.Unlock()
	refused(root, late)
	if slices.ContainsFunc(c.called, func(call string) bool { return strings.HasPrefix(call, "finish") }) {
		t.Errorf("this was done: %v", c.called)
	}
	state := beginApp(t, root)
	if status, page := root.get(back(state)); status != http.StatusOK || !strings.Contains(page, "<h1>Connections</h1>") {
		t.Errorf("the way back answers %d", status)
	}
	if !slices.Contains(c.called, "finish c0de") || c.app != (AppForm{URL: "https://github.com", Owner: "team", Organisation: true, Name: "toryo"}) {
		t.Errorf("%v, %+v", c.called, c.app)
	}
	refused(root, state)
	if log := strings.Join(h.audit(t), "\n"); strings.Contains(log, "c0de") || strings.Contains(log, state) || !strings.Contains(log, "root connect.app team done") {
		t.Errorf("the audit log has\n%s", log)
	}
}

// While the code was not used, the same way back can be gone again; after that it cannot.
func TestWayBackFromGitHubCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	c.at = h.web.URL
	root := h.visitor(t, "root")
	state := beginApp(t, root)
	for name, failure := range map[string]error{
		"others are at it":   task.Errorf(task.Conflict, "somebody else is connecting something").WithHint("try again in a minute"),
		"GitHub is overload": task.Errorf(task.Unavailable, "GitHub did not give the key"),
	} {
		c.change(func() { c.fails, c.unused = failure, true })
		status, page := root.get(back(state))
		if status != task.CodeOf(failure).Info().Status || !strings.Contains(page, "load this page again") || strings.Contains(page, "c0de") {
			t.Errorf("%s: the way back answers %d", name, status)
		}
	}
	c.change(func() { c.fails, c.unused = task.Errorf(task.Conflict, "no space"), false })
	if status, page := root.get(back(state)); status != http.StatusConflict || strings.Contains(page, "load this page again") {
		t.Errorf("after GitHub has given the key the way back answers %d", status)
	}
	c.change(func() { c.fails = nil })
	if status, _ := root.get(back(state)); status != http.StatusForbidden {
		t.Errorf("a code that is used up answers %d", status)
	}
}

// Who is signed in at another host than the one to which GitHub sends people back is told so
// before an App is registered.
func TestAppIsBegunWhereGitHubSendsPeopleBack(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	root := h.visitor(t, "root")
	form := url.Values{"url": {"https://github.com"}, "owner": {"team"}}
	for _, at := range []string{"https://toryo.example.com", "http://0.0.0.0:8750", ""} {
		c.change(func() { c.at = at })
		status, page := root.post("/connect/github/app", form)
		if status != http.StatusConflict || !strings.Contains(page, "server.public_url") || !strings.Contains(page, at) {
			t.Errorf("GitHub sends people back to %q, and the form answers %d", at, status)
		}
	}
	c.change(func() { c.at = "https://toryo.example.com" }) // a proxy in front of the server has another host
	root.header.Set("Origin", "https://toryo.example.com")
	root.header.Set("Sec-Fetch-Site", "same-origin")
	if status, _ := root.post("/connect/github/app", form); status != http.StatusOK {
		t.Errorf("behind a proxy the form answers %d", status)
	}
}

// Only the page that sends the manifest lets a form go to GitHub, and to no place that an odd
// address could name besides.
func TestPolicyOfTheFormForGitHub(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	c.at = h.web.URL
	root := h.visitor(t, "root")
	policyOf := func(method, path, form string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, h.web.URL+path, strings.NewReader(form))
		must(t, err)
		request.Header = root.header.Clone()
		if form != "" {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer, err := root.client.Do(request)
		must(t, err)
		must(t, answer.Body.Close())
		return answer.Header.Get("Content-Security-Policy")
	}
	if got := policyOf(http.MethodGet, "/connect", ""); !strings.Contains(got, "form-action 'self';") {
		t.Errorf("the page has the policy %q", got)
	}
	if got := policyOf(http.MethodPost, "/connect/github/app", "url=https://github.com&owner=team"); !strings.Contains(got, "form-action 'self' https://github.com;") {
		t.Errorf("the page of the form has the policy %q", got)
	}
	for _, address := range []string{"https://a;script-src", "https://a,b", "javascript:alert(1)", "https://user:pass@a", "//a", "https://a b"} {
		if got := policyOf(http.MethodPost, "/connect/github/app", url.Values{"url": {address}, "owner": {"team"}}.Encode()); !strings.Contains(got, "form-action 'self';") {
			t.Errorf("%q leads to the policy %q", address, got)
		}
	}
}

// An open page shows what a test has found without being loaded again, and a form in it can be
// used by keyboard meanwhile: it stays as it is.
func TestOpenConnectPageIsLive(t *testing.T) {
	t.Parallel()
	c := connectable()
	h := newHouse(t, withConnections(c))
	root := h.window(t, "root")
	root.Open("/connect")
	root.IsLive()
	root.Click(`#forge-github details:last-of-type > summary`)
	root.Fill(`#forge-github input[name="token"]`, "half a tok")
	c.change(func() {
		forges := slices.Clone(c.shown.Forges)
		forges[1].Failure = "the cable is cut"
		c.shown.Forges = forges
	})
	root.Sees("#forge-gitea-facts", "the cable is cut")
	root.Until(`document.querySelector('#forge-github input[name="token"]').value === "half a tok"`)
	root.Click(`form[action="/connect/forge/test"] button`)
	root.At("/connect")
}

// The answer to a form that has failed is live too, and what the reader has opened stays open.
func TestFailedConnectFormIsLive(t *testing.T) {
	t.Parallel()
	c := connectable()
	c.fails = task.Errorf(task.Forbidden, "it may not push")
	h := newHouse(t, withConnections(c))
	root := h.window(t, "root")
	root.Allowed = append(root.Allowed, "403")
	root.Open("/connect")
	root.Click(`form[action="/connect/forge/test"] button`)
	root.Sees("#forge-gitea", "it may not push")
	root.IsLive()
	root.Click(`#forge-gitea-deliveries details > summary`)
	c.change(func() {
		forges := slices.Clone(c.shown.Forges)
		forges[1].Failure = "the cable is cut"
		forges[1].Events = []WebhookEvent{{Name: "issue_comment", Title: "Issue Comment", Delivered: 4242}}
		c.shown.Forges = forges
	})
	root.Sees("#forge-gitea-facts", "the cable is cut")
	root.Sees("#forge-gitea-deliveries", "4242")
	root.Until(`document.querySelector("#forge-gitea-deliveries details").open`)
}

// While nothing is connected the home page says so to administrators, and to nobody else; a
// repository on the board is as good as a forge.
func TestOnboarding(t *testing.T) {
	t.Parallel()
	c := connectable()
	c.lacks = Lacks{Forge: true, Model: true}
	h := newHouse(t, withConnections(c))
	says := func(login string, forges, models bool) {
		t.Helper()
		_, page := h.visitor(t, login).get("/")
		for text, want := range map[string]bool{"No forge is connected": forges, "No model is connected": models, "Before your first task": forges || models} {
			if strings.Contains(page, text) != want {
				t.Errorf("%s is told %q: %t, want %t", login, text, !want, want)
			}
		}
	}
	says("root", true, true)
	says("alice", false, false)
	h.repository(t)
	says("root", false, true)
	c.change(func() { c.lacks = Lacks{} })
	says("root", false, false)
}
