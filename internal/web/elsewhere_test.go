package web

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/access/oidc"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// late is a provider that is known when the address of the pages is.
type late struct{ access.Provider }

// elsewhere is a house into which a real Gitea lets people, and that Gitea.
func elsewhere(t *testing.T) (*house, *testkit.GiteaServer) {
	t.Helper()
	provider := new(late)
	h := newHouse(t, func(o *Options) { o.Provider = provider })
	server := testkit.Gitea(t)
	back := h.web.URL + "/signin/oidc/callback"
	application, _, err := server.Client(t, "").CreateOauth2(gitea.CreateOauth2Option{Name: "toryo", ConfidentialClient: true, RedirectURIs: []string{back}})
	must(t, err)
	provider.Provider = oidc.New(oidc.Options{
		Name: "Gitea", Issuer: server.URL, ClientID: application.ClientID, ClientSecret: application.ClientSecret, RedirectURL: back,
		Scopes: []string{"profile", "groups"}, Now: time.Now,
		Rules: oidc.Rules{LoginClaim: "preferred_username", GroupsClaim: "groups", Operators: []string{"builders"}, Users: []string{"guest2", "taken4"}},
	})
	return h, server
}

// signInAt signs in at Gitea, up to its question whether we may know.
func (b *window) signInAt(login string) {
	b.t.Helper()
	b.Allowed = []string{"404", "403", "401", "409", "502", "config", "Failed to load"} // Gitea was built without its scripts
	b.Open("/signin?next=/queue")
	b.Click(`a[href^="/signin/oidc"]`)
	b.Fill(`#user_name`, login)
	b.Fill(`#password`, testkit.GiteaPassword)
	b.Click(`form[action="/user/login"] button`)
}

func (b *window) grant(yes string) {
	b.t.Helper()
	b.Click(`button[name="granted"][value="` + yes + `"]`)
}

// stranger opens a browser in which nobody is signed in.
func (h *house) stranger(t testing.TB) *window {
	t.Helper()
	return &window{testkit.OpenWindow(t, h.web.URL), t}
}

// People sign in with an account that they have elsewhere, with a real Gitea as
// the provider and a real browser: the role follows from the groups there, and who
// is not allowed stays outside.
func TestOnGiteaSignIn(t *testing.T) {
	t.Parallel()
	h, server := elsewhere(t)
	alice, guest, mallory, root := server.User(t, "alice"), server.User(t, "guest"), server.User(t, "mallory"), server.User(t, "taken")
	_, _, err := server.Client(t, alice).CreateOrg(gitea.CreateOrgOption{Name: "builders"})
	must(t, err)
	must(t, h.pages.accounts.Create(t.Context(), root, access.Admin, password))

	one := h.stranger(t)
	one.signInAt(alice)
	one.grant("true")
	one.At("/queue")
	one.Sees(".menu summary", alice)
	user, err := h.store.User(t.Context(), alice)
	must(t, err)
	if user.Role != "operator" || user.Password != "" || !strings.HasPrefix(user.Identity, server.URL+" ") {
		t.Errorf("the account is %+v", user)
	}
	if log := h.audit(t); log[0] != alice+" signin.oidc 127.0.0.1 done" {
		t.Errorf("the audit log ends with %q", log[0])
	}
	one.Open("/signin?next=/board") // Gitea knows her still, and asks nothing
	one.Click(`a[href^="/signin/oidc"]`)
	one.At("/board")

	// Roles follow the groups, at the next sign-in.
	must(t, h.store.SetUserRole(t.Context(), alice, "admin"))
	one.Open("/signin/oidc")
	one.At("/")
	if user, err := h.store.User(t.Context(), alice); err != nil || user.Role != "operator" {
		t.Errorf("the account is %+v, %v", user, err)
	}

	other := h.stranger(t)
	other.signInAt(guest)
	other.grant("false")
	other.Sees(".failure", "Gitea did not confirm your identity")
	other.Accessible("a sign-in that was refused")
	other.Click(`a[href^="/signin/oidc"]`)
	other.grant("true")
	other.At("/queue")
	if user, err := h.store.User(t.Context(), guest); err != nil || user.Role != "viewer" {
		t.Errorf("the guest is %+v, %v", user, err)
	}

	for login, says := range map[string]string{mallory: "is not among those who are let in", root: "there is another account"} {
		nobody := h.stranger(t)
		nobody.signInAt(login)
		nobody.grant("true")
		nobody.Sees(".detail", says)
		nobody.Open("/queue")
		nobody.At("/signin")
	}
	if user, err := h.store.User(t.Context(), root); err != nil || user.Identity != "" || user.Role != "admin" {
		t.Errorf("the account that was there is %+v, %v", user, err)
	}
}

// Answers that nobody asked for, or that are not what they seem, lead back to the
// beginning, and too many of them to a wait.
func TestAnswersNobodyAskedFor(t *testing.T) {
	t.Parallel()
	provider := &late{oidc.New(oidc.Options{Issuer: "http://127.0.0.1:1", Now: time.Now})}
	h := newHouse(t, func(o *Options) { o.Provider = provider })
	v := h.visitor(t, "")
	if status, page := v.get("/signin/oidc"); status != 503 || !strings.Contains(page, "cannot be asked who you are") {
		t.Errorf("a provider that is down answers %d", status)
	}
	for _, query := range []string{"", "?code=c&state=s", "?state=", "?error=%3Cscript%3E&state=x"} {
		if status, page := v.get("/signin/oidc/callback" + query); status != 401 || strings.Contains(page, "<script>alert") {
			t.Errorf("%q answers %d", query, status)
		}
	}
	home, err := url.Parse(h.web.URL)
	must(t, err)
	for _, cookie := range v.client.Jar.Cookies(home) {
		if cookie.Name == sessionCookie && cookie.Value != "" {
			t.Error("somebody is signed in")
		}
	}
	for range 30 {
		v.get("/signin/oidc/callback")
	}
	if status, _ := v.get("/signin/oidc/callback"); status != 429 {
		t.Errorf("after many it answers %d", status)
	}
}
