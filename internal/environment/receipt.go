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
	Directory     string     `json:"directory"`               // in which the commands start
	Baseline      *Baseline  `json:"baseline"`                // of the main project; nil when tests were not run
	// Projects are all projects that were to be set up, the main one first.
	Projects []ProjectSetup `json:"projects"`
	// LeftOut are the projects with tests that were not to be: they need another image.
	LeftOut []Project `json:"left_out,omitempty"`
	At      time.Time `json:"at"`
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
	// Changed are the first files of the project that were others afterwards.
	Changed []string `json:"changed,omitempty"`
	// Tests is what the runner has reported; nil if its report cannot be had.
	Tests *testreport.Report `json:"tests,omitempty"`
}

// Passed reports whether the tests passed: by the runner's report if there is one, or
// else by the exit code.
func (b Baseline) Passed() bool {
	return b.Exceeded == sandbox.NoLimit && b.ExitCode == 0 && (b.Tests == nil || b.Tests.Passed())
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
		Directory: r.selected.Directory, Projects: []ProjectSetup{}, LeftOut: r.leftOut(), Verification: r.result.VerificationResult.Checks,
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

// RunTests runs a project's tests and says which fail: by the report that read finds, or,
// if it is nil, by the output. Unless the command says otherwise, more of its output is
// kept than of others: it has to be read.
func RunTests(ctx context.Context, box sandbox.Sandbox, command sandbox.Command, read func(output []byte, exit int) testreport.Report) (Baseline, error) {
	const testOutput = 16 << 20
	if command.OutputLimit == 0 {
		command.OutputLimit = testOutput
	}
	ran, err := box.Run(ctx, command)
	if err != nil {
		return Baseline{}, err
	}
	made := Baseline{Command: command.Text, Folder: command.Folder, ExitCode: ran.ExitCode, Exceeded: ran.Exceeded,
		Milliseconds: milliseconds(ran.Duration), Output: ending(ran.Log)}
	if read == nil {
		made.Failing = FailingTests(ran.Log)
		made.Readable = ran.ExitCode == 0 || len(made.Failing) > 0
		return made, nil
	}
	report := read(ran.Log, ran.ExitCode)
	made.Tests, made.Failing, made.Readable = withoutMessages(report), report.Failing(), report.Complete
	return made, nil
}

// Shorten is the same with so many bytes of the names of tests, those that failed first.
// The rest of the tests is then not known, which is not the same as not there.
func (b Baseline) Shorten(most int) *Baseline {
	b.Failing = firstNames(b.Failing, most)
	if b.Tests == nil {
		return &b
	}
	report := *b.Tests
	kept := make([]testreport.Case, 0, len(report.Cases))
	for _, failed := range []bool{true, false} {
		for _, one := range report.Cases {
			if (one.Status == testreport.Failed) != failed {
				continue
			}
			if most -= len(one.Name) + len(one.File); most < 0 {
				break
			}
			kept = append(kept, one)
		}
	}
	report.Cases, b.Tests = kept, &report
	return &b
}

// firstNames are the first names of a list, up to so many bytes together.
func firstNames(names []string, most int) []string {
	for i, name := range names {
		if most -= len(name); most < 0 {
			return names[:i]
		}
	}
	return names
}

// withoutMessages is a report without what tests have said.
func withoutMessages(report testreport.Report) *testreport.Report {
	for i := range report.Cases {
		report.Cases[i].Message = ""
	}
	return &report
}

// FailingTests names the tests that a test run's output says failed, each once,
// in order.
func FailingTests(output []byte) []string { return testreport.FailingTests(logLines(output)) }
