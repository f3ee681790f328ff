package program

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// busyScript is a model whose run goes on and on, a command at a time.
const busyScript = planScript + `  - when: {phase: execution}
    answer: {delay: 100ms, calls: [{name: run, arguments: {command: "echo ${turn}"}}]}
`

// busyPlace is a place for servers and agents whose model is never done. Leases last so
// long that nobody waits for one to run out.
func busyPlace(t testing.TB, driver string) place {
	t.Helper()
	needBubblewrap(t)
	p := newPlace(t, driver)
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(busyScript), 0o600); err != nil {
		t.Fatal(err)
	}
	p.environ = append(p.environ, "TORYO_LLM_PROVIDER=script", "TORYO_LLM_SCRIPT="+file, "TORYO_SANDBOX_KIND=bubblewrap", "TORYO_LEASES_DURATION=1h",
		"TORYO_MAX_ATTEMPTS=1000", "TORYO_LANGUAGE=en")
	return p
}

// lastEntry is the last that a run has written into the journal on the server.
func lastEntry(t testing.TB, in store.Store) task.Event {
	t.Helper()
	tasks, err := in.ListTasks(t.Context(), store.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) == 0 {
		return task.Event{} // it is not taken in yet
	}
	entry, err := in.LastFrom(t.Context(), tasks[0].ID, task.FromAgent)
	if err != nil && task.CodeOf(err) != task.NotFound {
		t.Fatal(err)
	}
	return entry
}

// awaitEntry waits until the journal has such an entry at its end.
func awaitEntry(t testing.TB, in store.Store, good func(task.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !good(lastEntry(t, in)) {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("the run does not go on")
		}
	}
}

// Server and agent in one process, which is killed and started again, also at another
// address: the run goes on in a new generation.
func TestUpAfterAKill(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			p := busyPlace(t, driver)
			first := p.start(t, "up")
			giveIssue(t, p)
			database, _ := p.database(t)
			awaitEntry(t, database, func(e task.Event) bool { return e.Kind == task.ToolCalled })
			first.kill(t)
			was := lastEntry(t, database)
			second := p.start(t, "up")
			awaitEntry(t, database, func(e task.Event) bool { return e.Generation > was.Generation && e.Kind == task.ToolCalled })
			second.stop(t)
		})
	}
}

// enrolledWorker starts an agent with a data directory of its own.
func enrolledWorker(b testing.TB, p place, server process) (place, *worker) {
	b.Helper()
	own := p
	own.data = filepath.Join(b.TempDir(), "agent")
	oneTime := strings.TrimSpace(p.output(b, "agent", "token", "create"))
	return own, startWorker(b, own, "--server", server.url, "--enrol", oneTime)
}

// BenchmarkRestart kills processes in the middle of things, and measures how long it is
// from the start of the next process until the work goes on: until the server has the
// next entry of the run's journal, or a person the answer in a conversation.
func BenchmarkRestart(b *testing.B) {
	const times = 7
	report := func(b *testing.B, measure func() time.Duration) {
		b.Helper()
		var took []time.Duration
		for range b.N * times {
			took = append(took, measure())
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds(), "s-to-going-on-p50")
		b.ReportMetric(took[len(took)-1].Seconds(), "s-to-going-on-max")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("agent", func(b *testing.B) {
		p := busyPlace(b, "sqlite")
		server := p.start(b, "serve")
		giveIssue(b, p)
		database, _ := p.database(b)
		own, agent := enrolledWorker(b, p, server)
		report(b, func() time.Duration {
			awaitEntry(b, database, func(e task.Event) bool { return e.Kind == task.ToolCalled })
			if err := agent.Process.Kill(); err != nil {
				b.Fatal(err)
			}
			_ = agent.Wait() // it was killed
			was, begun := lastEntry(b, database), time.Now()
			agent = startWorker(b, own, "--server", server.url)
			awaitEntry(b, database, func(e task.Event) bool { return e.Generation > was.Generation })
			return time.Since(begun)
		})
		_ = agent.Process.Kill()
		_ = agent.Wait()
		server.kill(b)
	})
	b.Run("server", func(b *testing.B) {
		p := busyPlace(b, "sqlite")
		server := p.start(b, "serve")
		giveIssue(b, p)
		database, _ := p.database(b)
		_, agent := enrolledWorker(b, p, server)
		address := strings.TrimPrefix(server.url, "http://")
		report(b, func() time.Duration {
			awaitEntry(b, database, func(e task.Event) bool { return e.Kind == task.ToolCalled })
			server.kill(b)
			was, begun := lastEntry(b, database), time.Now()
			server = p.start(b, "serve", "--addr", address)
			awaitEntry(b, database, func(e task.Event) bool { return e.Position > was.Position })
			return time.Since(begun)
		})
		_ = agent.Process.Kill()
		_ = agent.Wait()
		server.kill(b)
	})
	b.Run("up", func(b *testing.B) {
		p := busyPlace(b, "sqlite")
		both := p.start(b, "up")
		giveIssue(b, p)
		database, _ := p.database(b)
		address := strings.TrimPrefix(both.url, "http://")
		report(b, func() time.Duration {
			awaitEntry(b, database, func(e task.Event) bool { return e.Kind == task.ToolCalled })
			both.kill(b)
			was, begun := lastEntry(b, database), time.Now()
			both = p.start(b, "up", "--addr", address)
			awaitEntry(b, database, func(e task.Event) bool { return e.Generation > was.Generation })
			return time.Since(begun)
		})
		both.kill(b)
	})
	b.Run("chat", func(b *testing.B) {
		model, url := newHesitant(b)
		p := newChatPlace(b, "sqlite", url)
		server := p.start(b, "serve")
		report(b, func() time.Duration {
			thread := p.thread(b, server)
			go func(at process) { _, _ = p.send(b.Context(), at, thread, "wait") }(server) // it is cut off
			<-model.asked
			server.kill(b)
			begun := time.Now()
			server = p.start(b, "serve")
			if _, err := p.send(b.Context(), server, thread, "Why?"); err != nil {
				b.Fatal(err)
			}
			return time.Since(begun)
		})
		server.kill(b)
	})
}
