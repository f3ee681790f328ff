package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// mirrored is the work of tasks in real mirrors of the repositories of the board.
type mirrored struct {
	*mirror.Mirrors
	root  string
	pulls []OpenedPull
}

func (m *mirrored) Changes(ctx context.Context, t task.Task) (Changes, error) {
	found, err := m.Mirrors.Changes(ctx, t.Key, t.ID)
	changes := Changes{Base: found.Base, Head: found.Head, More: found.More}
	for _, file := range found.Files {
		changes.Files = append(changes.Files, ChangedFile(file))
	}
	return changes, err
}

func (m *mirrored) FileDiff(ctx context.Context, t task.Task, between Changes, file ChangedFile, most int) (string, error) {
	return m.Mirrors.FileDiff(ctx, t.Key.Repo(), mirror.Changes{Base: between.Base, Head: between.Head}, mirror.ChangedFile(file), most)
}

func (m *mirrored) Pulls(context.Context, task.Task) ([]OpenedPull, error) { return m.pulls, nil }

// newMirroredHouse is a house with a repository and mirrors.
func newMirroredHouse(t testing.TB, options ...with) (*house, *mirrored) {
	t.Helper()
	work := &mirrored{root: t.TempDir()}
	h := newSteeredHouse(t, append(options, func(o *Options) { o.Work = work })...)
	h.repository(t)
	h.mirror(t, work)
	return h, work
}

// mirror opens the mirrors of the repositories of a house.
func (h *house) mirror(t testing.TB, work *mirrored) {
	t.Helper()
	var err error
	work.Mirrors, err = mirror.Open(t.Context(), mirror.Options{Root: work.root, Remote: func(_ context.Context, r task.Repository) (forge.Remote, error) {
		return forge.Remote{URL: "file://" + h.board.Path(r.Name)}, nil
	}})
	must(t, err)
	t.Cleanup(work.Stop)
}

// save pushes files as the work in progress of a task, and notes it as a run does.
func (h *house) save(t testing.TB, work *mirrored, of task.Task, run *journalWriter, files map[string]string) {
	t.Helper()
	must(t, work.Fetch(t.Context(), of.Key.Repo(), 0))
	must(t, work.Seed(t.Context(), mirror.Seed{Repository: of.Key.Repo(), Task: of.ID, Base: "main"}))
	clone := t.TempDir()
	git(t, clone, "clone", "-q", h.board.Path("team/app"), ".")
	for path, content := range files {
		write(t, clone, path, content)
	}
	git(t, clone, "add", "--all")
	git(t, clone, "commit", "-q", "-m", "Work in progress")
	git(t, clone, "push", "-q", "--force", filepath.Join(work.root, "board", "team%2Fapp.git"), "HEAD:refs/namespaces/"+string(of.ID)+"/"+task.WIPRef)
	run.add(task.Saved, phase.Entry{Step: 1, Commit: fmt.Sprintf("0123abcd%d", run.next)})
}

// issue makes an issue on the board and a task for it that an agent holds.
func (h *house) issue(t testing.TB, title string) task.Task {
	t.Helper()
	_, err := h.board.EnsureUser(t.Context(), "bob", forge.WriteAccess)
	must(t, err)
	made, err := h.board.As("bob").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: title, Body: "As it says.", Assignees: []string{bot}})
	must(t, err)
	return h.runningTask(t, made.Key.Number, title)
}

var (
	barOf  = regexp.MustCompile(`(?s)<ol class="phases".*?</ol>`)
	stepOf = regexp.MustCompile(`(?s)<li class="([^"]*)"( aria-current="step")?>\s*([A-Za-z-]+)`)
)

// phaseBar is the phase bar of a page in one line: the status of each phase that has one.
func phaseBar(page string) string {
	var parts []string
	for _, found := range stepOf.FindAllStringSubmatch(barOf.FindString(page), -1) {
		if found[1] != "" {
			here := ""
			if found[2] != "" {
				here = "*"
			}
			parts = append(parts, found[3]+here+"="+found[1])
		}
	}
	return strings.Join(parts, " ")
}

