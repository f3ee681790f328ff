package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// accessibilityProgram lies below the cache directory; scripts/needs/axe puts it
// there.
const accessibilityProgram = "toryo-test/axe-core-4.10.3/node_modules/axe-core/axe.min.js"

// browserPatience is how long a test may use the browser before it fails.
const browserPatience = 10 * time.Minute

// browser is the one that all tests of a process share: it is large.
var browser struct {
	start sync.Once
	ctx   context.Context
	stop  func()
	err   error
}

// Browser opens a tab in a real browser, with cookies of its own, and returns it.
// The tab goes when the test ends; whoever uses Browser calls StopBrowser in its
// TestMain.
func Browser(t testing.TB) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		LeaveOut(t, "Chromium (scripts/needs/chromium)")
	}
	browser.start.Do(func() { startBrowser(program) })
	if browser.err != nil {
		t.Fatalf("start the browser: %v", browser.err)
	}
	opened, err := openWindow(browser.ctx)
	if err != nil {
		t.Fatalf("open a window: %v", err)
	}
	tab, cancel := chromedp.NewContext(browser.ctx, chromedp.WithTargetID(opened))
	t.Cleanup(cancel)
	tab, stop := context.WithTimeout(tab, browserPatience)
	t.Cleanup(stop)
	if err := chromedp.Run(tab); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return tab
}

// openWindow opens a window with cookies of its own. A headless browser has no
// window in which a tab with other cookies could open.
func openWindow(ctx context.Context) (target.ID, error) {
	whole := cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
	apart, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(whole)
	if err != nil {
		return "", err
	}
	return target.CreateTarget("about:blank").WithBrowserContextID(apart).WithNewWindow(true).Do(whole)
}

func startBrowser(program string) {
	folder, err := os.MkdirTemp("", "browser")
	if err != nil {
		browser.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(folder), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 900),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopContext := chromedp.NewContext(allocator)
	browser.ctx = ctx
	browser.stop = func() {
		stopContext()
		stopAllocator()
		_ = os.RemoveAll(folder) // a folder for temporary files
	}
	browser.err = chromedp.Run(ctx)
}

// StopBrowser ends the browser, if a test has started it.
func StopBrowser() {
	if browser.stop != nil {
		browser.stop()
	}
}

// AccessibilityScript is a script that checks a page for what keeps people from
// using it.
func AccessibilityScript(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		LeaveOut(t, "a cache directory")
	}
	script, err := os.ReadFile(filepath.Join(cache, accessibilityProgram))
	if err != nil {
		LeaveOut(t, "the accessibility checker axe-core (scripts/needs/axe)")
	}
	return string(script)
}
