package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/task"
)

// Recognised is the forge that answers at an address.
type Recognised struct {
	Forge   task.Forge `json:"forge"`
	Version string     `json:"version,omitempty"` // if it says
}

// recognising is how long a forge may take to say what it is.
const recognising = 10 * time.Second

// maxAnswer is how much is read of an answer that says which forge it comes from.
const maxAnswer = 64 << 10

// Recognise finds out which forge answers at an address, by asking without a credential. The
// client follows no redirections.
func Recognise(ctx context.Context, client *http.Client, address string) (Recognised, error) {
	if known := wellKnownHost(address); known != "" {
		return Recognised{Forge: known}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, recognising)
	defer cancel()
	address = strings.TrimSuffix(address, "/")
	var refused *task.Error
	for _, ask := range []struct {
		path string
		is   func(response) (Recognised, bool)
	}{
		{"/api/v1/version", isGitea}, {"/api/v4/version", isGitLab}, {"/api/v3/meta", isGitHub},
	} {
		answer, err := get(ctx, client, address+ask.path)
		if err != nil {
			return Recognised{}, Explain(task.Wrap(task.Unavailable, err, "cannot ask "+address), Kind{}, address)
		}
		if found, is := ask.is(answer); is {
			return found, nil
		}
		refused = cmp.Or(refused, answer.refusal(address))
		if moved := answer.moved(address); moved != "" {
			return Recognised{}, task.Errorf(task.Invalid, "%s sends us on to %s", address, moved).WithHint("give that address, if it is the forge's")
		}
	}
	if refused != nil {
		return Recognised{}, refused
	}
	return Recognised{}, task.Errorf(task.NotFound, "what answers at %s is neither GitHub nor GitLab nor Gitea", address).
		WithHint("give the address at which the forge's first page is, with its path if it has one")
}

// wellKnown are hosts that need no question, and the address of the forge that is there: those
// for SSH are names of the same.
var wellKnown = map[string]struct {
	forge   task.Forge
	address string
}{
	"github.com":        {task.GitHub, "https://github.com"},
	"www.github.com":    {task.GitHub, "https://github.com"},
	"ssh.github.com":    {task.GitHub, "https://github.com"},
	"gitlab.com":        {task.GitLab, "https://gitlab.com"},
	"altssh.gitlab.com": {task.GitLab, "https://gitlab.com"},
	"codeberg.org":      {task.Gitea, "https://codeberg.org"},
	"gitea.com":         {task.Gitea, "https://gitea.com"},
}

// wellKnownHost is the forge of a host that needs no question.
func wellKnownHost(address string) task.Forge {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return wellKnown[strings.ToLower(at.Hostname())].forge
}

// Address is the address of a forge as it is asked and written down. A host that everybody knows
// has one address, with which no token goes there unencrypted.
func Address(given string) string {
	if at, err := url.Parse(given); err == nil {
		if known, is := wellKnown[strings.ToLower(at.Hostname())]; is {
			return known.address
		}
	}
	return strings.TrimSuffix(given, "/")
}

// Unencrypted reports whether what is sent to an address can be read on its way.
func Unencrypted(address string) bool {
	at, err := url.Parse(address)
	return err == nil && at.Scheme == "http" && !isLoopback(at.Hostname())
}

// response is an answer of a forge that nobody is signed in to.
type response struct {
	status  int
	header  http.Header
	Version string `json:"version"`
	Message string `json:"message"`
	URL     string `json:"url"`
	isJSON  bool
}

func get(ctx context.Context, client *http.Client, address string) (response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return response{}, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	got := response{status: answer.StatusCode, header: answer.Header}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return response{}, err
	}
	got.isJSON = json.Unmarshal(body, &got) == nil
	return got, nil
}

// refusal is the error of an answer that says nothing about which forge is there, because a proxy
// gave it, or because the forge answers nobody for now.
func (r response) refusal(address string) *task.Error {
	switch {
	case r.status == http.StatusProxyAuthRequired:
		return task.Errorf(task.Unavailable, "%s", reach.PasswordForProxy.Found).WithHint("%s", reach.PasswordForProxy.Hint)
	case r.status == http.StatusTooManyRequests:
		return task.Errorf(task.Unavailable, "%s allows no more requests for now (status %d)", address, r.status).WithHint("try again later")
	case r.status >= http.StatusInternalServerError:
		return task.Errorf(task.Unavailable, "%s answers with status %d", address, r.status).
			WithHint("check the address, whether the forge is running, and whether a proxy answers in its place")
	}
	return nil
}

// moved is where the answer sends us, if that is the same path elsewhere.
func (r response) moved(from string) string {
	to := r.header.Get("Location")
	if r.status < 300 || r.status >= 400 || to == "" {
		return ""
	}
	at, err := url.Parse(to)
	if err != nil || at.Host == "" {
		return ""
	}
	base, _, found := strings.Cut(to, "/api/v")
	if !found || strings.EqualFold(strings.TrimSuffix(base, "/"), from) {
		return ""
	}
	return base
}

// isGitea knows Gitea by its version, or, where only people who are signed in see it, by the
// form of its refusal.
func isGitea(r response) (Recognised, bool) {
	if r.status == http.StatusOK && r.isJSON && r.Version != "" {
		return Recognised{task.Gitea, shortVersion(r.Version)}, true
	}
	refused := (r.status == http.StatusForbidden || r.status == http.StatusUnauthorized) && r.isJSON && strings.Contains(r.URL, "/api/swagger")
	return Recognised{Forge: task.Gitea}, refused
}

// isGitLab knows GitLab by a header that it puts on every answer of its API, or by its words.
func isGitLab(r response) (Recognised, bool) {
	refused := r.status == http.StatusUnauthorized && r.isJSON && r.Message == "401 Unauthorized"
	return Recognised{Forge: task.GitLab}, r.header.Get("X-Gitlab-Meta") != "" || refused
}

// isGitHub knows GitHub Enterprise Server by its headers.
func isGitHub(r response) (Recognised, bool) {
	version := r.header.Get("X-Github-Enterprise-Version")
	return Recognised{task.GitHub, shortVersion(version)}, version != "" || r.header.Get("X-Github-Request-Id") != ""
}

// shortVersion keeps what a forge calls its version from filling the screen.
func shortVersion(version string) string {
	const most = 40
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, version)
	return plain[:min(len(plain), most)]
}