// The phase bar says how far the work is, whatever became of the run: a pause, another generation, a
// stop and a failure leave what is done as done, and say where the work stands.
func TestPhaseBar(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	alice := h.visitor(t, "alice")
	wants := func(when, want string) {
		t.Helper()
		if _, page := alice.get("/tasks/" + string(one.ID)); phaseBar(page) != want {
			t.Errorf("%s the bar says %q, want %q", when, phaseBar(page), want)
		}
	}
	move := func(change store.Change) {
		t.Helper()
		change.Task, change.Generation = one.ID, one.Generation
		after, err := h.store.Move(t.Context(), change)
		must(t, err)
		one = after
	}
	claim := func() {
		t.Helper()
		held, err := h.store.Claim(t.Context(), []store.Claim{{Task: one.ID, Generation: one.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
		must(t, err)
		one = held[0]
		run = h.journal(t, one)
	}
	wants("before the run has begun", "")
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseActive}, phase.Entry{Phase: task.Planning, Status: phase.PhaseCompleted},
		phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseActive}, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseCompleted},
		phase.Entry{Phase: task.Execution, Status: phase.PhaseActive})
	before := "Pre-planning=skipped Planning=completed Environment=completed "
	wants("in execution", before+"Execution*=active")
	move(store.Change{Trigger: task.PauseSet, Reason: task.ReasonPauseRequested})
	wants("after a pause", before+"Execution*=paused")
	move(store.Change{Trigger: task.Resumed, Reason: task.ReasonResumed})
	wants("after it was resumed", before+"Execution*=waiting")
	claim()
	wants("when another run goes on", before+"Execution*=active")
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Reflection, Status: phase.PhaseActive})
	wants("in a reflection", before+"Execution=active Reflection*=active")
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Reflection, Status: phase.PhaseCompleted})
	wants("after a reflection", before+"Execution*=active Reflection=completed")
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Execution, Status: phase.PhaseCompleted},
		phase.Entry{Phase: task.Verification, Status: phase.PhaseActive}, phase.Entry{Phase: task.Verification, Status: phase.PhaseFailed})
	wants("after a failed verification", before+"Execution=completed Reflection=completed Verification=failed")
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Execution, Status: phase.PhaseActive})
	wants("in another round", before+"Execution*=active")
	move(store.Change{Trigger: task.Withdrawn, Reason: task.ReasonStopRequested})
	wants("after a stop", before+"Execution=stopped")
	move(store.Change{Trigger: task.Assigned, Reason: task.ReasonRetried})
	wants("after a retry", "")
	claim()
	run.add(task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseActive}, phase.Entry{Phase: task.Planning, Status: phase.PhaseFailed})
	move(store.Change{Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
	wants("after a failure", "Pre-planning=skipped Planning=failed")
}

// A call is a line with how it ended and how long it took; its output has colours, and an edit is a
// diff.
func TestCallsAreLines(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	calls := 0
	ended := func(name, arguments string, result phase.CallResult) {
		t.Helper()
		calls++
		run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: fmt.Sprint("c", calls), Name: name, Arguments: arguments}, Result: &result})
	}
	ended("run", `{"command":"go test ./..."}`, phase.CallResult{
		Text: "ok\n[exit code 1]", Whole: "\x1b[31mFAIL\x1b[0m hinge", Failed: true, Exit: &phase.CallExit{Code: 1}, Milliseconds: 4100,
	})
	ended("run", `{"command":"make"}`, phase.CallResult{Text: "<untrusted source=\"command output\">\nbuilt\n</untrusted>\n[exit code 0]", Exit: &phase.CallExit{}, Milliseconds: 65_000})
	ended("run", `{"command":"sleep 999"}`, phase.CallResult{Text: "x", Failed: true, Exit: &phase.CallExit{Code: -1, TimedOut: true}})
	ended("edit", `{"command":"replace","path":"gate.go","old":"func Open() {\n\tsqueak()\n}","new":"func Open() {\n\tsilence()\n\tshut()\n}"}`, phase.CallResult{Text: "Replaced 1 occurrence(s) in gate.go"})
	ended("read", `{"path":"hinge.go"}`, phase.CallResult{Text: "1\tpackage hinge"})
	ended("mcp_search", `{"limit":3,"query":"how do\nhinges work"}`, phase.CallResult{Text: "with oil"})
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	flat := strings.Join(strings.Fields(page), " ")
	for what, text := range map[string]string{
		"the command":            `<code>go test ./...</code>`,
		"its exit code":          `<span class="fact">exit code 1</span>`,
		"how long it took":       `<span class="fact">4.1 s</span>`,
		"the colours":            `<span class="f1">FAIL</span> hinge`,
		"a longer time":          `<span class="fact">1 min 5 s</span>`,
		"that it was cut off":    `<span class="fact">timed out</span>`,
		"what was edited":        `<code>gate.go</code>`,
		"how much":               `<span class="fact">+2 −1</span>`,
		"what an edit removes":   `<span class="minus">- squeak() </span>`,
		"what it adds":           `<span class="plus">+ silence() </span>`,
		"what stays":             `func Open() {`,
		"what was read":          `<span>Read</span> <code>hinge.go</code>`,
		"the argument of a tool": `<code>how do hinges work</code>`,
		"with its line ends":     "<pre>how do hinges work</pre>",
	} {
		if !strings.Contains(flat, text) {
			t.Errorf("the page does not show %s: %q is missing", what, text)
		}
	}
	for _, text := range []string{`\n`, "[exit code", "untrusted", "Replaced 1 occurrence"} {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

// What people said stands where the run took it up, with its text and what became of it.
func TestCommentsInPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	h.journal(t, one).add(task.SignalTaken, phase.Entry{Step: 1, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 2, Comments: []task.CommentEntry{
		{Comment: task.Comment{ID: "1", Author: "alice", Body: "Use **oil**, please."}, Position: 1, Change: task.CommentNew},
		{Comment: task.Comment{ID: "2", Kind: task.ReviewComment, Author: "bob", Body: "Here too.", About: "gate.go:4"}, Position: 2, Change: task.CommentEdited},
		{Comment: task.Comment{ID: "3", Author: "mallory"}, Position: 3, Change: task.CommentNew, Refused: task.ReasonNoWriteAccess},
	}}})
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	_, log, _ := strings.Cut(page, `id="journal"`)
	log, _, _ = strings.Cut(log, "<aside>")
	for _, text := range []string{"Use <strong>oil</strong>, please.", "Included", "Here too.", "<code>gate.go:4</code>", "Edit included", "mallory", "Not included"} {
		if !strings.Contains(log, text) {
			t.Errorf("the conversation has no %q", text)
		}
	}
}

