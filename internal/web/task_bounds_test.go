package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// said is an entry of a comment log.
func said(id, body string, change task.CommentChange) task.CommentEntry {
	return task.CommentEntry{Comment: task.Comment{ID: id, Kind: task.ItemComment, Author: "alice", Body: body, CreatedAt: time.Now(), UpdatedAt: time.Now()}, Change: change, At: time.Now()}
}

// sectionOf is a part of a page from an id to the end of the section.
func sectionOf(page, id string) string {
	_, section, _ := strings.Cut(page, `id="`+id+`"`)
	section, _, _ = strings.Cut(section, "</section>")
	return section
}

// What a run has read does not wait to be read, also when the task was begun again and no agent has taken
// it yet.
func TestReadCommentsDoNotWaitAfterARetry(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "Fix the gate")
	must(t, h.store.StartComments(t.Context(), one.ID, one.Generation, 1))
	must(t, h.store.AppendComments(t.Context(), one.ID, 0, 0, []task.CommentEntry{said("1", "From the start.", task.CommentPresent), said("2", "Use oil.", task.CommentNew)}))
	h.journal(t, one).add(task.SignalTaken, phase.Entry{Step: 1, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 2, Comments: []task.CommentEntry{said("2", "Use oil.", task.CommentNew)}}})
	one = h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	h.moved(t, one, store.Change{Trigger: task.Assigned, Reason: task.ReasonRetried})
	must(t, h.store.AppendComments(t.Context(), one.ID, 0, 2, []task.CommentEntry{said("3", "And silence.", task.CommentNew)}))
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	if waiting := sectionOf(page, "waiting"); strings.Contains(waiting, "Use oil.") || !strings.Contains(waiting, "And silence.") {
		t.Errorf("after a retry there wait %s", waiting)
	}
}

// A page with everything on it is as light as others: what was found, a long plan, comments that wait and
// a question.
func TestFullPagesStaySmall(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "A full page")
	run := h.journal(t, one)
	plan := phase.Plan{Revision: 1, GoalUnderstanding: phase.Goal{Goal: "Everything"}}
	for i := range 100 {
		plan.ActionPlan.Actions = append(plan.ActionPlan.Actions, phase.Action{ID: fmt.Sprint(i), What: strings.Repeat(`"長い`, 150)})
	}
	run.add(task.Planned, phase.Entry{Plan: &plan})
	for i := range 150 {
		run.add(task.NoteTaken, phase.Entry{Text: fmt.Sprintf("%d 蝶番 ", i) + strings.Repeat(`"`, 300) + strings.Repeat("音がする", 100)})
	}
	run.add(task.NoteTaken, phase.Entry{Text: strings.Repeat(">", 3900), Name: "question-3-0123"})
	must(t, h.store.StartComments(t.Context(), one.ID, one.Generation, 0))
	var comments []task.CommentEntry
	for i := range 12 {
		comments = append(comments, said(fmt.Sprint(i), strings.Repeat(">", 1000), task.CommentNew))
	}
	must(t, h.store.AppendComments(t.Context(), one.ID, 0, 0, comments))
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	vera.light(path, path+"?q=%E8%9D%B6%E7%95%AA", path+"?parts")
	h.moved(t, one, store.Change{Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer, Detail: strings.Repeat(">", 3900)})
	vera.light(path, path+"?q=%E8%9D%B6%E7%95%AA", path+"?q=%E8%9D%B6%E7%95%AA&at=40", path+"?parts")
	// All that was found can be reached.
	seen, next := map[string]bool{}, path+"?q=%E8%9D%B6%E7%95%AA"
	for rounds := 0; next != "" && rounds < 10; rounds++ {
		_, page := vera.get(next)
		for _, found := range regexp.MustCompile(`#e(\d+)"`).FindAllStringSubmatch(sectionOf(page, "found-title"), -1) {
			seen[found[1]] = true
		}
		next = ""
		if more := regexp.MustCompile(`href="([^"]*)">Search earlier entries`).FindStringSubmatch(page); more != nil {
			next = strings.ReplaceAll(more[1], "&amp;", "&")
		}
	}
	if len(seen) != 150 {
		t.Errorf("%d of 150 entries are found", len(seen))
	}
}

// weighed is a database that counts how many bytes of journals are read from it.
type weighed struct {
	store.Store
	read, comments atomic.Int64
	most           atomic.Int64 // of one answer
}

func (w *weighed) count(events []task.Event, err error) ([]task.Event, error) {
	size := int64(0)
	for _, event := range events {
		size += int64(len(event.Data))
	}
	w.read.Add(size)
	w.most.Store(max(w.most.Load(), size))
	return events, err
}

