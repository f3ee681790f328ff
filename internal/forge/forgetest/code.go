package forgetest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// git runs git with the remote's credential in its environment.
func git(t testing.TB, folder string, remote forge.Remote, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if remote.Password != "" {
		helper := `!f() { echo "username=$TORYO_USERNAME"; echo "password=$TORYO_PASSWORD"; }; f`
		command.Env = append(command.Env, "TORYO_USERNAME="+remote.Username, "TORYO_PASSWORD="+remote.Password,
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential.helper", "GIT_CONFIG_VALUE_0="+helper)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *suite) remote(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	remote := must[forge.Remote](t)(f.Remote(ctx, name))
	if remote.Password != "" && strings.Contains(remote.URL, remote.Password) {
		t.Error("the address has the password in it")
	}
	folder := t.TempDir()
	git(t, folder, remote, "clone", "-q", remote.URL, ".")
	git(t, folder, remote, "checkout", "-q", "-b", "toryo/pushed")
	try(t, os.WriteFile(folder+"/pushed.txt", []byte("pushed\n"), 0o600))
	git(t, folder, remote, "add", "pushed.txt")
	git(t, folder, remote, "commit", "-q", "-m", "Push it")
	git(t, folder, remote, "push", "-q", "origin", "toryo/pushed")
	head := git(t, folder, remote, "rev-parse", "HEAD")
	item, opened, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Pushed"), Head: "toryo/pushed", Base: "main"})
	if err != nil || !opened || item.HeadCommit != head {
		t.Errorf("opened %+v, %v, %v", item, opened, err)
	}
}

func (s *suite) openPull(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	self := must[string](t)(f.Self(ctx))
	head := s.Commit(t, name, "toryo/issue-1", map[string]string{"x": "x\n"})
	post := forge.PullPost{Title: title("Do it"), Text: plain("What was done"), Head: "toryo/issue-1", Base: "main", Draft: true}
	made, opened, err := f.OpenPull(ctx, name, post)
	if err != nil || !opened {
		t.Fatalf("opened %v: %v", opened, err)
	}
	want := forge.Item{
		Key: task.Key{Forge: f.Name(), Repository: name, Kind: task.Pull, Number: made.Key.Number}, Title: "Do it", Body: "What was done",
		State: forge.Open, Author: made.Author, Head: "toryo/issue-1", HeadCommit: head, Base: "main", Draft: true,
		URL: made.URL, CreatedAt: made.CreatedAt, UpdatedAt: made.UpdatedAt,
	}
	if diff := difference(want, made); diff != "" || !task.SameLogin(made.Author, self) {
		t.Errorf("by %s: %s", made.Author, diff)
	}
	if read := must[forge.Item](t)(f.Item(ctx, made.Key)); read.Title != "Do it" || !read.Draft {
		t.Errorf("read %+v", read)
	}
	post.Title = title("Do it again")
	again, opened, err := f.OpenPull(ctx, name, post)
	if err != nil || opened || again.Key != made.Key || again.Title != "Do it" {
		t.Errorf("again: %+v, %v, %v", again, opened, err)
	}
	post.Head = "no-such-branch"
	_, _, err = f.OpenPull(ctx, name, post)
	wantCode(t, err, task.Invalid, task.NotFound)
	_, _, err = f.OpenPull(ctx, name+"-not", post)
	wantCode(t, err, task.NotFound)
}

func (s *suite) findPull(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	s.Commit(t, name, "release/1", map[string]string{"r": "r\n"})
	s.Commit(t, name, "toryo/topic", map[string]string{"x": "x\n"})
	find := func(head, base string) (task.Key, bool) {
		t.Helper()
		item, found, err := f.FindPull(ctx, name, head, base)
		try(t, err)
		return item.Key, found
	}
	if key, found := find("toryo/topic", "main"); found {
		t.Errorf("found %s, which nobody opened", key)
	}
	closed := s.Pull(t, name, author, "toryo/topic", "main", "First try", "")
	s.Close(t, closed, author)
	if key, found := find("toryo/topic", "main"); found {
		t.Errorf("found %s, which is closed", key)
	}
	made, opened, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Second try"), Head: "toryo/topic", Base: "main"})
	if err != nil || !opened {
		t.Fatalf("a second one after the first was closed: %v, %v", opened, err)
	}
	other, opened, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Back-port"), Head: "toryo/topic", Base: "release/1"})
	if err != nil || !opened {
		t.Fatalf("one to another base: %v, %v", opened, err)
	}
	for base, want := range map[string]task.Key{"main": made.Key, "release/1": other.Key, "": made.Key} {
		if key, found := find("toryo/topic", base); !found || key != want {
			t.Errorf("to %q: found %v %s, want %s", base, found, key, want)
		}
	}
	if key, found := find("topic", "main"); found {
		t.Errorf("found %s by half a name", key)
	}
	_, _, err = f.FindPull(ctx, name+"-not", "toryo/topic", "")
	wantCode(t, err, task.NotFound)
}

func (s *suite) editPull(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	made, _, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Title"), Text: plain("Text"), Head: "topic", Base: "main", Draft: true})
	try(t, err)
	s.Label(t, made.Key, author, true, "stays")

	ready, text, newTitle := false, plain("New text"), title("New title")
	steps := []struct {
		edit        forge.PullEdit
		title, text string
		draft       bool
	}{
		{forge.PullEdit{Text: &text}, "Title", "New text", true},
		{forge.PullEdit{Title: &newTitle}, "New title", "New text", true},
		{forge.PullEdit{Draft: &ready}, "New title", "New text", false},
		{forge.PullEdit{Draft: &ready}, "New title", "New text", false},
	}
	for i, step := range steps {
		edited := must[forge.Item](t)(f.EditPull(ctx, made.Key, step.edit))
		read := must[forge.Item](t)(f.Item(ctx, made.Key))
		for _, got := range []forge.Item{edited, read} {
			if got.Title != step.title || got.Body != step.text || got.Draft != step.draft || !got.HasLabel("stays") || got.State != forge.Open {
				t.Errorf("step %d: %+v", i, got)
			}
		}
	}
	wrong := made.Key
	wrong.Number = 99_999
	_, err = f.EditPull(ctx, wrong, forge.PullEdit{Text: &text})
	wantCode(t, err, task.NotFound)
}

// pullWithLines opens a pull request that changes the second of three lines of
// README.md, and adds a file with five.
func (s *suite) pullWithLines(t *testing.T, name, author string) (key task.Key, head string) {
	t.Helper()
	head = s.Commit(t, name, "topic", map[string]string{"README.md": "one\nTWO\nthree\n", "dir/new file.txt": "1\n2\n3\n4\n5\n"})
	return s.Pull(t, name, author, "topic", "main", "Change lines", ""), head
}

func (s *suite) diff(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	base := s.Commit(t, name, "main", map[string]string{"base.txt": "x\n"})
	key, head := s.pullWithLines(t, name, author)
	// What happens on the base afterwards is not part of the change.
	s.Commit(t, name, "main", map[string]string{"elsewhere.txt": "x\n"})

	diff := must[forge.Diff](t)(f.Diff(ctx, key))
	if diff.Head != head || diff.Base != "" && diff.Base != base {
		t.Errorf("from %s to %s, want from %s to %s", diff.Base, diff.Head, base, head)
	}
	if strings.Contains(diff.Patch, "elsewhere.txt") || !strings.Contains(diff.Patch, "+TWO") {
		t.Errorf("patch:\n%s", diff.Patch)
	}
	anchors := must[map[forge.Anchor]bool](t)(diff.Anchors())
	for _, want := range []forge.Anchor{
		{Path: "README.md", Side: forge.OldSide, Line: 2}, {Path: "README.md", Side: forge.NewSide, Line: 2},
		{Path: "README.md", Side: forge.NewSide, Line: 3}, {Path: "dir/new file.txt", Side: forge.NewSide, Line: 5},
	} {
		if !anchors[want] {
			t.Errorf("no anchor at %s in %v", want, anchors)
		}
	}
	if len(anchors) != 11 {
		t.Errorf("%d anchors, want 11: %v", len(anchors), anchors)
	}
}

func (s *suite) reviews(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	reviewer := s.Person(t, name, forge.WriteAccess)
	key, head := s.pullWithLines(t, name, author)
	if got := must[[]forge.Review](t)(f.Reviews(ctx, key)); len(got) != 0 {
		t.Errorf("reviews from the start: %v", got)
	}
	at := forge.Anchor{Path: "README.md", Side: forge.NewSide, Line: 2}
	text := "Not yet."
	if s.SilentReviews {
		text = ""
	}
	s.Review(t, key, reviewer, forge.RequestChanges, text, map[forge.Anchor]string{at: "Why in capitals?"})
	got := must[[]forge.Review](t)(f.Reviews(ctx, key))
	if len(got) != 1 || got[0].Verdict != forge.RequestChanges || got[0].Author != reviewer || got[0].Body != text || got[0].Dismissed {
		t.Fatalf("reviews %+v", got)
	}
	if got[0].Commit != "" && got[0].Commit != head {
		t.Errorf("of commit %s, want %s", got[0].Commit, head)
	}
	threads := must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))
	if len(threads) != 1 || threads[0].Anchor != at || threads[0].Resolved || len(threads[0].Comments) != 1 {
		t.Fatalf("threads %+v", threads)
	}
	comment := threads[0].Comments[0]
	if comment.Kind != task.ReviewComment || comment.Author != reviewer || comment.Body != "Why in capitals?" || comment.ID == "" {
		t.Errorf("comment %+v", comment)
	}
	// A review is not part of the conversation.
	if got := must[[]task.Comment](t)(f.Comments(ctx, key)); len(got) != 0 {
		t.Errorf("comments %+v", got)
	}
	s.Review(t, key, reviewer, forge.Approve, "Now it is good.", nil)
	got = must[[]forge.Review](t)(f.Reviews(ctx, key))
	if last := got[len(got)-1]; last.Verdict != forge.Approve || last.Author != reviewer {
		t.Errorf("the last review is %+v", last)
	}
}

