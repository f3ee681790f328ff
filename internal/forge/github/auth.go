package github

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// App is how an installation of a GitHub App authenticates.
type App struct {
	ID string // the App's id or client id
	// InstallationID is the number of the installation; 0 means the one at Owner, a user or
	// an organisation, which GitHub is asked for.
	InstallationID int64
	Owner          string
	PrivateKey     string // PEM, as GitHub gives it
}

const (
	// tokenReserve is how long an installation's token is good for at least when
	// it is handed out: long enough for a push of some size.
	tokenReserve = 10 * time.Minute
	// GitHub refuses assertions that are good for more than ten minutes, and
	// ones from the future: clocks differ.
	assertionLife = 9 * time.Minute
	clockDrift    = time.Minute
)

// tokens gives the token for the next request.
type tokens interface {
	token(ctx context.Context) (string, error)
	// refused says that GitHub did not take the token.
	refused(token string)
}

type fixedToken string

func (t fixedToken) token(context.Context) (string, error) { return string(t), nil }

func (t fixedToken) refused(string) {}

// tokenError says that no token could be had, so that a request was not sent.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }

func (e *tokenError) Unwrap() error { return e.err }

// appTokens gets the tokens of an App's installation. They live an hour.
type appTokens struct {
	app    App
	key    *rsa.PrivateKey
	client *gh.Client // signs its requests as the App itself
	web    string     // where people find GitHub

	turn    lifecycle.Mutex // held by whoever gets a token or looks at it
	found   int64           // the installation at the owner; 0 if it is not known
	current string
	until   time.Time

	permissions atomic.Pointer[gh.InstallationPermissions] // of the token; nil if it was not told
}

func newAppTokens(app App, base *url.URL, client *http.Client, transport http.RoundTripper) (*appTokens, error) {
	key, err := parsePrivateKey(app.PrivateKey)
	if err != nil {
		return nil, err
	}
	if app.ID == "" || app.InstallationID < 1 && app.Owner == "" {
		return nil, task.Errorf(task.BadConfig, "a GitHub App needs its id, and where it is installed").
			WithHint("set github.app_id, and github.owner to the user or organisation at which the App is installed")
	}
	t := &appTokens{app: app, key: key, web: strings.TrimSuffix(webOf(base).String(), "/"), turn: lifecycle.NewMutex()}
	t.client, err = sdkClient(base, client.Timeout, authorising{transport, asserting{t}})
	return t, err
}

func parsePrivateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, task.Errorf(task.BadConfig, "the private key of the GitHub App is not in PEM form")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the private key of the GitHub App cannot be read")
	}
	key, isRSA := parsed.(*rsa.PrivateKey)
	if !isRSA {
		return nil, task.Errorf(task.BadConfig, "the private key of the GitHub App is not an RSA key")
	}
	return key, nil
}

func (t *appTokens) token(ctx context.Context) (string, error) {
	if t.turn.Lock(ctx) != nil {
		return "", &tokenError{callError(ctx.Err(), "get a token of the GitHub App")}
	}
	defer t.turn.Unlock()
	if time.Until(t.until) > tokenReserve {
		return t.current, nil
	}
	installation, err := t.installation(ctx)
	if err != nil {
		return "", &tokenError{err}
	}
	answer, _, err := t.client.Apps.CreateInstallationToken(ctx, installation, &gh.InstallationTokenOptions{})
	if err == nil && answer.GetToken() == "" {
		err = errNonsense
	}
	if err != nil {
		t.found = 0 // an App that was removed and installed again has another
		return "", &tokenError{callError(err, "get a token of the GitHub App")}
	}
	t.current, t.until = answer.GetToken(), answer.GetExpiresAt().Time
	t.permissions.Store(answer.Permissions)
	return t.current, nil
}

// refused forgets the token, so that the next request gets a new one.
func (t *appTokens) refused(token string) {
	if t.turn.Lock(context.Background()) != nil {
		return // never: that context does not end
	}
	defer t.turn.Unlock()
	if t.current == token {
		t.until = time.Time{}
	}
}

// renew forgets the token as well. It is for those who want to know what the installation may do: a
// token keeps the permissions that it was made with.
func (t *appTokens) renew(ctx context.Context) error {
	if t.turn.Lock(ctx) != nil {
		return callError(ctx.Err(), "get a token of the GitHub App")
	}
	defer t.turn.Unlock()
	t.until = time.Time{}
	return nil
}

// asserting gives the token by which the App itself signs.
type asserting struct{ of *appTokens }

func (a asserting) token(context.Context) (string, error) { return a.of.assertion(time.Now()) }

func (a asserting) refused(string) {}

// assertion makes a JSON Web Token signed with RS256.
func (t *appTokens) assertion(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-clockDrift).Unix(),
		"exp": now.Add(assertionLife).Unix(),
		"iss": t.app.ID,
	})
	if err != nil {
		return "", fmt.Errorf("write the claims: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, t.key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign as the GitHub App: %w", err)
	}
	return signed + "." + encode(signature), nil
}

// authorising puts the token on every request.
type authorising struct {
	next   http.RoundTripper
	tokens tokens
}

func (a authorising) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := a.tokens.token(request.Context())
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := a.next.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		a.tokens.refused(token)
	}
	return answer, err
}

// wholeAnswers makes an error of an empty answer where JSON was asked for. The SDK
// would take it for an empty value, and a listing cut off before its first byte
// for an empty listing.
type wholeAnswers struct{ next http.RoundTripper }

func (w wholeAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	said := answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated
	if said && !strings.Contains(request.Header.Get("Accept"), "diff") {
		answer.Body = &notEmpty{ReadCloser: answer.Body}
	}
	return answer, nil
}

type notEmpty struct {
	io.ReadCloser
	begun bool
}

func (b *notEmpty) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.begun = b.begun || len(bytes.TrimSpace(p[:n])) > 0
	if err == io.EOF && !b.begun {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