func (w *weighed) EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error) {
	return w.count(w.Store.EventsOf(ctx, id, kinds...))
}

func (w *weighed) EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error) {
	return w.count(w.Store.EventsAfter(ctx, id, position, limit))
}

func (w *weighed) EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error) {
	return w.count(w.Store.EventsBefore(ctx, id, position, limit))
}

func (w *weighed) EventsOfAfter(ctx context.Context, id task.ID, position int64, limit int, kinds ...task.EventKind) ([]task.Event, error) {
	return w.count(w.Store.EventsOfAfter(ctx, id, position, limit, kinds...))
}

func (w *weighed) LastEvent(ctx context.Context, id task.ID, kind task.EventKind) (task.Event, error) {
	event, err := w.Store.LastEvent(ctx, id, kind)
	_, _ = w.count([]task.Event{event}, err)
	return event, err
}

func (w *weighed) CommentsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.CommentEntry, error) {
	entries, err := w.Store.CommentsAfter(ctx, id, position, limit)
	for _, entry := range entries {
		w.comments.Add(int64(len(entry.Body)))
	}
	return entries, err
}

// newWeighedHouse is a house whose pages read from a database that counts.
func newWeighedHouse(t testing.TB) (*house, *weighed) {
	t.Helper()
	from := new(weighed)
	h := newHouse(t, func(o *Options) {
		from.Store = o.Store.(store.Store)
		o.Store = from
	})
	return h, from
}

// A page is made again with every answer of the model. It reads the newest plan, not all of them, and what
// there is much of by pages.
func TestPartsReadLittle(t *testing.T) {
	t.Parallel()
	h, from := newWeighedHouse(t)
	one := h.runningTask(t, 1, "A long plan")
	run := h.journal(t, one)
	plan := phase.Plan{Revision: 1, GoalUnderstanding: phase.Goal{Goal: "Everything"}}
	for i := range 100 {
		plan.ActionPlan.Actions = append(plan.ActionPlan.Actions, phase.Action{ID: fmt.Sprint(i), What: fmt.Sprintf("Step %d. ", i) + strings.Repeat("long ", 200)})
	}
	for i := range plan.ActionPlan.Actions { // each is ticked in its turn
		plan.ActionPlan.Actions[i].Done = true
		run.add(task.Planned, phase.Entry{Plan: &plan})
	}
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	_, page := vera.get(path + "?parts")
	if size := from.read.Load(); size > 200_000 {
		t.Errorf("%d bytes of the journal are read for a plan of 100 kB", size)
	}
	if n := strings.Count(sectionOf(page, "plan"), `<li class="done">`); n != 100 {
		t.Errorf("%d actions are done", n)
	}
	// What grows with the run comes in pages.
	var comments []task.CommentEntry
	for i := range 20 {
		comments = append(comments, said(fmt.Sprint(i), strings.Repeat("x", 100_000), task.CommentNew))
	}
	for range 10 {
		run.add(task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 20, Comments: comments}})
	}
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Execution, Status: phase.PhaseActive})
	from.most.Store(0)
	_, page = vera.get(path + "?parts")
	if most := from.most.Load(); most > store.MaxEventBytes {
		t.Errorf("%d bytes of the journal are read at once", most)
	}
	if !strings.Contains(sectionOf(page, "ledger"), "160 earlier") || phaseBar(page) == "" {
		t.Error("not all of the journal is read")
	}
}

// A page that goes live does not read what people have said before.
func TestGoingLiveReadsNoComments(t *testing.T) {
	t.Parallel()
	h, from := newWeighedHouse(t)
	one := h.runningTask(t, 1, "Much was said")
	var comments []task.CommentEntry
	for i := range 300 {
		comments = append(comments, said(fmt.Sprint(i), strings.Repeat("x", 1000), task.CommentPresent))
	}
	must(t, h.store.AppendComments(t.Context(), one.ID, 0, 0, comments))
	must(t, h.store.StartComments(t.Context(), one.ID, one.Generation, 300))
	revision, err := h.pages.seeTask(one.ID)(t.Context())
	must(t, err)
	if !strings.HasSuffix(revision, "-300") {
		t.Errorf("the revision of the page is %s", revision)
	}
	if size := from.comments.Load(); size > 0 {
		t.Errorf("%d bytes of comments are read", size)
	}
}

