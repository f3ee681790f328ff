package gitea_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
)

// mergeFollowsTheRules has an administrator of a repository merge what its rules forbid, and
// somebody who may not merge at all.
func (p peculiar) mergeFollowsTheRules(t *testing.T) {
	t.Parallel()
	fixture := newFixture(t, p.server, p.server.URL)
	name := fixture.Repository(t)
	owner, repository, _ := strings.Cut(name, "/")
	head := fixture.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	key := fixture.Pull(t, name, owner, "topic", "main", "Merge it", "")
	as := func(login string) *gitea.Forge {
		made, err := gitea.New(gitea.Options{URL: p.server.URL, Token: p.server.Token(t, login)})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for ready := false; !ready; { // Gitea finds out by and by whether it can be merged
		ready = check[*sdk.PullRequest](t)(p.server.Client(t, owner).GetPullRequest(owner, repository, key.Number)).Mergeable
	}
	if err := as(fixture.Person(t, name, forge.ReadAccess)).MergePull(t.Context(), key, head); task.CodeOf(err) != task.Forbidden {
		t.Errorf("somebody who may only read: %v", err)
	}
	check[*sdk.BranchProtection](t)(p.server.Client(t, owner).CreateBranchProtection(owner, repository, sdk.CreateBranchProtectionOption{
		RuleName: "main", RequiredApprovals: 1,
	}))
	if err := as(owner).MergePull(t.Context(), key, head); task.CodeOf(err) != task.Conflict {
		t.Errorf("an administrator, without an approval: %v", err)
	}
	fixture.Review(t, key, fixture.Person(t, name, forge.WriteAccess), forge.Approve, "Well done.", nil)
	squash := sdk.MergeStyleSquash
	check[*sdk.Repository](t)(p.server.Client(t, owner).EditRepo(owner, repository, sdk.EditRepoOption{DefaultMergeStyle: &squash}))
	merge := as(owner)
	err := merge.MergePull(t.Context(), key, head)
	for tries := 0; task.CodeOf(err) == task.Conflict && tries < 300; tries++ { // Gitea looks at it anew, and says so in the same way
		err = merge.MergePull(t.Context(), key, head)
	}
	if err != nil {
		t.Fatalf("with an approval: %v", err)
	}
	merged := check[*sdk.Branch](t)(p.server.Client(t, owner).GetRepoBranch(owner, repository, "main")).Commit
	if commit := check[*sdk.Commit](t)(p.server.Client(t, owner).GetSingleCommit(owner, repository, merged.ID)); len(commit.Parents) != 1 {
		t.Errorf("it was merged with %d parents, though the repository squashes", len(commit.Parents))
	}
}

// TestJobLogs follows what Gitea 1.26 answers about jobs, and what older servers do: these
// have the place of the job in its run in the address, which may be the id of another job.
func TestJobLogs(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a1", 20)
	for name, test := range map[string]struct {
		target, page string // of the status, and of the job with the id 8
		status       int    // of the log
		id, want     string
		code         task.Code
	}{
		"its own":        {"/git/o/n/actions/runs/5/jobs/8", "/git/o/n/actions/runs/5/jobs/8", 200, "8", "b\n", ""},
		"with the host":  {"HOST/git/o/n/actions/runs/5/jobs/8", "HOST/git/o/n/actions/runs/5/jobs/8", 200, "8", "b\n", ""},
		"another run":    {"/git/o/n/actions/runs/5/jobs/8", "/git/o/n/actions/runs/6/jobs/0", 200, "8", "", task.NotFound},
		"no such job":    {"/git/o/n/actions/runs/5/jobs/0", "", 200, "0", "", task.NotFound},
		"it is gone":     {"/git/o/n/actions/runs/5/jobs/8", "/git/o/n/actions/runs/5/jobs/8", 404, "8", "", task.NotFound},
		"the server":     {"/git/o/n/actions/runs/5/jobs/8", "/git/o/n/actions/runs/5/jobs/8", 500, "8", "", task.Unavailable},
		"from elsewhere": {"https://ci.example/git/o/n/actions/runs/5/jobs/8", "", 200, "", "", task.NotFound},
		"no address":     {"", "", 200, "", "", task.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(nil)
			at := func(address string) string {
				return strings.ReplaceAll(address, "HOST", "http://"+server.Listener.Addr().String())
			}
			server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/git/api/v1/repos/o/n/commits/" + commit + "/status":
					statuses := fmt.Sprintf(`{"id": 1, "status": "failure", "context": "CI / test (push)", "target_url": %q, "updated_at": "2030-01-02T03:04:05Z"}`, at(test.target))
					if r.URL.Query().Get("page") != "1" {
						statuses = ""
					}
					_, _ = fmt.Fprintf(w, `{"statuses": [%s]}`, statuses)
				case "/git/api/v1/repos/o/n/actions/jobs/8":
					_, _ = fmt.Fprintf(w, `{"id": 8, "html_url": %q}`, at(test.page))
				case "/git/api/v1/repos/o/n/actions/jobs/8/logs":
					w.WriteHeader(test.status)
					_, _ = fmt.Fprint(w, "2030-01-02T03:04:05.1234567Z aaaaaaaa\n2030-01-02T03:04:05.1234567Z b\n")
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			})
			server.Start()
			defer server.Close()
			made, err := gitea.New(gitea.Options{URL: server.URL + "/git", Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			checks, err := made.Checks(t.Context(), "o/n", commit)
			if err != nil || len(checks) != 1 || checks[0].ID != test.id || strings.HasPrefix(checks[0].URL, "/") || checks[0].At.IsZero() {
				t.Fatalf("%+v, %v", checks, err)
			}
			log, err := made.CheckLog(t.Context(), "o/n", checks[0], 20)
			if log != test.want || task.CodeOf(err) != test.code {
				t.Errorf("%q, %v, want %q", log, err, test.want)
			}
		})
	}
}

