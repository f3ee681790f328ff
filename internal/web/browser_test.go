package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// furnished is a house with something on every page.
func furnished(t testing.TB) (h *house, paths map[string]string) {
	t.Helper()
	h, work := newMirroredHouse(t, withReviews(t), withConnections(connectable()), withBroker)
	_, err := h.board.EnsureUser(t.Context(), "bob", forge.WriteAccess)
	must(t, err)
	hands, helper := h.board.As("bob"), h.board.As(bot)
	made, err := hands.CreateIssue(t.Context(), "team/app", forge.NewIssue{
		Title: "Fix the gate", Body: "It `squeaks`:\n\n```go\nfmt.Println(\"squeak\")\n```\n\n> Oil it.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] oil\n- [ ] listen\n- [ ]\n\n<details><summary>The log</summary>\n\nIt says **squeak**.\n\n</details>", Labels: []string{"bug", "urgent"}, Assignees: []string{bot},
	})
	must(t, err)
	_, err = helper.AddComment(t.Context(), made.Key, "I have begun.")
	must(t, err)
	h.push(t, "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n\nfunc Close() {}\n")
	pull, _, err := helper.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Fix the gate for good", Body: "Closes #1.", Head: "fix"})
	must(t, err)
	_, err = hands.AddReview(t.Context(), pull.Key, forge.NewReview{Verdict: forge.RequestChanges, Body: "Nearly.", Lines: []forge.LineRemark{
		{Anchor: forge.Anchor{Path: "gate.go", Side: forge.NewSide, Line: 4}, Body: "Is it really silent?"},
	}})
	must(t, err)
	one := h.runningTask(t, 1, "Fix the gate")
	run := h.journal(t, one)
	run.run()
	h.save(t, work, one, run, map[string]string{"gate.go": "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n"})
	run.add(task.NoteTaken, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.NoteOutput, Text: dense(2 * maxInline)})
	for position := range int64(3) { // the run has taken up two
		must(t, h.store.AppendComments(t.Context(), one.ID, 0, position, []task.CommentEntry{{
			Comment: task.Comment{ID: fmt.Sprint(position), Kind: task.ItemComment, Author: "alice", Body: "Use *oil*, please.", About: "gate.go:4", CreatedAt: time.Now(), UpdatedAt: time.Now()},
			Change:  task.CommentNew, At: time.Now(),
		}}))
	}
	run.add(task.PhaseChanged, verified(phase.Verdict{Round: 1, Changed: true}))
	run.add(task.PhaseChanged, verified(phase.Verdict{Round: 2, Passed: true, Changed: true, Tests: []phase.TestOutcome{{Command: "go test ./...", Compared: true, Passed: true, Counted: true, Ran: 12, Milliseconds: 3000}}}))
	h.needed(t)
	about := h.review(t, "root", paper)
	thread, err := h.pages.Reviews.AddThread(t.Context(), "root", about.ID, "en")
	must(t, err)
	h.ask(t, "root", thread.ID, "§2 what is there?")
	must(t, h.pages.Reviews.Share(t.Context(), "root", about.ID, review.Readers{People: []string{"alice"}}))
	reviewed := h.pullReview(t, pull.Key)
	h.learned(t, pull.Key)
	return h, map[string]string{
		"home": "/", "queue": "/queue", "agents": "/agents", "board": "/board", "issues": "/board/team/app", "new-issue": "/board/team/app/issues/new",
		"pulls": "/board/team/app/pulls", "new-pull": "/board/team/app/pulls/new",
		"new-review": "/reviews/new", "pull-review": "/reviews/" + reviewed.ID,
		"reviews": "/reviews", "review": "/reviews/" + about.ID, "context": "/threads/" + thread.ID + "/context?input=hello",
		"issue": "/board/team/app/issues/1", "pull": "/board/team/app/pulls/2", "changes": "/board/team/app/pulls/2?tab=changes",
		"line": "/board/team/app/pulls/2?at=new:4:gate.go", "task": "/tasks/" + string(one.ID), "task-changes": "/tasks/" + string(one.ID) + "?tab=changes&file=gate.go", "task-checks": "/tasks/" + string(one.ID) + "?tab=checks",
		"task-cost": "/tasks/" + string(one.ID) + "?tab=cost", "task-search": "/tasks/" + string(one.ID) + "?q=hinge", "task-entry": "/tasks/" + string(one.ID) + "/entries/5",
		"settings": "/settings", "webhooks": "/settings/webhooks", "memory": memoryPath,
		"connect": "/connect", "statistics": "/statistics", "statistics-week": "/statistics?days=7&repository=board%3Ateam%2Fapp",
		"statistics-nothing": "/statistics?days=90&repository=no%2Fsuch",
		"people":             "/settings/people", "configuration": "/settings/configuration", "audit": "/settings/audit", "nothing": "/nothing",
		"docs": "/docs", "docs-page": "/docs/environments", "docs-forges": "/docs/forges", "docs-search": "/docs/search?q=sandbox", "docs-nothing": "/docs/search?q=zzzz",
	}
}

