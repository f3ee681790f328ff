package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// moved moves a task and returns it as it is then.
func (h *house) moved(t testing.TB, one task.Task, change store.Change) task.Task {
	t.Helper()
	change.Task, change.Generation = one.ID, one.Generation
	after, err := h.store.Move(t.Context(), change)
	must(t, err)
	return after
}

// claimed hands a task out.
func (h *house) claimed(t testing.TB, one task.Task) task.Task {
	t.Helper()
	held, err := h.store.Claim(t.Context(), []store.Claim{{Task: one.ID, Generation: one.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	must(t, err)
	return held[0]
}

// What an earlier assignment came to is not shown as the result of this one.
func TestOtherWork(t *testing.T) {
	t.Parallel()
	work := &fixedWork{changes: Changes{Files: []ChangedFile{{Path: "gate.go"}}}}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	run.run()
	run.add(task.PhaseChanged, verified(phase.Verdict{Round: 1, Passed: true, Changed: true}))
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	shown := func() string {
		t.Helper()
		_, page := vera.get(path)
		_, checks := vera.get(path + "?tab=checks")
		_, changes := vera.get(path + "?tab=changes")
		_, result, _ := strings.Cut(page, `id="result"`)
		result, _, _ = strings.Cut(result, "</section>")
		_, plan, _ := strings.Cut(page, `id="plan"`)
		plan, _, _ = strings.Cut(plan, "</section>")
		return fmt.Sprintf("passed %v, changed %v, plan %v, unverified %v, environment %v, file %v",
			strings.Contains(result, "Passed"), strings.Contains(result, "Files changed"), strings.Contains(plan, "squeak"),
			strings.Contains(checks, "Not verified yet"), strings.Contains(checks, "bubblewrap"), strings.Contains(changes, "gate.go"))
	}
	if got := shown(); got != "passed true, changed true, plan true, unverified false, environment true, file true" {
		t.Errorf("at the end of the work it says %s", got)
	}
	one = h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	one = h.moved(t, one, store.Change{Trigger: task.Assigned, Reason: task.ReasonRetried})
	if got := shown(); got != "passed false, changed false, plan false, unverified true, environment false, file false" {
		t.Errorf("of the next work it says %s", got)
	}
	if _, checks := vera.get(path + "?tab=checks"); !strings.Contains(checks, "Earlier work") || !strings.Contains(checks, "Round 1") {
		t.Error("what was verified earlier is not there any more")
	}
	h.journal(t, h.claimed(t, one)).add(task.Saved, phase.Entry{Commit: "fedcba98"})
	if _, page := vera.get(path); !strings.Contains(page, "Files changed: 1") {
		t.Error("what the next work has changed is not shown")
	}
}

// A call whose run is over has not ended, and does not run either.
func TestInterruptedCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	begins := phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: "c1", Name: "run", Arguments: `{"command":"make"}`}}
	h.journal(t, one).add(task.ToolCalled, begins)
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	facts := func() string {
		_, page := vera.get(path)
		var all []string
		for _, found := range regexp.MustCompile(`<span class="fact">([^<]*)</span>`).FindAllStringSubmatch(page, -1) {
			all = append(all, found[1])
		}
		return strings.Join(all, ", ")
	}
	if got := facts(); got != "running…" {
		t.Errorf("a call that runs says %q", got)
	}
	one = h.moved(t, one, store.Change{Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
	if got := facts(); got != "interrupted" {
		t.Errorf("after a loss it says %q", got)
	}
	one = h.claimed(t, one)
	run := h.journal(t, one)
	run.add(task.ToolCalled, begins)
	if got := facts(); got != "interrupted, running…" {
		t.Errorf("when the run goes on they say %q", got)
	}
	run.add(task.ToolCalled, called("c1", "run", `{"command":"make"}`, "ok\n[exit code 2]", true))
	h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	if got := facts(); got != "interrupted, exit code 2" {
		t.Errorf("at the end they say %q", got)
	}
	// A link to the beginning of a call leads to its end.
	_, page := vera.get(path)
	ends := regexp.MustCompile(`entry-tool failed" id="e(\d+)"`).FindStringSubmatch(page)[1]
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	if _, entry := vera.get(fmt.Sprintf("%s/entries/%d", path, last-2)); !strings.Contains(entry, "#e"+ends) {
		t.Errorf("the page of the beginning does not lead to %s", ends)
	}
}

// However much a program writes, the page says what runs.
func TestNowAfterMuchOutput(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: "c1", Name: "run", Arguments: `{"command":"go test ./..."}`}})
	line := func(pieces int) string {
		for i := range pieces {
			run.add(task.NoteTaken, phase.Entry{Phase: task.Execution, Status: phase.NoteOutput, Call: &llm.Call{ID: "c1", Name: "run"}, Text: fmt.Sprintf("line %d\n", i)})
		}
		_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
		_, now, _ := strings.Cut(page, "data-now>")
		now, _, _ = strings.Cut(now, "</p>")
		return now
	}
	if now := line(20); !strings.Contains(now, "A tool is running") || !strings.Contains(now, "go test ./...") {
		t.Errorf("after some output it says %q", now)
	}
	if now := line(journalPage); !strings.Contains(now, "A tool is running") || !strings.Contains(now, "<code>run</code>") {
		t.Errorf("after much output it says %q", now)
	}
}

