package github_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const hookSecret = "It's a Secret to Everybody"

// signed returns the headers of a webhook.
func signed(event string, body []byte) http.Header {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	header := http.Header{}
	header.Set("X-GitHub-Event", event)
	header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return header
}

// TestSignatureOfTheManual is the example by which GitHub's manual lets one try an
// implementation.
func TestSignatureOfTheManual(t *testing.T) {
	t.Parallel()
	header := http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}
	_, err := github.ParseWebhook(hookSecret, header, []byte("Hello, World!"))
	if task.CodeOf(err) != task.Invalid { // it is signed well, and is not JSON
		t.Error(err)
	}
	header.Set("X-Hub-Signature-256", "sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if _, err := github.ParseWebhook(hookSecret, header, []byte("Hello, World!")); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("signed in another way: %v", err)
	}
}

type hookExample struct {
	Name     string
	Examples []json.RawMessage
}

func hookExamples(t testing.TB) []hookExample {
	t.Helper()
	text, err := os.ReadFile(testkit.Contracts(t, "npm", "node_modules", "@octokit", "webhooks-examples", "api.github.com", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var examples []hookExample
	if err := json.Unmarshal(text, &examples); err != nil {
		t.Fatal(err)
	}
	return examples
}

// TestEveryExample reads every example that GitHub published, and compares with
// what the payload says in its addresses.
func TestEveryExample(t *testing.T) {
	t.Parallel()
	kinds := map[string]forge.DeliveryKind{
		"issues": forge.ItemsChanged, "issue_comment": forge.ItemsChanged, "pull_request": forge.ItemsChanged,
		"pull_request_review": forge.ItemsChanged, "pull_request_review_comment": forge.ItemsChanged,
		"pull_request_review_thread": forge.ItemsChanged, "label": forge.RepositoryChanged,
		"status": forge.ChecksChanged, "check_run": forge.ChecksChanged, "check_suite": forge.ChecksChanged,
		"workflow_job": forge.ChecksChanged, "workflow_run": forge.ChecksChanged, "repository": forge.RepositoryChanged, "member": forge.RepositoryChanged, "team_add": forge.RepositoryChanged,
	}
	count := 0
	for _, example := range hookExamples(t) {
		for i, body := range example.Examples {
			count++
			delivery, err := github.ParseWebhook(hookSecret, signed(example.Name, body), body)
			if err != nil {
				t.Errorf("%s %d: %v", example.Name, i, err)
				continue
			}
			want, known := kinds[example.Name]
			if !known && example.Name != "push" {
				want = forge.NothingChanged
			}
			if example.Name != "push" && delivery.Kind != want {
				t.Errorf("%s %d is about %s, want %s", example.Name, i, delivery.Kind, want)
			}
			if delivery.Event != example.Name || delivery.ID != "72d3162e-cc78-11e3-81ab-4c9367dc0958" || delivery.Forge != task.GitHub {
				t.Errorf("%s %d: %+v", example.Name, i, delivery)
			}
			// What was transferred has its new address in the payload.
			if len(delivery.Items) == 1 && !strings.Contains(string(body), itemAddress(delivery.Items[0])) {
				t.Errorf("%s %d: %s is not in the payload", example.Name, i, delivery.Items[0])
			}
		}
	}
	if count < 300 {
		t.Errorf("%d examples were read, want all 300 and more", count)
	}
}

func itemAddress(key task.Key) string {
	number := strings.TrimPrefix(strings.TrimPrefix(key.String(), "github:"+key.Repository), "#")
	if key.Kind == task.Pull {
		return key.Repository + "/pull/" + strings.TrimPrefix(number, "!")
	}
	return key.Repository + "/issues/" + number
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	const repository = `"repository":{"full_name":"o/n"}`
	issue := task.Key{Forge: task.GitHub, Repository: "o/n", Kind: task.Issue, Number: 7}
	pull := task.Key{Forge: task.GitHub, Repository: "o/n", Kind: task.Pull, Number: 8}
	moved := task.Key{Forge: task.GitHub, Repository: "o/m", Kind: task.Issue, Number: 1}
	hash := strings.Repeat("a1", 20)
	checks := forge.Delivery{Kind: forge.ChecksChanged, Commit: hash}
	ofRun, ofStatus := checks, checks
	ofRun.Enabled, ofStatus.Enabled = "check_run", "status"
	tests := []struct {
		name, event, body string
		want              forge.Delivery
		code              task.Code
	}{
		{"assigned", "issues", `{"action":"assigned","issue":{"number":7},` + repository + `}`, forge.Delivery{Kind: forge.ItemsChanged, Enabled: "issues", Items: []task.Key{issue}}, ""},
		{"a comment on a pull request", "issue_comment", `{"issue":{"number":8,"pull_request":{}},` + repository + `}`, forge.Delivery{Kind: forge.ItemsChanged, Enabled: "issue_comment", Items: []task.Key{pull}}, ""},
		{"a review", "pull_request_review", `{"pull_request":{"number":8},` + repository + `}`, forge.Delivery{Kind: forge.ItemsChanged, Enabled: "pull_request_review", Items: []task.Key{pull}}, ""},
		{"a thread resolved", "pull_request_review_thread", `{"pull_request":{"number":8},` + repository + `}`, forge.Delivery{Kind: forge.ItemsChanged, Items: []task.Key{pull}}, ""},
		{"transferred", "issues", `{"action":"transferred","issue":{"number":7},"changes":{"new_issue":{"number":1},"new_repository":{"full_name":"o/m"}},` + repository + `}`, forge.Delivery{Kind: forge.ItemsChanged, Enabled: "issues", Items: []task.Key{issue, moved}}, ""},
		{"pushed", "push", `{"ref":"refs/heads/a/b",` + repository + `}`, forge.Delivery{Kind: forge.Pushed, Branch: "a/b"}, ""},
		{"a tag", "push", `{"ref":"refs/tags/v1",` + repository + `}`, forge.Delivery{Kind: forge.NothingChanged}, ""},
		{"a check run", "check_run", `{"check_run":{"head_sha":"` + hash + `"},` + repository + `}`, ofRun, ""},
		{"a status", "status", `{"sha":"` + hash + `",` + repository + `}`, ofStatus, ""},
		{"a check suite", "check_suite", `{"check_suite":{"head_sha":"` + hash + `"},` + repository + `}`, checks, ""},
		{"a workflow", "workflow_run", `{"workflow_run":{"head_sha":"` + hash + `"},` + repository + `}`, checks, ""},
		{"a job", "workflow_job", `{"workflow_job":{"head_sha":"` + hash + `"},` + repository + `}`, checks, ""},
		{"a status of no commit", "status", `{` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"a status of half a commit", "status", `{"sha":"` + hash[1:] + `",` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"a status of nowhere", "status", `{"sha":"` + hash + `"}`, forge.Delivery{}, task.Invalid},
		{"unknown", "quantum_fork", `{` + repository + `}`, forge.Delivery{Kind: forge.NothingChanged}, ""},
		{"no issue", "issues", `{` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"no pull request", "pull_request", `{` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"no repository", "issues", `{"issue":{"number":7}}`, forge.Delivery{}, task.Invalid},
		{"a repository upwards", "issues", `{"issue":{"number":7},"repository":{"full_name":"../.."}}`, forge.Delivery{}, task.Invalid},
		{"a number below one", "issues", `{"issue":{"number":-7},` + repository + `}`, forge.Delivery{}, task.Invalid},
		{"not JSON", "issues", `{`, forge.Delivery{}, task.Invalid},
		{"another type", "issues", `{"issue":"x"}`, forge.Delivery{}, task.Invalid},
	}
	for _, test := range tests {
		form := []byte(url.Values{"payload": {test.body}}.Encode())
		for media, body := range map[string][]byte{"application/json": []byte(test.body), "application/x-www-form-urlencoded": form} {
			header := signed(test.event, body)
			header.Set("Content-Type", media)
			got, err := github.ParseWebhook(hookSecret, header, body)
			if task.CodeOf(err) != test.code {
				t.Errorf("%s: %v, want %q", test.name, err, test.code)
			}
			if test.code == "" {
				test.want.ID, test.want.Forge, test.want.Event, test.want.Repository = got.ID, task.GitHub, test.event, "o/n"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
		}
	}
}

func FuzzWebhook(f *testing.F) {
	for _, example := range []string{"issues", "issue_comment", "pull_request", "push", "label", "ping", "status"} {
		f.Add(example, []byte(`{"action":"x","sha":"0123456789012345678901234567890123456789","ref":"refs/heads/x","issue":{"number":7,"pull_request":{}},"pull_request":{"number":8},"repository":{"full_name":"o/n"}}`))
	}
	f.Add("issues", []byte(`{"issue":{"number":9223372036854775807},"repository":{"full_name":"a/b/c"}}`))
	f.Add("issues", []byte("null"))
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		header := signed(event, body)
		delivery, err := github.ParseWebhook(hookSecret, header, body)
		checkDelivery(t, delivery, err)
		if _, err := github.ParseWebhook("another secret", header, body); task.CodeOf(err) != task.Unauthorized {
			t.Errorf("with another secret: %v", err)
		}
		if _, err := github.ParseWebhook(hookSecret, header, append(body, ' ')); task.CodeOf(err) != task.Unauthorized {
			t.Errorf("changed on the way: %v", err)
		}
	})
}

// checkDelivery checks what has to hold whatever was sent.
func checkDelivery(t *testing.T, delivery forge.Delivery, err error) {
	t.Helper()
	if err != nil {
		if task.CodeOf(err) != task.Invalid {
			t.Errorf("%v has the code %s", err, task.CodeOf(err))
		}
		return
	}
	if (delivery.Kind == forge.ItemsChanged) != (len(delivery.Items) > 0) {
		t.Errorf("%s with the items %v", delivery.Kind, delivery.Items)
	}
	if (delivery.Kind == forge.ChecksChanged) != (len(delivery.Commit) >= 40) {
		t.Errorf("%s with the commit %q", delivery.Kind, delivery.Commit)
	}
	for _, item := range delivery.Items {
		if err := item.Validate(); err != nil || item.Forge != delivery.Forge {
			t.Errorf("%v: %v", item, err)
		}
	}
}

// TestWrittenTells has everything that people write, edit and delete tell of its item.
func TestWrittenTells(t *testing.T) {
	t.Parallel()
	const about = `"pull_request":{"number":7},"issue":{"number":7,"pull_request":{}},"repository":{"full_name":"o/n"},"sender":{"login":"ann"}}`
	for event, actions := range map[string][]string{
		"issue_comment":               {"created", "edited", "deleted"},
		"pull_request_review":         {"submitted", "edited", "dismissed"},
		"pull_request_review_comment": {"created", "edited", "deleted"},
		"pull_request_review_thread":  {"resolved", "unresolved"},
	} {
		for _, action := range actions {
			body := []byte(`{"action":"` + action + `",` + about)
			got, err := github.ParseWebhook(hookSecret, signed(event, body), body)
			want := task.Key{Forge: task.GitHub, Repository: "o/n", Kind: task.Pull, Number: 7}
			if err != nil || got.Kind != forge.ItemsChanged || len(got.Items) != 1 || got.Items[0] != want || got.Actor != "ann" ||
				got.CommentEdited != (event == "issue_comment" && action == "edited") {
				t.Errorf("%s %s: %+v, %v", event, action, got, err)
			}
		}
	}
}
