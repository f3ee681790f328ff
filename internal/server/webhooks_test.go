package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const secret = "hunter2"

// heard records what webhooks say.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf(format, args...))
}

func (h *heard) Changed(change items.Change) {
	for _, key := range change.Items {
		h.add("changed %s", key)
	}
	if change.All {
		h.add("changed all of %s", change.Repository)
	}
	if change.Pushed {
		h.add("pushed to %s", change.Repository)
	}
}

func (h *heard) Count(delivery forge.Delivery, _ time.Time) {
	if delivery.Enabled != "" {
		h.add("counted %s of %s:%s", delivery.Enabled, delivery.Forge, delivery.Repository)
	}
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	return all
}

// follower is told of what webhooks publish.
type follower interface{ Changed(change items.Change) }

func newWebhooks(seen store.Deliveries, changes follower) (*server.Webhooks, http.Handler) {
	feed := items.NewFeed(items.NewSnapshots(nil, items.DefaultAges, nil))
	feed.Subscribe(changes.Changed)
	hooks := &server.Webhooks{
		Forges: map[task.Forge]server.Webhook{
			task.GitHub: {Signed: github.SignedWebhook, Parse: github.ParseWebhook, Secret: secret, Self: "toryo-bot"},
			task.GitLab: {Signed: gitlab.SignedWebhook, Parse: gitlab.ParseWebhook, Secret: secret, Self: "toryo-bot"},
			task.Gitea:  {Signed: gitea.SignedWebhook, Parse: gitea.ParseWebhook, Secret: secret, Self: "toryo-bot"},
		},
		Seen: seen, Changes: feed, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	if record, is := changes.(*heard); is {
		hooks.Count = record.Count
	}
	return hooks, muxOf(hooks)
}

// muxOf answers webhooks at their paths.
func muxOf(hooks *server.Webhooks) http.Handler {
	mux := http.NewServeMux()
	hooks.Register(mux)
	return mux
}

func openStore(t testing.TB) store.Store {
	t.Helper()
	opened, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func signature(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed is a webhook of each forge, signed as that forge does.
func signed(of task.Forge, id, event, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/"+string(of), strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	switch of {
	case task.GitHub:
		r.Header.Set("X-Hub-Signature-256", "sha256="+signature(body))
		r.Header.Set("X-GitHub-Event", event)
		r.Header.Set("X-GitHub-Delivery", id)
	case task.Gitea:
		r.Header.Set("X-Gitea-Signature", signature(body))
		r.Header.Set("X-Gitea-Event", event)
		r.Header.Set("X-Gitea-Delivery", id)
	default:
		r.Header.Set("X-Gitlab-Token", secret)
		r.Header.Set("X-Gitlab-Event", event)
		r.Header.Set("Idempotency-Key", id)
	}
	return r
}

func send(handler http.Handler, r *http.Request) int {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	return answer.Code
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	const (
		githubIssue  = `{"action":"labeled","issue":{"number":7},"repository":{"full_name":"o/n"},"sender":{"login":"alice"}}`
		githubEdit   = `{"action":"edited","issue":{"number":7},"comment":{"id":1},"repository":{"full_name":"o/n"},"sender":{"login":"%s"}}`
		githubPull   = `{"action":"created","issue":{"number":8,"pull_request":{}},"repository":{"full_name":"o/n"}}`
		giteaComment = `{"action":"created","is_pull":false,"issue":{"number":3},"comment":{"id":1},"repository":{"full_name":"o/n"}}`
		gitlabNote   = `{"object_kind":"note","user":{"username":"alice"},"project":{"path_with_namespace":"g/s/n"},"object_attributes":{"action":"update"},"merge_request":{"iid":5}}`
	)
	tests := []struct {
		name    string
		request *http.Request
		status  int
		heard   []string
	}{
		{"an issue", signed(task.GitHub, "1", "issues", githubIssue), 204, []string{"changed github:o/n#7", "counted issues of github:o/n"}},
		{"the same again", signed(task.GitHub, "1", "issues", githubIssue), 204, nil},
		{"the same on another forge", signed(task.Gitea, "1", "issue_comment", giteaComment), 204, []string{"changed gitea:o/n#3", "counted issue_comment of gitea:o/n"}},
		{"a comment on a pull request", signed(task.GitHub, "2", "issue_comment", githubPull), 204, []string{"changed github:o/n!8", "counted issue_comment of github:o/n"}},
		{"our own edit", signed(task.GitHub, "3", "issue_comment", fmt.Sprintf(githubEdit, "Toryo-Bot")), 204, []string{"counted issue_comment of github:o/n"}},
		{"an edit by someone else", signed(task.GitHub, "4", "issue_comment", fmt.Sprintf(githubEdit, "alice")), 204, []string{"changed github:o/n#7", "counted issue_comment of github:o/n"}},
		{"a push", signed(task.GitHub, "9", "push", `{"ref":"refs/heads/main","repository":{"full_name":"o/n"}}`), 204, []string{"pushed to github:o/n"}},
		{"GitLab without an id", signed(task.GitLab, "", "Note Hook", gitlabNote), 204, []string{"changed gitlab:g/s/n!5", "counted note_events of gitlab:g/s/n"}},
		{"GitLab again", signed(task.GitLab, "", "Note Hook", gitlabNote), 204, []string{"changed gitlab:g/s/n!5"}},
		{"a label renamed", signed(task.GitHub, "5", "label", `{"repository":{"full_name":"o/n"}}`), 204, []string{"changed all of github:o/n"}},
		{"a test", signed(task.GitHub, "6", "ping", `{"zen":"x"}`), 204, nil},
		{"half a body", signed(task.GitHub, "7", "issues", `{"action":`), 422, nil},
		{"an item that cannot be", signed(task.GitHub, "8", "issues", `{"issue":{"number":-1},"repository":{"full_name":"o/n"}}`), 422, nil},
	}
	changes := &heard{}
	_, handler := newWebhooks(openStore(t), changes)
	for _, test := range tests { // one after the other: they tell a story
		if got := send(handler, test.request); got != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got, test.status)
		}
		if diff := cmp.Diff(test.heard, changes.take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestWebhooksThatAreNotTaken(t *testing.T) {
	t.Parallel()
	changes := &heard{}
	hooks, handler := newWebhooks(openStore(t), changes)
	const body = `{"action":"labeled","issue":{"number":7},"repository":{"full_name":"o/n"}}`
	for of := range hooks.Forges {
		for name, spoil := range map[string]func(*http.Request){
			"no signature": func(r *http.Request) { r.Header = http.Header{} },
			"wrong": func(r *http.Request) {
				for _, header := range []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token"} {
					if r.Header.Get(header) != "" {
						r.Header.Set(header, "sha256="+strings.Repeat("00", 32))
					}
				}
			},
		} {
			r := signed(of, "1", "issues", body)
			spoil(r)
			if got := send(handler, r); got != 401 {
				t.Errorf("%s, %s: status %d, want 401", of, name, got)
			}
		}
	}
	altered := signed(task.GitHub, "1", "issues", body)
	altered.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "7", "8", 1)))
	if got := send(handler, altered); got != 401 {
		t.Errorf("an altered body: status %d, want 401", got)
	}
	large := httptest.NewRequest(http.MethodPost, "/webhooks/github", bytes.NewReader(make([]byte, 26<<20)))
	large.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32))
	if got := send(handler, large); got != 413 {
		t.Errorf("26 MB: status %d, want 413", got)
	}
	if got := send(handler, httptest.NewRequest(http.MethodGet, "/webhooks/github", nil)); got != 405 {
		t.Errorf("GET: status %d, want 405", got)
	}
	if got := send(handler, httptest.NewRequest(http.MethodPost, "/webhooks/board", nil)); got != 404 {
		t.Errorf("a forge without webhooks: status %d, want 404", got)
	}
	hooks.Forges[task.GitHub] = server.Webhook{Signed: github.SignedWebhook, Parse: github.ParseWebhook}
	unset := signed(task.GitHub, "1", "issues", body)
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte(body))
	unset.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	if got := send(handler, unset); got != 401 {
		t.Errorf("signed with no secret: status %d, want 401", got)
	}
	if got := changes.take(); got != nil {
		t.Errorf("heard %v", got)
	}
}