// needed makes some things that wait for people, and tasks that wait.
func (h *house) needed(t testing.TB) {
	t.Helper()
	h.move(t, h.assignOne(t, 21, "Paint the gate"), task.PauseSet, task.ReasonAwaitingAnswer, "Which colour is the gate to have?\nGreen is what the fence has.")
	h.move(t, h.assignOne(t, 22, "Say how long the gate stays open"), task.PauseSet, task.ReasonAwaitingApproval, "The gate shows a countdown")
	h.move(t, h.assignOne(t, 23, "Lock the gate at night"), task.GaveUp, task.ReasonRejectedByForge, "remote: error: GH006: Protected branch update failed for refs/heads/toryo/23.")
	h.assignOne(t, 24, "A test for the hinge")
	_, err := access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, "mill")
	must(t, err)
	agents, err := h.store.ListAgents(t.Context())
	must(t, err)
	must(t, h.store.AgentIs(t.Context(), agents[len(agents)-1].Token, store.Condition{}, time.Now()))
}

// Every page can be used by everyone: in both languages, light and dark, wide and
// narrow. Pictures of all are left for people to look at.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	h, paths := furnished(t)
	h.pastRuns(t, 30)
	for _, look := range []struct {
		name, language, theme string
		width                 int64
	}{{"wide-light-en", "en", "light", 1280}, {"narrow-dark-ja", "ja", "dark", 390}} {
		root := h.window(t, "root")
		root.Allowed = []string{"404"}
		root.Run("choose a size", chromedp.EmulateViewport(look.width, 850), emulation.SetEmulatedMedia().WithMedia("screen"))
		root.choose(look.language, look.theme)
		for name, path := range paths {
			root.Open(path)
			root.Accessible(name + " " + look.name)
			if wide := get[int64](root, `document.documentElement.scrollWidth`); wide > look.width {
				t.Errorf("%s is %d wide in a window of %d", name, wide, look.width)
			}
			root.Shot(name + "-" + look.name)
		}
	}
	stranger := h.window(t, "root")
	stranger.Run("sign out", chromedp.Click(".menu summary", chromedp.ByQuery), chromedp.Click(`form[action="/signout"] button`, chromedp.ByQuery))
	stranger.At("/signin")
	stranger.Accessible("signin")
	stranger.Shot("signin")
}

// choose sets language and colours by the menu.
func (b *window) choose(language, theme string) {
	b.t.Helper()
	b.Open("/")
	for name, value := range map[string]string{"language": language, "theme": theme} {
		b.Click(".menu > summary")
		b.Run("mark the page", chromedp.Evaluate(`window.old = true`, nil))
		b.Click(fmt.Sprintf(`button[name=%s][value=%q]`, name, value))
		b.Until(fmt.Sprintf(`!window.old && document.readyState === "complete" && document.querySelector('button[name=%s][value=%q]').ariaPressed === "true"`, name, value))
	}
}

// attacks are texts that would be markup, scripts or commands if anything took
// them for that.
var attacks = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`"><svg onload=alert(1)>`,
	`'-alert(1)-'`,
	`javascript:alert(1)`,
	`[link](javascript:alert(1))`,
	`[link](data:text/html,<script>alert(1)</script>)`,
	`![image](x "onerror=alert(1)")`,
	`<a href="javascript:alert(1)">x</a>`,
	`<iframe srcdoc="<script>alert(1)</script>"></iframe>`,
	`<style>*{display:none}</style>`,
	`<form action=/signout method=post><button>x</button></form>`,
	`</textarea><script>alert(1)</script>`,
	`</title><script>alert(1)</script>`,
	`<!--><script>alert(1)</script>`,
	"`<script>alert(1)</script>`",
	"```\n</code></pre><script>alert(1)</script>\n```",
	`{{constructor.constructor('alert(1)')()}}`,
	`<math><mtext></mtext><mglyph><style><img src onerror=alert(1)></style></mglyph></math>`,
	`&lt;script&gt;alert(1)&lt;/script&gt;`,
	"\u202eevil\u202c <b>x",
	`<base href="https://evil.example/">`,
	`<meta http-equiv=refresh content="0;url=https://evil.example">`,
}