// reviewersAccess asks what those may do who wrote reviews and comments on lines: by the
// login that these come with.
func (s *suite) reviewersAccess(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key, _ := s.pullWithLines(t, name, author)
	may := map[string]forge.Access{}
	for _, access := range []forge.Access{forge.ReadAccess, forge.WriteAccess} {
		reviewer := s.Person(t, name, access)
		may[reviewer] = access
		s.Review(t, key, reviewer, forge.Remark, "Hm.", map[forge.Anchor]string{{Path: "README.md", Side: forge.NewSide, Line: 2}: "Why?"})
	}
	wrote := map[string]bool{}
	for _, thread := range must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key)) {
		for _, comment := range thread.Comments {
			wrote[comment.Author] = true
		}
	}
	for _, review := range must[[]forge.Review](t)(f.Reviews(ctx, key)) {
		if _, known := may[review.Author]; !known {
			t.Errorf("a review of %q, whom nobody knows", review.Author)
		}
	}
	for reviewer, want := range may {
		if !wrote[reviewer] {
			t.Errorf("what %s wrote is by %v", reviewer, wrote)
		}
		if got := must[forge.Access](t)(f.Access(ctx, name, reviewer)); got != want {
			t.Errorf("%s, who reviewed, has %s access, want %s", reviewer, got, want)
		}
	}
}

