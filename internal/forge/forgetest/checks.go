package forgetest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// state returns what a check says, or "" if it is not there.
func (s *suite) state(t *testing.T, repository, commit, name string) forge.StatusState {
	t.Helper()
	all := must[[]forge.Check](t)(s.Forge().Checks(t.Context(), repository, commit))
	at := slices.IndexFunc(all, func(c forge.Check) bool { return c.Name == name })
	if at < 0 {
		return ""
	}
	return all[at].State
}

// checks flips a check back and forth, leaves another one pending, and asks for a commit
// that is not there.
func (s *suite) checks(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	head := s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	other := s.Commit(t, name, "topic", map[string]string{"x": "y\n"})
	set := func(context string, state forge.StatusState) {
		t.Helper()
		try(t, f.SetStatus(ctx, name, forge.CommitStatus{Commit: head, Context: context, State: state}))
	}
	set("ci/slow", forge.StatusPending)
	for _, state := range []forge.StatusState{forge.StatusPending, forge.StatusFailure, forge.StatusSuccess, forge.StatusFailure, forge.StatusSuccess} {
		set("ci/flips", state)
		if got := s.state(t, name, head, "ci/flips"); got != state {
			t.Errorf("set to %s, it is %q", state, got)
		}
	}
	if got := s.state(t, name, head, "ci/slow"); got != forge.StatusPending {
		t.Errorf("what is pending is %q", got)
	}
	if got := s.state(t, name, other, "ci/flips"); got != "" {
		t.Errorf("another commit has it as well: %q", got)
	}
	for _, check := range must[[]forge.Check](t)(f.Checks(ctx, name, head)) {
		_, err := f.CheckLog(ctx, name, check, 1000)
		wantCode(t, err, task.NotFound)
	}
	missing, err := f.Checks(ctx, name, strings.Repeat("0", 39)+"1")
	if len(missing) > 0 {
		t.Errorf("a commit that is not there has %v", missing)
	}
	wantCode(t, err, "", task.NotFound, task.Invalid)
	_, err = f.Checks(ctx, name+"-not", head)
	wantCode(t, err, task.NotFound)
}

// manyChecks has more checks than are read.
func (s *suite) manyChecks(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	head := s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for i := range forge.MaxChecks + 5 {
		try(t, f.SetStatus(ctx, name, forge.CommitStatus{Commit: head, Context: fmt.Sprintf("ci/%03d", i), State: forge.StatusSuccess}))
	}
	all := must[[]forge.Check](t)(f.Checks(ctx, name, head))
	names := map[string]bool{}
	for _, check := range all {
		names[check.Name] = true
	}
	sorted := slices.IsSortedFunc(all, func(a, b forge.Check) int { return strings.Compare(a.Name, b.Name) })
	if len(all) != forge.MaxChecks || len(names) != len(all) || !sorted {
		t.Errorf("%d checks with %d names, by name: %v; want %d", len(all), len(names), sorted, forge.MaxChecks)
	}
}

// checkLog reads the end of a log.
func (s *suite) checkLog(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	head := s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	const end = "\x1b[31m--- FAIL: TestIt\x1b[0m\nexit status 1\n"
	s.Check(t, name, head, "test", forge.StatusFailure, strings.Repeat("0123456789\n", 20_000)+end)
	s.Check(t, name, head, "lint", forge.StatusSuccess, "all is well\n")
	all := must[[]forge.Check](t)(f.Checks(ctx, name, head))
	if len(all) != 2 || all[0].Name != "lint" || all[0].State != forge.StatusSuccess || all[1].State != forge.StatusFailure || all[1].ID == "" {
		t.Fatalf("checks %+v", all)
	}
	const most = 100
	log := must[string](t)(f.CheckLog(ctx, name, all[1], most))
	if len(log) > most || !strings.HasSuffix(log, "\n0123456789\n--- FAIL: TestIt\nexit status 1\n") {
		t.Errorf("the end of the log is %q", log)
	}
	if log := must[string](t)(f.CheckLog(ctx, name, all[0], most)); log != "all is well\n" {
		t.Errorf("a short log is %q", log)
	}
	gone := all[1]
	gone.ID = "999999"
	_, err := f.CheckLog(ctx, name, gone, most)
	wantCode(t, err, task.NotFound)
}