// What programs of calls write is found once, in the call; other output where it is; and a search goes on
// where it ended.
func TestSearchInOutput(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	for i := range 40 {
		text := "quiet\n"
		if i == 25 {
			text = "a hinge\n"
		}
		run.add(task.NoteTaken, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.NoteOutput, Text: text})
	}
	for range 30 {
		run.add(task.NoteTaken, phase.Entry{Phase: task.Execution, Status: phase.NoteOutput, Call: &llm.Call{ID: "c1", Name: "run"}, Text: "hinge\n"})
	}
	run.add(task.ToolCalled, called("c1", "run", `not an object, with a hinge`, "ok", false))
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	found := func(page string) (anchors []string) {
		_, page, _ = strings.Cut(page, `id="found-title"`)
		page, _, _ = strings.Cut(page, `id="journal"`)
		for _, one := range regexp.MustCompile(`href="([^"]*#e\d+)"`).FindAllStringSubmatch(page, -1) {
			anchors = append(anchors, one[1])
		}
		return anchors
	}
	_, page := vera.get(path + "?q=hinge")
	links := found(page)
	if len(links) != 2 {
		t.Fatalf("found are %q", links)
	}
	for _, link := range links {
		_, anchor, _ := strings.Cut(link, "#")
		if _, page := vera.get(link); !strings.Contains(page, `id="`+anchor+`"`) {
			t.Errorf("%s leads to nothing", link)
		}
	}
	var notes []phase.Entry
	for i := range mostFound + 50 {
		notes = append(notes, phase.Entry{Text: fmt.Sprintf("note %d about gates", i)})
	}
	run.add(task.NoteTaken, notes...)
	seen, next, rounds := map[string]bool{}, path+"?q=gates", 0
	for ; next != "" && rounds < 10; rounds++ {
		_, page := vera.get(next)
		for _, link := range found(page) {
			seen[link] = true
		}
		if rounds == 0 && !strings.Contains(page, fmt.Sprintf("note %d about", mostFound+49)) {
			t.Error("the newest is not found first")
		}
		next = ""
		if more := regexp.MustCompile(`href="([^"]*)">Search earlier entries`).FindStringSubmatch(page); more != nil {
			next = strings.ReplaceAll(more[1], "&amp;", "&")
		}
	}
	if len(seen) != mostFound+50 {
		t.Errorf("%d of %d are found in %d rounds", len(seen), mostFound+50, rounds)
	}
}

// Without a script a run can be read from its beginning to its end too.
func TestLaterEntries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A long run")
	run := h.journal(t, one)
	var entries []phase.Entry
	for i := range 500 {
		entries = append(entries, phase.Entry{Text: fmt.Sprintf("note number %d.", i)})
	}
	run.add(task.NoteTaken, entries...)
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	for _, from := range []string{"?at=1", "?at=180", "?after=2"} {
		seen, next := map[string]bool{}, path+from
		first := 500
		for range 20 {
			_, page := vera.get(next)
			for _, found := range regexp.MustCompile(`note number (\d+)\.`).FindAllStringSubmatch(page, -1) {
				var number int
				_, err := fmt.Sscan(found[1], &number)
				must(t, err)
				seen[found[1]], first = true, min(first, number)
			}
			newer := regexp.MustCompile(`<p class="newer"><a href="([^"]+)"`).FindStringSubmatch(page)
			if newer == nil {
				break
			}
			next = strings.ReplaceAll(newer[1], "&amp;", "&")
		}
		if len(seen) != 500-first {
			t.Errorf("from %s on %d of %d entries can be reached", from, len(seen), 500-first)
		}
	}
}

