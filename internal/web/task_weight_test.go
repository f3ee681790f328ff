package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// heaviest is how many bytes a page may have.
const heaviest = 300_000

// light fails if one of the pages has more bytes than a page may have.
func (v *visitor) light(paths ...string) {
	v.t.Helper()
	for _, path := range paths {
		if status, page := v.get(path); status != http.StatusOK || len(page) > heaviest {
			v.t.Errorf("%s answers %d with %d bytes", path, status, len(page))
		}
	}
}

// dense is output of so many bytes of which much more HTML is made.
func dense(bytes int) string { return strings.Repeat("\x1b[32m.\x1b[0m", bytes/10) }

// What programs write does not make a page heavy, however colourful it is, and can be read whole.
func TestNoisyRunsStaySmall(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A noisy run")
	run := h.journal(t, one)
	for i := range 300 {
		run.add(task.NoteTaken, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.NoteOutput, Text: dense(8<<10) + fmt.Sprintf("piece %d.\n", i)})
		if i%40 == 39 { // so that there are several outputs
			run.add(task.NoteTaken, phase.Entry{Text: "A note."})
		}
	}
	for i := range 200 {
		run.add(task.ToolCalled, called(fmt.Sprint(i), "run", `{"command":"make"}`, dense(4000), true))
	}
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	vera.light(path, path+"?at=100", path+"?after=3", path+"?at=300", fmt.Sprintf("%s/journal?before=%d", path, last), path+"/journal?before=300", path+"?parts")
	_, page := vera.get(path + "?at=100")
	output := regexp.MustCompile(`entry-note output" id="e(\d+)"`).FindStringSubmatch(page)
	if output == nil || !strings.Contains(page, "piece ") {
		t.Fatal("the end of the output is not on the page")
	}
	_, part := vera.get(path + "/entries/" + output[1] + "?part=")
	if !strings.Contains(part, `class="term"`) || len(part) < 100_000 || strings.Contains(part, "A note.") {
		t.Errorf("all of the output has %d bytes: %.200s", len(part), part)
	}
	// The whole run can be read, in pieces of whatever size.
	seen, earliest := 0, fmt.Sprint(last+1)
	for range 100 {
		_, piece := vera.get(path + "/journal?before=" + earliest)
		seen += strings.Count(piece, `<li class="entry entry-tool`)
		if earliest = regexp.MustCompile(`data-earliest="(\d+)"`).FindStringSubmatch(piece)[1]; earliest == "1" {
			break
		}
	}
	if seen != 200 || earliest != "1" {
		t.Errorf("%d of 200 calls can be reached, back to %s", seen, earliest)
	}
}

// Long plans, many verifications, moves and comments do not make a page heavy.
func TestLongHistoriesStaySmall(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "A long history")
	run := h.journal(t, one)
	plan := phase.Plan{Revision: 1, GoalUnderstanding: phase.Goal{Goal: "Everything"}}
	for i := range 100 {
		plan.ActionPlan.Actions = append(plan.ActionPlan.Actions, phase.Action{ID: fmt.Sprint(i), What: fmt.Sprintf("Step %d. ", i) + strings.Repeat("長い説明", 450)})
	}
	names := func(of string) (all []string) {
		for i := range 500 {
			all = append(all, fmt.Sprintf("github.com/team/app/internal/gate.TestWithARatherLongName/%s_%d", of, i))
		}
		return all
	}
	for i := range 12 {
		run.add(task.Planned, phase.Entry{Plan: &plan})
		run.add(task.PhaseChanged, verified(phase.Verdict{Round: i + 1, Changed: true, Tests: []phase.TestOutcome{{
			Command: "go test ./...", ExitCode: 1, New: names("new"), Before: names("before"), Fixed: names("fixed"), Flaky: names("flaky"), Output: dense(8 << 10),
		}}}))
	}
	var comments []task.CommentEntry
	for i := range 300 {
		comments = append(comments, task.CommentEntry{Comment: task.Comment{ID: fmt.Sprint(i), Author: fmt.Sprint("person", i), Body: strings.Repeat("x", 100)}, Position: int64(i + 1), Change: task.CommentNew})
	}
	run.add(task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 300, Comments: comments}})
	for range 60 {
		for _, change := range []store.Change{{Trigger: task.PauseSet, Reason: task.ReasonPauseRequested}, {Trigger: task.Resumed, Reason: task.ReasonResumed}} {
			change.Task, change.Generation = one.ID, one.Generation
			moved, err := h.store.Move(t.Context(), change)
			must(t, err)
			one = moved
		}
	}
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	vera.light(path, path+"?at=5", path+"?tab=checks", path+"?tab=cost", path+"?parts", path+"/journal?before=20")
	_, page := vera.get(path)
	if _, side, _ := strings.Cut(page, `id="ledger"`); !strings.Contains(side, "person299") || strings.Contains(side, "person3 ") || !strings.Contains(side, "260 earlier") {
		t.Error("the last comments are not beside the conversation")
	}
	whole := regexp.MustCompile(`href="([^"]*)">The whole plan`).FindStringSubmatch(page)
	if whole == nil {
		t.Fatal("the whole plan cannot be found")
	}
	if _, page := vera.get(whole[1]); !strings.Contains(page, "Step 99. "+strings.Repeat("長い説明", 450)) {
		t.Error("the whole plan is not whole")
	}
	_, checks := vera.get(path + "?tab=checks")
	fold := regexp.MustCompile(`(?s)Round 3\b.*?href="([^"]*)"`).FindStringSubmatch(checks)
	if fold == nil || strings.Count(checks, "<h3>Round") != 12 {
		t.Fatal("not all verifications are named")
	}
	if _, part := vera.get(fold[1] + "?part="); !strings.Contains(part, "TestWithARatherLongName/new_7<") || !strings.Contains(part, "300 more") {
		t.Errorf("the third verification is %.500s", part)
	}
}