// Every entry has an address: a page of its own, and its place in the conversation, however long ago
// it was.
func TestEveryEntryHasAnAddress(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A long run")
	run := h.journal(t, one)
	var entries []phase.Entry
	for i := range 400 {
		entries = append(entries, phase.Entry{Text: fmt.Sprintf("note number %d.", i)})
	}
	run.add(task.NoteTaken, entries...)
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	vera, path := h.visitor(t, "vera"), "/tasks/"+string(one.ID)
	first := last - 399
	_, page := vera.get(fmt.Sprintf("%s/entries/%d", path, first+7))
	in := fmt.Sprintf("%s?at=%d#e%d", path, first+7, first+7)
	if !strings.Contains(page, "note number 7.") || strings.Contains(page, "note number 8.") || !strings.Contains(page, in) {
		t.Errorf("the page of an entry is\n%s", page)
	}
	_, page = vera.get(fmt.Sprintf("%s?at=%d", path, first+200))
	for text, want := range map[string]bool{"note number 200.": true, "note number 190.": true, "note number 210.": true, "note number 399.": false, "note number 1.": false, "earlier entries of the run": true} {
		if strings.Contains(page, text) != want {
			t.Errorf("around entry 200 %q is there: %v", text, !want)
		}
	}
	if !strings.Contains(page, fmt.Sprintf(`id="e%d"`, first+200)) {
		t.Error("the entry cannot be jumped to")
	}
	// Without a script the whole run can be read, from one end to the other.
	seen := map[string]bool{}
	next := path
	for range 20 {
		_, page := vera.get(next)
		for _, found := range regexp.MustCompile(`note number \d+\.`).FindAllString(page, -1) {
			seen[found] = true
		}
		older := regexp.MustCompile(`<p class="older"><a href="([^"]+)"`).FindStringSubmatch(page)
		if older == nil {
			break
		}
		next = strings.ReplaceAll(older[1], "&amp;", "&")
	}
	if len(seen) != 400 {
		t.Errorf("%d of 400 entries can be reached", len(seen))
	}
	for _, wrong := range []string{"0", "x", "999999"} {
		if status, _ := vera.get(path + "/entries/" + wrong); status != http.StatusNotFound {
			t.Errorf("the entry %s answers %d", wrong, status)
		}
	}
}

