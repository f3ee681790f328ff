package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
)

// silent is a model that is asked and does not answer.
type silent struct {
	llm.Model
	asked chan struct{}
}

// Info implements llm.Model.
func (s silent) Info() llm.Info { return llm.Info{Provider: "test", Model: "silent"} }

// Chat implements llm.Model.
func (s silent) Chat(ctx context.Context, _ llm.Request, _ llm.Sink) (llm.Response, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return llm.Response{}, ctx.Err()
}

// A server that stops in the middle of an answer says so on the page: in the stream that
// its script reads, and in the answer to a plain form.
func TestStopInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	model := silent{asked: make(chan struct{})}
	h.pages.Reviews.Model = func(review.Purpose) (llm.Model, error) { return model, nil }
	one := h.review(t, "alice", "$$[1] Oil the gate.\n")
	pages := make(chan string, 2)
	for _, accept := range []string{"text/event-stream", "text/html"} {
		thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
		must(t, err)
		alice := h.visitor(t, "alice")
		alice.header = http.Header{"Accept": {accept}}
		go func() {
			_, page := alice.post("/threads/"+thread.ID+"/messages", url.Values{"content": {"Why?"}})
			pages <- accept + ": " + page
		}()
		<-model.asked
	}
	h.pages.Stop()
	h.pages.Reviews.Drain()
	for range 2 {
		page := <-pages
		streamed := strings.HasPrefix(page, "text/event-stream")
		if !strings.Contains(page, "the server is stopping") || streamed != strings.Contains(page, "event: problem") {
			t.Errorf("the page is told %s", page)
		}
	}
}