// fixedWork is what tasks have changed, as the test says.
type fixedWork struct {
	changes Changes
	diff    string
	err     error
	asked   atomic.Int64
	diffs   atomic.Int64
	entered chan struct{} // gets a value for each who asks; nil if nobody wants to know
	hold    chan struct{} // an answer comes when it is closed; nil means at once
}

func (f *fixedWork) Changes(ctx context.Context, _ task.Task) (Changes, error) {
	f.asked.Add(1)
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return Changes{}, ctx.Err()
		}
	}
	return f.changes, f.err
}

func (f *fixedWork) FileDiff(context.Context, task.Task, Changes, ChangedFile, int) (string, error) {
	f.diffs.Add(1)
	return f.diff, nil
}

func (f *fixedWork) Pulls(context.Context, task.Task) ([]OpenedPull, error) { return nil, nil }

// Changes of many files with long names, and of many lines, do not make a page heavy.
func TestLargeChangesStaySmall(t *testing.T) {
	t.Parallel()
	const lines = 60_000
	work := &fixedWork{diff: fmt.Sprintf("diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,%d @@\n", lines) + strings.Repeat("+\n", lines)}
	for i := range 1500 {
		work.changes.Files = append(work.changes.Files, ChangedFile{Path: fmt.Sprintf("folder/of \"many\"/%s/%04d.go", strings.Repeat("long", 20), i), Kind: "added", Added: 2})
	}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "Many files")
	h.journal(t, one).add(task.Saved, phase.Entry{Commit: "0123abcd"})
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	seen, next := map[string]bool{}, path+"?tab=changes"
	for next != "" {
		vera.light(next)
		_, page := vera.get(next)
		if !strings.Contains(page, "Files changed: 1500") || !strings.Contains(page, "+3000") {
			t.Errorf("%s does not say how much was changed", next)
		}
		for _, found := range regexp.MustCompile(`/(\d{4})\.go</span>`).FindAllStringSubmatch(page, -1) {
			seen[found[1]] = true
		}
		next = ""
		if found := regexp.MustCompile(`href="([^"]*)">Next files`).FindStringSubmatch(page); found != nil {
			next = strings.ReplaceAll(found[1], "&amp;", "&")
		}
	}
	if len(seen) != mostFiles {
		t.Errorf("%d files are named", len(seen))
	}
	_, page := vera.get(path + "?tab=changes")
	file := strings.ReplaceAll(regexp.MustCompile(`href="([^"]*&amp;file=[^"]*)"`).FindStringSubmatch(page)[1], "&amp;", "&")
	vera.light(file, file+"&part=")
	if _, page := vera.get(file); strings.Count(page, "<tr>") > maxFileRows+1 || !strings.Contains(page, "too long to show in full") || strings.Count(page, "data-file=") != 1 {
		t.Error("the page of a file has too much in it, or does not say that something is missing")
	}
	if work.asked.Load() != 1 {
		t.Errorf("the changes were read %d times", work.asked.Load())
	}
}