// A run can be searched: what was said, called and written, without regard to case.
func TestSearchInARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	run := h.journal(t, one)
	run.add(task.MessageSent, entryWithText("I look at the Hinges first."))
	run.add(task.ToolCalled, called("c1", "run", `{"command":"grep hinge ."}`, "gate.go: the \x1b[31mhi\x1b[0mnge", false), called("c2", "read", `{"path":"gate.go"}`, "nothing", false))
	run.add(task.NoteTaken, phase.Entry{Text: strings.Repeat("long ", 1000) + "HINGE" + strings.Repeat(" text", 1000)})
	vera := h.visitor(t, "vera")
	path := "/tasks/" + string(one.ID)
	_, page := vera.get(path + "?q=hinge")
	_, found, _ := strings.Cut(page, `id="found-title"`)
	found, _, _ = strings.Cut(found, `id="journal"`)
	if n := strings.Count(found, "#e"); n != 3 || !strings.Contains(found, "I look at the Hinges") || !strings.Contains(found, "HINGE") || len(found) > 5000 {
		t.Errorf("%d entries are found:\n%s", n, found)
	}
	for _, odd := range []string{"%22%3E%3Cscript%3E", "%00", "%F0%9F", strings.Repeat("a", 3000), "İ"} {
		if status, page := vera.get(path + "?q=" + odd); status != http.StatusOK || strings.Contains(page, "<script>") {
			t.Errorf("a search for %.20q answers %d", odd, status)
		}
	}
}

