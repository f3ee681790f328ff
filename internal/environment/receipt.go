package environment

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/testreport"
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

// FailingTests names the tests that a test run's output says failed, each once,
// in order.
func FailingTests(output []byte) []string { return testreport.FailingTests(logLines(output)) }
