package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// PublicAPI is the root of the API of github.com.
const PublicAPI = "https://api.github.com/"

// perPage is the most that GitHub gives at once.
const perPage = 100

// Options says which GitHub to work with, and as whom: with a token or as an App.
type Options struct {
	// URL is the root of the API. Empty means [PublicAPI]; of an Enterprise
	// server it is "https://HOST/api/v3/".
	URL   string
	Token string
	App   *App
	// HTTP does the requests. Nil means [forge.HTTPClient] on the network. Its
	// redirection policy is not used: no redirection is followed.
	HTTP *http.Client
}

// Forge is the adapter. It implements [forge.Forge].
type Forge struct {
	client  *gh.Client
	plain   *http.Client // sends no credential
	tokens  tokens
	app     *appTokens // nil with a token
	base    *url.URL
	graphql string
	web     *url.URL

	selfLock sync.Mutex
	self     string
}

var _ forge.Forge = (*Forge)(nil)

// New makes the adapter. It makes no request.
func New(options Options) (*Forge, error) {
	base, err := parseBase(options.URL)
	if err != nil {
		return nil, err
	}
	client := options.HTTP
	if client == nil {
		client = forge.HTTPClient(nil)
	}
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	f := &Forge{
		base: base, graphql: graphqlOf(base), web: webOf(base),
		plain: &http.Client{Transport: transport, Timeout: client.Timeout, CheckRedirect: noRedirects},
	}
	transport = wholeAnswers{transport}
	switch {
	case (options.Token == "") == (options.App == nil):
		return nil, task.Errorf(task.BadConfig, "GitHub needs either a token or an App").
			WithHint("set one of them")
	case options.App != nil:
		if f.app, err = newAppTokens(*options.App, base, client, transport); err != nil {
			return nil, err
		}
		f.tokens = f.app
	default:
		f.tokens = fixedToken(options.Token)
	}
	f.client, err = sdkClient(base, client.Timeout, authorising{transport, f.tokens})
	return f, err
}

// sdkClient makes the SDK's client: no redirections, and none of its own ideas of
// when to wait, since the transport below decides that.
func sdkClient(base *url.URL, timeout time.Duration, transport http.RoundTripper) (*gh.Client, error) {
	address := base.String()
	client, err := gh.NewClient(
		gh.WithHTTPClient(&http.Client{
			Transport:     transport,
			Timeout:       timeout,
			CheckRedirect: noRedirects,
		}),
		gh.WithURLs(&address, &address),
		gh.WithUserAgent("toryo"),
		gh.WithDisableRateLimitCheck(),
	)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "cannot make the client of GitHub")
	}
	return client, nil
}

func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func parseBase(text string) (*url.URL, error) {
	if text == "" {
		text = PublicAPI
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, task.Errorf(task.BadConfig, "the base URL of GitHub is not a URL: %q", text).
			WithHint("it is like %s or https://HOST/api/v3/", PublicAPI)
	}
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	return base, nil
}

// graphqlOf returns the address of GraphQL: beside "v3" on an Enterprise server.
func graphqlOf(base *url.URL) string {
	address := *base
	address.Path = strings.TrimSuffix(address.Path, "v3/") + "graphql"
	return address.String()
}

// webOf returns where people and git find what the API is about.
func webOf(base *url.URL) *url.URL {
	web := *base
	web.Host = strings.TrimPrefix(web.Host, "api.")
	web.Path = strings.TrimSuffix(web.Path, "api/v3/")
	return &web
}

// Name is the forge's name in keys.
func (f *Forge) Name() task.Forge { return task.GitHub }

// place is where an item or a repository is, in the parts that the SDK wants.
type place struct {
	owner, name string
	number      int
}

