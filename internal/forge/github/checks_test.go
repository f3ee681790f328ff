package github_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// checkRun is a job as GitHub shows it. Others than GitHub's own jobs have another app.
func (c *call) checkRun(job *forgeworld.Job) object {
	run := object{
		"id": job.ID, "name": job.Context, "head_sha": job.Commit, "status": "completed", "conclusion": string(job.State),
		"html_url": fmt.Sprintf("%s/%s/actions/runs/1/job/%d", c.URL, c.repo.Name, job.ID), "details_url": job.URL,
		"started_at": stamp(forgeworld.Now()), "completed_at": stamp(forgeworld.Now()),
		"output": object{"title": job.Description, "summary": nil, "text": nil},
		"app":    object{"id": 15368, "slug": "github-actions", "name": "GitHub Actions"},
	}
	if job.State == forge.StatusPending {
		run["status"], run["conclusion"], run["completed_at"] = "in_progress", nil, nil
	}
	if job.URL != "" {
		run["app"] = object{"id": 7, "slug": "another-app", "name": "Another"}
	}
	return run
}

func checkRuns(c *call) reply {
	if c.request.URL.Query().Get("filter") != "latest" {
		c.t.Errorf("all check runs were asked for")
	}
	if !c.repo.HasCommit(c.t, c.param["ref"]) {
		return refusal(422, "No commit found for SHA: "+c.param["ref"])
	}
	if c.noRuns {
		return refusal(403, "Resource not accessible by integration")
	}
	var found []*forgeworld.Job
	for _, job := range c.repo.Jobs {
		if job.Commit == c.param["ref"] {
			// Of one app only the newest attempt is shown.
			found = slices.DeleteFunc(found, func(old *forgeworld.Job) bool { return old.Context == job.Context && old.URL == job.URL })
			found = append(found, job)
		}
	}
	answer := page(c, found, c.checkRun)
	answer.body = object{"total_count": len(found), "check_runs": answer.body}
	return answer
}

const storagePrefix = "/storage/logs/"

func jobLog(c *call) reply {
	for _, job := range c.repo.Jobs {
		if fmt.Sprint(job.ID) == c.param["job_id"] {
			return reply{status: 302, header: map[string]string{"Location": fmt.Sprintf("%s%s%d?sig=secret", c.URL, storagePrefix, job.ID)}}
		}
	}
	return refusal(404, "Not Found")
}

