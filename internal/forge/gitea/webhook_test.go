package gitea_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const hookSecret = "a secret"

// hookHeader returns the headers of a webhook, those of Gitea or Forgejo's own.
func hookHeader(event string, body []byte, name string) http.Header {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	header := http.Header{}
	header.Set("X-"+name+"-Event", event)
	header.Set("X-"+name+"-Delivery", "f6266f16-1bf3-46a5-9ea4-602e06ead473")
	header.Set("X-"+name+"-Signature", hex.EncodeToString(mac.Sum(nil)))
	return header
}

func TestWebhookExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testkit.Contracts(t, "webhooks", "gitea"), "*.json"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		event := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), "-event.json"), "-", "_")
		for _, name := range []string{"Gitea", "Forgejo"} {
			got, err := gitea.ParseWebhook(hookSecret, hookHeader(event, body, name), body)
			if err != nil || got.ID == "" || got.Event != event || got.Forge != task.Gitea {
				t.Errorf("%s: %+v, %v", file, got, err)
				continue
			}
			var kind task.ItemKind
			switch {
			case strings.HasPrefix(event, "pull_request"):
				kind = task.Pull
			case strings.HasPrefix(event, "issue"):
				kind = task.Issue
			}
			if kind != "" && (len(got.Items) != 1 || got.Items[0].Kind != kind || got.Items[0].Repository != got.Repository) {
				t.Errorf("%s is about %v", file, got.Items)
			}
			if kind == "" && got.Kind == forge.ItemsChanged {
				t.Errorf("%s is about items: %v", file, got.Items)
			}
		}
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	const repository = `"repository":{"full_name":"o/n"}`
	enabled := func(event string, kind task.ItemKind) forge.Delivery {
		return forge.Delivery{Kind: forge.ItemsChanged, Enabled: event, Items: []task.Key{{Forge: task.Gitea, Repository: "o/n", Kind: kind, Number: 7}}}
	}
	item := func(kind task.ItemKind) forge.Delivery { return enabled("", kind) }
	hash := strings.Repeat("a1", 20)
	tests := []struct {
		name, event, body string
		want              forge.Delivery
		code              task.Code
	}{
		{"an issue", "issues", `{"issue":{"number":7,"pull_request":null},` + repository + `}`, item(task.Issue), ""},
		{"a comment on a pull request", "issue_comment", `{"is_pull":true,"issue":{"number":7},` + repository + `}`, item(task.Pull), ""},
		{"a comment that was deleted", "pull_request_comment", `{"action":"deleted","comment":{},"is_pull":true,"issue":{"number":7},` + repository + `}`, enabled("pull_request_comment", task.Pull), ""},
		{"a review", "pull_request_comment", `{"action":"reviewed","review":{"type":"pull_request_review_comment"},"pull_request":{"number":7},` + repository + `}`, enabled("pull_request_review", task.Pull), ""},
		{"a refusal", "pull_request_rejected", `{"action":"reviewed","pull_request":{"number":7},` + repository + `}`, enabled("pull_request_review", task.Pull), ""},
		{"an approval", "pull_request_approved", `{"pull_request":{"number":7},` + repository + `}`, item(task.Pull), ""},
		{"pushed", "push", `{"ref":"refs/heads/a/b",` + repository + `}`, forge.Delivery{Kind: forge.Pushed, Branch: "a/b"}, ""},
		{"a status", "status", `{"sha":"` + hash + `","commit":{"id":"x"},` + repository + `}`, forge.Delivery{Kind: forge.ChecksChanged, Enabled: "status", Commit: hash}, ""},
		{"a job of a pull request", "workflow_job", `{"workflow_job":{"head_sha":"` + hash + `"},"pull_request":{"number":7},` + repository + `}`, forge.Delivery{Kind: forge.ChecksChanged, Commit: hash}, ""},
		{"a workflow", "workflow_run", `{"workflow_run":{"head_sha":"` + hash + `"},` + repository + `}`, forge.Delivery{Kind: forge.ChecksChanged, Commit: hash}, ""},
		{"a status of half a commit", "status", `{"sha":"` + hash[1:] + `",` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"a job of no commit", "workflow_job", `{` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"something else", "package", `{` + repository + `}`, forge.Delivery{Kind: forge.NothingChanged}, ""},
		{"a number below one", "issues", `{"issue":{"number":0},` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"not JSON", "issues", `[`, forge.Delivery{}, task.Invalid},
	}
	for _, test := range tests {
		header := hookHeader(test.event, []byte(test.body), "Gitea")
		got, err := gitea.ParseWebhook(hookSecret, header, []byte(test.body))
		if task.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %q", test.name, err, test.code)
		}
		if test.code == "" {
			test.want.ID, test.want.Forge, test.want.Event, test.want.Repository = got.ID, task.Gitea, test.event, "o/n"
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		header.Set("X-Gitea-Signature", strings.Repeat("0", 64))
		if _, err := gitea.ParseWebhook(hookSecret, header, []byte(test.body)); task.CodeOf(err) != task.Unauthorized {
			t.Errorf("%s, not signed: %v", test.name, err)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	f.Add("issues", []byte(`{"issue":{"number":7},"repository":{"full_name":"o/n"}}`))
	f.Add("push", []byte(`{"ref":"refs/heads/x","repository":{"full_name":"o/n"}}`))
	f.Add("", []byte(`null`))
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		delivery, err := gitea.ParseWebhook(hookSecret, hookHeader(event, body, "Gitea"), body)
		if err != nil {
			if task.CodeOf(err) != task.Invalid {
				t.Errorf("%v has the code %s", err, task.CodeOf(err))
			}
			return
		}
		for _, item := range delivery.Items {
			if err := item.Validate(); err != nil || item.Forge != task.Gitea {
				t.Errorf("%v: %v", item, err)
			}
		}
	})
}

