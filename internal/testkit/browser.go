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

// headlessShell is the same browser without its windows, menus and tabs, which take half of the
// processor time of a test. It is started by its path: the command that Debian has for it is a
// script, which would be ended in the browser's place.
const headlessShell = "/usr/lib/chromium/chromium-headless-shell"

// browserPatience is how long a test may use the browser before it fails.
const browserPatience = 10 * time.Minute

// browser is one that all tests of a process share: it is large.
type browser struct {
	start sync.Once
	ctx   context.Context //nolint:containedctx // it is the running browser
	stop  func()
	err   error
}

// light runs headlessShell where that is installed, and whole the browser with everything.
var light, whole browser

// Browser opens a tab in a real browser, with cookies of its own, and returns it.
// The tab goes when the test ends; whoever uses Browser calls StopBrowser in its
// TestMain.
func Browser(t testing.TB) context.Context {
	t.Helper()
	if _, err := os.Stat(headlessShell); err != nil {
		return WholeBrowser(t)
	}
	return light.tab(t, headlessShell)
}

// WholeBrowser is Browser with what only the whole browser has, such as notifications.
func WholeBrowser(t testing.TB) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		LeaveOut(t, "Chromium (scripts/needs/chromium)")
	}
	return whole.tab(t, program)
}

// tab opens a tab, and starts the program when it is the first.
func (b *browser) tab(t testing.TB, program string) context.Context {
	t.Helper()
	b.start.Do(func() { b.run(program) })
	if b.err != nil {
		t.Fatalf("start the browser: %v", b.err)
	}
	opened, err := openWindow(b.ctx)
	if err != nil {
		t.Fatalf("open a window: %v", err)
	}
	tab, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(opened))
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
	all := cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
	apart, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(all)
	if err != nil {
		return "", err
	}
	return target.CreateTarget("about:blank").WithBrowserContextID(apart).WithNewWindow(true).Do(all)
}

func (b *browser) run(program string) {
	folder, err := os.MkdirTemp("", "browser")
	if err != nil {
		b.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(folder), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 900),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopContext := chromedp.NewContext(allocator)
	b.ctx = ctx
	b.stop = func() {
		stopContext()
		stopAllocator()
		_ = os.RemoveAll(folder) // a folder for temporary files
	}
	b.err = chromedp.Run(ctx)
}

// StopBrowser ends the browsers that tests have started.
func StopBrowser() {
	for _, b := range []*browser{&light, &whole} {
		if b.stop != nil {
			b.stop()
		}
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
