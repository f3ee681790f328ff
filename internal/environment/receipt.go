package environment

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// Receipt says what set-up proved: what was made, from what, and which of the
// project's tests failed before any change, so that later failures can be told
// from those.
type Receipt struct {
	Environment   string     `json:"environment"`
	Sandbox       string     `json:"sandbox"`
	Image         string     `json:"image"`
	Identity      string     `json:"identity"` // digest of the image or the toolchains
	SetupCommands []string   `json:"setup_commands"`
	Verification  []CheckRun `json:"verification"`
	SnapshotKey   string     `json:"snapshot_key"`
	SnapshotKept  string     `json:"snapshot_kept,omitempty"` // as what and where
	Directory     string     `json:"directory"`               // in which the commands start
	Baseline      *Baseline  `json:"baseline"`                // of the main project; nil when tests were not run
	// Projects are all projects that were to be set up, the main one first.
	Projects []ProjectSetup `json:"projects"`
	At       time.Time      `json:"at"`
}

// Baseline is one run of the project's tests.
type Baseline struct {
	Command      string        `json:"command"`
	Folder       string        `json:"folder,omitempty"` // in which it started
	ExitCode     int           `json:"exit_code"`
	Exceeded     sandbox.Limit `json:"exceeded,omitempty"`
	Failing      []string      `json:"failing"`  // names of tests, in order
	Readable     bool          `json:"readable"` // false: it failed, but no test could be named
	Milliseconds int64         `json:"milliseconds"`
	Output       string        `json:"output"` // the end of it
}

// NewFailures are the tests that fail in a later run but did not in this one.
func (b Baseline) NewFailures(later Baseline) []string {
	fresh := []string{}
	for _, name := range later.Failing {
		if !slices.Contains(b.Failing, name) {
			fresh = append(fresh, name)
		}
	}
	return fresh
}

func (r *setupRun) receipt(ctx context.Context) Receipt {
	setup := r.result.SetupResult
	receipt := Receipt{Environment: setup.Environment, Sandbox: setup.Sandbox, Image: r.request.Spec.Image, Identity: r.identity,
		Directory: r.selected.Directory, Projects: []ProjectSetup{}, Verification: r.result.VerificationResult.Checks,
		SnapshotKey: setup.SnapshotKey, SnapshotKept: r.kept, At: time.Now().UTC()}
	if receipt.Image == "" {
		receipt.Image = r.entry.Image
	}
	if setup.FromSnapshot != "" {
		receipt.SnapshotKey = setup.FromSnapshot
	}
	if r.request.Baseline && r.result.OverallStatus == Succeeded {
		r.runBaselines(ctx)
	}
	for i, p := range r.projects {
		if i == 0 {
			receipt.SetupCommands, receipt.Baseline = p.SetupCommands, p.Baseline
		}
		receipt.Projects = append(receipt.Projects, *p)
	}
	return receipt
}

// Main is the project that the plan selected. It is empty if set-up did not come so far
// as to know it.
func (r Receipt) Main() ProjectSetup {
	if len(r.Projects) == 0 { // nor do receipts of earlier versions have any
		main := ProjectSetup{Project: Project{EnvironmentType: r.Environment}, Baseline: r.Baseline}
		if r.Baseline != nil {
			main.TestCommand = r.Baseline.Command
		}
		return main
	}
	return r.Projects[0]
}

// Selection is the plan by which the same is set up again.
func (r Receipt) Selection() Selection {
	again := Selection{Name: r.Environment, SetupCommands: r.SetupCommands, Directory: r.Directory, Projects: []Project{}}
	for _, check := range r.Verification {
		again.Verification = append(again.Verification, check.Check)
	}
	for i, p := range r.Projects {
		if i > 0 {
			again.Projects = append(again.Projects, p.Project)
		}
	}
	return again
}

// Line is the command for people, with the folder in which it started.
func (b Baseline) Line() string { return inFolder(b.Folder, b.Command) }

