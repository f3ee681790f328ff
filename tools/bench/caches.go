package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// smallProject is a Go project of ten lines, with a mistake that its test shows.
var smallProject = map[string]string{
	"go.mod":         "module example.com/double\n\ngo 1.24\n",
	"double.go":      "package double\n\nfunc Double(n int) int { return n }\n",
	"double_test.go": "package double\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Error(\"not doubled\")\n\t}\n}\n",
}

// smallRules are the answers for a run on the small project. Models write plans in their own
// words each time: answer is what the plan's verification has to print.
func smallRules(answer string) string {
	return `model: bench
rules:
  - name: understand
    when: {phase: pre_planning}
    answer: {text: '{"goal": "double", "deliverables": ["double"], "constraints": [], "scope": "double.go", "ambiguities": []}'}
  - name: plan
    when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "double", "deliverables": ["double"], "constraints": []},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "correct it"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "correct Double"}]},
         "proof": {"tests": ["TestDouble"]},
         "selected_environment": {"name": "go", "reason": "go.mod", "detected_files": ["go.mod"], "setup_commands": ["go mod download"],
           "verification": [{"command": "go version >/dev/null && echo ` + answer + `", "expected_output": "` + answer + `"}]}}
  - name: correct
    when: {phase: execution, turn: 1}
    answer: {calls: [{name: run, arguments: {command: "sed -i 's/return n/return n * 2/' double.go && go test ./..."}}]}
  - name: finish
    when: {phase: execution}
    answer: {calls: [{name: finish, arguments: {summary: "It doubles."}}]}
  - name: judge
    when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "It doubles."}'}
  - name: write
    when: {phase: complete}
    answer: {text: '{"commit_message": "Double", "title": "Double", "summary": "It doubles."}'}
`
}

// measureCaches looks at what whole runs on a small Go project take: the first on this
// machine, the next with the same plan, and one with a plan that was never seen. Baseline,
// the model's own tests and the verdict are in it, each in a sandbox.
func measureCaches(ctx context.Context, folder string) ([]row, error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return []row{{"run on a small Go project", "no bubblewrap", ""}}, nil //nolint:nilerr // not having it is a result
	}
	at := filepath.Join(folder, "caches")
	var rows []row
	for i, one := range []struct{ name, answer, aim string }{
		{"the first on this machine", "ONE", ""}, {"the second", "ONE", "under 6 s"}, {"with another plan", "TWO", "under 6 s"},
	} {
		took, err := runSmall(ctx, folder, at, filepath.Join(at, fmt.Sprint("repository-", i)), one.answer)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{"run on a small Go project, " + one.name, took.String(), one.aim})
	}
	return rows, nil
}

// runSmall runs on the project. Each run has a copy at the same place, as the place says
// which project it is.
func runSmall(ctx context.Context, programs, at, kept, answer string) (cost, error) {
	repository := filepath.Join(at, "repository")
	if err := os.MkdirAll(repository, 0o750); err != nil {
		return cost{}, err
	}
	files := map[string]string{filepath.Join(at, "script.yaml"): smallRules(answer), filepath.Join(at, "toryo.yaml"): fmt.Sprintf(
		"data_dir: %s\nsandbox: {kind: bubblewrap}\nllm: {provider: script, script: %s}\n", filepath.Join(at, "data"), filepath.Join(at, "script.yaml"))}
	for name, text := range smallProject {
		files[filepath.Join(repository, name)] = text
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return cost{}, err
		}
	}
	for _, step := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "--quiet", "--message=start"},
	} {
		if output, err := exec.CommandContext(ctx, "git", append([]string{"-C", repository}, step...)...).CombinedOutput(); err != nil {
			return cost{}, fmt.Errorf("%w: %s", err, output)
		}
	}
	took, err := costOf(exec.CommandContext(ctx, filepath.Join(programs, "toryo"), "run", "--config", filepath.Join(at, "toryo.yaml"), "--repo", repository, "--issue", "Double does not double"))
	return took, errors.Join(err, os.Rename(repository, kept))
}
