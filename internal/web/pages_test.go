package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
)

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	must(t, h.pages.accounts.Create(t.Context(), "carol", access.Operator, password))
	v := h.visitor(t, "")
	if _, page := v.get("/queue?q=x"); !strings.Contains(page, `name="password"`) || !strings.Contains(page, `value="/queue?q=x"`) {
		t.Errorf("a stranger is shown %s", page)
	}
	status, page := v.post("/signin", url.Values{"login": {"carol"}, "password": {"wrong"}, "next": {"/queue"}})
	if status != http.StatusUnauthorized || !strings.Contains(page, "Incorrect login or password") {
		t.Errorf("a wrong password answers %d", status)
	}
	status, page = v.post("/signin", url.Values{"login": {"carol"}, "password": {password}, "next": {"/queue"}})
	if status != http.StatusOK || !strings.Contains(page, "<h1>Queue</h1>") {
		t.Errorf("the right password answers %d", status)
	}
	if _, page = v.post("/signout", nil); !strings.Contains(page, `name="password"`) {
		t.Error("nobody is asked to sign in after signing out")
	}
	want := []string{"carol signin 127.0.0.1 done", "carol signin 127.0.0.1 unauthorized"}
	if got := h.audit(t); !slices.Equal(got, want) {
		t.Errorf("the audit log has %q", got)
	}
	for range 6 {
		v.post("/signin", url.Values{"login": {"carol"}, "password": {"wrong"}})
	}
	if status, _ = v.post("/signin", url.Values{"login": {"carol"}, "password": {password}}); status != http.StatusTooManyRequests {
		t.Errorf("after many failures a sign-in answers %d", status)
	}
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, proto := range []string{"http", "https"} {
		path, err := h.pages.Invite(t.Context(), "alice", access.Operator)
		must(t, err)
		v := h.visitor(t, "")
		v.header.Set("X-Forwarded-Proto", proto)
		var cookie *http.Cookie
		v.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			cookie = r.Response.Cookies()[0]
			return http.ErrUseLastResponse
		}
		v.get(path)
		if cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure != (proto == "https") || cookie.Path != "/" {
			t.Errorf("over %s the cookie is %v", proto, cookie)
		}
	}
}

// A link that the server prints works once, and only its secret opens.
func TestLinkWorksOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path, err := h.pages.Invite(t.Context(), "alice", access.Operator)
	must(t, err)
	for _, bad := range []string{"/enter", "/enter?once=", path + "x"} {
		if status, _ := h.visitor(t, "").get(bad); status != http.StatusUnauthorized {
			t.Errorf("%s answers %d", bad, status)
		}
	}
	first, second := h.visitor(t, ""), h.visitor(t, "")
	if status, page := first.get(path); status != http.StatusOK || !strings.Contains(page, "Overview") {
		t.Errorf("the link answers %d", status)
	}
	if status, _ := second.get(path); status != http.StatusUnauthorized {
		t.Errorf("the link used again answers %d", status)
	}
}

// Every page asks who is there; every action also asks for the role.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	issue := "/board/team/app/issues/1"
	h.visitor(t, "alice").post("/board/team/app/issues", url.Values{"title": {"A gate"}})
	pages := []string{"/", "/queue", "/statistics", "/statistics/runs.csv", "/board", "/board/team/app", issue, "/settings", "/settings/webhooks"}
	adminPages := []string{"/settings/people", "/settings/configuration", "/settings/audit"}
	actions := []string{"/board/import", "/board/team/app/issues", issue + "/comments", issue + "/label", issue + "/unlabel", issue + "/assign",
		issue + "/unassign", issue + "/close", issue + "/reopen", issue + "/comments/x/edit", issue + "/comments/x/delete"}
	adminActions := []string{"/settings/tokens", "/settings/tokens/revoke", "/settings/people/create", "/settings/people/role",
		"/settings/people/password", "/settings/people/remove"}
	stranger, vera, alice := h.visitor(t, ""), h.visitor(t, "vera"), h.visitor(t, "alice")
	for _, path := range slices.Concat(pages, adminPages) {
		if _, page := stranger.get(path); !strings.Contains(page, `name="password"`) {
			t.Errorf("a stranger sees %s", path)
		}
		status, _ := vera.get(path)
		if want := map[bool]int{true: 200, false: 403}[slices.Contains(pages, path)]; status != want {
			t.Errorf("a viewer gets %d from %s, want %d", status, path, want)
		}
	}
	for _, path := range slices.Concat(actions, adminActions) {
		if status, _ := stranger.post(path, nil); status != http.StatusUnauthorized {
			t.Errorf("a stranger gets %d from %s", status, path)
		}
		if status, _ := vera.post(path, nil); status != http.StatusForbidden {
			t.Errorf("a viewer gets %d from %s", status, path)
		}
	}
	for _, path := range adminActions {
		if status, _ := alice.post(path, nil); status != http.StatusForbidden {
			t.Errorf("an operator gets %d from %s", status, path)
		}
	}
	for _, live := range []string{"/live/tasks", "/live/board/team/app/issues", "/live" + issue, "/tasks/x/live"} {
		stranger.header.Set("Accept", "text/event-stream")
		if status, _ := stranger.get(live); status != http.StatusUnauthorized {
			t.Errorf("a stranger gets %d from %s", status, live)
		}
	}
}

// A form on another site cannot act in someone's name.
func TestOtherSitesCannotAct(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		v := h.visitor(t, "alice")
		v.header.Set(name, value)
		if status, _ := v.post("/board/team/app/issues", url.Values{"title": {"x"}}); status != http.StatusForbidden {
			t.Errorf("with %s: %s a form answers %d", name, value, status)
		}
	}
	if items, _ := h.store.ListBoardItems(t.Context(), store.BoardFilter{}); len(items) != 0 {
		t.Error("an issue was created")
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, path := range []string{"/signin", "/nothing", "/docs", "/docs/search?q=x", assetPath(styleAsset)} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.web.URL+path, nil)
		must(t, err)
		answer, err := h.web.Client().Do(request)
		must(t, err)
		_ = answer.Body.Close()
		csp := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s has the policy %q", path, csp)
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
	}
}

func TestNextStaysHere(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/queue?q=x": "/queue?q=x", "": "/", "https://evil.example": "/", "//evil.example": "/", `/\evil.example`: "/",
		"javascript:alert(1)": "/", "queue": "/", "/\t/evil.example": "/",
	} {
		if got := safeNext(next); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}

// What cannot be noted is not done.
func TestActionsAreAudited(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice := h.visitor(t, "alice")
	alice.post("/board/team/app/issues", url.Values{"title": {"A gate"}})
	alice.post("/board/team/app/issues/1/label", url.Values{"label": {"bug"}})
	alice.post("/board/team/app/issues/1/comments", url.Values{"body": {""}})
	want := []string{
		"alice item.comment /board/team/app/issues/1/comments invalid",
		"alice item.label /board/team/app/issues/1/label label=bug done",
		"alice issue.create /board/team/app/issues title=A gate done",
		"alice enter 127.0.0.1 done",
	}
	if got := h.audit(t); !slices.Equal(got, want) {
		t.Errorf("the audit log has %q", got)
	}
	if _, page := h.visitor(t, "root").get("/settings/audit"); !strings.Contains(page, "item.label") {
		t.Error("the audit page does not show it")
	}
}
