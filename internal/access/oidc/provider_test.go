package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/access/oidc"
	"github.com/toryo-dev/toryo/internal/task"
)

const clientID = "toryo"

// key signs what the provider says. To make one takes a while.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return made
})

// fakeProvider is a provider whose tokens and claims a test sets. Discovery and
// keys are those of the library's own provider for tests.
type fakeProvider struct {
	*httptest.Server
	// token answers the exchange of a code.
	token    func(w http.ResponseWriter, form url.Values)
	userInfo map[string]any
}

func newMouth(t *testing.T) *fakeProvider {
	t.Helper()
	m := new(fakeProvider)
	known := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key().Public(), KeyID: "k", Algorithm: goidc.RS256}}}
	mux := http.NewServeMux()
	mux.Handle("/", known)
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		m.token(w, r.PostForm)
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.userInfo)
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	known.SetIssuer(m.URL)
	return m
}

// setToken makes the provider issue a token with the claims, signed by the key.
func (m *fakeProvider) setToken(by crypto.PrivateKey, claims map[string]any) {
	encoded, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	m.token = func(w http.ResponseWriter, _ url.Values) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token": "a", "token_type": "Bearer", "id_token": %q}`, oidctest.SignIDToken(by, "k", goidc.RS256, string(encoded)))
	}
}

func (m *fakeProvider) provider(rules oidc.Rules) *oidc.Provider {
	return oidc.New(oidc.Options{
		Issuer: m.URL, ClientID: clientID, ClientSecret: "s", RedirectURL: "http://127.0.0.1/signin/oidc/callback", Scopes: []string{"profile"}, Rules: rules, Now: time.Now,
	})
}

var byName = oidc.Rules{LoginClaim: "preferred_username", GroupsClaim: "groups", Users: []string{"alice"}}