// The changes so far are shown file by file, with the work in progress as it was saved last.
func TestChangesSoFar(t *testing.T) {
	t.Parallel()
	h, work := newMirroredHouse(t)
	one := h.issue(t, "Fix the gate")
	run := h.journal(t, one)
	vera := h.visitor(t, "vera")
	path := "/tasks/" + string(one.ID)
	if _, page := vera.get(path + "?tab=changes"); !strings.Contains(page, "No changes yet") {
		t.Error("before anything was saved there are changes")
	}
	odd := `<b>odd "name".txt`
	h.save(t, work, one, run, map[string]string{"gate.go": "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n", odd: "<script>alert(1)</script>\n", "image.png": "\x89PNG\x00\x01"})
	_, page := vera.get(path + "?tab=changes")
	for _, text := range []string{"Files changed: 3", "gate.go", "&lt;b&gt;odd", "Binary file", "New file"} {
		if !strings.Contains(page, text) {
			t.Errorf("the changes have no %q", text)
		}
	}
	if strings.Contains(page, "silence") {
		t.Error("the files are in the page, and not fetched when they are opened")
	}
	_, part := vera.get(path + "?tab=changes&part&file=gate.go")
	flat := strings.Join(strings.Fields(part), " ")
	for _, text := range []string{`<td class="del"> return &#34;squeak&#34;</td>`, `<td class="add"> return &#34;silence&#34;</td>`} {
		if !strings.Contains(flat, text) {
			t.Errorf("the diff has no %q:\n%s", text, part)
		}
	}
	if _, part := vera.get(path + "?tab=changes&part&file=" + url.QueryEscape(odd)); !strings.Contains(part, "&lt;script&gt;") {
		t.Errorf("the diff of an odd file is %s", part)
	}
	if _, page := vera.get(path + "?tab=changes&file=gate.go"); !strings.Contains(page, "silence") {
		t.Error("without a script the diff of a file cannot be read")
	}
	for _, wrong := range []string{"nothing.go", "../../etc/passwd", "--output=x"} {
		if status, _ := vera.get(path + "?tab=changes&part&file=" + url.QueryEscape(wrong)); status != http.StatusNotFound {
			t.Errorf("the file %q answers %d", wrong, status)
		}
	}
	work.pulls = []OpenedPull{{Number: 7, URL: "https://forge.example/team/app/pulls/7"}}
	if _, page := vera.get(path); !strings.Contains(page, "https://forge.example/team/app/pulls/7") || !strings.Contains(page, `href="`+path+`?tab=changes"`) {
		t.Error("the result has no pull request or no changes")
	}
}

// verified is the end of a verification.
func verified(verdict phase.Verdict) phase.Entry {
	status := phase.PhaseCompleted
	if !verdict.Passed {
		status = phase.PhaseFailed
	}
	return phase.Entry{Phase: task.Verification, Status: status, Outcome: asData(verdict)}
}

// The checks are the environment, the tests before the work, and every verification.
func TestChecks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	run.run()
	run.add(task.PhaseChanged, verified(phase.Verdict{Round: 1, Changed: true, Tests: []phase.TestOutcome{{
		Command: "go test ./...", ExitCode: 1, Compared: true, New: []string{"TestHinge"}, Counted: true, Ran: 12, Failed: 1, Milliseconds: 3200, Worse: true, Output: "--- FAIL: TestHinge",
	}}}), verified(phase.Verdict{Round: 2, Passed: true, Changed: true, Commit: "abcdef0123456789", Tests: []phase.TestOutcome{{
		Command: "go test ./...", Compared: true, Fixed: []string{"TestGate"}, Passed: true, Counted: true, Ran: 12, Milliseconds: 3000,
	}}, Judgement: phase.Judgement{Satisfied: true, Assessment: "It does what was **asked**."}}))
	vera := h.visitor(t, "vera")
	_, page := vera.get("/tasks/" + string(one.ID) + "?tab=checks")
	// The details of earlier rounds are fetched when they are opened.
	fold := regexp.MustCompile(`(?s)Round 1\b.*?href="([^"]*)"`).FindStringSubmatch(page)
	if fold == nil || strings.Contains(page, "TestHinge") {
		t.Fatal("the details of the first round are in the page, or nowhere")
	}
	_, part := vera.get(fold[1] + "?part=")
	page += part
	for _, text := range []string{"Round 1", "Round 2", "TestHinge", "TestGate", "12 tests, 1 failed, 0 skipped", "3.2 s", "what was <strong>asked</strong>", "bubblewrap", "abcdef0123", "--- FAIL: TestHinge", "(1 failing)"} {
		if !strings.Contains(page, text) {
			t.Errorf("the checks have no %q", text)
		}
	}
	if strings.Contains(page, "golang:1.26") {
		t.Error("a sandbox without an image has one")
	}
	if _, page := vera.get("/tasks/" + string(one.ID)); !strings.Contains(page, "12 tests, 0 failed") {
		t.Error("the result does not say what verification came to")
	}
}

