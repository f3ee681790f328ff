package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/task"
)

// press presses keys as a keyboard does: what a page prevents is not typed.
func (b *window) press(keys string) {
	b.t.Helper()
	for key := range strings.SplitSeq(keys, "") {
		down, up := input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key)
		if key == escapeKey {
			down, up = input.DispatchKeyEvent(input.KeyDown).WithKey("Escape").WithWindowsVirtualKeyCode(27), input.DispatchKeyEvent(input.KeyUp).WithKey("Escape").WithWindowsVirtualKeyCode(27)
		}
		b.Run("press "+key, down, up)
	}
}

const escapeKey = "\x1b"

// Shortcuts lead where they say, but not while somebody types.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice := h.window(t, "alice")
	const shown = `document.getElementById("keys").open`
	alice.press("gb")
	alice.At("/board")
	alice.press("gq")
	alice.At("/queue")
	alice.press("/")
	alice.Until(`document.activeElement.matches("main input[type=search]")`)
	alice.press("gb?/") // is what is searched for
	if typed := get[string](alice, `document.activeElement.value`); typed != "gb?/" {
		t.Errorf("the field has %q", typed)
	}
	if get[bool](alice, shown) || get[string](alice, `location.pathname`) != "/queue" {
		t.Error("what is typed into a field is a shortcut")
	}
	alice.press(escapeKey)
	alice.Run("leave the field", chromedp.Evaluate(`document.activeElement.blur()`, nil))
	alice.press("?")
	alice.Until(shown)
	alice.Sees("#keys dl", "Board")
	alice.Accessible("the list of shortcuts")
	alice.Shot("keys")
	alice.press("gb") // the list is open
	if get[string](alice, `location.pathname`) != "/queue" {
		t.Error("a shortcut leads away from the list of shortcuts")
	}
	alice.press(escapeKey)
	alice.Until("!" + shown)
	alice.press("gx") // leads nowhere
	alice.press("b")
	if get[string](alice, `location.pathname`) != "/queue" {
		t.Error("a letter that follows something else leads somewhere")
	}
	// Without a field for searching there is the queue's.
	alice.Open("/")
	alice.press("/")
	alice.At("/queue")
	alice.Until(`document.activeElement.matches("main input[type=search]")`)
	// They can be switched off, and that is kept.
	alice.Open("/board")
	alice.Click("[data-show-keys]")
	alice.Until(shown)
	alice.Click("#keys [data-use]")
	alice.Click("#keys [data-close]")
	alice.Open("/settings")
	alice.press("gb?")
	if get[bool](alice, shown) || get[string](alice, `location.pathname`) != "/settings" {
		t.Error("shortcuts that are switched off do something")
	}
}

// needing is what needs somebody, and whether it is quiet.
type needing struct {
	mutex sync.Mutex
	needs []task.Need
	quiet bool
}

func (n *needing) set(quiet bool, needs ...task.Need) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.quiet, n.needs = quiet, needs
}

// house is one in which that needs somebody.
func (n *needing) house(t *testing.T) *house {
	t.Helper()
	return newHouse(t, func(o *Options) {
		o.Needs = func(context.Context) ([]task.Need, error) {
			n.mutex.Lock()
			defer n.mutex.Unlock()
			return n.needs, nil
		}
		o.Quiet = func(time.Time) bool {
			n.mutex.Lock()
			defer n.mutex.Unlock()
			return n.quiet
		}
	})
}

func questionAbout(title string) task.Need {
	return task.Need{
		Key: "answer/" + title, Kind: task.NeedAnswer, Reason: task.ReasonAwaitingAnswer, Detail: "Which oil?\n<b>x</b>",
		Task: &task.Task{ID: "t1", Title: title, Key: task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}},
	}
}