// TestJobsByEvent: a job of Gitea's own is the same check whatever it ran for, so that the base,
// which is pushed to, can be compared with a pull request. Others are called what they say.
func TestJobsByEvent(t *testing.T) {
	t.Parallel()
	type set struct{ context, state, description, target string }
	job := func(number int) string { return fmt.Sprintf("/o/n/actions/runs/5/jobs/%d", number) }
	for name, test := range map[string]struct {
		set  []set
		want []forge.Check // name, state, ID and whether it is canceled
	}{
		"pushed":         {[]set{{"CI / test (push)", "failure", "", job(1)}}, []forge.Check{{Name: "CI / test", State: forge.StatusFailure, ID: "1"}}},
		"a pull request": {[]set{{"CI / test (pull_request)", "failure", "", job(2)}}, []forge.Check{{Name: "CI / test", State: forge.StatusFailure, ID: "2"}}},
		"on its target":  {[]set{{"CI / test (pull_request_target)", "success", "", job(2)}}, []forge.Check{{Name: "CI / test", State: forge.StatusSuccess, ID: "2"}}},
		"both, the worst counts": {
			[]set{{"CI / test (push)", "failure", "", job(1)}, {"CI / test (pull_request)", "success", "", job(2)}},
			[]forge.Check{{Name: "CI / test", State: forge.StatusFailure, ID: "1"}},
		},
		"one has not ended": {
			[]set{{"CI / test (push)", "success", "", job(1)}, {"CI / test (pull_request)", "pending", "", job(2)}},
			[]forge.Check{{Name: "CI / test", State: forge.StatusPending, ID: "2"}},
		},
		"two workflows of the same name": {
			[]set{{"CI / test (push)", "failure", "", job(1)}, {"CI / test (push)", "success", "", job(2)}},
			[]forge.Check{{Name: "CI / test", State: forge.StatusFailure, ID: "1"}},
		},
		"part of the name": {
			[]set{{"CI / a (push) b (push)", "failure", "", job(1)}, {"CI / test (release)", "failure", "", job(2)}},
			[]forge.Check{{Name: "CI / a (push) b", State: forge.StatusFailure, ID: "1"}, {Name: "CI / test (release)", State: forge.StatusFailure, ID: "2"}},
		},
		"not Gitea's": {
			[]set{{"CI / test (push)", "failure", "", "https://ci.example/o/n/actions/runs/5/jobs/1"}, {"CI / test (pull_request)", "success", "", ""}},
			[]forge.Check{{Name: "CI / test (pull_request)", State: forge.StatusSuccess}, {Name: "CI / test (push)", State: forge.StatusFailure}},
		},
		"canceled":          {[]set{{"CI / test (push)", "failure", "Has been cancelled", job(1)}}, []forge.Check{{Name: "CI / test", State: forge.StatusError, ID: "1", Canceled: true}}},
		"canceled, newer":   {[]set{{"CI / test (push)", "failure", "Canceled after 3s", job(1)}}, []forge.Check{{Name: "CI / test", State: forge.StatusError, ID: "1", Canceled: true}}},
		"others may say so": {[]set{{"ci", "failure", "Has been cancelled", "https://ci.example/1"}}, []forge.Check{{Name: "ci", State: forge.StatusFailure}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var statuses []map[string]any
				for i, one := range test.set {
					if r.URL.Query().Get("page") == "1" {
						statuses = append(statuses, map[string]any{"id": i + 1, "context": one.context, "status": one.state, "description": one.description, "target_url": one.target})
					}
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"statuses": statuses})
			}))
			defer server.Close()
			made, err := gitea.New(gitea.Options{URL: server.URL, Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := made.Checks(t.Context(), "o/n", strings.Repeat("a1", 20))
			if err != nil {
				t.Fatal(err)
			}
			for i, check := range got {
				got[i] = forge.Check{Name: check.Name, State: check.State, ID: check.ID, Canceled: check.Canceled}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnreadChecks: a list of which not all was read does not look whole, however few names the
// statuses that were read have.
func TestUnreadChecks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statuses, want int
		unread         bool
	}{
		"all are read":   {400, 1, false},
		"some are not":   {700, 2, true},
		"just all of it": {600, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, err := strconv.Atoi(r.URL.Query().Get("page"))
				if err != nil {
					t.Error(err)
				}
				var statuses []map[string]any
				for id := (page-1)*50 + 1; id <= min(page*50, test.statuses); id++ {
					statuses = append(statuses, map[string]any{"id": id, "context": "CI / test (push)", "status": "success", "target_url": fmt.Sprintf("/o/n/actions/runs/5/jobs/%d", id)})
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"statuses": statuses})
			}))
			defer server.Close()
			made, err := gitea.New(gitea.Options{URL: server.URL, Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := made.Checks(t.Context(), "o/n", strings.Repeat("a1", 20))
			unread := slices.ContainsFunc(got, func(c forge.Check) bool { return c == forge.Unread() && c.Failed() })
			if err != nil || len(got) != test.want || unread != test.unread {
				t.Errorf("checks %+v, error %v", got, err)
			}
		})
	}
}