// What people, models and repositories write is shown as text: nothing of it
// becomes an element that does something, and nothing runs.
func TestAttacksAreText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	_, err := h.board.EnsureUser(t.Context(), "bob", forge.WriteAccess)
	must(t, err)
	hands := h.board.As("bob")
	everything := strings.Join(attacks, "\n\n")
	made, err := hands.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Everything", Body: everything, Labels: attacks[:3]})
	must(t, err)
	files := make(map[string]string)
	for i, attack := range attacks {
		_, err := hands.AddComment(t.Context(), made.Key, attack)
		must(t, err)
		_, err = hands.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: attack, Body: attack})
		must(t, err)
		files[fmt.Sprintf("%02d%s", i, attack)] = attack + "\n"
	}
	h.pushAll(t, "odd", files)
	pull, _, err := hands.CreatePull(t.Context(), "team/app", forge.NewPull{Title: attacks[1], Body: everything, Head: "odd"})
	must(t, err)
	one := h.runningTask(t, made.Key.Number, attacks[0])
	run := h.journal(t, one)
	plan := phase.Plan{GoalUnderstanding: phase.Goal{Goal: everything}}
	for _, attack := range attacks {
		plan.ActionPlan.Actions = append(plan.ActionPlan.Actions, phase.Action{What: attack})
		run.add(task.MessageSent, entryWithText(attack))
		run.add(task.ToolCalled, called(attack, attack, attack, "\x1b[31m"+attack, false), called(attack+"2", "diff", "", "--- a\n+++ b\n@@ -1 +1 @@\n+"+attack, true))
		run.add(task.NoteTaken, phase.Entry{Text: attack})
	}
	run.add(task.Planned, phase.Entry{Plan: &plan})

	vera := h.window(t, "vera")
	before := get[int](vera, `document.scripts.length`)
	for _, path := range []string{"/", "/queue", "/queue?q=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/board/team/app", itemURL(made.Key), itemURL(pull.Key), itemURL(pull.Key) + "?tab=changes", "/tasks/" + string(one.ID)} {
		vera.Open(path)
		vera.harmless(path, before)
	}
	// The same holds for what comes while the page is open.
	vera.IsLive()
	for _, attack := range attacks {
		run.add(task.MessageSent, entryWithText("live "+attack))
	}
	run.add(task.NoteTaken, phase.Entry{Text: "the end of the attacks"})
	vera.Sees("#journal .entry", "the end of the attacks")
	vera.harmless("the live journal", before)
	vera.Sees("#journal .entry pre, #journal .entry code", "<script>alert(1)</script>")
	// The names of all files are there, as they are.
	vera.Open(itemURL(pull.Key) + "?tab=changes")
	if n := get[int](vera, `document.querySelectorAll("details.file").length`); n != len(attacks) {
		t.Errorf("%d files are shown", n)
	}
	// A diff of an odd file can be commented on.
	bob := h.window(t, "bob")
	bob.Open(itemURL(pull.Key) + "?tab=changes")
	bob.Click(`td.n a`)
	bob.Fill(`#line-form textarea`, "odd name")
	bob.Click(`#line-form button`)
	bob.Sees(".talk .comment", "odd name")
}

// harmless checks that the page has nothing but what our own templates put there.
func (b *window) harmless(where string, scripts int) {
	b.t.Helper()
	found := get[[]string](b, `(() => {
		const bad = [];
		for (const e of document.querySelectorAll("*")) {
			for (const a of e.attributes) {
				if (a.name.startsWith("on") || a.name === "style" || a.name === "srcdoc") bad.push(e.outerHTML.slice(0, 200));
				if (/^\s*(javascript|data|vbscript):/i.test(a.value) && (a.name === "href" || a.name === "src" || a.name === "action")) bad.push(e.outerHTML.slice(0, 200));
			}
		}
		for (const e of document.querySelectorAll("main script, main style, main iframe, main base, main meta, main object, main embed, main math, main .text img, main .text form, main .text svg")) bad.push(e.outerHTML.slice(0, 200));
		return bad;
	})()`)
	for _, one := range found {
		b.t.Errorf("on %s there is %s", where, one)
	}
	if now := get[int](b, `document.scripts.length`); now != scripts {
		b.t.Errorf("on %s there are %d scripts, want %d", where, now, scripts)
	}
}