var (
	namePart = lazyregexp.New(`^[A-Za-z0-9._-]+$`)
	login    = lazyregexp.New(`^[A-Za-z0-9_-]+(\[bot\])?$`)
	hash     = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

func placeOf(repository string) (place, error) {
	owner, name, found := strings.Cut(repository, "/")
	if !found || !namePart.MatchString(owner) || !namePart.MatchString(name) ||
		strings.Trim(owner, ".") == "" || strings.Trim(name, ".") == "" {
		return place{}, task.Errorf(task.Invalid, "%q is not the name of a repository on GitHub", repository)
	}
	return place{owner: owner, name: name}, nil
}

func placeOfKey(key task.Key) (place, error) {
	if key.Forge != task.GitHub {
		return place{}, task.Errorf(task.Invalid, "%s is not on GitHub", key)
	}
	if err := key.Validate(); err != nil {
		return place{}, err
	}
	at, err := placeOf(key.Repository)
	at.number = int(key.Number)
	return at, err
}

func placeOfPull(key task.Key) (place, error) {
	if key.Kind == task.Issue {
		return place{}, task.Errorf(task.Invalid, "%s is not a pull request", key)
	}
	return placeOfKey(key)
}

// path makes a path of the API below the repository, each part escaped.
func (p place) path(parts ...any) string {
	path := []string{"repos", p.owner, p.name}
	for _, part := range parts {
		path = append(path, url.PathEscape(fmt.Sprint(part)))
	}
	return strings.Join(path, "/")
}

// do makes a request for which the SDK has no method, or one that does not escape
// what is in the path. The answer goes to result, unless that is nil.
func (f *Forge) do(ctx context.Context, method, path string, body, result any) error {
	request, err := f.client.NewRequest(ctx, method, path, body)
	if err != nil {
		return err
	}
	_, err = f.client.Do(request, result)
	return err
}

// errNonsense is the reason when an answer has the right form and lacks what it
// must have.
var errNonsense = errors.New("the answer lacks what was asked for")

// callError makes the error of a request that failed.
func callError(err error, what string, args ...any) error {
	call := forge.Call{What: fmt.Sprintf(what, args...)}
	if noToken, ok := errors.AsType[*tokenError](err); ok {
		// Nothing was sent: it is the token that could not be had.
		failed := task.Wrap(task.CodeOf(noToken.err), err, "cannot "+call.What)
		if why, coded := task.AsError(noToken.err); coded && why.Hint != "" { // people can do something about it
			failed.Message, failed.Hint, failed.Err = failed.Message+": "+why.Message, why.Hint, why.Err
		}
		return &forge.Error{Err: failed, RetryAfter: forge.RetryAfter(noToken.err)}
	}
	return call.Failure(answerOf(err), err) //nolint:bodyclose // the SDK has closed it
}

// answerOf finds the answer in an error of the SDK.
func answerOf(err error) *http.Response {
	var (
		refused  *gh.ErrorResponse
		otp      *gh.TwoFactorAuthError
		limit    *gh.RateLimitError
		abuse    *gh.AbuseRateLimitError
		redirect *gh.RedirectionError
		query    *queryError
	)
	switch {
	case errors.As(err, &query):
		return query.answer
	case errors.As(err, &abuse):
		return asLimited(abuse.Response)
	case errors.As(err, &limit):
		return limit.Response
	case errors.As(err, &redirect):
		return redirect.Response
	case errors.As(err, &otp):
		return otp.Response
	case errors.As(err, &refused):
		return refused.Response
	}
	return nil
}

// asLimited makes sure that a secondary limit can be told by its headers. GitHub
// asks for a minute when it does not say how long.
func asLimited(answer *http.Response) *http.Response {
	if answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-Ratelimit-Remaining") == "0" {
		return answer
	}
	limited := &http.Response{StatusCode: answer.StatusCode, Header: answer.Header.Clone()}
	limited.Header.Set("Retry-After", "60")
	return limited
}

// status returns the status of the answer in an error, or 0.
func status(err error) int {
	if answer := answerOf(err); answer != nil { //nolint:bodyclose // the SDK has closed it
		return answer.StatusCode
	}
	return 0
}

// hasReason reports whether GitHub gave this reason for a refusal.
func hasReason(err error, reason string) bool {
	var refused *gh.ErrorResponse
	if !errors.As(err, &refused) {
		return false
	}
	if containsFold(refused.Message, reason) {
		return true
	}
	for _, detail := range refused.Errors {
		if containsFold(detail.Message, reason) || strings.EqualFold(detail.Code, reason) {
			return true
		}
	}
	return false
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// number reads an id that this adapter gave out. One that it cannot have given
// out belongs to nothing.
func number(id string) (int64, error) {
	value, err := strconv.ParseInt(id, 10, 64)
	if err != nil || value < 1 {
		return 0, task.Errorf(task.NotFound, "GitHub has no comment with the id %q", id)
	}
	return value, nil
}