// claims are what a provider says of alice in answer to an attempt.
func (m *fakeProvider) claims(attempt access.Attempt, more map[string]any) map[string]any {
	all := map[string]any{
		"iss": m.URL, "aud": clientID, "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": attempt.Nonce, "preferred_username": "alice",
	}
	for name, value := range more {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

func begin(t *testing.T, p *oidc.Provider) access.Attempt {
	t.Helper()
	attempt, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return attempt
}

func answer(attempt access.Attempt) url.Values {
	return url.Values{"state": {attempt.State}, "code": {"c"}}
}

// A sign-in that goes well asks with state, nonce and the challenge of PKCE, and
// shows the verifier when it exchanges the code.
func TestSignIn(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	p := m.provider(byName)
	attempt := begin(t, p)
	asked, err := url.Parse(attempt.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := asked.Query()
	if query.Get("response_type") != "code" || query.Get("state") != attempt.State || query.Get("nonce") != attempt.Nonce ||
		query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" || query.Get("scope") != "openid profile" {
		t.Errorf("the provider is asked %v", query)
	}
	if again := begin(t, p); again.State == attempt.State || again.Nonce == attempt.Nonce || again.Verifier == attempt.Verifier {
		t.Error("two attempts share a secret")
	}
	m.setToken(key(), m.claims(attempt, nil))
	say := m.token
	m.token = func(w http.ResponseWriter, form url.Values) {
		if form.Get("code") != "c" || form.Get("code_verifier") != attempt.Verifier {
			t.Errorf("the code is exchanged with %v", form)
		}
		say(w, form)
	}
	who, err := p.Finish(t.Context(), attempt, answer(attempt))
	if want := (access.Identity{ID: m.URL + " 1", Login: "alice", Role: access.Viewer}); err != nil || who != want {
		t.Errorf("it is %+v, %v", who, err)
	}
}

// What a stranger, a broken provider or an old answer says lets nobody in.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	m := newMouth(t)
	p := m.provider(byName)
	for name, test := range map[string]struct {
		claims map[string]any
		by     crypto.PrivateKey
		answer func(access.Attempt) url.Values
		token  func(http.ResponseWriter, url.Values)
		code   task.Code
	}{
		"another state": {answer: func(access.Attempt) url.Values { return url.Values{"state": {"x"}, "code": {"c"}} }, code: task.Unauthorized},
		"no state":      {answer: func(access.Attempt) url.Values { return url.Values{"code": {"c"}} }, code: task.Unauthorized},
		"it said no": {answer: func(a access.Attempt) url.Values {
			return url.Values{"state": {a.State}, "error": {"access_denied"}, "error_description": {"<script>"}}
		}, code: task.Unauthorized},
		"another provider answers": {answer: func(a access.Attempt) url.Values {
			return url.Values{"state": {a.State}, "code": {"c"}, "iss": {"https://evil.example"}}
		}, code: task.Unauthorized},
		"another nonce":           {claims: map[string]any{"nonce": "x"}, code: task.Unauthorized},
		"no nonce":                {claims: map[string]any{"nonce": nil}, code: task.Unauthorized},
		"expired":                 {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, code: task.Unauthorized},
		"for someone else":        {claims: map[string]any{"aud": "other"}, code: task.Unauthorized},
		"from someone else":       {claims: map[string]any{"iss": "https://evil.example"}, code: task.Unauthorized},
		"signed by someone else":  {by: other, code: task.Unauthorized},
		"no login":                {claims: map[string]any{"preferred_username": nil}, code: task.Forbidden},
		"a login that is no text": {claims: map[string]any{"preferred_username": map[string]any{}}, code: task.Forbidden},
		"not allowed":             {claims: map[string]any{"preferred_username": "mallory"}, code: task.Forbidden},
		"the code was used": {token: func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error": "invalid_grant"}`))
		}, code: task.Unauthorized},
		"no token in the answer": {token: func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token": "a", "token_type": "Bearer"}`))
		}, code: task.Unauthorized},
		"the provider fails": {token: func(w http.ResponseWriter, _ url.Values) { w.WriteHeader(http.StatusInternalServerError) }, code: task.Unavailable},
		"the client is unknown": {token: func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": "invalid_client"}`))
		}, code: task.Unavailable},
	} {
		attempt := begin(t, p)
		by := test.by
		if by == nil {
			by = key()
		}
		m.userInfo = map[string]any{"sub": "1"}
		m.setToken(by, m.claims(attempt, test.claims))
		if test.token != nil {
			m.token = test.token
		}
		back := answer(attempt)
		if test.answer != nil {
			back = test.answer(attempt)
		}
		who, err := p.Finish(t.Context(), attempt, back)
		if task.CodeOf(err) != test.code || who != (access.Identity{}) {
			t.Errorf("%s: %+v, code %q, want %q: %v", name, who, task.CodeOf(err), test.code, err)
		}
	}
	m.setToken(key(), m.claims(access.Attempt{}, nil))
	if _, err := p.Finish(t.Context(), access.Attempt{}, url.Values{"code": {"c"}}); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("an answer to nothing gives %v", err)
	}
}

// A provider that is down does not keep the program from starting, and is asked
// again.
func TestProviderThatIsDown(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	up := false
	way := roundTrip(func(r *http.Request) (*http.Response, error) {
		if !up {
			return nil, http.ErrServerClosed
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	p := oidc.New(oidc.Options{Issuer: m.URL, ClientID: clientID, Rules: byName, Now: time.Now, HTTP: &http.Client{Transport: way}})
	if _, err := p.Begin(t.Context()); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a provider that is down gives %v", err)
	}
	up = true
	attempt := begin(t, p)
	up = false
	if _, err := p.Finish(t.Context(), attempt, answer(attempt)); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a provider that went down gives %v", err)
	}
	if p.Name() != strings.TrimPrefix(m.URL, "http://") {
		t.Errorf("it is called %q", p.Name())
	}
	stranger := oidc.New(oidc.Options{Issuer: m.URL + "/", ClientID: clientID, Rules: byName, Now: time.Now})
	if _, err := stranger.Begin(t.Context()); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a provider that calls itself otherwise gives %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
