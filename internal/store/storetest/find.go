package storetest

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var findChecks = []check{
	{"a task is found by every way to name it", findTask},
	{"a name that can mean several tasks lists them", findSeveral},
	{"of the tasks of an item the one that was assigned last is found", findNewest},
	{"what narrows a listing by name stands for itself", findLiterally},
}

func onItem(t *testing.T, s store.Store, forge task.Forge, repository string, kind task.ItemKind, number int64, url string) task.Task {
	t.Helper()
	want := newTaskOn(task.Key{Forge: forge, Repository: repository, Kind: kind, Number: number})
	want.URL = url
	made, _, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	return made
}

func findTask(t *testing.T, s store.Store) {
	issue := onItem(t, s, task.Gitea, "team/app", task.Issue, 3, "https://gitea.example.com/team/app/issues/3")
	pull := onItem(t, s, task.GitLab, "a/b/c", task.Pull, 4, "https://gitlab.com/a/b/c/-/merge_requests/4")
	onBoard := onItem(t, s, task.Board, "team/lib", task.Issue, 7, "http://127.0.0.1:8750/board/team/lib/issues/7")
	for name, want := range map[string]task.Task{
		"gitea:team/app#3": issue, "team/app#3": issue, "Team/APP#3": issue, "#3": issue, string(issue.ID): issue, strings.ToUpper(string(issue.ID)): issue,
		"https://toryo.example.com/tasks/" + string(issue.ID): issue, issue.URL: issue, issue.URL + "#issuecomment-1": issue,
		"gitlab:a/b/c!4": pull, "a/b/c!4": pull, "!4": pull, pull.URL: pull, string(pull.ID): pull, string(pull.ID)[:35]: pull,
		"#7": onBoard, "https://elsewhere.example/board/team/lib/issues/7": onBoard,
	} {
		found, err := store.FindTask(t.Context(), s, name)
		must(t, err)
		equal(t, found.ID, want.ID)
	}
	for _, name := range []string{
		"team/app#4", "github:team/app#3", "a/b/c#4", "!3", "ffff-0000", "https://github.com/team/app/issues/3",
		"https://x/tasks/ffffffff-0000-7000-8000-000000000000",
	} {
		_, err := store.FindTask(t.Context(), s, name)
		wantCode(t, err, task.NotFound)
	}
	_, err := store.FindTask(t.Context(), s, "team/app")
	wantCode(t, err, task.Usage)
}

func findSeveral(t *testing.T, s store.Store) {
	one := onItem(t, s, task.Gitea, "team/app", task.Issue, 3, "")
	other := onItem(t, s, task.Board, "team/app", task.Issue, 3, "")
	onItem(t, s, task.Board, "team/lib", task.Issue, 3, "")
	for name, want := range map[string][]string{
		"#3":         {"gitea:team/app#3", "board:team/app#3", "board:team/lib#3", "give the repository too"},
		"board:#3":   {"board:team/app#3", "board:team/lib#3"},
		"team/app#3": {"gitea:team/app#3", "board:team/app#3", "give the forge too"},
		// Ids begin with the time.
		string(one.ID)[:4]: {string(one.ID), string(other.ID), "give more of the id"},
	} {
		_, err := store.FindTask(t.Context(), s, name)
		wantCode(t, err, task.Invalid)
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %q is missing in %v", name, part, err)
			}
		}
	}
	for number := range 30 {
		onItem(t, s, task.Board, "team/app"+strings.Repeat("x", number+1), task.Issue, 8, "")
	}
	_, err := store.FindTask(t.Context(), s, "#8")
	if err == nil || !strings.Contains(err.Error(), "and 20 more") {
		t.Errorf("the list has no end: %v", err)
	}
}

func findNewest(t *testing.T, s store.Store) {
	key := task.Key{Forge: task.GitHub, Repository: "team/app", Kind: task.Pull, Number: 5}
	work, review := newTaskOn(key), newTaskOn(key)
	review.Type = task.Review
	first, _, err := s.Assign(t.Context(), work, nil)
	must(t, err)
	second, _, err := s.Assign(t.Context(), review, nil)
	must(t, err)
	equal(t, got[task.Task](t)(store.FindTask(t.Context(), s, "team/app#5")).ID, second.ID)
	_, err = s.Move(t.Context(), store.Change{Task: first.ID, Trigger: task.Withdrawn})
	must(t, err)
	_, _, err = s.Assign(t.Context(), work, nil)
	must(t, err)
	equal(t, got[task.Task](t)(store.FindTask(t.Context(), s, "team/app#5")).ID, first.ID)
}

func findLiterally(t *testing.T, s store.Store) {
	a := onItem(t, s, task.GitHub, "team/a_b", task.Issue, 1, "")
	b := onItem(t, s, task.GitHub, "team/axb", task.Issue, 2, "")
	for _, test := range []struct {
		filter store.TaskFilter
		want   []task.ID
	}{
		{store.TaskFilter{Newest: true}, []task.ID{b.ID, a.ID}},
		{store.TaskFilter{Newest: true, Limit: 1}, []task.ID{b.ID}},
		{store.TaskFilter{LastChanged: true}, []task.ID{b.ID, a.ID}},
		{store.TaskFilter{Newest: true, Before: b.ID}, []task.ID{a.ID}},
		{store.TaskFilter{Number: 2}, []task.ID{b.ID}},
		{store.TaskFilter{Repositories: []string{"TEAM/a_b", "none/such"}}, []task.ID{a.ID}},
		{store.TaskFilter{Repositories: []string{"' OR 1=1 --"}}, nil},
		{store.TaskFilter{IDStart: string(a.ID)}, []task.ID{a.ID}},
		{store.TaskFilter{IDStart: "%"}, nil},
		{store.TaskFilter{IDStart: "____"}, nil},
	} {
		equal(t, ids(got[[]task.Task](t)(s.ListTasks(t.Context(), test.filter))), test.want)
	}
}
