package phase

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

//go:embed plan.schema.json
var planSchemaText []byte

var planSchema = func() *jsonschema.Resolved {
	var schema jsonschema.Schema
	if err := json.Unmarshal(planSchemaText, &schema); err != nil {
		panic(err) // the file is embedded, which a test would show
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	return resolved
}()

// readPlan makes a plan from what a model wrote. The error is for the model. That it
// names an environment which is not known is none: set-up takes the default and says so.
func readPlan(object map[string]any) (*Plan, error) {
	if err := planSchema.Validate(object); err != nil {
		return nil, fmt.Errorf("the plan does not fit its schema: %w", err)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var plan Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return nil, err
	}
	if _, err := environment.ReadPlan(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	if err := plan.TaskDecomposition.check(); err != nil {
		return nil, err
	}
	plan.Revision = 1
	for i := range plan.ActionPlan.Actions {
		plan.ActionPlan.Actions[i].Done = false // not the model's to say
	}
	return &plan, checkActions(plan.ActionPlan.Actions, plan.TaskDecomposition)
}

// check says what is wrong with the parts of the work: ids that are used twice or
// not there, and parts that wait for each other.
func (d Decomposition) check() error {
	waits := map[string][]string{}
	for _, part := range d.Subtasks {
		if _, twice := waits[part.ID]; twice {
			return fmt.Errorf("the subtask id %q is used twice", part.ID)
		}
		waits[part.ID] = part.DependsOn
	}
	for _, part := range d.Subtasks {
		for _, other := range part.DependsOn {
			if _, known := waits[other]; !known {
				return fmt.Errorf("the subtask %q depends on %q, which is not there", part.ID, other)
			}
		}
	}
	for len(waits) > 0 {
		free := slices.IndexFunc(d.Subtasks, func(part Subtask) bool {
			_, open := waits[part.ID]
			return open && !slices.ContainsFunc(part.DependsOn, func(other string) bool { _, open := waits[other]; return open })
		})
		if free < 0 {
			return task.Errorf(task.Invalid, "subtasks depend on each other in a circle")
		}
		delete(waits, d.Subtasks[free].ID)
	}
	return nil
}

func checkActions(actions []Action, parts Decomposition) error {
	seen := map[string]bool{}
	for _, action := range actions {
		if seen[action.ID] {
			return fmt.Errorf("the action id %q is used twice", action.ID)
		}
		seen[action.ID] = true
		if action.Subtask != "" && !slices.ContainsFunc(parts.Subtasks, func(part Subtask) bool { return part.ID == action.Subtask }) {
			return fmt.Errorf("the action %q belongs to the subtask %q, which is not there", action.ID, action.Subtask)
		}
	}
	return nil
}

// fingerprint is what the plan says to do, to see when one comes again.
func (p *Plan) fingerprint() string {
	var b strings.Builder
	for _, action := range p.ActionPlan.Actions {
		b.WriteString(textfmt.OneLine(action.What) + "\n")
	}
	return b.String()
}

// checklist is the plan with what is done, for the model.
func (p *Plan) checklist() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Goal: %s\n", llm.QuoteEntry(p.GoalUnderstanding.Goal))
	next := ""
	for _, action := range p.ActionPlan.Actions {
		mark := "[ ]"
		switch {
		case action.Done:
			mark = "[x]"
		case next == "":
			next = action.ID
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, action.ID, textfmt.OneLine(action.What))
	}
	if next == "" {
		next = "everything is done: check it and call finish"
	}
	return b.String() + "Next: " + next
}
