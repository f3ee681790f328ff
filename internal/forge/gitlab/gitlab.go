package gitlab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// PublicServer is gitlab.com.
const PublicServer = "https://gitlab.com/"

// perPage is the most that GitLab gives at once.
const perPage = 100

// Options says which GitLab to work with, and as whom.
type Options struct {
	// URL is the server's address, with the folder that it may be installed
	// in. Empty means [PublicServer].
	URL string
	// Token is a personal, group or project access token with the scope "api".
	Token string
	// HTTP does the requests. Nil means [forge.HTTPClient] on the network. Its
	// redirection policy is not used: no redirection is followed.
	HTTP *http.Client
}

// Forge is the adapter. It implements [forge.Forge].
type Forge struct {
	client *gl.Client
	base   *url.URL
	token  string
	files  *http.Client // for files of texts; sends no credential by itself

	selfLock sync.Mutex
	self     account
}

// account is a user, as far as it matters here.
type account struct {
	id     int64
	login  string
	active bool
}

var _ forge.Forge = (*Forge)(nil)

// New makes the adapter. It makes no request.
func New(options Options) (*Forge, error) {
	address := options.URL
	if address == "" {
		address = PublicServer
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, task.Errorf(task.BadConfig, "the base URL of GitLab is not a URL: %q", address).
			WithHint("it is like %s", PublicServer)
	}
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/api/v4") + "/"
	if options.Token == "" {
		return nil, task.Errorf(task.BadConfig, "GitLab needs a token").
			WithHint("make one with the scope api")
	}
	client := forge.HTTPClient(nil)
	if options.HTTP != nil {
		copied := *options.HTTP
		client = &copied
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f := &Forge{base: base, token: options.Token, files: client}
	// The transport below decides when to wait and the caller whether to repeat.
	f.client, err = gl.NewClient(options.Token,
		gl.WithBaseURL(base.String()),
		gl.WithHTTPClient(client),
		gl.WithoutRetries(),
		gl.WithCustomLimiter(unlimited{}),
		gl.WithUserAgent("toryo"),
		gl.WithURLWarningLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "cannot make the client of GitLab")
	}
	return f, nil
}

// unlimited is a rate limiter that never waits.
type unlimited struct{}

func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// Name is the forge's name in keys.
func (f *Forge) Name() task.Forge { return task.GitLab }

var (
	pathPart   = lazyregexp.New(`^[\p{L}\p{N}_.+-]+$`)
	hash       = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
	discussion = lazyregexp.New(`^[0-9a-f]{1,64}$`)
)

func checkRepository(name string) error {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if len(parts) < 2 || !pathPart.MatchString(part) || strings.Trim(part, ".") == "" {
			return task.Errorf(task.Invalid, "%q is not the path of a project on GitLab", name)
		}
	}
	return nil
}

func checkKey(key task.Key) error {
	if key.Forge != task.GitLab {
		return task.Errorf(task.Invalid, "%s is not on GitLab", key)
	}
	if err := key.Validate(); err != nil {
		return err
	}
	return checkRepository(key.Repository)
}

func checkPull(key task.Key) error {
	if key.Kind == task.Issue {
		return task.Errorf(task.Invalid, "%s is not a merge request", key)
	}
	return checkKey(key)
}

// in passes the context to a request.
func in(ctx context.Context) gl.RequestOptionFunc { return gl.WithContext(ctx) }

// pages returns everything of a listing, page by page.
func pages[T any](ctx context.Context, list func(options ...gl.RequestOptionFunc) ([]T, *gl.Response, error)) ([]T, error) {
	return gl.ScanAndCollect(func(page gl.PaginationOptionFunc) ([]T, *gl.Response, error) {
		return list(in(ctx), page)
	})
}

// noStore asks that the answer is not kept.
var noStore = gl.WithHeader("Cache-Control", "no-store")

// do makes a request for which the SDK has no method.
func (f *Forge) do(ctx context.Context, method, path string, body, result any, options ...gl.RequestOptionFunc) error {
	request, err := f.client.NewRequest(method, path, body, append(options, in(ctx)))
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
	return forge.Call{What: fmt.Sprintf(what, args...)}.Failure(answerOf(err), err) //nolint:bodyclose // the SDK has closed it
}

// answerOf finds the answer in an error of the SDK, which leaves it out for 404.
func answerOf(err error) *http.Response {
	var refused *gl.ErrorResponse
	if !errors.As(err, &refused) {
		return nil
	}
	if refused.Response == nil {
		return &http.Response{StatusCode: refused.StatusCode, Header: http.Header{}}
	}
	return refused.Response
}

// status returns the status of the answer in an error, or 0.
func status(err error) int {
	if answer := answerOf(err); answer != nil { //nolint:bodyclose // the SDK has closed it
		return answer.StatusCode
	}
	return 0
}

// hasReason reports whether GitLab gave this reason for a refusal.
func hasReason(err error, reason string) bool {
	var refused *gl.ErrorResponse
	return errors.As(err, &refused) && strings.Contains(strings.ToLower(refused.Message), strings.ToLower(reason))
}

// number reads an id that this adapter gave out. One that it cannot have given
// out belongs to nothing.
func number(id string) (int64, error) {
	value, err := strconv.ParseInt(id, 10, 64)
	if err != nil || value < 1 {
		return 0, task.Errorf(task.NotFound, "GitLab has no note with the id %q", id)
	}
	return value, nil
}