// The header has the group of an event only; which of it was enabled is in the action.
func TestWebhookEnabled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ action, issue, pull string }{
		{"opened", "issues", "pull_request"},
		{"closed", "issues", "pull_request"},
		{"unassigned", "issue_assign", "pull_request_assign"},
		{"label_cleared", "issue_label", "pull_request_label"},
		{"synchronized", "", "pull_request_sync"},
		{"reviewed", "", "pull_request_review"},
		{"milestoned", "", ""},
		{"review_requested", "", ""},
		{"", "", ""},
	} {
		for item, want := range map[string]string{"issue": test.issue, "pull_request": test.pull} {
			body := []byte(`{"action":"` + test.action + `","` + item + `":{"number":7},"repository":{"full_name":"o/n"}}`)
			got, err := gitea.ParseWebhook(hookSecret, hookHeader("x", body, "Gitea"), body)
			if err != nil || got.Enabled != want || want != "" && !gitea.WebhookEvents.Has(want) {
				t.Errorf("%s of %s: %q, %v, want %q", test.action, item, got.Enabled, err, want)
			}
		}
	}
}

// A real Gitea with one webhook for each event: each sends what we take for its event,
// and nothing else.
func TestOnGiteaWebhookEvents(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	fixture := newFixture(t, server, server.URL)
	name := fixture.Repository(t)
	type sent struct{ from, enabled string }
	deliveries := make(chan sent, 100)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		delivery, err := gitea.ParseWebhook(hookSecret, r.Header, body)
		if err != nil {
			t.Error(err)
		}
		deliveries <- sent{strings.TrimPrefix(r.URL.Path, "/"), delivery.Enabled}
	}))
	t.Cleanup(listener.Close)
	owner, repository, _ := strings.Cut(name, "/")
	missing := map[string]bool{}
	for _, event := range gitea.WebhookEvents {
		missing[event.Name] = true
		wanted := event.Name
		if wanted == "issues" || wanted == "pull_request" { // which mean the whole group in the API
			wanted += "_only"
		}
		_, _, err := server.Client(t, owner).CreateRepoHook(owner, repository, sdk.CreateHookOption{
			Type: sdk.HookTypeGitea, Active: true, Events: []string{wanted},
			Config: map[string]string{"url": listener.URL + "/" + event.Name, "content_type": "json", "secret": hookSecret},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	person := fixture.Person(t, name, forge.WriteAccess)
	fixture.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	issue := fixture.Issue(t, name, owner, "An issue", "")
	pull := fixture.Pull(t, name, owner, "topic", "main", "A pull request", "")
	for _, item := range []task.Key{issue, pull} {
		id := fixture.Comment(t, item, owner, "A comment")
		fixture.EditComment(t, item, owner, id, "An edited comment")
		fixture.Assign(t, item, owner, person)
		fixture.Label(t, item, owner, true, "urgent")
	}
	head := fixture.Commit(t, name, "topic", map[string]string{"y": "y\n"})
	err := fixture.Forge().SetStatus(t.Context(), name, forge.CommitStatus{Commit: head, Context: "ci", State: forge.StatusFailure})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Review(t, pull, person, forge.Remark, "A review", nil)
	for len(missing) > 0 {
		select {
		case got := <-deliveries:
			if got.from != got.enabled {
				t.Errorf("the webhook for %s sent what we take for %q", got.from, got.enabled)
			}
			delete(missing, got.from)
		case <-t.Context().Done():
			t.Fatalf("nothing came of %v", missing)
		}
	}
}

// TestOnGiteaWebhook lets a real Gitea deliver its webhooks.
func TestOnGiteaWebhook(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	fixture := newFixture(t, server, server.URL)
	name := fixture.Repository(t)
	type result struct {
		delivery forge.Delivery
		err      error
	}
	deliveries := make(chan result, 100)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		delivery, err := gitea.ParseWebhook(hookSecret, r.Header, body)
		deliveries <- result{delivery, err}
	}))
	t.Cleanup(listener.Close)
	owner, repository, _ := strings.Cut(name, "/")
	for _, media := range []string{"json", "form"} {
		_, _, err := server.Client(t, owner).CreateRepoHook(owner, repository, sdk.CreateHookOption{
			Type: sdk.HookTypeGitea, Active: true, Events: []string{"issues", "issue_comment", "pull_request", "pull_request_comment", "issue_label", "push"},
			Config: map[string]string{"url": listener.URL, "content_type": media, "secret": hookSecret},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// expect waits until both hooks have told something, with different ids.
	expect := func(what string, is func(forge.Delivery) bool) {
		t.Helper()
		ids := map[string]bool{}
		for len(ids) < 2 {
			select {
			case got := <-deliveries:
				if got.err != nil || got.delivery.Repository != name {
					t.Fatalf("%s: %+v, %v", what, got.delivery, got.err)
				}
				if is(got.delivery) {
					ids[got.delivery.ID] = true
				}
			case <-t.Context().Done():
				t.Fatalf("%s was not told", what)
			}
		}
	}
	about := func(key task.Key) func(forge.Delivery) bool {
		return func(d forge.Delivery) bool { return cmp.Equal(d.Items, []task.Key{key}) }
	}
	issue := fixture.Issue(t, name, owner, "An issue", "")
	expect("the issue", about(issue))
	fixture.Comment(t, issue, owner, "A comment")
	expect("the comment", about(issue))
	fixture.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	expect("the push", func(d forge.Delivery) bool { return d.Kind == forge.Pushed && d.Branch == "topic" })
	pull := fixture.Pull(t, name, owner, "topic", "main", "A pull request", "")
	expect("the pull request", about(pull))
	fixture.Comment(t, pull, owner, "A comment")
	expect("the comment on the pull request", about(pull))
}