// RunTests runs a project's tests and says which fail. Unless the command says
// otherwise, more of its output is kept than of others: it has to be read.
func RunTests(ctx context.Context, box sandbox.Sandbox, command sandbox.Command) (Baseline, error) {
	const testOutput = 4 << 20
	if command.OutputLimit == 0 {
		command.OutputLimit = testOutput
	}
	ran, err := box.Run(ctx, command)
	if err != nil {
		return Baseline{}, err
	}
	failing := FailingTests(ran.Log)
	return Baseline{Command: command.Text, Folder: command.Folder, ExitCode: ran.ExitCode, Exceeded: ran.Exceeded, Failing: failing,
		Readable: ran.ExitCode == 0 || len(failing) > 0, Milliseconds: milliseconds(ran.Duration), Output: ending(ran.Log)}, nil
}

// testFailures are how test runners name a test that failed.
var testFailures = []*regexp.Regexp{
	regexp.MustCompile(`^\s*--- FAIL: (\S+)`),                                                        // go
	regexp.MustCompile(`^FAIL\s+(\S+) \[(?:build|setup) failed\]`),                                   // go
	regexp.MustCompile(`^(?:FAILED|ERROR) ([^\s]+::[^\s]+|\S+\.py)\b`),                               // pytest
	regexp.MustCompile(`^(?:FAIL|ERROR): (\S+ \([^)]*\))`),                                           // unittest
	regexp.MustCompile(`^\s*● (.+ › .+)$`),                                                           // jest
	regexp.MustCompile(`^\s*(?:✕|×) (.+?)(?: \(\d+ ?ms\)| \d+ms)?$`),                                 // jest, vitest
	regexp.MustCompile(`^\s*not ok \d+ -? ?(.+?)(?: # .*)?$`),                                        // TAP, node
	regexp.MustCompile(`^\s*✖ (.+?) \(\d[\d.]*ms\)$`),                                                // node
	regexp.MustCompile(`^\[ERROR\]\s+(\S+\.\S+):\d+`),                                                // maven
	regexp.MustCompile(`^\[ERROR\]\s+(\S+\.\S+) -- Time elapsed.*<<<`),                               // maven
	regexp.MustCompile(`^(\S+(?: > .+)+) FAILED$`),                                                   // gradle
	regexp.MustCompile(`^test (\S+) \.\.\. FAILED$`),                                                 // cargo
	regexp.MustCompile(`^rspec (\S+)`),                                                               // rspec
	regexp.MustCompile(`^\d+\) ([\w\\]+::\w+)`),                                                      // phpunit
	regexp.MustCompile(`^\s*\d+\) test (.+ \(.+\))$`),                                                // exunit
	regexp.MustCompile(`^\s*Failed (\S+\.\S+)(?: \[.*\])?$`),                                         // dotnet
	regexp.MustCompile(`^([\w:]+#test_\S+)(?: \[.*\])?:?$`),                                          // minitest
	regexp.MustCompile(`^\(fail\) (.+?)(?: \[[\d.]+ms\])?$`),                                         // bun
	regexp.MustCompile(`^(.+) \.\.\. FAILED \(\d+m?s\)$`),                                            // deno
	regexp.MustCompile(`^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess aborted|Not Run)\)`), // ctest
	regexp.MustCompile(`^\s*FAILED\s+(\S+ > .+)$`),                                                   // pest
}

// mochaSummary is in the output of mocha, which numbers the tests that failed as
// many a text is numbered.
var (
	mochaSummary = regexp.MustCompile(`(?m)^\s+\d+ failing\s*$`)
	mochaFailure = regexp.MustCompile(`^\s+\d+\) (.+?):?$`)
)

// FailingTests names the tests that a test run's output says failed, each once,
// in order.
func FailingTests(output []byte) []string {
	failing := []string{}
	seen := map[string]bool{}
	forms := testFailures
	if mochaSummary.Match(output) {
		forms = append(slices.Clone(forms), mochaFailure)
	}
	for _, line := range logLines(output) {
		for _, form := range forms {
			found := form.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			if name := strings.TrimSpace(found[1]); !seen[name] {
				seen[name] = true
				failing = append(failing, name)
			}
			break
		}
	}
	return failing
}