// The cost is shown by phase and by model, with how much of the input was cached.
func TestCost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	for phaseOf, usage := range map[task.Phase]llm.Usage{task.Planning: {Input: 1000, Cached: 250, Output: 10}, task.Execution: {Input: 3000, Cached: 2250, Output: 20}} {
		run.add(task.ModelUsed, phase.Entry{Phase: phaseOf, Usage: &phase.Usage{Model: "small", Usage: usage, Cost: 1_500_000}})
	}
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID) + "?tab=cost")
	flat := strings.Join(strings.Fields(regexp.MustCompile(` data-label="[^"]*"`).ReplaceAllString(page, "")), "")
	for _, row := range []string{
		`<tdclass="main">Planning</td><tdclass="number">1</td><tdclass="number">1000</td><tdclass="number">25%</td><tdclass="number">10</td><tdclass="number">1.50</td>`,
		`<tdclass="main">Execution</td><tdclass="number">1</td><tdclass="number">3000</td><tdclass="number">75%</td><tdclass="number">20</td><tdclass="number">1.50</td>`,
		`<tdclass="main">small</td><tdclass="number">2</td><tdclass="number">4000</td><tdclass="number">62%</td><tdclass="number">30</td><tdclass="number">3.00</td>`,
	} {
		if !strings.Contains(flat, row) {
			t.Errorf("the page has no %s", row)
		}
	}
}

// A page about a long run with long outputs, and about a change of many files, stays small.
func TestTaskPagesStaySmall(t *testing.T) {
	t.Parallel()
	const most = 300_000
	h, work := newMirroredHouse(t)
	one := h.issue(t, "A long run")
	run := h.journal(t, one)
	for i := range 200 {
		run.add(task.MessageSent, entryWithText(strings.Repeat("I look at the hinges. ", 150)))
		run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: fmt.Sprint(i), Name: "run", Arguments: `{"command":"make"}`},
			Result: &phase.CallResult{Text: strings.Repeat("<b>&\n", 5000), Whole: strings.Repeat("\x1b[31m<b>&\x1b[0m\n", 20_000), Failed: i%2 == 0}})
	}
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("folder/of/many/files/number_%03d.go", i)] = strings.Repeat("line\n", 200)
	}
	h.save(t, work, one, run, files)
	vera := h.visitor(t, "vera")
	path := "/tasks/" + string(one.ID)
	for _, tab := range []string{"", "?tab=changes", "?tab=checks", "?tab=cost", "?q=hinges", "?at=100"} {
		if status, page := vera.get(path + tab); status != http.StatusOK || len(page) > most {
			t.Errorf("%s answers %d with %d bytes", tab, status, len(page))
		}
	}
	if _, page := vera.get(path + "?tab=changes"); strings.Count(page, "data-file=") != 300 {
		t.Error("not all files are named")
	}
}

// People write to the run from its page, on the item and as themselves.
func TestSayingSomething(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "Fix the gate")
	path := "/tasks/" + string(one.ID)
	alice := h.visitor(t, "alice")
	if _, page := alice.get(path); !strings.Contains(page, `action="`+path+`/comments"`) || !strings.Contains(page, "as alice on board:team/app#1") {
		t.Error("the page has no box")
	}
	if status, _ := alice.post(path+"/comments", url.Values{"body": {"Use oil <b>, please."}}); status != http.StatusOK {
		t.Errorf("a comment answers %d", status)
	}
	comments, err := h.board.As(bot).Comments(t.Context(), one.Key)
	must(t, err)
	if len(comments) != 1 || comments[0].Author != "alice" || comments[0].Body != "Use oil <b>, please." {
		t.Errorf("the item has the comments %+v", comments)
	}
	if log := h.audit(t); log[0] != "alice task.comment "+path+"/comments done" {
		t.Errorf("the audit log ends with %q", log[0])
	}
	vera := h.visitor(t, "vera")
	if _, page := vera.get(path); strings.Contains(page, "<textarea") {
		t.Error("who may not write has a box")
	}
	if status, _ := vera.post(path+"/comments", url.Values{"body": {"x"}}); status != http.StatusForbidden {
		t.Errorf("who may not write answers %d", status)
	}
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 9}
	other, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "x", URL: "https://forge.example/team/app/issues/9", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	if _, page := alice.get("/tasks/" + string(other.ID)); !strings.Contains(page, "comment on the item") || !strings.Contains(page, "https://forge.example/team/app/issues/9") {
		t.Error("the page does not say where to write")
	}
	if status, page := alice.post("/tasks/"+string(other.ID)+"/comments", url.Values{"body": {"x"}}); status < 400 || !strings.Contains(page, "https://forge.example/team/app/issues/9") {
		t.Errorf("a comment on another forge answers %d: %s", status, page)
	}
}

