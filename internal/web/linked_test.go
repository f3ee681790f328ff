package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// elsewhereForge is a forge on which people have accounts.
type elsewhereForge struct {
	logins   map[string]string // by token
	comments []string
}

func (f *elsewhereForge) LoginOf(_ context.Context, of task.Forge, token string) (string, error) {
	if login, known := f.logins[token]; known {
		return login, nil
	}
	return "", task.Errorf(task.Invalid, "%s does not accept the token", of)
}

func (f *elsewhereForge) Comment(_ context.Context, on task.Key, token, text string) error {
	f.comments = append(f.comments, f.logins[token]+" on "+on.String()+": "+text)
	return nil
}

// Who has linked an account writes on items of another forge under that account. The token is in the
// browser only, where nobody can read it, and is of use to nobody else.
func TestLinkedAccount(t *testing.T) {
	t.Parallel()
	const token = "gto_0123456789abcdef"
	there := &elsewhereForge{logins: map[string]string{token: "alice-there"}}
	h := newSteeredHouse(t, func(o *Options) { o.Linked = there })
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 9}
	of, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "x", URL: "https://forge.example/team/app/issues/9", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	path := "/tasks/" + string(of.ID)
	alice, bob := h.visitor(t, "alice"), h.visitor(t, "bob")
	if _, page := alice.get(path); !strings.Contains(page, `name="token"`) || strings.Contains(page, "<textarea") {
		t.Error("before an account is linked it cannot be, or there is a box")
	}
	for wrong, want := range map[string]int{"": 422, "wr0ng": 422, strings.Repeat("x", 2000): 413} {
		if status, page := alice.post(path+"/account", url.Values{"token": {wrong}}); status != want || wrong != "" && strings.Contains(page, wrong) {
			t.Errorf("the token %.10q answers %d", wrong, status)
		}
	}
	if status, page := alice.post(path+"/account", url.Values{"token": {token}}); status != http.StatusOK || !strings.Contains(page, "as alice-there on gitea:team/app#9") || strings.Contains(page, token) {
		t.Errorf("to link an account answers %d: %s", status, page)
	}
	if status, _ := alice.post(path+"/comments", url.Values{"body": {"Use @oil, please."}}); status != http.StatusOK {
		t.Errorf("a comment answers %d", status)
	}
	if len(there.comments) != 1 || there.comments[0] != "alice-there on gitea:team/app#9: Use @oil, please." {
		t.Errorf("the forge has %q", there.comments)
	}
	address, err := url.Parse(h.web.URL)
	must(t, err)
	for _, cookie := range alice.client.Jar.Cookies(address) {
		if strings.Contains(cookie.Value, token) {
			t.Error("the token stands in a cookie")
		}
		if strings.HasPrefix(cookie.Name, accountCookie) {
			bob.client.Jar.SetCookies(address, []*http.Cookie{cookie})
		}
	}
	if status, _ := bob.post(path+"/comments", url.Values{"body": {"I am Alice."}}); status != http.StatusForbidden || len(there.comments) != 1 {
		t.Errorf("the account of somebody else answers %d, and the forge has %q", status, there.comments)
	}
	if log := strings.Join(h.audit(t), "\n"); strings.Contains(log, token) || !strings.Contains(log, "alice account.link "+path+"/account forge=gitea done") {
		t.Errorf("the audit log has\n%s", log)
	}
	if _, page := alice.post(path+"/account/unlink", nil); !strings.Contains(page, `name="token"`) {
		t.Error("the account is linked still")
	}
	alice.post(path+"/account", url.Values{"token": {token}})
	alice.post("/signout", nil)
	for _, cookie := range alice.client.Jar.Cookies(address) {
		if strings.HasPrefix(cookie.Name, accountCookie) {
			t.Error("the account outlasts the session")
		}
	}
}

// A token is not taken where others could read it on the way.
func TestTokensOnlyOverSafeConnections(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, func(o *Options) { o.Linked = &elsewhereForge{logins: map[string]string{"good": "alice-there"}} })
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 9}
	of, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "x", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	address, err := url.Parse(h.web.URL)
	must(t, err)
	session := h.visitor(t, "alice").client.Jar.Cookies(address)
	for _, from := range []struct {
		address, header, proto string
		want                   int
	}{
		{"192.0.2.7:1234", "X-Forwarded-Proto", "http", http.StatusForbidden},
		{"192.0.2.7:1234", "X-Forwarded-Proto", "https", http.StatusSeeOther},
		{"192.0.2.7:1234", "", "", http.StatusForbidden},
		// A proxy is usually on the same machine.
		{"[::1]:1234", "X-Forwarded-Proto", "http", http.StatusForbidden},
		{"127.0.0.1:1234", "X-Forwarded-For", "192.0.2.7", http.StatusForbidden},
		{"127.0.0.1:1234", "Forwarded", "for=192.0.2.7;proto=http", http.StatusForbidden},
		{"[::1]:1234", "X-Forwarded-Proto", "https", http.StatusSeeOther},
		{"[::1]:1234", "", "", http.StatusSeeOther},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/tasks/"+string(of.ID)+"/account", strings.NewReader("token=good"))
		request.RemoteAddr = from.address
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if from.header != "" {
			request.Header.Set(from.header, from.proto)
		}
		for _, cookie := range session {
			request.AddCookie(cookie)
		}
		answer := httptest.NewRecorder()
		h.pages.ServeHTTP(answer, request)
		if answer.Code != from.want {
			t.Errorf("from %s with %s: %s it answers %d, want %d", from.address, from.header, from.proto, answer.Code, from.want)
		}
	}
}