// Changes that take long to read come to the page by themselves, although nothing more happens to the
// task.
func TestSlowChangesComeByThemselves(t *testing.T) {
	t.Parallel()
	work := &fixedWork{changes: Changes{Head: "abcdef0123456789", Files: []ChangedFile{{Path: "gate.go", Kind: "changed"}}}, hold: make(chan struct{})}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "Fix the gate")
	h.journal(t, one).add(task.Saved, phase.Entry{Commit: "1"})
	h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	vera := h.window(t, "vera")
	vera.Open("/tasks/" + string(one.ID))
	vera.IsLive()
	if get[bool](vera, `document.querySelector("#result").textContent.includes("Files changed")`) {
		t.Fatal("the changes are there before they were read")
	}
	close(work.hold)
	vera.Sees("#result", "Files changed: 1")
	vera.Until(`!document.querySelector("[data-again]")`)
}

// While the changes of new work are read, those of other work are not shown in their place.
func TestSlowChangesAfterARetry(t *testing.T) {
	t.Parallel()
	work := &fixedWork{changes: Changes{Files: []ChangedFile{{Path: "gate.go", Kind: "changed"}}}}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	run.add(task.Saved, phase.Entry{Commit: "1"})
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	changed := func() bool {
		_, page := vera.get(path)
		return strings.Contains(sectionOf(page, "result"), "Files changed: 1")
	}
	if !changed() {
		t.Fatal("the changes are not shown")
	}
	work.hold = make(chan struct{})
	defer close(work.hold)
	run.add(task.Saved, phase.Entry{Commit: "2"})
	if !changed() {
		t.Error("while more is read there are no changes")
	}
	one = h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	one = h.claimed(t, h.moved(t, one, store.Change{Trigger: task.Assigned, Reason: task.ReasonRetried}))
	h.journal(t, one).add(task.Saved, phase.Entry{Commit: "3"})
	if changed() {
		t.Error("the changes of other work are shown")
	}
}

// The page of one file goes on when the file is as it was again: with all files. Its diff is read once for
// what was saved.
func TestPageOfOneFileGoesOn(t *testing.T) {
	t.Parallel()
	diff := "diff --git a/gate.go b/gate.go\n--- a/gate.go\n+++ b/gate.go\n@@ -1 +1 @@\n-squeak\n+silence\n"
	work := &fixedWork{changes: Changes{Head: "1", Files: []ChangedFile{{Path: "gate.go", Version: "1"}, {Path: "hinge.go", Version: "1"}}}, diff: diff}
	h := newHouse(t, func(o *Options) { o.Work = work })
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	run.add(task.Saved, phase.Entry{Commit: "1"})
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	file := path + "?tab=changes&file=gate.go"
	for range 3 {
		if _, page := vera.get(file + "&parts"); !strings.Contains(page, "silence") || strings.Contains(page, "hinge.go") {
			t.Error("the page of a file does not show it")
		}
	}
	if read := work.diffs.Load(); read != 1 {
		t.Errorf("the diff is read %d times", read)
	}
	work.changes.Head, work.changes.Files[0].Version = "2", "2"
	run.add(task.Saved, phase.Entry{Commit: "2"})
	vera.light(file + "&parts")
	if read := work.diffs.Load(); read != 2 {
		t.Errorf("when more was saved the diff is read %d times", read)
	}
	work.changes = Changes{Head: "3", Files: []ChangedFile{{Path: "hinge.go"}}}
	run.add(task.Saved, phase.Entry{Commit: "3"})
	if status, page := vera.get(file + "&parts"); status != http.StatusOK || !strings.Contains(page, "hinge.go") || !strings.Contains(page, `id="task-head"`) {
		t.Errorf("when the file is as it was the page answers %d", status)
	}
	one = h.moved(t, one, store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted})
	h.moved(t, one, store.Change{Trigger: task.Assigned, Reason: task.ReasonRetried})
	if status, page := vera.get(file + "&parts"); status != http.StatusOK || !strings.Contains(page, "No changes yet") {
		t.Errorf("after a retry the page answers %d", status)
	}
	if status, _ := vera.get(file + "&part="); status != http.StatusNotFound {
		t.Errorf("the diff of a file that is not there answers %d", status)
	}
}

