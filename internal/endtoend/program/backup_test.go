package program

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// planScript is how runs begin whose plan is to write into a file.
const planScript = `rules:
  - when: {system: You review work}
    answer: {text: '{"verdict": "approve", "overall_review": "Fine.", "strengths": [], "weaknesses": [], "important_points": [], "future_considerations": []}'}
  - when: {phase: pre_planning}
    answer: {text: '{"goal": "count"}'}
  - when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "count"},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "count"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "count"}]},
         "selected_environment": {"name": "python", "reason": "none", "detected_files": [],
           "setup_commands": ["true"], "verification": [{"command": "echo OK", "expected_output": "OK"}]}}
  - when: {phase: reflection}
    answer: {text: '{"assessment": "It is going well.", "decision": "continue", "advice": "Go on."}'}
`

// writingScript is a model that goes on and on writing into a file; endingScript one that writes a
// last line and is done.
const (
	writingScript = planScript + `  - when: {phase: execution}
    answer: {delay: 100ms, calls: [{name: run, arguments: {command: "echo line ${turn} >>lines.txt"}}]}
`
	endingScript = planScript + `  - when: {phase: execution, last: all is written}
    answer: {calls: [{name: tick, arguments: {action: a1}}, {name: finish, arguments: {summary: "All is written."}}]}
  - when: {phase: execution}
    answer: {calls: [{name: run, arguments: {command: "echo the end >>lines.txt; echo all is written"}}]}
  - when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "All is there."}'}
  - when: {phase: complete}
    answer: {text: '{"commit_message": "Write lines", "title": "Write lines", "summary": "Lines are written."}'}
`
)

// withModel is the place with a model that follows another script.
func (p place) withModel(t testing.TB, script string) place {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p.environ = append(slices.Clip(p.environ), "TORYO_LLM_SCRIPT="+file)
	return p
}

// refuse runs a command that fails, and returns what it complains about.
func (p place) refuse(t testing.TB, code task.Code, args ...string) string {
	t.Helper()
	command := p.command(t, args...)
	said, err := command.CombinedOutput()
	if err == nil || command.ProcessState.ExitCode() != code.Info().Exit {
		t.Errorf("toryo %v ends with %v: %s", args, err, said)
	}
	return string(said)
}

// awaitTask waits until the task of an issue is as it should be.
func awaitTask(t testing.TB, in store.Store, number int64, good func(task.Task) bool) task.Task {
	t.Helper()
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		is, err := in.TaskOf(t.Context(), key, task.Development)
		if err == nil && good(is) {
			return is
		}
		if err != nil && task.CodeOf(err) != task.NotFound {
			t.Fatal(err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("the task of issue %d is %+v", number, is)
		}
	}
}

// A backup is made while a run goes on, which goes on meanwhile and after. The server is killed,
// and the backup restored elsewhere. The agent, which was not told, can do nothing for its run any
// more; then it takes the task again, although it knows more of it than the server. The
// work ends in one pull request.
func TestBackupWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	p := busyPlace(t, "sqlite").withModel(t, writingScript)
	server := p.start(t, "serve")
	giveIssue(t, p)
	database, _ := p.database(t)
	own, agent := enrolledWorker(t, p, server)
	awaitEntry(t, database, func(e task.Event) bool { // some of the work is saved
		saves, err := database.EventsOf(t.Context(), e.Task, task.Saved)
		return err == nil && len(saves) > 1
	})
	file := filepath.Join(t.TempDir(), "toryo.backup")
	p.output(t, "backup", file)
	saved := lastEntry(t, database)
	awaitEntry(t, database, func(e task.Event) bool { return e.Sequence > saved.Sequence+20 })
	p.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Since the backup")
	if said := p.refuse(t, task.DataDir, "restore", file); !strings.Contains(said, "a server uses the data directory") {
		t.Errorf("while the server runs it says %s", said)
	}
	since := lastEntry(t, database)
	server.kill(t)
	if said := p.refuse(t, task.Conflict, "restore", file); !strings.Contains(said, "move it away") {
		t.Errorf("over the old database it says %s", said)
	}

	restored := p
	restored.data = filepath.Join(t.TempDir(), "restored")
	if said := restored.output(t, "restore", file); !strings.Contains(said, "1 were running, and are queued") {
		t.Errorf("it says %s", said)
	}
	again, _ := restored.database(t)
	kept := lastEntry(t, again)
	if kept.Position == 0 || kept.Position > saved.Position || kept.Position >= since.Position {
		t.Fatalf("the restored journal ends at %d, that of the backup at %d, and the old one at %d", kept.Position, saved.Position, since.Position)
	}
	waits := awaitTask(t, again, 1, func(task.Task) bool { return true })
	if waits.State != task.Queued || waits.Reason != task.ReasonRestored || waits.Generation < since.Generation+1_000_000 {
		t.Fatalf("the task is %+v", waits)
	}
	if said := restored.output(t, "board", "issue", "list", "--repo", "team/app"); strings.Contains(said, "Since the backup") || !strings.Contains(said, "Say hello") {
		t.Errorf("the board has %s", said)
	}

	// A restore that was killed at its very end has left something, which the server removes.
	left := filepath.Join(restored.data, ".toryo-restored")
	if err := os.MkdirAll(filepath.Join(left, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The agent goes on with the same address, and is given the task anew.
	next := restored.start(t, "serve", "--addr", strings.TrimPrefix(server.url, "http://"))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a restore has left is there: %v", err)
	}
	awaitEntry(t, again, func(e task.Event) bool { return e.Generation >= waits.Generation && e.Kind == task.ToolCalled })
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	for _, want := range []string{"lease lost; the run was discarded", "entries that only this machine had are dropped"} {
		if !strings.Contains(agent.stderr.String(), want) {
			t.Errorf("the agent does not say %q: %s", want, agent.stderr)
		}
	}
	wantOneJournal(t, again, waits.ID)

	ending := startWorker(t, own.withModel(t, endingScript), "--server", next.url)
	done := awaitTask(t, again, 1, func(is task.Task) bool { return is.State.Terminal() })
	if done.State != task.Done {
		t.Errorf("the task ends as %s, %s", done.State, done.Reason)
	}
	if pulls := strings.Count(restored.output(t, "board", "pr", "list", "--repo", "team/app"), "Write lines"); pulls != 1 {
		t.Errorf("there are %d pull requests", pulls)
	}
	if diff := restored.output(t, "board", "pr", "diff", "team/app#2"); !strings.Contains(diff, "+line 1\n") || !strings.Contains(diff, "+the end\n") {
		t.Errorf("the pull request has %s", diff)
	}
	git := exec.CommandContext(t.Context(), "git", "--git-dir="+filepath.Join(restored.data, "board", "team", "app.git"), "log", "--format=%s", "main")
	if said, err := git.CombinedOutput(); err != nil || string(said) != "first\n" {
		t.Errorf("the history of the board is %s, %v", said, err)
	}
	_ = ending.Process.Kill()
	_ = ending.Wait()
	next.stop(t)
}

// wantOneJournal looks for turns of the model that are in the journal twice: each line of the file
// was written by one.
func wantOneJournal(t testing.TB, in store.Store, id task.ID) {
	t.Helper()
	calls, err := in.EventsOf(t.Context(), id, task.ToolCalled)
	if err != nil || len(calls) == 0 {
		t.Fatalf("there are no calls: %v", err)
	}
	seen := map[string]int{}
	for _, call := range calls {
		seen[string(call.Data)]++
	}
	for data, times := range seen {
		if times > 1 {
			t.Errorf("%d times in the journal: %s", times, data)
		}
	}
}
