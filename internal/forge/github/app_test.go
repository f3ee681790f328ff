package github_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// app is a GitHub App with one installation, as the server knows it.
type app struct {
	key    *rsa.PublicKey
	bot    *forgeworld.User
	life   time.Duration // of its tokens
	issued []string
	// installations are the numbers of installations by "orgs/NAME" or "users/NAME", besides
	// the one that every App has, and asked counts the questions for them.
	installations map[string]int64
	asked         int
}

const appID, installationID = "Iv1.0123456789abcdef", 4711

// appHandlers answer to the App itself, which signs its requests.
var appHandlers = map[string]func(c *call, token string) reply{
	"GET /app": func(c *call, token string) reply {
		if err := c.app.verify(token); err != nil {
			return refusal(401, err.Error())
		}
		slug := strings.TrimSuffix(c.app.bot.Login, "[bot]")
		return ok(object{"id": 1, "slug": slug, "name": "Toryo", "events": []string{}, "html_url": c.URL + "/github-apps/" + slug})
	},
	"GET /orgs/{org}/installation":       func(c *call, token string) reply { return c.installation(token, "orgs/"+c.param["org"]) },
	"GET /users/{username}/installation": func(c *call, token string) reply { return c.installation(token, "users/"+c.param["username"]) },
	"POST /app/installations/{installation_id}/access_tokens": func(c *call, token string) reply {
		if err := c.app.verify(token); err != nil {
			return refusal(401, err.Error())
		}
		known := slices.Collect(maps.Values(c.app.installations))
		if !slices.ContainsFunc(append(known, installationID), func(id int64) bool { return c.param["installation_id"] == fmt.Sprint(id) }) {
			return refusal(404, "Not Found")
		}
		made := fmt.Sprint("ghs_", len(c.app.issued))
		c.app.issued = append(c.app.issued, made)
		c.world.Tokens[made] = c.app.bot
		return created(object{"token": made, "expires_at": stamp(time.Now().Add(c.app.life))})
	},
}

// installation answers the App where it is installed.
func (c *call) installation(token, at string) reply {
	if err := c.app.verify(token); err != nil {
		return refusal(401, err.Error())
	}
	c.app.asked++
	id, found := c.app.installations[at]
	if !found {
		return refusal(404, "Not Found")
	}
	return ok(object{"id": id, "app_slug": strings.TrimSuffix(c.app.bot.Login, "[bot]")})
}