func (s *suite) submitReview(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	self := must[string](t)(f.Self(ctx))
	key, head := s.pullWithLines(t, name, author)
	post := forge.ReviewPost{
		Verdict: forge.RequestChanges, Text: plain("Two things."), Commit: head, Marker: forge.MarkerOf("review"),
		Comments: []forge.LineComment{
			{Anchor: forge.Anchor{Path: "README.md", Side: forge.OldSide, Line: 2}, Text: plain("This was better.")},
			{Anchor: forge.Anchor{Path: "dir/new file.txt", Side: forge.NewSide, Line: 5}, Text: plain("And five?")},
		},
	}
	made := must[forge.Review](t)(f.SubmitReview(ctx, key, post))
	if made.Verdict != forge.RequestChanges || !task.SameLogin(made.Author, self) || made.Body != post.Body() || made.ID == "" {
		t.Errorf("made %+v", made)
	}
	post.Repeat = true
	again := must[forge.Review](t)(f.SubmitReview(ctx, key, post))
	if again.ID != made.ID {
		t.Errorf("made %s, and %s when repeated", made.ID, again.ID)
	}
	reviews := must[[]forge.Review](t)(f.Reviews(ctx, key))
	if len(reviews) != 1 || reviews[0].Verdict != forge.RequestChanges {
		t.Errorf("reviews %+v", reviews)
	}
	said := map[forge.Anchor]string{}
	for _, thread := range must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key)) {
		for _, comment := range thread.Comments {
			said[thread.Anchor] += forge.StripMarker(comment.Body)
		}
	}
	want := map[forge.Anchor]string{post.Comments[0].Anchor: "This was better.", post.Comments[1].Anchor: "And five?"}
	if diff := difference(want, said); diff != "" {
		t.Error(diff)
	}
	approved := must[forge.Review](t)(f.SubmitReview(ctx, key, forge.ReviewPost{Verdict: forge.Approve, Text: plain("Good."), Marker: forge.MarkerOf("second")}))
	if approved.Verdict != forge.Approve {
		t.Errorf("approved %+v", approved)
	}
	remarked := must[forge.Review](t)(f.SubmitReview(ctx, key, forge.ReviewPost{Verdict: forge.Remark, Text: plain("By the way."), Marker: forge.MarkerOf("third")}))
	if remarked.Verdict != forge.Remark {
		t.Errorf("remarked %+v", remarked)
	}

	s.Commit(t, name, "mine", map[string]string{"mine": "x\n"})
	mine, _, err := f.OpenPull(ctx, name, forge.PullPost{Title: title("Mine"), Head: "mine", Base: "main"})
	try(t, err)
	_, err = f.SubmitReview(ctx, mine.Key, forge.ReviewPost{Verdict: forge.Approve, Text: plain("I am good.")})
	wantCode(t, err, task.Invalid, task.Forbidden)
	key.Number = 99_999
	_, err = f.SubmitReview(ctx, key, post)
	wantCode(t, err, task.NotFound)
}