// A need leads to where something can be done about it: tasks that have a reason of their own are
// listed by it. What is in no list is shown whole.
func TestWhereNeedsLead(t *testing.T) {
	t.Parallel()
	var now needing
	h := now.house(t)
	needs := []task.Need{
		{Key: "tasks/agent_paused/", Kind: task.NeedTasks, Reason: task.ReasonAgentPaused, Tasks: 2, OfTasks: true},
		{Key: "tasks/no_agents/", Kind: task.NeedTasks, Reason: task.ReasonNoAgents, Tasks: 3},
		{Key: "budget/nearly/2026-11-18", Kind: task.NeedBudget, Percent: 95},
	}
	for i := range 2 * needsOfKind {
		needs = append([]task.Need{{Key: fmt.Sprint("server/", i), Kind: task.NeedServer, Subject: fmt.Sprint("fault number ", i)}}, needs...)
	}
	now.set(false, needs...)
	_, page := h.visitor(t, "vera").get("/")
	for _, want := range []string{`href="/queue?reason=agent_paused"`, `href="/queue"`, `href="/settings"`, "Fault number 0", "Fault number 9"} {
		if !strings.Contains(page, want) {
			t.Errorf("the first page has no %s", want)
		}
	}
	if strings.Contains(page, `href=""`) {
		t.Error("a link leads nowhere")
	}
}

// What browsers are told is for those who are signed in, short, and in their language.
func TestWhatBrowsersAreTold(t *testing.T) {
	t.Parallel()
	var now needing
	h := now.house(t)
	vera := h.visitor(t, "vera")
	var many []task.Need
	for range 1000 {
		many = append(many, questionAbout(strings.Repeat("長い", 5000)))
	}
	now.set(false, many...)
	status, body := vera.get("/needs.json")
	var told toldNeeds
	must(t, json.Unmarshal([]byte(body), &told))
	if status != 200 || len(told.Needs) != mostTold || len(body) > 300<<10 || told.Needs[0].Path != "/tasks/t1" || strings.Contains(told.Needs[0].Detail, "\n") {
		t.Errorf("answered %d with %d bytes", status, len(body))
	}
	now.set(false, task.Need{Key: "tasks/no_agents/", Kind: task.NeedTasks, Reason: task.ReasonNoAgents, Tasks: 2})
	if _, body := vera.get("/needs.json"); !strings.Contains(body, `"detail":"No agent is connected"`) {
		t.Errorf("answered %s", body)
	}
	now.set(true)
	if _, body := vera.get("/needs.json"); body != `{"quiet":true,"needs":[]}` {
		t.Errorf("answered %s", body)
	}
	stranger := h.visitor(t, "")
	stranger.header.Set("Accept", "application/json")
	if status, _ := stranger.get("/needs.json"); status != 401 {
		t.Errorf("a stranger is answered %d", status)
	}
}

// notified is a window of alice, whose browser allows notifications. What a page shows goes to
// the real notifications of the browser, and is noted; pages look more often than they do.
func (h *house) notified(t *testing.T) *window {
	t.Helper()
	alice := h.window(t, "alice")
	alice.Run("note what is shown", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`window.shown = []; window.Notification = class extends window.Notification {
			constructor(title, options) { super(title, options); window.shown.push(title + "|" + options.body); }
		}
		const every = window.setInterval;
		window.setInterval = (act, pause) => every(act, pause / 100);
		const clock = Date.now;
		Date.now = () => clock() + Number(localStorage.getItem("ahead")); // minutes go by as a test wants
		performance.setResourceTimingBufferSize(100000);`).Do(ctx)
		return err
	}), chromedp.ActionFunc(func(ctx context.Context) error {
		of := chromedp.FromContext(ctx)
		whole := cdp.WithExecutor(ctx, of.Browser)
		info, err := target.GetTargetInfo().WithTargetID(of.Target.TargetID).Do(whole)
		if err != nil {
			return err
		}
		return browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeNotifications}).
			WithBrowserContextID(info.BrowserContextID).WithOrigin(h.web.URL).Do(whole)
	}))
	return alice
}

