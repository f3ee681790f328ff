package gitea_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

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
