package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// The home page says why nobody takes tasks that wait, and what to do about it, in the
// reader's language. What is paused is not said twice.
func TestHomeSaysWhyTasksWait(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) {
		o.Waits = func(context.Context) ([]Wait, error) {
			return []Wait{
				{Reason: task.ReasonNoSandbox, Agent: "laptop", Detail: "bwrap <missing>", Tasks: []task.Task{{State: task.Queued}, {State: task.Queued}}},
				{Reason: task.ReasonAwaitingAnswer, Tasks: []task.Task{{State: task.Paused}}},
			}, nil
		}
	})
	for language, wants := range map[string][]string{
		"en": {"No agent takes 2 of the queued tasks", "no sandbox works on its machine", "laptop", "bwrap &lt;missing&gt;", "sudo apt-get install bubblewrap"},
		"ja": {"引き受けられていない待機中のタスク: 2 件", "使えるサンドボックスがなく", "laptop", "対処方法", "bubblewrap をインストール"},
	} {
		v := h.visitor(t, "vera")
		v.header.Set("Accept-Language", language)
		status, page := v.get("/")
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(page, want) {
				t.Errorf("in %s the page does not say %q: %s", language, want, page)
			}
		}
		if strings.Contains(page, messages.Fix(task.Language(language), task.ReasonAwaitingAnswer)) {
			t.Errorf("in %s the page says of a paused task that nobody takes it", language)
		}
	}
}