// A question stands at the top of the page with a box to answer it.
func TestQuestionOnThePage(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	one := h.issue(t, "Fix the gate")
	run := h.journal(t, one)
	run.add(task.NoteTaken, phase.Entry{Text: "Which **oil**?", Name: "question-3-0123"})
	run.add(task.SignalTaken, phase.Entry{Step: 3, Signal: &phase.SignalEntry{Signal: task.SignalPause, Reason: task.ReasonAwaitingAnswer}})
	_, err := h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer})
	must(t, err)
	_, page := h.visitor(t, "alice").get("/tasks/" + string(one.ID))
	_, card, _ := strings.Cut(page, `id="question"`)
	card, _, _ = strings.Cut(card, "</section>")
	if !strings.Contains(card, "Which <strong>oil</strong>?") || !strings.Contains(card, "<textarea") || !strings.Contains(card, "Your answer") {
		t.Errorf("the question is shown as\n%s", card)
	}
}

// There is a button to begin again only where the item still wants the work.
func TestRetryOnlyWhereItCanWork(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	alice := h.visitor(t, "alice")
	retry := func(id task.ID) bool {
		_, page := alice.get("/tasks/" + string(id))
		return strings.Contains(page, "/retry")
	}
	for _, reason := range []task.Reason{task.ReasonStopRequested, task.ReasonUnassigned, task.ReasonItemClosed, task.ReasonPausedTooLong} {
		one := h.issue(t, string(reason))
		_, err := h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: task.Withdrawn, Reason: reason})
		must(t, err)
		if want := !slices.Contains(unwanted, reason); retry(one.ID) != want {
			t.Errorf("after %s a retry is offered: %v", reason, !want)
		}
	}
	one := h.issue(t, "closed meanwhile")
	_, err := h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
	if !retry(one.ID) {
		t.Error("a task that is done cannot be begun again")
	}
	must(t, h.board.As("bob").SetState(t.Context(), one.Key, forge.Closed))
	if retry(one.ID) {
		t.Error("a task on a closed issue can be begun again")
	}
}

