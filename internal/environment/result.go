package environment

import (
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Status is how set-up ended.
type Status string

// The statuses.
const (
	Succeeded Status = "success"
	Failed    Status = "failed"
)

// Result is what the sub-phase returns, in the specification's form.
type Result struct {
	OverallStatus      Status             `json:"overall_status"`
	SetupResult        SetupResult        `json:"setup_result"`
	VerificationResult VerificationResult `json:"verification_result"`
	Errors             []Failure          `json:"errors"`
	// Remarks are those of the warnings that people should know of.
	Remarks  []string `json:"remarks,omitempty"`
	Warnings []string `json:"warnings"`
}

// SetupResult is how the set-up commands went.
type SetupResult struct {
	Environment    string       `json:"environment"`
	Sandbox        string       `json:"sandbox"`
	FromSnapshot   string       `json:"from_snapshot"` // the key, when only verification was needed
	SnapshotKey    string       `json:"snapshot_key"`  // under which it was kept
	Commands       []CommandRun `json:"commands"`      // every try, in order
	NetworkRetries int          `json:"network_retries"`
	Retries        int          `json:"retries"` // of every kind
	Regenerations  int          `json:"regenerations"`
	// Guess says why the environment is only a guess; empty if it is none.
	Guess        string `json:"guess,omitempty"`
	Milliseconds int64  `json:"milliseconds"`
}

// CommandRun is one try of one set-up command.
type CommandRun struct {
	Command        string          `json:"command"`
	Directory      string          `json:"directory,omitempty"` // in which it started
	ExitCode       int             `json:"exit_code"`
	Exceeded       sandbox.Limit   `json:"exceeded,omitempty"`
	Milliseconds   int64           `json:"milliseconds"`
	Output         string          `json:"output"` // the end of it
	Classification *Classification `json:"classification,omitempty"`
}

// VerificationResult is how the last verification went.
type VerificationResult struct {
	Passed bool       `json:"passed"`
	Checks []CheckRun `json:"checks"`
}

// CheckRun is one verification command.
type CheckRun struct {
	Check
	ActualOutput string `json:"actual_output"`
	ExitCode     int    `json:"exit_code"`
	Passed       bool   `json:"passed"`
}

// Failure is one thing that went wrong.
type Failure struct {
	Message        string         `json:"message"`
	Command        string         `json:"command"`
	Directory      string         `json:"directory,omitempty"` // in which the command started
	ExitCode       int            `json:"exit_code"`
	Log            string         `json:"log"` // the end of it
	Classification Classification `json:"classification"`
}

// describe is the failure for a model.
func (f Failure) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nClassification: %s (%s)\n", f.Message, f.Classification.Class, f.Classification.Kind)
	if f.Command != "" {
		fmt.Fprintf(&text, "Command: %s\nExit code: %d\n", f.Command, f.ExitCode)
		if f.Directory != "" && f.Directory != "." {
			fmt.Fprintf(&text, "Started in the folder: %s\n", f.Directory)
		}
	}
	if f.Classification.Line != "" {
		fmt.Fprintf(&text, "Likely cause: %s\n", f.Classification.Line)
	}
	if f.Log != "" {
		fmt.Fprintf(&text, "Output:\n%s\n", f.Log)
	}
	return text.String()
}

func (f Failure) oneLine() string {
	text := f.Message
	if f.Classification.Line != "" {
		text += ": " + f.Classification.Line
	}
	return textfmt.OneLine(text)
}

// Handover is what the execution phase gets to know.
type Handover struct {
	EnvironmentReady bool      `json:"environment_ready"`
	EnvironmentName  string    `json:"environment_name"`
	SetupStatus      Status    `json:"setup_status"`
	Errors           []Failure `json:"errors"`
	// Directory is the folder of the project that was set up, if it is not the top.
	Directory string `json:"directory,omitempty"`
	// Others are the other projects of the repository.
	Others []ProjectSetup `json:"others,omitempty"`
}

// Handover is the result for the execution phase. An environment that is ready
// has no errors: those on the way were fixed.
func (r Result) Handover() Handover {
	handover := Handover{EnvironmentReady: r.OverallStatus == Succeeded, EnvironmentName: r.SetupResult.Environment,
		SetupStatus: r.OverallStatus, Errors: []Failure{}}
	if !handover.EnvironmentReady {
		handover.Errors = r.Errors
	}
	return handover
}

// shownOutput is how much of a command's output is kept in results.
const shownOutput = 8 << 10

// ending is the end of an output, as valid text.
func ending(output []byte) string {
	if len(output) > shownOutput {
		output = output[len(output)-shownOutput:]
	}
	return strings.ToValidUTF8(string(output), "\uFFFD")
}

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }
