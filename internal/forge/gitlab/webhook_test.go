package gitlab_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const hookSecret = "a secret"

func hookHeader() http.Header {
	header := http.Header{}
	header.Set("X-Gitlab-Token", hookSecret)
	header.Set("X-Gitlab-Event", "Some Hook")
	header.Set("Idempotency-Key", "f5e5f430-f57b-4e6e-9fac-d9128cd7232f")
	return header
}

// TestExamples reads the examples that GitLab's own client and another library are
// tested with.
func TestExamples(t *testing.T) {
	t.Parallel()
	issue := func(repository string, number int64) []task.Key {
		return []task.Key{{Forge: task.GitLab, Repository: repository, Kind: task.Issue, Number: number}}
	}
	pull := func(repository string, number int64) []task.Key {
		return []task.Key{{Forge: task.GitLab, Repository: repository, Kind: task.Pull, Number: number}}
	}
	tests := []struct {
		file  string
		kind  forge.DeliveryKind
		items []task.Key
		shows string // which event is enabled
	}{
		{"gitlab/issue.json", forge.ItemsChanged, issue("gitlabhq/gitlab-test", 23), "issues_events"},
		{"gitlab/note_issue.json", forge.ItemsChanged, issue("gitlab-org/gitlab-test", 17), "note_events"},
		{"gitlab/note_merge_request.json", forge.ItemsChanged, pull("gitlab-org/gitlab-test", 1), "note_events"},
		{"gitlab/note_commit.json", forge.NothingChanged, nil, "note_events"},
		{"gitlab/note_snippet.json", forge.NothingChanged, nil, "note_events"},
		{"gitlab/merge_request.json", forge.ItemsChanged, pull("awesome_space/awesome_project", 1), "merge_requests_events"},
		{"gitlab/push.json", forge.Pushed, nil, ""},
		{"gitlab/tag_push.json", forge.NothingChanged, nil, ""},
		{"gitlab/pipeline.json", forge.ChecksChanged, nil, "pipeline_events"},
		{"gitlab-older/issue-event.json", forge.ItemsChanged, issue("gitlabhq/gitlab-test", 23), "issues_events"},
		{"gitlab-older/confidential-issue-event.json", forge.ItemsChanged, issue("gitlabhq/gitlab-test", 23), ""},
		{"gitlab-older/comment-merge-request-event.json", forge.ItemsChanged, pull("gitlab-org/gitlab-test", 1), "note_events"},
		{"gitlab-older/merge-request-event.json", forge.ItemsChanged, pull("awesome_space/awesome_project", 1), "merge_requests_events"},
		{"gitlab-older/system-merge-request-event.json", forge.ItemsChanged, pull("awesome_space/awesome_project", 1), ""},
		{"gitlab-older/system-push-event.json", forge.Pushed, nil, ""},
		{"gitlab-older/system-project-renamed.json", forge.RepositoryChanged, nil, ""},
		{"gitlab-older/system-user-created.json", forge.NothingChanged, nil, ""},
	}
	for _, test := range tests {
		body, err := os.ReadFile(testkit.Contracts(t, "webhooks", filepath.FromSlash(test.file)))
		if err != nil {
			t.Fatal(err)
		}
		header := hookHeader()
		if strings.Contains(test.file, "confidential") {
			header.Set("X-Gitlab-Event", "Confidential Issue Hook")
		}
		got, err := gitlab.ParseWebhook(hookSecret, header, body)
		if err != nil || got.Kind != test.kind || got.ID == "" || got.Forge != task.GitLab {
			t.Errorf("%s: %+v, %v, want %s", test.file, got, err, test.kind)
		}
		if got.Enabled != test.shows {
			t.Errorf("%s shows that %q is enabled, want %q", test.file, got.Enabled, test.shows)
		}
		if diff := cmp.Diff(test.items, got.Items); diff != "" {
			t.Errorf("%s: %s", test.file, diff)
		}
		if (got.Kind == forge.ChecksChanged) != (got.Commit != "") {
			t.Errorf("%s is about the commit %q", test.file, got.Commit)
		}
		if got.Kind == forge.Pushed && got.Branch != "master" {
			t.Errorf("%s: the branch is %q", test.file, got.Branch)
		}
	}
}