// Trouble that has lasted is told of once, however many pages are opened and however long it lasts,
// and again when it comes and goes only after an hour.
func TestBrowserTellsOfTroubleOnce(t *testing.T) {
	t.Parallel()
	var now needing
	h := now.house(t)
	alice := h.notified(t)
	offline := task.Need{Key: "agent/a/offline", Kind: task.NeedAgent, Reason: task.ReasonAgentsSilent, Subject: "mill"}
	now.set(false)
	alice.Open("/")
	alice.Click(".menu > summary")
	alice.Click("[data-notify] button")
	alice.Until(`document.querySelector("[data-notify] button").ariaPressed === "true"`)
	// looks waits until a page that was opened has looked some more times.
	looks := func() {
		t.Helper()
		const done = `performance.getEntriesByType("resource").filter((one) => one.name.endsWith("/needs.json") && one.responseEnd > 0).length`
		before := get[int](alice, done)
		alice.Until(fmt.Sprintf("%s >= %d", done, before+4))
	}
	now.set(false, offline)
	alice.Until(`window.shown.length === 1 && window.shown[0].startsWith("Agent mill is offline")`)
	for _, path := range []string{"/board", "/queue", "/agents"} {
		alice.Open(path)
		looks()
		if again := get[[]string](alice, `window.shown`); len(again) > 0 {
			t.Errorf("%s tells again of %q", path, again)
		}
	}
	now.set(false)
	looks()
	now.set(false, offline)
	looks()
	if again := get[[]string](alice, `window.shown`); len(again) > 0 {
		t.Errorf("what came back at once is told again: %q", again)
	}
	minutes := func(count int) {
		t.Helper()
		alice.Run("time goes by", chromedp.Evaluate(fmt.Sprintf(`localStorage.ahead = Number(localStorage.getItem("ahead")) + %d * 60000`, count), nil))
		looks()
	}
	// It stays: that is told when the hour is over, once.
	minutes(50)
	if again := get[[]string](alice, `window.shown`); len(again) > 0 {
		t.Errorf("what came back is told again before the hour is over: %q", again)
	}
	minutes(11)
	alice.Until(`window.shown.length === 1`)
	for range 3 {
		minutes(50)
	}
	now.set(true, offline) // neither are quiet hours a reason to tell it again
	looks()
	for range 3 {
		minutes(50)
	}
	now.set(false, offline)
	looks()
	if all := get[[]string](alice, `window.shown`); len(all) != 1 {
		t.Errorf("what lasts is told again: %q", all)
	}
	// It is told to those who open a page after long. For the page that is closed time stands still: it
	// may look once more.
	alice.Run("close the page", chromedp.Evaluate(`(() => {
		const stood = Date.now();
		Date.now = () => stood;
		localStorage.ahead = Number(localStorage.getItem("ahead")) + 180 * 60000;
	})()`, nil), chromedp.Navigate("about:blank"))
	alice.Open("/board")
	alice.Until(`window.shown.length === 1`)
	looks()
	if all := get[[]string](alice, `window.shown`); len(all) != 1 {
		t.Errorf("told %q", all)
	}
}

// A browser whose reader wants it tells of each thing once, from one of several pages, and of
// nothing in quiet hours.
func TestBrowserNotifications(t *testing.T) {
	t.Parallel()
	var now needing
	h := now.house(t)
	alice := h.notified(t)
	gate, hinge := questionAbout("Fix the gate"), questionAbout("Oil the hinge")
	now.set(false, gate)
	alice.Open("/")
	if count := get[int](alice, `window.shown.length`); count != 0 {
		t.Error("somebody who did not ask for it is told something")
	}
	alice.Click(".menu > summary")
	alice.Accessible("the menu")
	alice.Click("[data-notify] button")
	alice.Until(`document.querySelector("[data-notify] button").ariaPressed === "true"`)
	alice.Until(`window.shown.length === 1`)
	if text := get[string](alice, `window.shown[0]`); text != "Answer a question: Fix the gate (board:team/app#1)|Which oil? <b>x</b>" {
		t.Errorf("told %q", text)
	}
	alice.Open("/board") // another page tells the same no more
	alice.Until(`Object.keys(JSON.parse(localStorage["toryo.told"])).length === 1`)
	look := func() {
		alice.Open("/queue")
		alice.Until(`performance.getEntriesByType("resource").some((one) => one.name.endsWith("/needs.json") && one.responseEnd > 0)`)
	}
	look()
	now.set(true, gate, hinge)
	look()
	if count := get[int](alice, `window.shown.length`); count != 0 {
		t.Errorf("%d things are told again, or in quiet hours", count)
	}
	now.set(false, gate, hinge)
	alice.Open("/queue")
	alice.Until(`window.shown.length === 1 && window.shown[0].includes("Oil the hinge")`)
	// Many at once are one.
	many := []task.Need{gate, hinge}
	for i := range 20 {
		many = append(many, questionAbout(fmt.Sprint("Task ", i)))
	}
	now.set(false, many...)
	alice.Open("/queue")
	alice.Until(`window.shown.length === 1 && window.shown[0].startsWith("Several things need you (20)")`)
	alice.Click(".menu > summary")
	alice.Shot("notify-menu")
	alice.Click("[data-notify] button")
	alice.Until(`document.querySelector("[data-notify] button").ariaPressed === "false"`)
}
