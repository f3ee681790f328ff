package site

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// asked is a model that keeps what it is asked, and answers nothing.
type asked struct {
	llm.Model
	system string
}

func (a *asked) Chat(_ context.Context, request llm.Request, _ llm.Sink) (llm.Response, error) {
	a.system = request.System
	return llm.Response{}, context.Canceled
}

// unread is a journal that nobody reads.
type unread struct{}

func (unread) Append(context.Context, task.EventKind, phase.Entry) error { return nil }

// The model that reviews is told its role, and what the configuration says of that.
func TestReviewersAreToldTheirRole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backend.md")
	if err := os.WriteFile(file, []byte("Mind the locks.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &BuiltIn{config: config.Config{Roles: map[string]config.Role{
		"BACKENDCODER":  {Description: "Works on the services.", PromptFile: file},
		"FRONTENDCODER": {Description: "Works on the pages."},
	}}}
	for role, want := range map[task.Role]string{
		"BACKENDCODER":  "## Your role: BACKENDCODER\n\nWorks on the services.\n\nMind the locks.",
		"FRONTENDCODER": "## Your role: FRONTENDCODER\n\nWorks on the pages.",
		"REVIEWER":      "## Your role: REVIEWER",
	} {
		model := &asked{}
		reviewer, is := b.review().(agent.Reviewer)
		if !is {
			t.Fatalf("the reviewer is %T", b.review())
		}
		reviewer.Model = func(task.Role, llm.Ledger) (llm.Model, error) { return model, nil }
		_, err := reviewer.Execute(t.Context(), agent.Run{
			Work: phase.Work{Role: role, Type: task.Review}, Journal: unread{},
			Assignment: wire.Assignment{Title: "Oil the gate", PullRequest: &wire.PullRequest{
				Title: "Oil the gate", Commit: "c1", Diff: "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+oil\n",
			}},
		})
		if err == nil || !strings.HasSuffix(model.system, "\n"+want) {
			t.Errorf("%v; the model is told %q, want it to end with %q", err, model.system, want)
		}
	}
}

// The reviewer has the prompts of the configuration.
func TestReviewersHaveTheirPrompts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "review.md"), []byte("Look at the locks.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &BuiltIn{config: config.Config{PromptsDir: folder}}
	model := &asked{}
	reviewer, is := b.review().(agent.Reviewer)
	if !is {
		t.Fatalf("the reviewer is %T", b.review())
	}
	reviewer.Model = func(task.Role, llm.Ledger) (llm.Model, error) { return model, nil }
	_, err := reviewer.Execute(t.Context(), agent.Run{
		Work: phase.Work{Role: "CODER", Type: task.Review}, Journal: unread{},
		Assignment: wire.Assignment{Title: "Oil the gate", PullRequest: &wire.PullRequest{
			Title: "Oil the gate", Commit: "c1", Diff: "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+oil\n",
		}},
	})
	if err == nil || !strings.HasPrefix(model.system, "Look at the locks.\n") {
		t.Errorf("%v; the model is told %q", err, model.system)
	}
}