// TestResolveOnOlderServers: a server without the call says so, and one that refuses too.
func TestResolveOnOlderServers(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]task.Code{
		http.StatusNotFound: task.Unsupported, http.StatusMethodNotAllowed: task.Unsupported,
		http.StatusForbidden: task.Forbidden, http.StatusBadGateway: task.Unavailable, http.StatusNoContent: "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := `[]`
			switch r.URL.Path {
			case "/api/v1/repos/o/n/pulls/1/reviews":
				answer = `[{"id": 3, "state": "COMMENT", "comments_count": 1, "submitted_at": "2030-01-02T03:04:05Z"}]`
			case "/api/v1/repos/o/n/pulls/1/reviews/3/comments":
				answer = `[{"id": 4, "path": "x", "position": 1}]`
			case "/api/v1/repos/o/n/pulls/comments/4/resolve":
				w.WriteHeader(status)
				return
			}
			w.Header().Set("X-Total-Count", "1")
			_, _ = fmt.Fprint(w, answer)
		}))
		made, err := gitea.New(gitea.Options{URL: server.URL, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		key := task.Key{Forge: task.Gitea, Repository: "o/n", Kind: task.Pull, Number: 1}
		if err := made.ResolveThread(t.Context(), key, "4"); task.CodeOf(err) != code {
			t.Errorf("%d: %v, want %q", status, err, code)
		}
		server.Close()
	}
}
