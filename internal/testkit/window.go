package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// screenshotFolder is where tests leave pictures of the pages for people to look at:
// bin/screenshots in the folder of go.mod. Tests run in the folder of their package.
func screenshotFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return filepath.Join(folder, "bin", "screenshots")
		}
	}
	t.Fatal("there is no go.mod in the folder of the test or above it")
	return ""
}

// untilPatience is how long a page may take to show what a test waits for. It only
// matters to tests that fail.
const untilPatience = 5 * time.Minute

// Window is a person in front of a real browser.
type Window struct {
	// Allowed are parts of what the browser may complain about.
	Allowed []string

	t   testing.TB
	ctx context.Context //nolint:containedctx // it is the browser's tab
	url string

	mutex    sync.Mutex
	troubles []string
}

// OpenWindow opens a browser for the server at the URL. The test fails if a script
// of a page fails, if the page breaks its own policy, or if a dialog opens.
func OpenWindow(t testing.TB, url string) *Window {
	t.Helper()
	w := &Window{t: t, ctx: Browser(t), url: url}
	chromedp.ListenTarget(w.ctx, w.listen)
	t.Cleanup(w.checkTroubles)
	return w
}

func (w *Window) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		w.trouble("exception: " + e.ExceptionDetails.Error())
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError {
			w.trouble("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		w.trouble("dialog: " + e.Message)
		go func() { _ = chromedp.Run(w.ctx, page.HandleJavaScriptDialog(true)) }()
	}
}

func (w *Window) trouble(text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.troubles = append(w.troubles, text)
}

func (w *Window) checkTroubles() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
next:
	for _, trouble := range w.troubles {
		for _, allowed := range w.Allowed {
			if strings.Contains(trouble, allowed) {
				continue next
			}
		}
		w.t.Errorf("in the browser: %s", trouble)
	}
}

// Run does something in the browser.
func (w *Window) Run(what string, actions ...chromedp.Action) {
	w.t.Helper()
	if err := chromedp.Run(w.ctx, actions...); err != nil {
		var shown string
		_ = chromedp.Run(w.ctx, chromedp.OuterHTML("main", &shown)) // for the message only
		w.t.Fatalf("%s: %v\n%.3000s", what, err, shown)
	}
}

// Open goes to a path of the server.
func (w *Window) Open(path string) {
	w.t.Helper()
	w.Run("open "+path, chromedp.Navigate(w.url+path))
}

// Click clicks with the mouse, in the middle of the element. A live page may put a
// new element in its place before the mouse is there: then that is clicked.
func (w *Window) Click(selector string) {
	w.t.Helper()
	watch := fmt.Sprintf(`window.clickHit = false;
		addEventListener("click", (e) => { if (e.target.closest(%s)) window.clickHit = true; }, true)`, strconv.Quote(selector))
	click := chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var missed bool
			err := chromedp.Tasks{
				chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Evaluate(watch, nil), chromedp.Click(selector, chromedp.ByQuery),
			}.Do(ctx)
			if err == nil {
				// What is added above moves the element away from where it was looked for. A page that is
				// left has no such value, or does not answer.
				if chromedp.Evaluate(`window.clickHit === false`, &missed).Do(ctx) != nil {
					missed = false
				}
			}
			if !missed && !isGone(err) || ctx.Err() != nil {
				return err
			}
		}
	})
	w.Run("click "+selector, click)
}

// isGone reports whether the browser says that an element is no longer there. It
// says so in words only.
func isGone(err error) bool {
	if err == nil {
		return false
	}
	for _, says := range []string{"node with given id", "Node is detached", "Could not compute"} {
		if strings.Contains(err.Error(), says) {
			return true
		}
	}
	return false
}

// Fill types with the keyboard.
func (w *Window) Fill(selector, text string) {
	w.t.Helper()
	w.Run("fill "+selector, chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Until waits until an expression is true in the page.
func (w *Window) Until(expression string) {
	w.t.Helper()
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	patience, stop := context.WithTimeout(w.ctx, untilPatience)
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
			w.Run("wait until "+expression, chromedp.ActionFunc(func(context.Context) error { return patience.Err() }))
		}
	}
}

// Notices returns as soon as an expression becomes true by a change of the page,
// for those who measure. Unlike Until it may be called by any goroutine.
func (w *Window) Notices(expression string) error {
	return chromedp.Run(w.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingMutation()))
}

// Sees waits until a text is in an element.
func (w *Window) Sees(selector, text string) {
	w.t.Helper()
	w.Until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))`, Quoted(selector), Quoted(text)))
}

// At waits until the page has the path.
func (w *Window) At(path string) {
	w.t.Helper()
	w.Until(fmt.Sprintf(`location.pathname === %s && document.readyState === "complete"`, Quoted(path)))
}

// IsLive waits until the page hears what happens.
func (w *Window) IsLive() {
	w.t.Helper()
	w.Until(`document.querySelector("[data-live-state]").classList.contains("on")`)
}

// Quoted is a text as a script spells it.
func Quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(encoded)
}

// Value is the value of an expression in the page.
func Value[T any](w *Window, expression string) (value T) {
	w.t.Helper()
	w.Run("evaluate "+expression, chromedp.Evaluate(expression, &value))
	return value
}

// Shot leaves a picture of the whole page.
func (w *Window) Shot(name string) {
	w.t.Helper()
	var picture []byte
	w.Run("screenshot", chromedp.FullScreenshot(&picture, 100))
	folder := screenshotFolder(w.t)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// pictureQuality is that of pictures for the documentation, of 100.
const pictureQuality = 80

// Picture writes what is seen in the window to a file, as WebP: for the documentation.
func (w *Window) Picture(file string) {
	w.t.Helper()
	var picture []byte
	w.Run("take a picture", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(pictureQuality).Do(ctx)
		return err
	}))
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// Accessible checks the page for what keeps people from using it.
func (w *Window) Accessible(name string) {
	w.t.Helper()
	w.Run("load the checker", chromedp.Evaluate(AccessibilityScript(w.t)+";0", nil))
	var found string
	w.Run("check "+name, chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.map(v => v.id + " (" + v.help + "): " + v.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")).join("\n"))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "" {
		w.t.Errorf("%s is hard to use:\n%s", name, found)
	}
}
