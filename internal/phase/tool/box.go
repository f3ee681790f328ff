package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Box holds the tools of a phase.
type Box struct {
	tools       map[string]boxed
	definitions []llm.Tool
}

type boxed struct {
	Tool
	schema *jsonschema.Resolved
}

// NewBox puts tools into a box. Their order is the one in which the model is told
// of them. Two tools with one name, or a schema that cannot be read, are an
// error.
func NewBox(tools ...Tool) (*Box, error) {
	box := &Box{tools: map[string]boxed{}}
	for _, tool := range tools {
		definition := tool.Definition()
		if _, taken := box.tools[definition.Name]; taken {
			return nil, task.Errorf(task.Conflict, "there are two tools with the name %q", definition.Name)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(definition.Schema, &schema); err != nil {
			return nil, task.Wrap(task.Invalid, err, fmt.Sprintf("the schema of the tool %q cannot be read", definition.Name))
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return nil, task.Wrap(task.Invalid, err, fmt.Sprintf("the schema of the tool %q cannot be used", definition.Name))
		}
		box.tools[definition.Name] = boxed{tool, resolved}
		box.definitions = append(box.definitions, definition)
	}
	return box, nil
}

// Definitions are the tools as the model is told of them.
func (b *Box) Definitions() []llm.Tool { return b.definitions }

// Done is a call that was carried out.
type Done struct {
	Call   llm.Call
	Output Output
	Result llm.Result
	Took   time.Duration
}

// atOnce is how many read-only tools run at the same time.
const atOnce = 8

// Execute carries out the calls of an answer, in order; neighbouring calls of
// read-only tools run at the same time. There is a result for each call, in the
// order of the calls. After a tool has ended the phase no other is used.
//
// An error means that the run cannot go on. What was carried out until then is
// returned with it.
func (b *Box) Execute(ctx context.Context, calls []llm.Call) ([]Done, error) {
	done := make([]Done, 0, len(calls))
	ended := false
	for start := 0; start < len(calls); {
		end := start + 1
		for end < len(calls) && b.readOnly(calls[start]) && b.readOnly(calls[end]) {
			end++
		}
		if ended {
			for _, call := range calls[start:end] {
				done = append(done, finished(call, Output{Text: "not done: the phase was ended before", Failed: true}))
			}
			start = end
			continue
		}
		group, err := b.together(ctx, calls[start:end])
		done = append(done, group...)
		if err != nil {
			return done, err
		}
		ended = slices.ContainsFunc(group, func(d Done) bool { return d.Output.End != nil })
		start = end
	}
	return done, nil
}

func (b *Box) readOnly(call llm.Call) bool {
	tool, known := b.tools[call.Name]
	return known && tool.ReadOnly()
}

// together runs calls at the same time. Their results are in the calls' order.
func (b *Box) together(ctx context.Context, calls []llm.Call) ([]Done, error) {
	done, failures := make([]Done, len(calls)), make([]error, len(calls))
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, call := range calls {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			begun := time.Now()
			output, err := b.one(ctx, call)
			if err != nil {
				output = interrupted
			}
			done[i], failures[i] = finished(call, output), err
			done[i].Took = time.Since(begun)
		})
	}
	group.Wait()
	return done, errors.Join(failures...)
}

// interrupted is the output of a call that the end of the run cut off.
var interrupted = Output{Text: Interrupted, Failed: true}

// Interrupted is what a model is told of a call that was begun and whose end is
// not known.
const Interrupted = "interrupted: the run was cut off while this was going on. It may have had an effect, or part of one: look before you do it again."

func finished(call llm.Call, output Output) Done {
	text := output.Text
	if output.Origin != "" {
		text = llm.Quote(llm.Origin{Source: output.Origin}, text)
	}
	if output.Verdict != "" {
		text += "\n" + output.Verdict
	}
	return Done{Call: call, Output: output, Result: llm.Result{
		CallID: call.ID, Name: call.Name, Text: text, Error: output.Failed,
	}}
}

// one carries out one call. What the model did wrong is its result.
func (b *Box) one(ctx context.Context, call llm.Call) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{Failed: true}, context.Cause(ctx)
	}
	tool, known := b.tools[call.Name]
	if !known {
		return failed(Mistake("there is no tool %q; there are %s", call.Name, b.names())), nil
	}
	arguments, err := tool.arguments(call)
	if err != nil {
		return failed(err), nil
	}
	output, err := tool.Call(ctx, call, arguments)
	if wrong, ok := errors.AsType[*mistake](err); ok {
		return failed(wrong), nil
	}
	return output, err
}

func failed(err error) Output { return Output{Text: "Error: " + err.Error(), Failed: true} }

func (b *Box) names() string {
	var names []string
	for _, definition := range b.definitions {
		names = append(names, definition.Name)
	}
	return strings.Join(names, ", ")
}

// arguments reads and checks the arguments of a call.
func (t boxed) arguments(call llm.Call) (json.RawMessage, error) {
	text := strings.TrimSpace(call.Arguments)
	if text == "" || text == "null" {
		text = "{}" // what several models send for no arguments
	}
	data := json.RawMessage(text)
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		repaired, ok := llm.LenientObject(text)
		if !ok {
			return nil, Mistake("the arguments are not a JSON object (%s); the schema is %s", why(err), t.Definition().Schema)
		}
		object = repaired
		if data, err = json.Marshal(repaired); err != nil {
			return nil, Mistake("the arguments cannot be used: %v", err)
		}
	}
	if err := t.schema.Validate(object); err != nil {
		return nil, Mistake("the arguments do not fit the schema: %v; the schema is %s", err, t.Definition().Schema)
	}
	return data, nil
}

func why(err error) string {
	if err == nil {
		return "they are something else"
	}
	return err.Error()
}