// verify checks a JSON Web Token as GitHub's manual asks for it.
func (a *app) verify(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(a.key, crypto.SHA256, digest[:], signature); err != nil {
		return err
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Issuer  string `json:"iss"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	now := time.Now().Unix()
	if claims.Issuer != appID || claims.Issued > now || claims.Expires < now || claims.Expires > now+600 {
		return fmt.Errorf("claims %+v at %d", claims, now)
	}
	return nil
}

var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func appOptions(address string) github.Options {
	return github.Options{URL: address + apiPrefix, App: &github.App{
		ID: appID, InstallationID: installationID, PrivateKey: pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(appKey())),
	}}
}

// newApp makes a fixture whose adapter is an App's installation.
func newApp(t testing.TB, s *server, address string, life time.Duration) *forgeworld.Fixture {
	t.Helper()
	fixture := forgeworld.NewFixture(s.world, "not used")
	fixture.Bot.Login = "toryo-app[bot]"
	s.app = &app{key: &appKey().PublicKey, bot: fixture.Bot, life: life}
	made, err := github.New(appOptions(address))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Adapter = made
	return fixture
}

// TestAppConformance runs the suite as an App.
func TestAppConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	forgetest.Run(t, newApp(t, s, s.URL, time.Hour), forgetest.Options{Comments: 110, Items: 10})
	t.Cleanup(func() {
		if len(s.app.issued) != 1 {
			t.Errorf("%d tokens were issued for the whole suite, want 1", len(s.app.issued))
		}
	})
}

func TestAppTokenIsRenewed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fixture := newApp(t, s, s.URL, 5*time.Minute) // too short to hand out again
	name := fixture.Repository(t)
	for range 2 {
		remote, err := fixture.Forge().Remote(t.Context(), name)
		if err != nil || remote.Username != "x-access-token" || !strings.HasPrefix(remote.Password, "ghs_") {
			t.Fatalf("%v, %v", remote, err)
		}
	}
	if len(s.app.issued) != 2 {
		t.Errorf("%d tokens were issued, want 2", len(s.app.issued))
	}
}

func TestAppTokenIsForgottenWhenRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fixture := newApp(t, s, s.URL, time.Hour)
	name := fixture.Repository(t)
	if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	s.world.Lock()
	delete(s.world.Tokens, s.app.issued[0]) // revoked
	s.world.Unlock()
	_, err := fixture.Forge().Repository(t.Context(), name)
	if task.CodeOf(err) != task.Unauthorized {
		t.Errorf("with a revoked token: %v", err)
	}
	if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestAppWithoutToken fails to get a token: nothing was sent, and the reason is
// that of the token.
func TestAppWithoutToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	proxy := testkit.Faults(t, s.URL)
	fixture := newApp(t, s, proxy.URL, time.Hour)
	name := fixture.Repository(t)
	key := fixture.Issue(t, name, fixture.Owner.Login, "An issue", "")
	tests := []struct {
		fault testkit.Fault
		code  task.Code
		wait  time.Duration
	}{
		{testkit.Respond(401, nil, `{"message":"Bad credentials"}`), task.Unauthorized, 0},
		{testkit.Respond(429, map[string]string{"Retry-After": "5"}, `{}`), task.Unavailable, 5 * time.Second},
		{testkit.Respond(201, nil, `{}`), task.Unavailable, 0},
		{testkit.CutBefore, task.Unavailable, 0},
	}
	for _, test := range tests {
		proxy.Next(http.MethodPost, "/access_tokens", test.fault)
		_, err := fixture.Forge().CreateComment(t.Context(), key, forge.Post{})
		if task.CodeOf(err) != test.code || forge.RetryAfter(err) != test.wait {
			t.Errorf("%v has the code %s, wait %s", err, task.CodeOf(err), forge.RetryAfter(err))
		}
	}
	for _, request := range proxy.Requests() {
		if strings.Contains(request, "/comments") {
			t.Errorf("sent without a token: %s", request)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(appKey())
	if err != nil {
		t.Fatal(err)
	}
	withKey := func(text string) *github.App { return &github.App{ID: "1", InstallationID: 2, PrivateKey: text} }
	for name, options := range map[string]github.Options{
		"neither token nor App":    {},
		"both":                     {Token: "t", App: withKey(pemOf("PRIVATE KEY", pkcs8))},
		"an address without host":  {URL: "https:///api/v3", Token: "t"},
		"an address of files":      {URL: "file:///etc", Token: "t"},
		"a key that is none":       {App: withKey("nonsense")},
		"a key that is broken":     {App: withKey(pemOf("PRIVATE KEY", []byte("nonsense")))},
		"an App without an id":     {App: &github.App{InstallationID: 2, PrivateKey: pemOf("PRIVATE KEY", pkcs8)}},
		"an App without a place":   {App: &github.App{ID: "1", PrivateKey: pemOf("PRIVATE KEY", pkcs8)}},
		"a key for something else": {App: withKey(pemOf("CERTIFICATE", []byte("x")))},
	} {
		if _, err := github.New(options); task.CodeOf(err) != task.BadConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := github.New(github.Options{App: withKey(pemOf("PRIVATE KEY", pkcs8))}); err != nil {
		t.Errorf("a key in the other form: %v", err)
	}
	for address, want := range map[string]string{
		"":                                "https://github.com/o/n.git",
		"https://api.github.com":          "https://github.com/o/n.git",
		"https://git.example/api/v3":      "https://git.example/o/n.git",
		"https://git.example/api/v3/":     "https://git.example/o/n.git",
		"https://api.company.ghe.com/":    "https://company.ghe.com/o/n.git",
		"http://user:pw@127.0.0.1:8080/x": "http://127.0.0.1:8080/x/o/n.git",
	} {
		made, err := github.New(github.Options{URL: address, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if remote, err := made.Remote(t.Context(), "o/n"); err != nil || remote.URL != want {
			t.Errorf("%q: %v, %v, want %s", address, remote, err, want)
		}
	}
}