func (s *suite) resolveThread(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key, _ := s.pullWithLines(t, name, author)
	reviewer := s.Person(t, name, forge.WriteAccess)
	s.Review(t, key, reviewer, forge.Remark, "Some questions.", map[forge.Anchor]string{
		{Path: "README.md", Side: forge.NewSide, Line: 2}:        "Why?",
		{Path: "dir/new file.txt", Side: forge.NewSide, Line: 1}: "And this?",
		{Path: "dir/new file.txt", Side: forge.NewSide, Line: 3}: "And that?",
	})
	threads := must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))
	if len(threads) != 3 {
		t.Fatalf("threads %+v", threads)
	}
	for range 2 {
		try(t, f.ResolveThread(ctx, key, threads[1].ID))
	}
	after := must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))
	if len(after) != 3 {
		t.Fatalf("%d threads, want 3: %+v", len(after), after)
	}
	for at, thread := range after {
		if thread.ID != threads[at].ID || thread.Resolved != (at == 1) || len(thread.Comments) != 1 {
			t.Errorf("thread %d: %+v", at, thread)
		}
	}
	// It is still a conversation.
	must[task.Comment](t)(f.Reply(ctx, key, threads[1].ID, forge.Post{Text: plain("Done.")}))
	wantCode(t, f.ResolveThread(ctx, key, "no-such-thread"), task.NotFound)
	wantCode(t, f.ResolveThread(ctx, key, "999999"), task.NotFound)
	key.Number = 99_999
	wantCode(t, f.ResolveThread(ctx, key, threads[0].ID), task.NotFound)
	key.Kind = task.Issue
	wantCode(t, f.ResolveThread(ctx, key, threads[0].ID), task.Invalid)
}

// merge merges, as soon as the forge has found out whether it can.
func (s *suite) merge(t *testing.T, key task.Key, head string) {
	t.Helper()
	err := s.Forge().MergePull(t.Context(), key, head)
	for tries := 0; err != nil && tries < 300; tries++ {
		wantCode(t, err, task.Conflict, task.Unavailable)
		err = s.Forge().MergePull(t.Context(), key, head)
	}
	try(t, err)
}

func (s *suite) mergePull(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	old := s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	head := s.Commit(t, name, "topic", map[string]string{"x": "y\n"})
	made, _, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Merge it"), Head: "topic", Base: "main"})
	try(t, err)
	for _, wrong := range []string{old, "", "topic"} {
		wantCode(t, f.MergePull(ctx, made.Key, wrong), task.Conflict)
	}
	s.merge(t, made.Key, head)
	merged := must[forge.Item](t)(f.Item(ctx, made.Key))
	if merged.State != forge.Merged || merged.HeadCommit != head {
		t.Errorf("merged %+v", merged)
	}
	try(t, f.MergePull(ctx, made.Key, head)) // once more changes nothing

	head = s.Commit(t, name, "later", map[string]string{"later": "x\n"})
	draft, _, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Not yet"), Head: "later", Base: "main", Draft: true})
	try(t, err)
	wantCode(t, f.MergePull(ctx, draft.Key, head), task.Conflict)
	ready := false
	must[forge.Item](t)(f.EditPull(ctx, draft.Key, forge.PullEdit{Draft: &ready}))
	s.Close(t, draft.Key, author)
	wantCode(t, f.MergePull(ctx, draft.Key, head), task.Conflict)
	if item := must[forge.Item](t)(f.Item(ctx, draft.Key)); item.State != forge.Closed {
		t.Errorf("what is closed is %s", item.State)
	}
	missing := made.Key
	missing.Number = 99_999
	wantCode(t, f.MergePull(ctx, missing, head), task.NotFound)
	missing.Kind = task.Issue
	wantCode(t, f.MergePull(ctx, missing, head), task.Invalid)
}

// mergedFiles looks in git at what was merged, and at what cannot be.
func (s *suite) mergedFiles(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	open := func(branch, path, content string) (task.Key, string) {
		t.Helper()
		head := s.Commit(t, name, branch, map[string]string{path: content})
		made, _, err := f.OpenPull(ctx, name, forge.PullPost{Title: title(branch), Head: branch, Base: "main"})
		try(t, err)
		return made.Key, head
	}
	first, firstHead := open("first", "README.md", "one\nTWO\nthree\n")
	second, secondHead := open("second", "README.md", "one\n2\nthree\n")
	third, thirdHead := open("third", "third.txt", "third\n")
	s.merge(t, first, firstHead)
	wantCode(t, f.MergePull(ctx, second, secondHead), task.Conflict, task.Unavailable)
	s.merge(t, third, thirdHead)
	wantCode(t, f.MergePull(ctx, second, secondHead), task.Conflict)
	if item := must[forge.Item](t)(f.Item(ctx, second)); item.State != forge.Open {
		t.Errorf("what contradicts the base is %s", item.State)
	}
	remote := must[forge.Remote](t)(f.Remote(ctx, name))
	folder := t.TempDir()
	git(t, folder, remote, "clone", "-q", "-b", "main", remote.URL, ".")
	for path, want := range map[string]string{"README.md": "one\nTWO\nthree\n", "third.txt": "third\n"} {
		if got := string(must[[]byte](t)(os.ReadFile(folder + "/" + path))); got != want {
			t.Errorf("%s on the base is %q, want %q", path, got, want)
		}
	}
}