// A journal of ten thousand entries opens at its end, follows what comes until the
// reader scrolls, and can be read back to its beginning.
func TestLongJournal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A long run")
	run := h.journal(t, one)
	var entries []phase.Entry
	for i := range 10_000 {
		entries = append(entries, called(fmt.Sprint("c", i), "shell", `{"command":"make"}`, fmt.Sprintf("line %d of the build\n", i), false))
	}
	for len(entries) > 0 {
		n := min(500, len(entries))
		run.add(task.MessageSent, entryWithText("Another step."))
		run.add(task.ToolCalled, entries[:n]...)
		entries = entries[n:]
	}
	vera := h.window(t, "vera")
	vera.Open("/tasks/" + string(one.ID))
	vera.Sees("#journal .entry", "line 9999 of")
	vera.IsLive()
	run.add(task.NoteTaken, phase.Entry{Text: "news one"})
	vera.Sees("#journal .entry", "news one")
	vera.Until(atEnd)

	// The reader scrolls up: the place stays, and a button leads back. The event of that
	// comes after the news, as on a busy machine.
	vera.Run("hold events", chromedp.Evaluate(`window.hold = (event) => event.stopImmediatePropagation(); window.addEventListener("scroll", window.hold, true)`, nil))
	vera.Run("scroll", chromedp.Evaluate(`document.getElementById("journal").scrollTop = 400`, nil))
	vera.Until(`document.getElementById("journal").scrollTop < 2000`)
	run.add(task.NoteTaken, phase.Entry{Text: "news two"})
	vera.Sees("#journal .entry", "news two")
	if get[bool](vera, atEnd) {
		t.Fatal("the page jumped to the end while someone was reading")
	}
	vera.Run("release events", chromedp.Evaluate(`window.removeEventListener("scroll", window.hold, true)`, nil))
	vera.Click("[data-follow]")
	vera.Until(atEnd)

	// Back to the beginning, piece by piece.
	for {
		was := get[string](vera, `document.querySelector("#journal .steps").dataset.earliest`)
		if was == "1" {
			break
		}
		vera.Run("scroll up", chromedp.Evaluate(`(() => { const j = document.getElementById("journal"); j.scrollTop = 0; j.dispatchEvent(new Event("scroll")); })()`, nil))
		vera.Until(`document.querySelector("#journal .steps").dataset.earliest !== ` + testkit.Quoted(was))
	}
	vera.Sees("#journal .entry", "line 0 of")
	run.add(task.NoteTaken, phase.Entry{Text: "news three"})
	vera.Sees("#journal .entry", "news three")
	if n := get[int](vera, `document.querySelectorAll("#journal .entry").length`); n < 10_000 {
		t.Errorf("%d entries are on the page", n)
	}
}

const atEnd = `(() => { const j = document.getElementById("journal"); return j.scrollHeight - j.scrollTop - j.clientHeight < 60; })()`

// A page that lost its connection goes on where it was, without a gap and without
// a repetition.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "A run")
	run := h.journal(t, one)
	run.add(task.NoteTaken, phase.Entry{Text: "entry 0."})
	vera := h.window(t, "vera")
	vera.Allowed = []string{"ERR_", "Failed to load"}
	vera.Open("/tasks/" + string(one.ID))
	vera.IsLive()
	for i := 1; i <= 3; i++ {
		h.web.CloseClientConnections()
		run.add(task.NoteTaken, phase.Entry{Text: fmt.Sprintf("entry %d.", i)})
		vera.Sees("#journal .entry", fmt.Sprintf("entry %d.", i))
	}
	want := "entry 0. entry 1. entry 2. entry 3."
	if got := get[string](vera, `[...document.querySelectorAll("#journal .entry-note > .what")].map(e => e.textContent.trim()).join(" ")`); got != want {
		t.Errorf("the journal shows %q, want %q", got, want)
	}
}