// The box is on the page when people can write to the run, and not when it is over: also on a page that
// was opened before.
func TestBoxFollowsTheState(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "Fix the gate")
	alice, path := h.visitor(t, "alice"), "/tasks/"+string(one.ID)
	boxes := func() string {
		t.Helper()
		_, page := alice.get(path + "?parts")
		_, say, found := strings.Cut(page, `<div id="say" data-part>`)
		say, _, _ = strings.Cut(say, "</section>")
		_, question, _ := strings.Cut(page, `id="question"`)
		question, _, _ = strings.Cut(question, "</section>")
		return fmt.Sprintf("part %v, say %v, answer %v", found, strings.Contains(say, "<textarea"), strings.Contains(question, "<textarea"))
	}
	if got := boxes(); got != "part true, say true, answer false" {
		t.Errorf("while it runs there are %s", got)
	}
	one = h.moved(t, one, store.Change{Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer, Detail: "Which **linseed**?"})
	if got := boxes(); got != "part true, say false, answer true" {
		t.Errorf("while it asks there are %s", got)
	}
	_, page := alice.get(path)
	if strings.Count(page, "linseed") != 1 || !strings.Contains(page, "Which <strong>linseed</strong>?") {
		t.Errorf("the question is there %d times", strings.Count(page, "linseed"))
	}
	h.moved(t, one, store.Change{Trigger: task.Withdrawn, Reason: task.ReasonStopRequested})
	if got := boxes(); got != "part true, say false, answer false" {
		t.Errorf("at the end there are %s", got)
	}
}

// Buttons say what they do to this task.
func TestConsequences(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	alice := h.visitor(t, "alice")
	number := int64(0)
	held := func(kind task.ItemKind, of task.Type) task.Task {
		number++
		key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: kind, Number: number}
		made, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: of, Title: "x", Reason: task.ReasonAssigned}, nil)
		must(t, err)
		return h.claimed(t, made)
	}
	done := store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted}
	for want, one := range map[string]task.Task{
		"The pull request is reviewed again.":              h.moved(t, held(task.Pull, task.Review), done),
		"on the same branch and updates the pull":          h.moved(t, held(task.Pull, task.Development), done),
		"A new run starts.":                                h.moved(t, held(task.Issue, task.Development), done),
		"The task ends permanently and cannot be resumed.": h.moved(t, held(task.Issue, task.Development), store.Change{Trigger: task.PauseSet, Reason: task.ReasonPauseRequested}),
		"The run ends immediately and cannot be res":       held(task.Issue, task.Development),
	} {
		if _, page := alice.get("/tasks/" + string(one.ID)); !strings.Contains(page, want) {
			t.Errorf("a %s in the state %s does not say %q", one.Type, one.State, want)
		}
	}
}

// What people have written and the run has not read yet is shown as such, until it has.
func TestWaitingComments(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "Fix the gate")
	must(t, h.store.StartComments(t.Context(), one.ID, one.Generation, 1))
	say := func(position int64, entries ...task.CommentEntry) {
		t.Helper()
		must(t, h.store.AppendComments(t.Context(), one.ID, 0, position, entries))
	}
	comment := func(id, body string, change task.CommentChange) task.CommentEntry {
		return task.CommentEntry{Comment: task.Comment{ID: id, Kind: task.ItemComment, Author: "alice", Body: body, CreatedAt: time.Now(), UpdatedAt: time.Now()}, Change: change, At: time.Now()}
	}
	say(0, comment("1", "There from the start.", task.CommentPresent))
	refused := comment("4", "Refused.", task.CommentNew)
	refused.Refused = task.ReasonNoWriteAccess
	say(1, comment("2", "Use water.", task.CommentNew), comment("3", "Never mind.", task.CommentNew), refused)
	say(4, comment("2", "Use <b> **oil**.", task.CommentEdited), comment("3", "Never mind.", task.CommentDeleted))
	alice := h.window(t, "alice")
	alice.Open("/tasks/" + string(one.ID))
	alice.IsLive()
	alice.Sees("#waiting .comment", "oil")
	text := get[string](alice, `document.querySelector("#waiting").textContent`)
	for _, wrong := range []string{"start", "water", "Never", "Refused"} {
		if strings.Contains(text, wrong) {
			t.Errorf("%q waits: %q", wrong, text)
		}
	}
	say(6, comment("5", "And silence.", task.CommentNew))
	alice.Sees("#waiting .comment", "silence")
	h.journal(t, one).add(task.SignalTaken, phase.Entry{Step: 1, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 7, Comments: []task.CommentEntry{comment("5", "And silence.", task.CommentNew)}}})
	alice.Until(`document.querySelector("#waiting").textContent.trim() === ""`)
	alice.Sees("#journal .entry-signal", "silence")
}