// A call that has not ended is found by its command and by its output, and one that has ended only once.
func TestSearchInInterruptedCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	begins := func(id, command string) phase.Entry {
		return phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: id, Name: "run", Arguments: `{"command":"` + command + `"}`}}
	}
	writes := func(id, text string) phase.Entry {
		return phase.Entry{Phase: task.Execution, Status: phase.NoteOutput, Call: &llm.Call{ID: id, Name: "run"}, Text: text}
	}
	run := h.journal(t, one)
	run.add(task.ToolCalled, begins("c1", "npm install"))
	run.add(task.NoteTaken, writes("c1", "added \x1b[31mhi\x1b[0mnges\n"))
	one = h.claimed(t, h.moved(t, one, store.Change{Trigger: task.Lost, Reason: task.ReasonLeaseExpired}))
	run = h.journal(t, one)
	run.add(task.ToolCalled, begins("c1", "npm install")) // the name comes again
	run.add(task.NoteTaken, writes("c1", "added hinges\n"))
	run.add(task.ToolCalled, called("c1", "run", `{"command":"npm install"}`, "added hinges", false))
	run.add(task.NoteTaken, writes("c1", "late hinges\n")) // which the page does not show
	run.add(task.ToolCalled, begins("c2", "npm install --hinges"))
	run.add(task.NoteTaken, writes("c2", "hinges so far\n"))
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	found := func(words string) int {
		t.Helper()
		_, page := vera.get(path + "?q=" + words)
		links := regexp.MustCompile(`href="([^"]*)#(e\d+)"`).FindAllStringSubmatch(sectionOf(page, "found-title"), -1)
		for _, link := range links {
			if _, page := vera.get(link[1]); !strings.Contains(page, `id="`+link[2]+`"`) {
				t.Errorf("%s of the search for %s leads to nothing", link[0], words)
			}
		}
		return len(links)
	}
	if n := found("install"); n != 3 {
		t.Errorf("the command is found %d times", n)
	}
	if n := found("hinges"); n != 4 {
		t.Errorf("the output is found %d times", n)
	}
	// A search that goes on knows which calls have ended.
	end, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	if n := found(fmt.Sprintf("install&before=%d", end-3)); n != 1 {
		t.Errorf("a search that goes on finds the command %d times", n)
	}
}

// A question is shown whole, or says that there is more and where.
func TestLongQuestions(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	vera := h.visitor(t, "vera")
	asks := func(text string, noted bool) (path, card string) {
		t.Helper()
		one := h.issue(t, "Fix the gate")
		run := h.journal(t, one)
		if noted {
			run.add(task.NoteTaken, phase.Entry{Text: text, Name: "question-3-0123"})
		}
		run.add(task.SignalTaken, phase.Entry{Step: 3, Signal: &phase.SignalEntry{Signal: task.SignalPause, Reason: task.ReasonAwaitingAnswer}})
		h.moved(t, one, store.Change{Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer, Detail: text})
		path = "/tasks/" + string(one.ID)
		vera.light(path)
		_, page := vera.get(path)
		return path, sectionOf(page, "question")
	}
	if _, card := asks(strings.Repeat("どの油？", 600)+"終わり", true); !strings.Contains(card, "終わり") || strings.Contains(card, "…") {
		t.Error("a question of 2,400 characters is not shown whole")
	}
	if _, card := asks(strings.Repeat("どの油？", 600)+"終わり", false); !strings.Contains(card, "どの油？") || !strings.Contains(card, "…") {
		t.Error("a question that is not known whole does not say that it is cut")
	}
	for _, long := range []string{strings.Repeat("どの油？", 20_000) + "終わり", strings.Repeat(">", 100_000) + "終わり"} {
		path, card := asks(long, true)
		whole := regexp.MustCompile(`href="(` + path + `/entries/\d+)"`).FindStringSubmatch(card)
		if whole == nil || !strings.Contains(card, "…") {
			t.Errorf("a question of %d bytes does not say where the rest is", len(long))
			continue
		}
		if _, page := vera.get(whole[1]); !strings.Contains(page, "終わり") {
			t.Error("the whole question is not where the page says")
		}
	}
}

// What a model has before it has headings, which begin with a capital letter.
func TestNamesOfBlocks(t *testing.T) {
	t.Parallel()
	en, ja := visit{language: "en"}, visit{language: "ja"}
	for _, name := range []string{"comments", "diff", "environment_setup", "rules", "understanding"} {
		if text := blockName(en, name); text == name || text[0] < 'A' || text[0] > 'Z' {
			t.Errorf("the block %s is called %q", name, text)
		}
	}
	if text := blockName(ja, "environment_setup"); text != "環境構築の手順" {
		t.Errorf("the set-up of the environment is called %q", text)
	}
	if got := en.t("ledger.waiting") + " " + ja.t("ledger.waiting"); got != "Not included yet 取り込み待ち" {
		t.Errorf("a comment that waits is called %q", got)
	}
}