// Whoever looks at the deliveries on the forge is told what is wrong, and what is right.
func TestWrongWebhooksAreToldWhatIsRight(t *testing.T) {
	t.Parallel()
	hooks, handler := newWebhooks(openStore(t), &heard{})
	delete(hooks.Forges, task.GitLab) // no secret is set for it
	unsigned := httptest.NewRequest(http.MethodPost, "/webhooks/gitea", strings.NewReader("{}"))
	for name, test := range map[string]struct {
		request *http.Request
		status  int
		says    []string
	}{
		"unsigned":         {unsigned, 401, []string{"not signed", "gitea.webhook_secret"}},
		"a typo":           {deliveredTo("/webhooks/gitae", task.Gitea), 404, []string{"/webhooks/gitae", "/webhooks/gitea"}},
		"another typo":     {deliveredTo("/webhooks/", task.GitHub), 404, []string{"/webhooks/github"}},
		"without a slash":  {deliveredTo("/webhooks", task.GitHub), 404, []string{"/webhooks/github"}},
		"by nobody":        {httptest.NewRequest(http.MethodPost, "/webhooks/x", nil), 404, []string{"/webhooks/gitea, /webhooks/github"}},
		"no secret is set": {deliveredTo("/webhooks/gitlabb", task.GitLab), 404, []string{"takes none of gitlab", "gitlab.webhook_secret"}},
		"by GET":           {httptest.NewRequest(http.MethodGet, "/webhooks/github", nil), 405, []string{"POST"}},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, test.request)
		if answer.Code != test.status || answer.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: status %d with %q", name, answer.Code, answer.Header().Get("Content-Type"))
		}
		for _, part := range test.says {
			if !strings.Contains(answer.Body.String(), part) {
				t.Errorf("%s: %q is missing in %s", name, part, answer.Body)
			}
		}
		if strings.Contains(answer.Body.String(), secret) {
			t.Errorf("%s: the secret is in %s", name, answer.Body)
		}
	}
	got, err := hooks.Seen.ListReceived(t.Context(), task.GitHub)
	if err != nil || len(got) == 0 || got[0].Status != 404 || !strings.Contains(got[0].Problem, "no webhooks are taken at /webhooks") {
		t.Errorf("the page of webhooks has %+v, %v", got, err)
	}
}