// A file that is as it was stays as it is on the page when more is saved.
func TestReadingADiffWhileTheRunWorks(t *testing.T) {
	t.Parallel()
	h, work := newMirroredHouse(t)
	one := h.issue(t, "Fix the gate")
	run := h.journal(t, one)
	files := map[string]string{"gate.go": "package gate\n", "hinge.go": "package gate // one\n", "lock.go": "package gate\n"}
	h.save(t, work, one, run, files)
	vera := h.window(t, "vera")
	vera.Open("/tasks/" + string(one.ID) + "?tab=changes")
	vera.IsLive()
	for _, name := range []string{"gate.go", "hinge.go"} {
		vera.Click(`details.file[data-file="` + name + `"] summary`)
		vera.Until(`document.querySelector('details.file[data-file="` + name + `"] table') !== null`)
	}
	vera.Run("mark", chromedp.Evaluate(`document.querySelector('details.file[data-file="gate.go"] table').marked = true; document.querySelector('details.file[data-file="gate.go"] summary').focus()`, nil))
	files["hinge.go"], files["axle.go"] = "package gate // two\n", "package gate\n"
	delete(files, "lock.go")
	h.save(t, work, one, run, files)
	vera.Sees(`details.file[data-file="hinge.go"] td.add`, "two")
	vera.Sees(`details.file .name`, "axle.go")
	if !get[bool](vera, `document.querySelector('details.file[data-file="gate.go"] table').marked === true && document.activeElement.matches('details.file[data-file="gate.go"] summary')`) {
		t.Error("the file that was not changed is another one, or has lost the focus")
	}
	if names := get[string](vera, `[...document.querySelectorAll("details.file")].map((file) => file.dataset.file).join(" ")`); names != "axle.go gate.go hinge.go" {
		t.Errorf("the files are %s", names)
	}
}

// The cost fits a phone, and the links of entries are called by what they show.
func TestSmallThingsOnTheTaskPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	run.run()
	run.add(task.ModelUsed, phase.Entry{Phase: task.Execution, Usage: &phase.Usage{Model: "summary", Usage: llm.Usage{Input: 123_456_789, Output: 98_765_432}, Cost: 1234}})
	vera := h.window(t, "vera")
	vera.Run("take a phone", chromedp.EmulateViewport(390, 850))
	vera.Open("/tasks/" + string(one.ID) + "?tab=cost")
	vera.Sees("table.cost td", "Summaries")
	if wide := get[bool](vera, `[...document.querySelectorAll(".scroll")].some((one) => one.scrollWidth > one.clientWidth) || document.documentElement.scrollWidth > 390`); wide {
		t.Error("the cost has to be scrolled sideways")
	}
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	link := regexp.MustCompile(`(?s)<a class="when"[^>]*>.*?</a>`).FindString(page)
	if strings.Contains(link, "aria-label") || !strings.Contains(link, `<span class="hidden">Entry 1`) || !strings.Contains(link, "<time") {
		t.Errorf("the link to an entry is %s", link)
	}
	// Odd addresses are no trouble.
	for _, odd := range []string{"?after=x", "?after=-3", "?after=999999", "?q=x&before=0", "?q=x&before=-1", "?tab=changes&from=x", "?tab=changes&from=-1", "?tab=changes&from=99", "?tab=changes&file=x"} {
		if status, _ := h.visitor(t, "vera").get("/tasks/" + string(one.ID) + odd); status >= 500 {
			t.Errorf("%s answers %d", url.QueryEscape(odd), status)
		}
	}
}
