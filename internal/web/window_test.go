package web

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// window is a person in front of a real browser.
type window struct {
	*testkit.Window
	t testing.TB
}

// window opens a browser in which someone is signed in.
func (h *house) window(t testing.TB, login string) *window {
	t.Helper()
	b := &window{testkit.OpenWindow(t, h.web.URL), t}
	path, err := h.pages.Invite(t.Context(), login, access.Viewer)
	must(t, err)
	b.Open(path)
	return b
}

// get is the value of an expression in the page.
func get[T any](b *window, expression string) T {
	b.t.Helper()
	return testkit.Value[T](b.Window, expression)
}
