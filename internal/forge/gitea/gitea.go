package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Options says which server to use, and with which token.
type Options struct {
	URL   string // of the server, such as https://gitea.example/ or https://example.com/git
	Token string
	// HTTP is the client that every request goes through. Nil means
	// [forge.HTTPClient]. It must not follow redirections.
	HTTP *http.Client
}

// Forge is one Gitea or Forgejo server.
type Forge struct {
	url   string
	token string
	http  *http.Client

	selfLock sync.Mutex
	self     string // the login behind the token; it cannot change
}

var _ forge.Forge = (*Forge)(nil)

// New returns the adapter. It makes no request.
func New(options Options) (*Forge, error) {
	address, err := url.Parse(options.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, task.Errorf(task.BadConfig, "the address of the Gitea server, %q, is not an http or https URL", options.URL)
	}
	if options.Token == "" {
		return nil, task.Errorf(task.BadConfig, "there is no token for the Gitea server at %s", address.Host)
	}
	client := options.HTTP
	if client == nil {
		client = forge.HTTPClient(nil)
	}
	return &Forge{url: strings.TrimRight(options.URL, "/"), token: options.Token, http: client}, nil
}

// Name is Gitea.
func (f *Forge) Name() task.Forge { return task.Gitea }

// client returns an SDK client for one call: the SDK keeps the context in the
// client.
func (f *Forge) client(ctx context.Context) *sdk.Client {
	client, err := sdk.NewClient(f.url, sdk.SetToken(f.token), sdk.SetHTTPClient(f.http),
		sdk.SetContext(ctx), sdk.SetUserAgent("toryo"), sdk.SetGiteaVersion(""))
	if err != nil { // only options can fail, and these do not
		panic(err)
	}
	return client
}

// request does what the SDK does not offer. in and out may be nil.
func (f *Forge) request(ctx context.Context, method, path string, in, out any) (*sdk.Response, error) {
	request, err := f.encoded(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	return f.send(request, out)
}

// hookRequest is request for what is about webhooks. The answer is not kept: addresses and headers of
// webhooks may be secrets.
func (f *Forge) hookRequest(ctx context.Context, method, path string, in, out any) (*sdk.Response, error) {
	request, err := f.encoded(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Cache-Control", "no-store")
	return f.send(request, out)
}

// encoded makes a request with a body, which may be nil.
func (f *Forge) encoded(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	return f.newRequest(ctx, method, path, body)
}

// send does a request, and reads the answer into out unless that is nil.
func (f *Forge) send(request *http.Request, out any) (*sdk.Response, error) {
	answer, err := f.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	response := &sdk.Response{Response: answer}
	if answer.StatusCode/100 != 2 {
		return response, refusal(answer)
	}
	if out == nil {
		return response, nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return response, fmt.Errorf("read the answer: %w", err)
	}
	return response, nil
}

func (f *Forge) newRequest(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, f.url+"/api/v1"+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Authorization", "token "+f.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "toryo")
	return request, nil
}

// refusal is what an answer says that is none.
func refusal(answer *http.Response) error {
	reason, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	return fmt.Errorf("status %d: %s", answer.StatusCode, reason)
}

// callError makes the error of a request that failed, and nil of none.
func callError(what string, answer *sdk.Response, err error) error {
	if err == nil {
		return nil
	}
	call := forge.Call{What: what}
	if answer != nil && answer.Response != nil {
		return call.Failure(answer.Response, err)
	}
	if _, network := errors.AsType[*url.Error](err); !network {
		// The SDK did not send it at all.
		return task.Wrap(task.Invalid, err, "cannot "+what)
	}
	return call.Failure(nil, err)
}

// isServerError reports whether Gitea answered with a fault of its own. It often does so
// where it means that something is not there.
func isServerError(err error) bool {
	failed, ok := errors.AsType[*forge.Error](err)
	return ok && failed.Status == http.StatusInternalServerError
}

// explain looks, when Gitea answered with a fault of its own, whether the item is
// there at all.
func (f *Forge) explain(ctx context.Context, key task.Key, err error) error {
	if isServerError(err) {
		if _, findErr := f.Item(ctx, key); task.CodeOf(findErr) == task.NotFound {
			return findErr
		}
	}
	return err
}

// split returns the two parts of a repository's name.
func split(repository string) (owner, name string, err error) {
	owner, name, found := strings.Cut(repository, "/")
	if !found || strings.Trim(owner, ".") == "" || strings.Trim(name, ".") == "" || strings.Contains(name, "/") {
		return "", "", task.Errorf(task.Invalid, "%q is not the name of a repository on Gitea: it is of the form owner/name", repository)
	}
	return owner, name, nil
}

// address is a key taken apart.
type address struct {
	owner, name string
	number      int64
}

func locate(key task.Key) (address, error) {
	if key.Forge != task.Gitea {
		return address{}, task.Errorf(task.Invalid, "%s is not an item on Gitea", key)
	}
	if err := key.Validate(); err != nil {
		return address{}, err
	}
	owner, name, err := split(key.Repository)
	return address{owner, name, key.Number}, err
}

func locatePull(key task.Key) (address, error) {
	if key.Kind != task.Pull {
		return address{}, task.Errorf(task.Invalid, "%s is not a pull request", key)
	}
	return locate(key)
}

func (a address) path(kind string) string {
	return fmt.Sprintf("%s/%s/%d", a.repository(), kind, a.number)
}

func (a address) repository() string {
	return "/repos/" + url.PathEscape(a.owner) + "/" + url.PathEscape(a.name)
}

// commentID reads the id of a comment, which on Gitea is a number.
func commentID(id string) (int64, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, task.Errorf(task.NotFound, "there is no comment %q", id)
	}
	return number, nil
}

// perPage is the most that Gitea gives by default. A server may give less.
const perPage = 50

// pages reads a listing page by page until it is complete. Some of Gitea's
// listings ignore the page and give everything each time; others do not say how
// many there are: the end is where nothing new comes.
func pages[T any](id func(T) int64, page func(sdk.ListOptions) ([]T, *sdk.Response, error)) ([]T, *sdk.Response, error) {
	return pagesUpTo(math.MaxInt, id, page)
}

// pagesUpTo is pages for a listing of which no more is read once there are more than the limit.
func pagesUpTo[T any](limit int, id func(T) int64, page func(sdk.ListOptions) ([]T, *sdk.Response, error)) ([]T, *sdk.Response, error) {
	var all []T
	seen := map[int64]bool{}
	for number := 1; ; number++ {
		got, answer, err := page(sdk.ListOptions{Page: number, PageSize: perPage})
		if err != nil {
			return nil, answer, err
		}
		before := len(all)
		for _, one := range got {
			if !seen[id(one)] {
				seen[id(one)] = true
				all = append(all, one)
			}
		}
		total, counted := strconv.Atoi(answer.Header.Get("X-Total-Count"))
		if len(all) == before || len(all) > limit || counted == nil && len(all) >= total {
			return all, answer, nil
		}
	}
}

// login returns an account's name as the port wants it.
func login(user *sdk.User) string {
	if user == nil || user.ID <= 0 || user.UserName == "" {
		return forge.Ghost
	}
	return user.UserName
}
