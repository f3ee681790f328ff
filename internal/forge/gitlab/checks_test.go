package gitlab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

func (c *call) status(status *forgeworld.Status) object {
	return object{
		"id": status.ID, "sha": status.Commit, "ref": "topic", "status": string(status.State), "name": status.Context,
		"target_url": status.URL, "description": status.Description, "created_at": stamp(forgeworld.Now()), "started_at": nil,
		"finished_at": nil, "allow_failure": false, "coverage": nil, "pipeline_id": 1, "author": person(c.user),
	}
}

// jobStates are states that GitLab calls by another name than the port.
var jobStates = map[forge.StatusState]string{forge.StatusFailure: "failed"}

// job is a job as a status. One whose name says so may fail.
func (c *call) job(job *forgeworld.Job) object {
	made := c.status(&job.Status)
	if name, other := jobStates[job.State]; other {
		made["status"] = name
	}
	made["target_url"] = fmt.Sprintf("%s/%s/-/jobs/%d", c.URL, c.repo.Name, job.ID)
	made["description"] = nil
	made["allow_failure"] = strings.Contains(job.Context, "may fail")
	return made
}

func listStatuses(c *call) reply {
	var all []object
	for _, status := range c.repo.Statuses {
		if status.Commit == c.param["sha"] {
			all = append(all, c.status(status))
		}
	}
	for _, job := range c.repo.Jobs {
		if job.Commit == c.param["sha"] {
			all = append(all, c.job(job))
		}
	}
	slices.SortFunc(all, func(a, b object) int { return int(a["id"].(int64) - b["id"].(int64)) })
	if c.request.URL.Query().Get("sort") == "desc" {
		slices.Reverse(all)
	}
	return page(c, all, same)
}

func trace(c *call) reply {
	for _, job := range c.repo.Jobs {
		if fmt.Sprint(job.ID) == c.param["job_id"] {
			return ok(job.Log)
		}
	}
	return notFound
}

func resolveDiscussion(c *call) reply {
	thread := c.thread()
	if thread == nil {
		return notFound
	}
	thread.Resolved = read[struct{ Resolved bool }](c).Resolved
	return ok(c.discussion(thread))
}

func (c *call) detailedStatus(item *forgeworld.Item) string {
	switch {
	case item.State != forge.Open:
		return "not_open"
	case strings.HasPrefix(item.Title, "Draft: "):
		return "draft_status"
	case !item.CanMerge(c.t):
		return "conflict"
	case c.mergeStatus != "":
		return c.mergeStatus
	default:
		return "mergeable"
	}
}

func mergeRequest(c *call) reply {
	switch {
	case c.refuses != 0:
		return refusal(c.refuses, "refused")
	case c.repo.Access[c.user] < forge.WriteAccess:
		return refusal(401, "401 Unauthorized")
	case c.detailedStatus(c.item) != "mergeable":
		return refusal(405, "405 Method Not Allowed")
	case read[struct{ SHA string }](c).SHA != c.item.HeadCommit(c.t):
		return refusal(409, "SHA does not match HEAD of source branch")
	}
	c.item.Merge(c.t)
	return ok(c.mergeRequest(c.item))
}

// TestMergeFollowsTheRules asks for no merge that a rule forbids, and says what kind of
// refusal GitLab gives.
func TestMergeFollowsTheRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status  string
		refuses int
		code    task.Code
	}{
		"mergeable":          {"", 0, ""},
		"checking":           {"checking", 0, task.Unavailable},
		"unchecked":          {"unchecked", 0, task.Unavailable},
		"not approved":       {"not_approved", 0, task.Conflict},
		"a pipeline runs":    {"ci_still_running", 0, task.Conflict},
		"something new":      {"something_new", 0, task.Conflict},
		"the right is lost":  {"", 401, task.Forbidden},
		"not allowed":        {"", 405, task.Conflict},
		"conflicts now":      {"", 406, task.Conflict},
		"the head moved":     {"", 409, task.Conflict},
		"the branch refuses": {"", 422, task.Conflict},
		"down":               {"", 503, task.Unavailable},
	} {
		s := newServer(t)
		fixture := newFixture(t, s, s.URL)
		repository := fixture.Repository(t)
		head := fixture.Commit(t, repository, "topic", map[string]string{"x": "x\n"})
		key := fixture.Pull(t, repository, fixture.Owner.Login, "topic", "main", "Merge it", "")
		s.mergeStatus, s.refuses = test.status, test.refuses
		if err := fixture.Forge().MergePull(t.Context(), key, head); task.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %q", name, err, test.code)
		}
		item, err := fixture.Forge().Item(t.Context(), key)
		if err != nil || (item.State == forge.Merged) != (test.code == "") {
			t.Errorf("%s: it is %s, %v", name, item.State, err)
		}
	}
}

// TestJobs reads every state of jobs, and a status that leads to the page of a job which is
// not its own.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fixture := newFixture(t, s, s.URL)
	repository := fixture.Repository(t)
	head := fixture.Commit(t, repository, "topic", map[string]string{"x": "x\n"})
	want := map[string]forge.StatusState{
		"success": forge.StatusSuccess, "skipped": forge.StatusSuccess, "manual": forge.StatusSuccess,
		"failed": forge.StatusFailure, "canceled": forge.StatusError,
		"created": forge.StatusPending, "pending": forge.StatusPending, "running": forge.StatusPending, "preparing": forge.StatusPending,
		"waiting_for_resource": forge.StatusPending, "scheduled": forge.StatusPending, "canceling": forge.StatusPending,
	}
	for state := range want {
		fixture.Check(t, repository, head, state, forge.StatusState(state), "")
	}
	fixture.Check(t, repository, head, "may fail", forge.StatusFailure, "")
	fixture.Check(t, repository, head, "flips", forge.StatusFailure, "")
	fixture.Check(t, repository, head, "flips", forge.StatusSuccess, "")
	want["may fail"], want["flips"], want["from elsewhere"] = forge.StatusSuccess, forge.StatusSuccess, forge.StatusFailure
	s.world.Lock()
	job := s.world.Repo(repository).Jobs[0].ID
	s.world.Unlock()
	err := fixture.Forge().SetStatus(t.Context(), repository, forge.CommitStatus{
		Commit: head, Context: "from elsewhere", State: forge.StatusFailure, URL: fmt.Sprintf("%s/%s/-/jobs/%d", s.URL, repository, job),
	})
	if err != nil {
		t.Fatal(err)
	}
	checks, err := fixture.Forge().Checks(t.Context(), repository, head)
	if err != nil || len(checks) != len(want) {
		t.Fatalf("%+v, %v", checks, err)
	}
	for _, check := range checks {
		if check.State != want[check.Name] || (check.ID == "") != (check.Name == "from elsewhere") || check.At.IsZero() {
			t.Errorf("%+v, want %s", check, want[check.Name])
		}
	}
}
