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
	Baseline      *Baseline  `json:"baseline"`                // nil when tests were not run
	At            time.Time  `json:"at"`
}

// Baseline is one run of the project's tests.
type Baseline struct {
	Command      string        `json:"command"`
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
		SetupCommands: r.selected.SetupCommands, Verification: r.result.VerificationResult.Checks,
		SnapshotKey: setup.SnapshotKey, SnapshotKept: r.kept, At: time.Now().UTC()}
	if receipt.Image == "" {
		receipt.Image = r.entry.Image
	}
	if setup.FromSnapshot != "" {
		receipt.SnapshotKey = setup.FromSnapshot
	}
	// The tests that were detected are those of the environment that was detected.
	if r.request.Baseline && r.result.OverallStatus == Succeeded && r.detected.TestCommand != "" && r.selected.Name == r.detected.EnvironmentType {
		r.tell(Step{Kind: RunningBaseline, Command: r.detected.TestCommand})
		baseline, err := RunTests(ctx, r.box, sandbox.Command{Text: r.detected.TestCommand, Timeout: r.CommandTimeout, OutputLimit: r.OutputLimit})
		if err != nil {
			r.Log.WarnContext(ctx, "environment set-up: the tests could not be run", "error", err)
			return receipt
		}
		receipt.Baseline = &baseline
	}
	return receipt
}

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
	return Baseline{Command: command.Text, ExitCode: ran.ExitCode, Exceeded: ran.Exceeded, Failing: failing,
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