// TestEveryExample reads all there are: none that is whole may be refused.
func TestEveryExample(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"gitlab", "gitlab-older"} {
		files, err := filepath.Glob(filepath.Join(testkit.Contracts(t, "webhooks", folder), "*.json"))
		if err != nil || len(files) < 20 {
			t.Fatalf("%d examples, %v", len(files), err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = gitlab.ParseWebhook(hookSecret, hookHeader(), body)
			if filepath.Base(file) == "group_merge_request.json" { // it is shortened, and names no number
				if task.CodeOf(err) != task.Invalid {
					t.Errorf("%s: %v", file, err)
				}
			} else if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestChecksTell has pipelines and jobs tell of their commit. Older servers do not say of
// which project a job is.
func TestChecksTell(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("a1", 20)
	const project = `"project":{"path_with_namespace":"g/s/n"}`
	for _, test := range []struct {
		name, body, commit, enabled string
		kind                        forge.DeliveryKind
		code                        task.Code
	}{
		{"a pipeline", `{"object_kind":"pipeline","object_attributes":{"id":31,"iid":3,"sha":"` + hash + `"},` + project + `}`, hash, "pipeline_events", forge.ChecksChanged, ""},
		{"a job", `{"object_kind":"build","sha":"` + hash + `",` + project + `}`, hash, "job_events", forge.ChecksChanged, ""},
		{"a job of an older server", `{"object_kind":"build","sha":"` + hash + `","project_name":"g / n"}`, "", "job_events", forge.NothingChanged, ""},
		{"no commit", `{"object_kind":"pipeline",` + project + `}`, "", "", "", task.Invalid},
		{"half a commit", `{"object_kind":"build","sha":"` + hash[1:] + `",` + project + `}`, "", "", "", task.Invalid},
		{"a project upwards", `{"object_kind":"build","sha":"` + hash + `","project":{"path_with_namespace":"../.."}}`, "", "", "", task.Invalid},
	} {
		got, err := gitlab.ParseWebhook(hookSecret, hookHeader(), []byte(test.body))
		if task.CodeOf(err) != test.code || got.Kind != test.kind || got.Commit != test.commit || got.Enabled != test.enabled {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}

func TestWebhookOfSomeoneElse(t *testing.T) {
	t.Parallel()
	header := hookHeader()
	for _, token := range []string{"", "another", hookSecret + " "} {
		header.Set("X-Gitlab-Token", token)
		if _, err := gitlab.ParseWebhook(hookSecret, header, []byte(`{}`)); task.CodeOf(err) != task.Unauthorized {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	header.Del("X-Gitlab-Token")
	if _, err := gitlab.ParseWebhook("", header, []byte(`{}`)); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("without a secret of ours: %v", err)
	}
}

func FuzzWebhook(f *testing.F) {
	f.Add([]byte(`{"object_kind":"issue","object_attributes":{"iid":3},"project":{"path_with_namespace":"g/s/n"}}`))
	f.Add([]byte(`{"object_kind":"note","merge_request":{"iid":3},"issue":{"iid":4},"project":{"path_with_namespace":"g/n"}}`))
	f.Add([]byte(`{"event_name":"push","ref":"refs/heads/x"}`))
	f.Add([]byte(`{"object_kind":"merge_request","object_attributes":{"iid":-3,"target":{"path_with_namespace":"../.."}}}`))
	f.Add([]byte(`{"object_kind":"build","sha":"0123456789012345678901234567890123456789","project":{"path_with_namespace":"g/n"}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		delivery, err := gitlab.ParseWebhook(hookSecret, hookHeader(), body)
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
			if err := item.Validate(); err != nil || item.Forge != task.GitLab {
				t.Errorf("%v: %v", item, err)
			}
		}
	})
}

// TestWrittenTells has comments that are written and edited tell of their item, those on
// lines too. GitLab tells nobody of one that is deleted.
func TestWrittenTells(t *testing.T) {
	t.Parallel()
	for _, note := range []string{`"type":null`, `"type":"DiffNote"`, `"type":"DiscussionNote"`} {
		for _, action := range []string{"create", "update"} {
			body := []byte(`{"object_kind":"note","object_attributes":{"id":1,` + note + `,"action":"` + action + `"},"merge_request":{"iid":7},` +
				`"project":{"path_with_namespace":"o/n"},"user":{"username":"ann"}}`)
			got, err := gitlab.ParseWebhook(hookSecret, hookHeader(), body)
			want := task.Key{Forge: task.GitLab, Repository: "o/n", Kind: task.Pull, Number: 7}
			if err != nil || got.Kind != forge.ItemsChanged || len(got.Items) != 1 || got.Items[0] != want || got.Actor != "ann" ||
				got.CommentEdited != (action == "update") {
				t.Errorf("%s %s: %+v, %v", note, action, got, err)
			}
		}
	}
}
