package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// Selection is the environment that a plan selected, with the commands that make
// it ready.
type Selection struct {
	Name          string   `json:"name"`
	Reason        string   `json:"reason"`
	DetectedFiles []string `json:"detected_files"`
	SetupCommands []string `json:"setup_commands"`
	Verification  []Check  `json:"verification"`
}

const (
	longestPlan  = 32 << 20
	mostCommands = 200
)

// ReadPlan takes the selected environment out of a plan. A plan without one gives
// an empty selection, which [Table.Complete] fills in. Invalid says what is wrong
// with a plan that cannot be read.
func ReadPlan(from io.Reader) (Selection, error) {
	text, err := io.ReadAll(io.LimitReader(from, longestPlan+1))
	if err != nil {
		return Selection{}, task.Wrap(task.Invalid, err, "the plan cannot be read")
	}
	if len(text) > longestPlan {
		return Selection{}, task.Errorf(task.TooLarge, "the plan is longer than %d bytes", longestPlan)
	}
	var plan struct {
		Selected *Selection `json:"selected_environment"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &plan); err != nil {
		return Selection{}, task.Wrap(task.Invalid, err, "the plan is not the JSON that is expected")
	}
	if plan.Selected == nil {
		return Selection{}, nil
	}
	return *plan.Selected, checkCommands(plan.Selected.SetupCommands, plan.Selected.Verification)
}

func checkCommands(commands []string, checks []Check) error {
	if len(commands) > mostCommands || len(checks) > mostCommands {
		return task.Errorf(task.Invalid, "there are %d set-up and %d verification commands; %d of each are allowed", len(commands), len(checks), mostCommands)
	}
	for number, command := range commands {
		if err := checkCommand(command); err != nil {
			return task.Wrap(task.CodeOf(err), err, fmt.Sprintf("set-up command %d", number+1))
		}
	}
	for number, check := range checks {
		if err := checkCommand(check.Command); err != nil {
			return task.Wrap(task.CodeOf(err), err, fmt.Sprintf("verification command %d", number+1))
		}
	}
	return nil
}

func checkCommand(command string) error {
	if strings.TrimSpace(command) == "" {
		return task.Errorf(task.Invalid, "the command is empty")
	}
	_, err := sandbox.Command{Text: command}.Validate()
	return err
}

// Complete fills in what a plan left out: an unknown or missing environment
// becomes what was detected or else the default, missing commands become the
// environment's own. The warnings say what was filled in.
func (t *Table) Complete(selected Selection, detected Detection) (Selection, Environment, []string) {
	var warnings []string
	entry, known := t.Find(selected.Name)
	if !known {
		entry = t.Default()
		if selected.Name == "" {
			warnings = append(warnings, fmt.Sprintf("the plan names no environment; %s is taken", entry.Name))
		} else {
			warnings = append(warnings, fmt.Sprintf("the plan names the environment %q, which is not known; %s is taken", selected.Name, entry.Name))
		}
		selected.Name = entry.Name
	}
	if len(selected.SetupCommands) == 0 {
		warnings = append(warnings, "the plan has no set-up commands; those of the environment are taken")
		if detected.EnvironmentType == entry.Name {
			selected.SetupCommands = slices.Clone(detected.SetupCommands)
		} else {
			selected.SetupCommands = entry.manager(nil).commands(Candidate{})
		}
	}
	if len(selected.Verification) == 0 {
		warnings = append(warnings, "the plan has no verification; that of the environment is taken")
		selected.Verification = slices.Clone(entry.Verify)
	}
	return selected, entry, warnings
}

// Selection is what detection proposes, as a plan would say it.
func (d Detection) Selection() Selection {
	files := sortedKeys(d.DetectedFiles)
	return Selection{Name: d.EnvironmentType, Reason: d.Reason, DetectedFiles: files,
		SetupCommands: slices.Clone(d.SetupCommands), Verification: slices.Clone(d.Verification)}
}
