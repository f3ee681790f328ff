package environment

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Repairer corrects commands that failed. It is given to [Setup] and is usually a
// model behind [ChatRepairer].
type Repairer interface {
	// Repair returns corrected commands and verification. Its errors use up one
	// of the attempts, as an answer that cannot be used does.
	Repair(ctx context.Context, broken Broken) (Repair, error)
}

// Broken is what a repairer gets to see.
type Broken struct {
	Environment  string
	Directory    string // in which the commands start
	Commands     []string
	Verification []Check
	Failure      Failure
	Attempt      int // 1 to 3
}

// Repair is a repairer's answer. What it leaves empty stays as it was.
type Repair struct {
	SetupCommands []string `json:"setup_commands"`
	Verification  []Check  `json:"verification"`
}

// ChatRepairer asks a model, with the specification's prompt.
type ChatRepairer struct {
	// Ask sends one message and returns the answer's text.
	Ask func(ctx context.Context, prompt string) (string, error)
}

// Repair asks the model and reads its answer.
func (c ChatRepairer) Repair(ctx context.Context, broken Broken) (Repair, error) {
	commands, err := json.MarshalIndent(broken.Commands, "", "  ")
	if err != nil {
		return Repair{}, err
	}
	checks, err := json.MarshalIndent(broken.Verification, "", "  ")
	if err != nil {
		return Repair{}, err
	}
	answer, err := c.Ask(ctx, fill("repair.md", map[string]string{"error": broken.Failure.describe(),
		"commands": string(commands), "verification": string(checks), "where": whereText(broken.Directory)}))
	if err != nil {
		return Repair{}, err
	}
	return ReadRepair(answer)
}

// whereText says where commands start.
func whereText(directory string) string {
	if directory == "" || directory == "." {
		return "in the project's folder"
	}
	return "in the folder " + llm.QuoteLine(directory) + " of the project"
}

// ReadRepair takes the corrected commands out of a model's answer, which may have
// text or a code fence around the JSON.
func ReadRepair(answer string) (Repair, error) {
	for at := strings.IndexByte(answer, '{'); at >= 0; {
		var repair Repair
		decoder := json.NewDecoder(bytes.NewReader([]byte(answer[at:])))
		if err := decoder.Decode(&repair); err == nil && (len(repair.SetupCommands) > 0 || len(repair.Verification) > 0) {
			return repair, checkCommands(repair.SetupCommands, repair.Verification)
		}
		next := strings.IndexByte(answer[at+1:], '{')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return Repair{}, task.Errorf(task.Invalid, "the model's answer has no corrected commands in it")
}