// deliveredTo is a delivery of a forge to some path.
func deliveredTo(path string, by task.Forge) *http.Request {
	r := signed(by, "1", "issues", "{}")
	r.URL.Path = path
	if by == task.Gitea { // which sends both
		r.Header.Set("X-GitHub-Event", "issues")
	}
	return r
}

// forgetful cannot record deliveries while it fails.
type forgetful struct {
	store.Deliveries
	fail bool
}

func (f *forgetful) RecordDelivery(ctx context.Context, delivery store.Delivery) (bool, error) {
	if f.fail {
		return false, task.Wrap(task.DatabaseDown, errors.New("no"), "the database is down")
	}
	return f.Deliveries.RecordDelivery(ctx, delivery)
}

// A delivery that could not be dealt with is not taken for a replay when the
// forge sends it again.
func TestFailedDeliveryMayComeAgain(t *testing.T) {
	t.Parallel()
	changes := &heard{}
	down := &forgetful{Deliveries: openStore(t), fail: true}
	hooks, handler := newWebhooks(down, changes)
	const body = `{"action":"labeled","issue":{"number":7},"repository":{"full_name":"o/n"}}`
	if got := send(handler, signed(task.GitHub, "1", "issues", body)); got != 503 {
		t.Errorf("status %d, want 503", got)
	}
	down.fail = false
	if diff := cmp.Diff([]string{"changed github:o/n#7"}, changes.take()); diff != "" { // published, and not counted
		t.Error(diff)
	}
	for range 2 {
		if got := send(handler, signed(task.GitHub, "1", "issues", body)); got != 204 {
			t.Errorf("status %d, want 204", got)
		}
	}
	want := []string{"changed github:o/n#7", "counted issues of github:o/n"}
	if diff := cmp.Diff(want, changes.take()); diff != "" {
		t.Error(diff)
	}
	// The last ones can be looked at, the newest first, with what was wrong.
	got, err := hooks.Seen.ListReceived(t.Context(), task.GitHub)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Status != 204 || got[2].Status != 503 || got[2].Problem != "the database is down" ||
		got[2].Event != "issues" || got[2].Repository != "o/n" {
		t.Errorf("the last webhooks are %+v", got)
	}
}

// nowhere remembers no delivery.
type nowhere struct{}

func (nowhere) DeliverySeen(context.Context, task.Forge, string) (bool, error) { return false, nil }
func (nowhere) RecordDelivery(context.Context, store.Delivery) (bool, error) {
	return true, nil
}

func (nowhere) DeliveredAbout(context.Context, string, time.Time) ([]string, error) { return nil, nil }

func (nowhere) AddReceived(context.Context, store.Received, int) error { return nil }
func (nowhere) ListReceived(context.Context, task.Forge) ([]store.Received, error) {
	return nil, nil
}

// valid fails the test if an item that cannot exist is said to have changed.
type valid struct{ t *testing.T }

func (v valid) Changed(change items.Change) {
	for _, key := range change.Items {
		if err := key.Validate(); err != nil {
			v.t.Errorf("changed %q: %v", key, err)
		}
	}
}

func FuzzWebhooks(f *testing.F) {
	for _, seed := range []string{
		`{"action":"labeled","issue":{"number":7},"repository":{"full_name":"o/n"},"sender":{"login":"alice"}}`,
		`{"object_kind":"note","project":{"path_with_namespace":"g/s/n"},"merge_request":{"iid":5}}`,
		`{"ref":"refs/heads/main","repository":{"full_name":"o/n"}}`,
		`payload=%7B%22issue%22%3A%7B%22number%22%3A1%7D%7D`, `[]`, `null`, `{"issue":null}`, "\x00", `{"repository":{"full_name":"../.."},"issue":{"number":1}}`,
	} {
		for _, event := range []string{"issues", "issue_comment", "pull_request", "push", "label"} {
			f.Add(event, "application/json", "id", seed, true)
		}
		f.Add("issues", "application/x-www-form-urlencoded", "", seed, false)
	}
	f.Fuzz(func(t *testing.T, event, kind, id, body string, good bool) {
		hooks, handler := newWebhooks(nowhere{}, valid{t})
		for of := range hooks.Forges {
			r := signed(of, id, event, body)
			r.Header.Set("Content-Type", kind)
			if !good {
				for _, header := range []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token"} {
					r.Header.Del(header)
				}
			}
			switch status := send(handler, r); {
			case !good && status != http.StatusUnauthorized:
				t.Errorf("%s: an unsigned webhook is answered %d", of, status)
			case good && status != http.StatusNoContent && status != http.StatusUnprocessableEntity:
				t.Errorf("%s: a signed webhook is answered %d", of, status)
			}
		}
	})
}
