package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toryo-dev/toryo/internal/llm"
)

// Tool is something that a model can use.
type Tool interface {
	Definition() llm.Tool
	// ReadOnly says that the tool changes nothing, so that it may run at the same
	// time as others of its kind.
	ReadOnly() bool
	// Call does it. The arguments are valid for the schema of the definition. An
	// error made by [Mistake] is for the model; any other ends the phase.
	Call(ctx context.Context, call llm.Call, arguments json.RawMessage) (Output, error)
}

// Output is what a tool gives.
type Output struct {
	Text string // for the model
	// Origin is set when the text comes from outside: from files, programs or
	// servers. It is then quoted as data.
	Origin string
	// Verdict is what we say about the text, such as the exit code of a program. It
	// stands after what is quoted, where the program cannot write.
	Verdict string
	// Whole is all of the output where Text is a part of it, for the journal.
	Whole string
	// Failed says that the model should see the output as an error.
	Failed bool
	// Exit is how the program ended that the tool ran; nil if it ran none.
	Exit *Exit
	// End says that the phase is over, with what the model has to say.
	End *End
}

// End is how a tool ends a phase.
type End struct {
	Summary  string   // what was done, when it is finished
	Proof    []string // the tests that show it, if the plan does not name them
	Question string   // for a person, when it is not
}

// mistake is an error that is the model's to fix.
type mistake struct{ text string }

func (m *mistake) Error() string { return m.text }

// Mistake makes an error that goes back to the model.
func Mistake(format string, args ...any) error { return &mistake{fmt.Sprintf(format, args...)} }

// Define makes a tool from a function. The schema comes from the type of its
// arguments.
func Define[In any](name, description string, readOnly bool, run func(ctx context.Context, call llm.Call, in In) (Output, error)) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic("tool " + name + ": " + err.Error()) // a mistake in the code, seen by every test
	}
	// The schema goes with every request. What is no argument is refused by Call.
	within(schema, func(s *jsonschema.Schema) { s.AdditionalProperties = nil })
	data, err := json.Marshal(schema)
	if err != nil {
		panic("tool " + name + ": " + err.Error())
	}
	return &function[In]{
		definition: llm.Tool{Name: name, Description: strings.TrimSpace(description), Schema: data},
		readOnly:   readOnly, run: run,
	}
}

// within does something to a schema and to those of its properties and items.
func within(schema *jsonschema.Schema, do func(*jsonschema.Schema)) {
	if schema == nil {
		return
	}
	do(schema)
	within(schema.Items, do)
	for _, property := range schema.Properties {
		within(property, do)
	}
}

type function[In any] struct {
	definition llm.Tool
	readOnly   bool
	run        func(ctx context.Context, call llm.Call, in In) (Output, error)
}

func (f *function[In]) Definition() llm.Tool { return f.definition }
func (f *function[In]) ReadOnly() bool       { return f.readOnly }

func (f *function[In]) Call(ctx context.Context, call llm.Call, arguments json.RawMessage) (Output, error) {
	var in In
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return Output{}, Mistake("the arguments do not fit: %v", err)
	}
	return f.run(ctx, call, in)
}
