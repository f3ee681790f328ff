package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Selection is the environment that a plan selected, with the commands that make
// it ready.
type Selection struct {
	Name          string   `json:"name"`
	Reason        string   `json:"reason"`
	DetectedFiles []string `json:"detected_files"`
	SetupCommands []string `json:"setup_commands"`
	Verification  []Check  `json:"verification"`
	// Directory is the folder in which the commands start. When it is empty, that is
	// the folder of the project that was detected for the environment.
	Directory string `json:"directory,omitempty"`
	// Projects are the other projects to be set up. Nil means those that are detected.
	// No plan of a model has them: they say how tests are run.
	Projects []Project `json:"-"`
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

// Named is the environment that a plan means by a name, which may be that of a
// language. An unknown or missing name means the default, and the warning says so.
func (t *Table) Named(name string) (entry Environment, warning string) {
	if entry, known := t.Find(name); known {
		return entry, ""
	}
	if entry, known := t.Find(t.forLanguage(name)); known {
		return entry, ""
	}
	entry = t.Default()
	if name == "" {
		return entry, fmt.Sprintf("the plan names no environment; %s is taken", entry.Name)
	}
	return entry, fmt.Sprintf("the plan names the environment %s, which is not known; %s is taken", code(textfmt.Shorten(name, longestShown)), entry.Name)
}

// Complete fills in what a plan left out: an unknown or missing environment becomes
// the default, a missing folder that of the environment's project, missing commands
// become the project's own. The warnings say what was filled in.
func (t *Table) Complete(selected Selection, detected Detection) (Selection, Environment, []string) {
	var warnings []string
	entry, warning := t.Named(selected.Name)
	if warning != "" {
		warnings = append(warnings, warning)
	}
	selected.Name = entry.Name
	if selected.Directory != "" {
		selected.Directory = path.Clean(selected.Directory)
	}
	project, found := detected.find(entry.Name, selected.Directory)
	if selected.Directory == "" {
		selected.Directory = path.Clean(project.Directory)
	}
	if len(selected.SetupCommands) == 0 {
		warnings = append(warnings, "the plan has no set-up commands; those of the environment are taken")
		selected.SetupCommands = slices.Clone(project.SetupCommands)
		if !found {
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
		SetupCommands: slices.Clone(d.SetupCommands), Verification: slices.Clone(d.Verification), Directory: d.Directory}
}
