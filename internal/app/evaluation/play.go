package evaluation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// What a script can play in place of a model.
const (
	PlayGold     = "gold"     // the change that people made
	PlayHalf     = "half"     // that for about half of the tasks, and nonsense for the others
	PlayNonsense = "nonsense" // a file that nobody needs
)

// Plays are all of them.
var Plays = []string{PlayGold, PlayHalf, PlayNonsense}

// playsGold reports whether the script knows the change of a task. Which half it is, its id says.
func playsGold(play, id string) bool {
	if play == PlayHalf {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(id)) // never fails
		return sum.Sum32()%2 == 0
	}
	return play == PlayGold
}

// The script as its file has it; JSON is YAML.
type (
	played struct {
		Model string       `json:"model"`
		Rules []playedRule `json:"rules"`
	}
	playedRule struct {
		Name   string         `json:"name"`
		When   map[string]any `json:"when,omitempty"`
		Times  int            `json:"times,omitempty"`
		Answer playedAnswer   `json:"answer"`
	}
	playedAnswer struct {
		Text  string       `json:"text,omitempty"`
		Calls []playedCall `json:"calls,omitempty"`
	}
	playedCall struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	}
)

// play is the configuration with a script that plays a model. The script is a file outside of
// the sandbox, in which the change is never seen before the script applies it.
func (w Worker) play(ctx context.Context, c config.Config, job eval.Job) (config.Config, func(), error) {
	calls, err := w.playedCalls(ctx, job)
	if err != nil {
		return c, nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(job.Repository.Dir), "play-*.yaml")
	if err != nil {
		return c, nil, task.Wrap(task.DataDir, err, "the script cannot be written")
	}
	remove := func() { _ = os.Remove(file.Name()) } // it goes with the folder
	err = json.NewEncoder(file).Encode(played{Model: w.Play, Rules: rules(job, calls)})
	if closeErr := file.Close(); err != nil || closeErr != nil {
		remove()
		return c, nil, task.Errorf(task.DataDir, "the script cannot be written")
	}
	c.LLM = config.LLM{Provider: "script", Script: file.Name(), MaxTokens: 1_000_000, ContextLength: 100_000_000, FunctionCalling: true, Timeout: time.Minute}
	c.LLMOverrides, c.Budget = nil, config.Budget{}
	return c, remove, nil
}

// playedCalls are the tool calls by which the script does its work.
func (w Worker) playedCalls(ctx context.Context, job eval.Job) ([]playedCall, error) {
	if !playsGold(w.Play, job.Task.ID) {
		return []playedCall{{"edit", map[string]any{"command": "create", "path": "NONSENSE.md", "new": "Nothing of use.\n", "overwrite": true}}}, nil
	}
	from := job.Repository
	gold, err := from.Apply(ctx, from.Base, job.Task.Patch)
	if err != nil {
		return nil, err
	}
	patch, err := from.Diff(ctx, from.Base, gold)
	if err != nil {
		return nil, err
	}
	changes, err := from.Changes(ctx, from.Base, gold)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	var calls []playedCall
	for i, part := range sections(patch) {
		if !strings.Contains(part, "\nGIT binary patch\n") {
			text.WriteString(part)
			continue
		}
		if i >= len(changes) {
			return nil, task.Errorf(task.Internal, "the patch has more files than the change")
		}
		content, err := from.File(ctx, gold, changes[i].Name)
		line := "rm -f -- " + sandbox.Quote(changes[i].Name)
		if err == nil {
			line = "mkdir -p -- \"$(dirname -- " + sandbox.Quote(changes[i].Name) + ")\" && base64 -d > " + sandbox.Quote(changes[i].Name) + " <<'END'\n" + base64.StdEncoding.EncodeToString(content) + "\nEND"
		}
		calls = append(calls, playedCall{"run", map[string]any{"command": escaped(line)}})
	}
	if text.Len() > 0 {
		calls = append(calls, playedCall{"patch", map[string]any{"patch": escaped(text.String())}})
	}
	return calls, nil
}

// sections are the parts of a patch, one for each file, in the order of the files.
func sections(patch string) []string {
	var parts []string
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "diff --git ") {
			parts = append(parts, "")
		}
		if len(parts) > 0 {
			parts[len(parts)-1] += line
		}
	}
	return parts
}

// escaped is a text that a script gives as it is.
func escaped(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// selected is an environment as a plan has it. Lists that are empty are left out.
func selected(environment environment.Selection) map[string]any {
	plan := map[string]any{"name": environment.Name, "directory": environment.Directory}
	if len(environment.SetupCommands) > 0 {
		plan["setup_commands"] = environment.SetupCommands
	}
	if len(environment.Verification) > 0 {
		plan["verification"] = environment.Verification
	}
	return plan
}

// rules carry a run through all phases.
func rules(job eval.Job, calls []playedCall) []playedRule {
	in := func(phase task.Phase) map[string]any { return map[string]any{"phase": string(phase)} }
	answer := func(value any) playedAnswer {
		data, err := json.Marshal(value)
		if err != nil { // texts and lists always can be encoded
			data = []byte("{}")
		}
		return playedAnswer{Text: escaped(string(data))}
	}
	const goal = "Do what the task asks for"
	const longestQuote = 60
	quote := textfmt.Clip(textfmt.OneLine(job.Task.Statement), longestQuote)
	var explained []map[string]string
	for _, id := range []string{"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"} {
		explained = append(explained, map[string]string{"finding": id, "because": "it is part of what was asked for", "quote": quote})
	}
	return []playedRule{
		{Name: "understand", When: in(task.PrePlanning), Answer: answer(map[string]any{"goal": goal, "deliverables": []string{"the change"}, "constraints": []string{}, "scope": "the project", "ambiguities": []string{}})},
		{Name: "plan", When: in(task.Planning), Answer: answer(map[string]any{
			"goal_understanding": map[string]any{"goal": goal, "deliverables": []string{"the change"}},
			"task_decomposition": map[string]any{"subtasks": []map[string]any{{"id": "t1", "description": goal}}},
			"action_plan":        map[string]any{"actions": []map[string]any{{"id": "a1", "subtask": "t1", "what": goal}}},
			"proof":              map[string]any{"none_because": "a script plays the model"}, "selected_environment": selected(job.Receipt.Selection()),
		})},
		{Name: "reflect", When: in(task.Reflection), Answer: answer(map[string]any{"assessment": "The work follows the plan.", "decision": "continue", "advice": "Go on."})},
		{Name: "work", When: in(task.Execution), Times: 1, Answer: playedAnswer{Calls: calls}},
		{Name: "finish", When: in(task.Execution), Answer: playedAnswer{Calls: []playedCall{{"finish", map[string]any{"summary": "The change is made."}}}}},
		{Name: "judge", When: in(task.Verification), Answer: answer(map[string]any{"satisfied": true, "missing": []string{}, "problems": []string{}, "assessment": "It is done.", "explained": explained})},
		{Name: "hand over", When: in(task.Complete), Answer: answer(map[string]any{"commit_message": goal, "title": goal, "summary": "A script has played the model."})},
		{Name: "otherwise", Answer: playedAnswer{Text: "{}"}},
	}
}