// Who watches a run sees what it does, and what its programs write, as it comes.
func TestWatchingARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A run")
	run := h.journal(t, one)
	run.add(task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseActive})
	vera := h.window(t, "vera")
	vera.Open("/tasks/" + string(one.ID))
	vera.Sees("[data-now]", "being set up")
	vera.IsLive()
	for _, line := range []string{"$ npm ci\n", "\x1b[32madded\x1b[0m 300 packages\n", "[exit code 0]\n"} {
		run.add(task.NoteTaken, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.NoteOutput, Text: line})
	}
	vera.Sees("#journal .entry.output pre", "$ npm ci\nadded 300 packages\n[exit code 0]")
	if n := get[int](vera, `document.querySelectorAll("#journal .entry.output").length`); n != 1 {
		t.Errorf("the output is in %d pieces", n)
	}
	run.add(task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseCompleted}, phase.Entry{Phase: task.Execution, Status: phase.PhaseActive})
	vera.Sees("[data-now]", "The model is thinking")
	vera.Sees("#task-head li.active", "Execution")
	run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: "c1", Name: "run", Arguments: `{"command":"go test ./..."}`}})
	vera.Sees("[data-now]", "go test ./...")
	vera.Sees("#journal .entry .fact", "running…")
	for _, line := range []string{"=== RUN TestHinge\n", "--- PASS\n"} {
		run.add(task.NoteTaken, phase.Entry{Phase: task.Execution, Status: phase.NoteOutput, Call: &llm.Call{ID: "c1", Name: "run"}, Text: line})
	}
	vera.Sees("#journal .entry.output pre", "=== RUN TestHinge\n--- PASS")
	long := strings.Repeat("line of output\n", 2000)
	run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: "c1", Name: "run", Arguments: `{"command":"go test ./..."}`}, Result: &phase.CallResult{Text: "cut", Whole: long + "the end of it", Exit: &phase.CallExit{}, Milliseconds: 1500}})
	vera.Sees("#journal .entry .fact", "1.5 s")
	if get[bool](vera, `document.querySelector("#journal").textContent.includes("=== RUN TestHinge")`) {
		t.Error("the output is there twice")
	}
	vera.Until(atEnd)
	// What is long is fetched when it is opened.
	if get[bool](vera, `document.querySelector("#journal").textContent.includes("the end of it")`) {
		t.Error("a long output is in the page")
	}
	vera.Click(`#journal .entry[data-call="1/c1"] summary`)
	vera.Sees("#journal .entry pre.term", "the end of it")
	run.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Call: &llm.Call{ID: "c1", Name: "run", Arguments: `{"command":"make"}`}}) // a name that comes again
	vera.Sees("#journal .entry .fact", "running…")
	if get[int](vera, `document.querySelectorAll('#journal .entry[data-call="1/c1"]').length`) != 2 {
		t.Error("a call takes the place of an earlier one of the same name")
	}
	_, err := h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: task.Withdrawn, Reason: task.ReasonStopRequested})
	must(t, err)
	vera.Until(`!document.querySelector("[data-now]")`)
	vera.Sees("#journal .entry .fact", "interrupted")
	if get[bool](vera, `document.querySelector("#journal .mark.running") !== null`) {
		t.Error("a call of a run that is over is shown as running")
	}
	vera.Sees("#task-head li.stopped", "Execution")
}

// The changes on the page follow what is saved, and a file that was opened stays open.
func TestChangesAreLive(t *testing.T) {
	t.Parallel()
	h, work := newMirroredHouse(t)
	one := h.issue(t, "Fix the gate")
	run := h.journal(t, one)
	h.save(t, work, one, run, map[string]string{"gate.go": "package gate\n"})
	vera := h.window(t, "vera")
	vera.Open("/tasks/" + string(one.ID) + "?tab=changes")
	vera.IsLive()
	vera.Click(`details.file summary`)
	vera.Sees("details.file td.del", "squeak")
	h.save(t, work, one, run, map[string]string{"gate.go": "package gate // quiet\n", "hinge.go": "package gate\n"})
	vera.Sees("details.file .name", "hinge.go")
	vera.Sees("details.file td.add", "quiet")
}

// A link to an entry leads to it, also while the run goes on.
func TestLinkToAnEntry(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A run")
	run := h.journal(t, one)
	var entries []phase.Entry
	for i := range 120 {
		entries = append(entries, phase.Entry{Text: fmt.Sprintf("note number %d.", i)})
	}
	run.add(task.NoteTaken, entries...)
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	vera := h.window(t, "vera")
	wanted := fmt.Sprint("e", last-60)
	vera.Open(fmt.Sprintf("/tasks/%s?at=%d#%s", one.ID, last-60, wanted))
	vera.IsLive()
	inView := `(() => { const e = document.getElementById(` + testkit.Quoted(wanted) + `).getBoundingClientRect(), j = document.getElementById("journal").getBoundingClientRect(); return e.top >= j.top && e.bottom <= j.bottom; })()`
	vera.Until(inView)
	run.add(task.NoteTaken, phase.Entry{Text: "news"})
	vera.Sees("#journal .entry", "news")
	if !get[bool](vera, inView) {
		t.Error("the entry is no longer in view")
	}
}
