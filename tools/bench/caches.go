package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// smallProject is a project of some lines, with a mistake that its test shows.
type smallProject struct {
	environment string
	program     string // without which it is not measured
	version     string // a command
	files       map[string]string
	setup       []string
	correct     string // a command
	test        string
}

var smallProjects = []smallProject{
	{environment: "go", program: "go", version: "go version", setup: []string{"go mod download"}, correct: "sed -i 's/return n/return n * 2/' double.go && go test ./...", test: "TestDouble",
		files: map[string]string{
			"go.mod":         "module example.com/double\n\ngo 1.24\n",
			"double.go":      "package double\n\nfunc Double(n int) int { return n }\n",
			"double_test.go": "package double\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Error(\"not doubled\")\n\t}\n}\n",
		}},
	{environment: "node", program: "npm", version: "npm --version", setup: []string{"npm ci"}, correct: "sed -i 's/=> n;/=> n * 2;/' double.js && npm test", test: "doubles",
		files: map[string]string{
			"package.json":            `{"name": "double", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"two": "file:vendor/two"}}`,
			"package-lock.json":       nodeLock,
			"vendor/two/package.json": `{"name": "two", "version": "1.0.0"}`,
			"vendor/two/index.js":     "module.exports = 2;\n",
			"double.js":               "module.exports = (n) => n;\n",
			"double.test.js":          "const test = require('node:test');\nconst assert = require('node:assert');\ntest('doubles', () => assert.equal(require('./double')(require('two')), 4));\n",
			".gitignore":              "node_modules\n",
		}},
	{environment: "python", program: "python3", version: "python3 --version", setup: []string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt"},
		correct: "sed -i 's/return n/return n * 2/' double.py && python -m unittest discover", test: "test_double",
		files: map[string]string{
			"requirements.txt": "",
			"double.py":        "def double(n):\n    return n\n",
			"test_double.py":   "import unittest\nfrom double import double\n\n\nclass Doubles(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(2), 4)\n",
			".gitignore":       ".venv\n__pycache__\n",
		}},
	{environment: "rust", program: "cargo", version: "cargo --version", setup: []string{"cargo fetch"}, correct: "sed -i 's/i64 { n }/i64 { n * 2 }/' src/lib.rs && cargo test", test: "tests::doubles",
		files: map[string]string{
			"Cargo.toml":                      "[package]\nname = \"double\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ntwo = \"1.0.0\"\n",
			".cargo/config.toml":              "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n",
			"Cargo.lock":                      "version = 3\n\n[[package]]\nname = \"double\"\nversion = \"0.1.0\"\ndependencies = [\n \"two\",\n]\n\n[[package]]\nname = \"two\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"" + noChecksum + "\"\n",
			"vendor/two/Cargo.toml":           "[package]\nname = \"two\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
			"vendor/two/src/lib.rs":           "pub fn two() -> i64 { 2 }\n",
			"vendor/two/.cargo-checksum.json": `{"files": {}, "package": "` + noChecksum + `"}`,
			"src/lib.rs":                      "pub fn double(n: i64) -> i64 { n }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn doubles() { assert_eq!(super::double(two::two()), 4); }\n}\n",
			".gitignore":                      "target\n",
		}},
}

// nodeLock is the lock file of the project in Node.
const nodeLock = `{"name": "double", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "double", "version": "1.0.0", "dependencies": {"two": "file:vendor/two"}},
  "node_modules/two": {"resolved": "vendor/two", "link": true}, "vendor/two": {"name": "two", "version": "1.0.0"}}}`

// noChecksum is for a package that comes from no registry.
var noChecksum = strings.Repeat("0", 64)

// rules are the answers for a run on the project. Models write plans in their own
// words each time: answer is what the plan's verification has to print.
func (p smallProject) rules(answer string) (string, error) {
	setup, err := json.Marshal(p.setup)
	if err != nil {
		return "", err
	}
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
         "proof": {"tests": ["` + p.test + `"]},
         "selected_environment": {"name": "` + p.environment + `", "reason": "its manifest", "detected_files": [], "setup_commands": ` + string(setup) + `,
           "verification": [{"command": "` + p.version + ` >/dev/null && echo ` + answer + `", "expected_output": "` + answer + `"}]}}
  - name: correct
    when: {phase: execution, turn: 1}
    answer: {calls: [{name: run, arguments: {command: "` + p.correct + `"}}]}
  - name: finish
    when: {phase: execution}
    answer: {calls: [{name: finish, arguments: {summary: "It doubles."}}]}
  - name: judge
    when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "It doubles."}'}
  - name: write
    when: {phase: complete}
    answer: {text: '{"commit_message": "Double", "title": "Double", "summary": "It doubles."}'}
`, nil
}

// measureCaches looks at what whole runs on small projects take: the first on this
// machine, the next, and for Go one whose plan sets up what was never set up so. Baseline,
// the model's own tests and the verdict are in it, each in a sandbox.
func measureCaches(ctx context.Context, folder string) (rows []row, err error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return []row{{"runs on small projects", "no bubblewrap", ""}}, nil //nolint:nilerr // not having it is a result
	}
	for _, project := range smallProjects {
		about := "run on a small project in " + project.environment + ", "
		// Of the machine's folders a sandbox has /usr only.
		if program, err := exec.LookPath(project.program); err != nil || project.program != "python3" && !strings.HasPrefix(program, "/usr/") {
			rows = append(rows, row{about + "all", "not measured: there is no " + project.program + " in /usr", ""})
			continue
		}
		at := filepath.Join(folder, "caches-"+project.environment)
		for i, one := range []struct{ name, answer, another, aim string }{
			{"the first on this machine", "ONE", "", ""}, {"the second, with other words for the verification", "TWO", "", "under 6 s"},
			{"with another set-up", "TWO", "go version", "under 6 s"},
		} {
			if one.another != "" && project.environment != "go" {
				continue // nothing is compiled ahead for the others
			}
			changed := project
			if one.another != "" {
				changed.setup = append(slices.Clone(project.setup), one.another)
			}
			took, err := changed.run(ctx, folder, at, filepath.Join(at, fmt.Sprint("repository-", i)), one.answer)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", project.environment, err)
			}
			rows = append(rows, row{about + one.name, took.String(), one.aim})
		}
	}
	return rows, nil
}

// proven is what a run says whose tests show the change. What one takes whose environment or tests
// do not work says nothing.
const proven = "Shown by tests that fail without the change and pass with it"

// run runs on the project. Each run has a copy at the same place, as the place says
// which project it is.
func (p smallProject) run(ctx context.Context, programs, at, kept, answer string) (cost, error) {
	repository := filepath.Join(at, "repository")
	rules, err := p.rules(answer)
	if err != nil {
		return cost{}, err
	}
	files := map[string]string{filepath.Join(at, "script.yaml"): rules, filepath.Join(at, "toryo.yaml"): fmt.Sprintf(
		"data_dir: %s\nsandbox: {kind: bubblewrap}\nllm: {provider: script, script: %s}\n", filepath.Join(at, "data"), filepath.Join(at, "script.yaml"))}
	for name, text := range p.files {
		files[filepath.Join(repository, name)] = text
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return cost{}, err
		}
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
	took, said, err := costOf(exec.CommandContext(ctx, filepath.Join(programs, "toryo"), "run", "--config", filepath.Join(at, "toryo.yaml"), "--repo", repository, "--issue", "Double does not double"))
	if err == nil && !strings.Contains(said, proven) {
		err = fmt.Errorf("the run ended without tests that show the change: %s", said)
	}
	return took, errors.Join(err, os.Rename(repository, kept))
}
