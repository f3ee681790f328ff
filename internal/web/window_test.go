package web

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// screenshots is where tests leave pictures of the pages for people to look at.
const screenshots = "../../bin/screenshots"

// window is a person in front of a real browser.
type window struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // it is the browser's tab
	house *house

	mutex    sync.Mutex
	troubles []string
	allowed  []string // what a troubled page may say
}

// window opens a browser in which someone is signed in. The test fails if a script
// of a page fails, if the page breaks its own policy, or if a dialog opens.
func (h *house) window(t testing.TB, login string) *window {
	t.Helper()
	b := &window{t: t, ctx: testkit.Browser(t), house: h}
	chromedp.ListenTarget(b.ctx, b.listen)
	t.Cleanup(b.checkTroubles)
	path, err := h.pages.Invite(t.Context(), login, access.Viewer)
	must(t, err)
	b.open(path)
	return b
}

func (b *window) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.trouble("exception: " + e.ExceptionDetails.Error())
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError {
			b.trouble("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.trouble("dialog: " + e.Message)
		go func() { _ = chromedp.Run(b.ctx, page.HandleJavaScriptDialog(true)) }()
	}
}

func (b *window) trouble(text string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.troubles = append(b.troubles, text)
}

func (b *window) checkTroubles() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
next:
	for _, trouble := range b.troubles {
		for _, allowed := range b.allowed {
			if strings.Contains(trouble, allowed) {
				continue next
			}
		}
		b.t.Errorf("in the browser: %s", trouble)
	}
}

func (b *window) run(what string, actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var shown string
		_ = chromedp.Run(b.ctx, chromedp.OuterHTML("main", &shown)) // for the message only
		b.t.Fatalf("%s: %v\n%.3000s", what, err, shown)
	}
}

func (b *window) open(path string) {
	b.t.Helper()
	b.run("open "+path, chromedp.Navigate(b.house.web.URL+path))
}

// click clicks with the mouse, in the middle of the element.
func (b *window) click(selector string) {
	b.t.Helper()
	b.run("click "+selector, chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery))
}

// fill types with the keyboard.
func (b *window) fill(selector, text string) {
	b.t.Helper()
	b.run("fill "+selector, chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// until waits until an expression is true in the page.
func (b *window) until(expression string) {
	b.t.Helper()
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	patience, stop := context.WithTimeout(b.ctx, 20*time.Second)
	defer stop()
	for {
		var holds bool
		// An error is a page on its way to another one.
		if err := chromedp.Run(patience, chromedp.Evaluate("Boolean("+expression+")", &holds)); err == nil && holds {
			return
		}
		select {
		case <-ticker.C:
		case <-patience.Done():
			b.run("wait until "+expression, chromedp.ActionFunc(func(context.Context) error { return patience.Err() }))
		}
	}
}

// sees waits until a text is in an element.
func (b *window) sees(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))`, quoted(selector), quoted(text)))
}

// at waits until the page has the path.
func (b *window) at(path string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`location.pathname === %s && document.readyState === "complete"`, quoted(path)))
}

func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(encoded)
}

// get is the value of an expression in the page.
func get[T any](b *window, expression string) (value T) {
	b.t.Helper()
	b.run("evaluate "+expression, chromedp.Evaluate(expression, &value))
	return value
}

// shot leaves a picture of the whole page, in a width and in a colour scheme.
func (b *window) shot(name string) {
	b.t.Helper()
	must(b.t, os.MkdirAll(screenshots, 0o750))
	var picture []byte
	b.run("screenshot", chromedp.FullScreenshot(&picture, 100))
	must(b.t, os.WriteFile(filepath.Join(screenshots, name+".png"), picture, 0o600))
}

// accessible checks the page for what keeps people from using it.
func (b *window) accessible(name string) {
	b.t.Helper()
	b.run("load the checker", chromedp.Evaluate(testkit.AccessibilityScript(b.t)+";0", nil))
	var found string
	b.run("check "+name, chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.map(v => v.id + " (" + v.help + "): " + v.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")).join("\n"))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "" {
		b.t.Errorf("%s is hard to use:\n%s", name, found)
	}
}