// Changes are read once for all who look, no page waits long for them, and what could not be read is not
// tried at once again.
func TestChangesAreReadOnce(t *testing.T) {
	t.Parallel()
	work := &fixedWork{changes: Changes{Head: "abcdef0123456789", Files: []ChangedFile{{Path: "gate.go", Kind: "changed"}}}, entered: make(chan struct{}, 10), hold: make(chan struct{})}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	run.add(task.Saved, phase.Entry{Commit: "1"})
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	pages := make(chan string)
	go func() {
		_, page := vera.get(path + "?tab=changes")
		pages <- page
	}()
	<-work.entered
	if status, page := h.visitor(t, "alice").get(path); status != http.StatusOK || strings.Contains(page, "Files changed") {
		t.Errorf("while the changes are read the page answers %d", status)
	}
	if page := <-pages; !strings.Contains(page, "Reading the changes…") || !strings.Contains(page, "data-again") {
		t.Error("the page of the changes does not say that they are being read, or does not ask again")
	}
	close(work.hold)
	if _, page := vera.get(path + "?tab=changes"); !strings.Contains(page, "gate.go") {
		t.Error("what was read is not shown")
	}
	if _, page := vera.get(path); !strings.Contains(page, "Files changed: 1") {
		t.Error("the result does not name the changes")
	}
	if asked := work.asked.Load(); asked != 1 {
		t.Errorf("they were read %d times", asked)
	}
	work.err = task.Errorf(task.Internal, "the mirror is broken")
	run.add(task.Saved, phase.Entry{Commit: "2"})
	for range 3 {
		vera.light(path, path+"?tab=changes")
	}
	if _, page := vera.get(path + "?tab=changes"); !strings.Contains(page, "The changes could not be read") {
		t.Error("the page does not say that the changes cannot be read")
	}
	if asked := work.asked.Load(); asked != 2 {
		t.Errorf("after a failure they were read %d times", asked-1)
	}
}

// What is long is fetched by itself: one comment of several, and what the model thought apart from what it
// said.
func TestPartsOfEntries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	long := strings.Repeat("word ", 600)
	var comments []task.CommentEntry
	for i := range 3 {
		comments = append(comments, task.CommentEntry{Comment: task.Comment{ID: fmt.Sprint(i), Author: "alice", Body: fmt.Sprintf("Comment number %d.\n\n", i) + long}, Position: int64(i + 1), Change: task.CommentNew})
	}
	run.add(task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Comments: comments}})
	run.add(task.MessageSent, phase.Entry{Phase: task.Execution, Conversation: "execution", Message: &conversation.Entry{Kind: conversation.MessageEntry, Message: &llm.Message{
		Role: llm.Assistant, Parts: []llm.Part{{Thinking: &llm.Thinking{Text: "The thought. " + long}}, {Text: "The answer. " + long}},
	}}})
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	_, page := vera.get(path)
	for _, part := range []string{"comment-0", "comment-2", "thinking", "text"} {
		if !strings.Contains(page, `data-load="`+part+`"`) {
			t.Errorf("the page has no place for %s", part)
		}
	}
	for part, want := range map[string]string{"comment-1": "Comment number 1.", "thinking": "The thought.", "text": "The answer."} {
		position := last
		if strings.HasPrefix(part, "comment") {
			position--
		}
		_, got := vera.get(fmt.Sprintf("%s/entries/%d?part=%s", path, position, part))
		for _, text := range []string{"Comment number 0.", "Comment number 1.", "Comment number 2.", "The thought.", "The answer."} {
			if strings.Contains(got, text) != (text == want) {
				t.Errorf("the part %s has %q: %v", part, text, text != want)
			}
		}
	}
	for _, odd := range []string{"comment-9", "comment--1", "comment-x", "nothing"} {
		if status, _ := vera.get(fmt.Sprintf("%s/entries/%d?part=%s", path, last-1, odd)); status != http.StatusOK {
			t.Errorf("the part %s answers %d", odd, status)
		}
	}
}
