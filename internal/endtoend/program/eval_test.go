package program

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// evalSet writes a set of tasks over one Go module, in which each function is wrong.
func evalSet(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	dir := filepath.Join(folder, "calc")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	function := func(name, sign string) string {
		return "package calc\n\n// " + name + " adds.\nfunc " + name + "(a, b int) int { return a " + sign + " b }\n"
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	git("init", "--quiet", "--initial-branch=main")
	write("go.mod", "module example.com/calc\n\ngo 1.21\n")
	write("calc_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif "+names[0]+"(0, 0) != 0 {\n\t\tt.Error(\"it is not 0\")\n\t}\n}\n")
	for _, name := range names {
		write(strings.ToLower(name)+".go", function(name, "-"))
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "first")
	base := strings.TrimSpace(git("rev-parse", "HEAD"))
	var rows bytes.Buffer
	for _, name := range names {
		write(strings.ToLower(name)+".go", function(name, "+"))
		gold := git("diff")
		git("checkout", "--quiet", ".")
		write(strings.ToLower(name)+"_test.go", "package calc\n\nimport \"testing\"\n\nfunc Test"+name+"(t *testing.T) {\n\tif "+name+"(1, 2) != 3 {\n\t\tt.Error(\"1 and 2 are 3\")\n\t}\n}\n")
		git("add", ".")
		tests := git("diff", "--cached")
		git("reset", "--quiet", "--hard")
		data, err := json.Marshal(map[string]any{"instance_id": "calc-" + name, "repo": "calc", "base_commit": base, "patch": gold, "test_patch": tests,
			"problem_statement": name + " does not add\n\nOf 1 and 2 it has to make 3.", "FAIL_TO_PASS": `["example.com/calc Test` + name + `"]`, "PASS_TO_PASS": `["example.com/calc TestZero"]`})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(data, '\n'))
	}
	file := filepath.Join(folder, "tasks.jsonl")
	if err := os.WriteFile(file, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A script that plays gold, half of gold and nonsense resolves all, half and none, through the
// whole program. One that was killed goes on where it was.
func TestEval(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	set, data := evalSet(t, "Sum", "Total"), t.TempDir()
	// Tools of the host are not for tasks of others.
	config, started := filepath.Join(data, "toryo.yaml"), filepath.Join(data, "started")
	server := "mcp_servers:\n  host:\n    command: [touch, " + started + "]\n    in_sandbox: false\nsandbox:\n  network:\n    execution: open\n"
	if err := os.WriteFile(config, []byte(server), 0o600); err != nil {
		t.Fatal(err)
	}
	eval := func(out string, more ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "toryo", append([]string{"eval", set, "--config", config, "--data", data, "--out", out, "--sandbox", "bubblewrap"}, more...)...)
		command.Dir, command.Env = data, append(os.Environ(), "CGO_ENABLED=0")
		return command
	}
	run := func(command *exec.Cmd) string {
		t.Helper()
		var stderr bytes.Buffer
		command.Stderr = &stderr
		said, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s\n%s", command.Args, err, said, stderr.String())
		}
		return string(said)
	}
	if said := run(eval(filepath.Join(data, "check"), "--check")); !strings.Contains(said, "2 of 2 tasks can be used") {
		t.Errorf("the check says %s", said)
	}

	gold := filepath.Join(data, "gold")
	first := filepath.Join(gold, "attempts", "play-gold", "calc-Sum", "1.json")
	command := eval(gold, "--play", "gold")
	var told bytes.Buffer
	command.Stderr = &told
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }() // the context of the test ends it
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := os.Stat(first); err == nil {
			break
		}
		select {
		case <-again.C:
		case err := <-ended:
			if _, missing := os.Stat(first); missing != nil {
				t.Fatalf("it ended before its first attempt: %v\n%s", err, told.String())
			}
			ended <- err // it was quicker than this test
		case <-t.Context().Done():
			t.Fatal("the first attempt does not end")
		}
	}
	_ = command.Process.Kill() // it may be over
	<-ended
	before, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if said := run(eval(gold, "--play", "gold")); !strings.Contains(said, "100.0 ± 0.0 %") || !strings.Contains(said, "2 of 2 tasks can be used") {
		t.Errorf("gold: %s", said)
	}
	if after, err := os.ReadFile(first); err != nil || !bytes.Equal(before, after) {
		t.Errorf("what was finished was done again: %v", err)
	}
	if _, err := os.Stat(started); !os.IsNotExist(err) {
		t.Errorf("an MCP server was started on the host: %v", err)
	}
	var flagged struct{ Flags []string }
	if json.Unmarshal(before, &flagged) != nil || len(flagged.Flags) > 0 {
		t.Errorf("the flags of gold: %q", flagged.Flags)
	}
	if left, err := filepath.Glob(filepath.Join(gold, "toryo-work-*")); err != nil || len(left) > 0 {
		t.Errorf("work that is left: %q, %v", left, err)
	}
	half := filepath.Join(data, "half")
	if said := run(eval(half, "--play", "half")); !strings.Contains(said, "50.0 ± 50.0 %") {
		t.Errorf("half: %s", said)
	}
	if said := run(eval(filepath.Join(data, "nonsense"), "--play", "nonsense", "--only", "calc-Total")); !strings.Contains(said, "play-nonsense  0.0 %") {
		t.Errorf("nonsense: %s", said)
	}
	compare := exec.CommandContext(t.Context(), "toryo", "eval", "--compare", gold+"@play-gold", half)
	if said := run(compare); !strings.Contains(said, "a script has played the model (half)") || !strings.Contains(said, "No difference is shown: play-gold resolves 100.0 %, play-half 50.0 %") {
		t.Errorf("compared: %s", said)
	}
	var report struct {
		Resolved []string `json:"resolved_ids"`
	}
	written, err := os.ReadFile(filepath.Join(gold, "report.json"))
	if err != nil || json.Unmarshal(written, &report) != nil || strings.Join(report.Resolved, " ") != "calc-Sum calc-Total" {
		t.Errorf("the report: %v, %s", err, written)
	}
	if page, err := os.ReadFile(filepath.Join(gold, "index.html")); err != nil || !bytes.Contains(page, []byte("A script has played the model (gold)")) {
		t.Errorf("the page: %v", err)
	}
	other := eval(gold, "--play", "half")
	if said, err := other.CombinedOutput(); err == nil || !strings.Contains(string(said), "--fresh") {
		t.Errorf("another play in the same folder: %v, %s", err, said)
	}
}