// serveLog is the storage of logs, which is another host and must not get a credential of
// GitHub's.
func (s *server) serveLog(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || r.URL.Query().Get("sig") != "secret" {
		s.t.Errorf("the storage was sent %v %s", r.Header, r.URL)
	}
	s.world.Lock()
	defer s.world.Unlock()
	for _, repo := range s.world.Repos {
		for _, job := range repo.Jobs {
			if fmt.Sprint(job.ID) == strings.TrimPrefix(r.URL.Path, storagePrefix) {
				for line := range strings.Lines(job.Log) {
					_, _ = fmt.Fprint(w, "2030-01-02T03:04:05.1234567Z ", line)
				}
				return
			}
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func (c *call) allows(method string) bool { return c.only == "" || c.only == method }

func (c *call) mergeableState(item *forgeworld.Item) string {
	switch {
	case item.State != forge.Open:
		return "unknown"
	case item.Draft:
		return "draft"
	case !item.CanMerge(c.t):
		return "dirty"
	case c.state != "":
		return c.state
	default:
		return "clean"
	}
}

func mergePull(c *call) reply {
	post := read[struct {
		SHA    string
		Method string `json:"merge_method"`
	}](c)
	switch {
	case c.item.State != forge.Open, c.item.Draft, !c.item.CanMerge(c.t), !c.allows(post.Method):
		return refusal(405, "Pull Request is not mergeable")
	case post.SHA != c.item.HeadCommit(c.t):
		return refusal(409, "Head branch was modified. Review and try the merge again.")
	case c.repo.Access[c.user] < forge.WriteAccess:
		return refusal(403, "Resource not accessible by integration")
	}
	c.item.Merge(c.t)
	return ok(object{"sha": c.repo.Branch(c.t, c.item.Base), "merged": true, "message": "Pull Request successfully merged"})
}

// TestMergeFollowsTheRules asks for no merge that GitHub would make by the rights of an
// administrator, and for one that the repository allows.
func TestMergeFollowsTheRules(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]task.Code{
		"clean": "", "has_hooks": "", "unstable": "",
		"blocked": task.Conflict, "behind": task.Conflict, "dirty": task.Conflict, "something new": task.Conflict,
		"unknown": task.Unavailable,
	} {
		s := newScene(t)
		s.server.state = state
		item, err := s.Forge().Item(t.Context(), s.pull)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Forge().MergePull(t.Context(), s.pull, item.HeadCommit); task.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", state, err, code)
		}
		after, err := s.Forge().Item(t.Context(), s.pull)
		if err != nil || (after.State == forge.Merged) != (code == "") {
			t.Errorf("%s: it is %s, %v", state, after.State, err)
		}
	}
	for _, method := range []string{"merge", "squash", "rebase"} {
		s := newScene(t)
		s.server.only = method
		item, err := s.Forge().Item(t.Context(), s.pull)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Forge().MergePull(t.Context(), s.pull, item.HeadCommit); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestHiddenCheckRuns keeps the statuses when the check runs may not be read.
func TestHiddenCheckRuns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.noRuns = true
	head := s.Commit(t, s.name, "topic", map[string]string{"x": "x\n"})
	if err := s.Forge().SetStatus(t.Context(), s.name, forge.CommitStatus{Commit: head, Context: "ci", State: forge.StatusFailure}); err != nil {
		t.Fatal(err)
	}
	checks, err := s.Forge().Checks(t.Context(), s.name, head)
	if task.CodeOf(err) != task.Forbidden || len(checks) != 1 || checks[0].Name != "ci" {
		t.Errorf("%+v, %v", checks, err)
	}
}

// TestCheckRuns reads every conclusion, and check runs of which only their app has the log.
func TestCheckRuns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	head := s.Commit(t, s.name, "topic", map[string]string{"x": "x\n"})
	want := map[string]forge.StatusState{
		"success": forge.StatusSuccess, "neutral": forge.StatusSuccess, "skipped": forge.StatusSuccess,
		"failure": forge.StatusFailure, "timed_out": forge.StatusFailure, "action_required": forge.StatusPending,
		"cancelled": forge.StatusError, "pending": forge.StatusPending,
	}
	for conclusion := range want {
		s.Check(t, s.name, head, conclusion, forge.StatusState(conclusion), "")
	}
	s.Check(t, s.name, head, "flips", forge.StatusFailure, "")
	s.Check(t, s.name, head, "flips", forge.StatusSuccess, "")
	want["flips"] = forge.StatusSuccess
	s.Check(t, s.name, head, "of two apps", forge.StatusFailure, "")
	s.Check(t, s.name, head, "of two apps", forge.StatusSuccess, "")
	want["of two apps"] = forge.StatusFailure
	s.Check(t, s.name, head, "of another app", forge.StatusFailure, "")
	want["of another app"] = forge.StatusFailure
	s.World.Lock()
	jobs := s.World.Repo(s.name).Jobs
	jobs[len(jobs)-1].URL = "https://ci.example/1"
	jobs[len(jobs)-2].URL = "https://ci.example/2"
	s.World.Unlock()
	checks, err := s.Forge().Checks(t.Context(), s.name, head)
	if err != nil || len(checks) != len(want) {
		t.Fatalf("%+v, %v", checks, err)
	}
	for _, check := range checks {
		if check.State != want[check.Name] || (check.ID == "") != (check.Name == "of another app") || check.At.IsZero() || check.URL == "" ||
			check.Canceled != (check.Name == "cancelled") {
			t.Errorf("%+v, want %s", check, want[check.Name])
		}
	}
}
