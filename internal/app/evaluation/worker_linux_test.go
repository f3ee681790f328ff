package evaluation

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A model that answers nothing leaves no work, and what it is asked has neither the change that
// people made nor the hidden tests in it.
func TestAModelThatAnswersNothing(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		mu.Lock()
		asked = append(asked, string(body))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}`) // the same
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--initial-branch=main")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "sum.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "--quiet", "-m", text)
	}
	write("package sum // base-of-all\n")
	base := git("rev-parse", "HEAD")
	write("package sum // change-of-people\n")
	from, err := source.Strip(t.Context(), dir, base, filepath.Join(t.TempDir(), "repository.git"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: t.TempDir(), Guest: testkit.Guest(), Log: log, NewGate: func(sandbox.Policy) sandbox.Gate { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.DataDir, c.LLM.Provider, c.LLM.Model, c.LLM.BaseURL, c.LLM.Retries = t.TempDir(), "openai", "m", server.URL+"/v1", 0
	worker := Worker{Program: site.Program{Now: time.Now}, Configs: map[string]config.Config{"m": c}, Engine: engine, Journals: t.TempDir(), Log: log}
	worked, err := worker.Work(t.Context(), eval.Job{
		Task:       taskset.Task{ID: "a", Repo: "a/sum", Base: base, Statement: "what-was-asked\n\nfor", Patch: git("diff", base, "HEAD"), TestPatch: "hidden-tests", FailToPass: []string{"TestThatIsHidden"}},
		Repository: from, Model: "m", Number: 1, Try: 1, Spent: func(llm.Money) error { return nil },
	})
	if worked.Outcome == string(task.Done) || worked.Calls == 0 {
		t.Errorf("it came to %+v, %v", worked, err)
	}
	if commit, err := from.Commit(t.Context(), eval.Branch); err != nil || commit != "" && commit != base {
		t.Errorf("it has left %s, %v", commit, err)
	}
	mu.Lock()
	all := strings.Join(asked, "\n")
	mu.Unlock()
	if !strings.Contains(all, "what-was-asked") {
		t.Errorf("it was asked %s", all)
	}
	for _, secret := range []string{"change-of-people", "hidden-tests", "TestThatIsHidden"} {
		if strings.Contains(all, secret) {
			t.Errorf("it was told of %s", secret)
		}
	}
}