func (s *suite) reply(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	self := must[string](t)(f.Self(ctx))
	key, _ := s.pullWithLines(t, name, author)
	comments := map[forge.Anchor]string{}
	for line := 1; line <= 5; line++ {
		comments[forge.Anchor{Path: "dir/new file.txt", Side: forge.NewSide, Line: line}] = fmt.Sprint("About line ", line)
	}
	reviewer := s.Person(t, name, forge.WriteAccess)
	s.Review(t, key, reviewer, forge.Remark, "Some questions.", comments)
	threads := must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))
	if len(threads) != 5 {
		t.Fatalf("%d threads, want 5: %+v", len(threads), threads)
	}
	third := threads[slices.IndexFunc(threads, func(t forge.ReviewThread) bool { return t.Anchor.Line == 3 })]
	post := forge.Post{Text: plain("Because of four."), Marker: forge.MarkerOf("reply")}
	made := must[task.Comment](t)(f.Reply(ctx, key, third.ID, post))
	post.Repeat = true
	if again := must[task.Comment](t)(f.Reply(ctx, key, third.ID, post)); again.ID != made.ID {
		t.Errorf("made %s, and %s when repeated", made.ID, again.ID)
	}
	after := must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))
	if len(after) != 5 {
		t.Errorf("%d threads after the reply, want 5", len(after))
	}
	at := slices.IndexFunc(after, func(t forge.ReviewThread) bool { return t.ID == third.ID })
	if at < 0 || len(after[at].Comments) != 2 {
		t.Fatalf("the thread %s is %+v", third.ID, after)
	}
	if diff := difference(made, after[at].Comments[1]); diff != "" || !made.By(self) || made.Kind != task.ReviewComment {
		t.Errorf("the reply by %s: %s", made.Author, diff)
	}
	if all := forge.ReviewComments(after); len(all) != 6 {
		t.Errorf("%d comments in all, want 6", len(all))
	}
	_, err := f.Reply(ctx, key, "no-such-thread", post)
	wantCode(t, err, task.NotFound)
}
