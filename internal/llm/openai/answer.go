package openai

import (
	"encoding/json"
	"slices"

	"github.com/toryo-dev/toryo/internal/llm"
)

// answer is what has come of a streamed answer.
type answer struct {
	maker        string
	begun, ended bool
	model        string
	items        []llm.Part // of Responses: whole, in the order in which they go back
	thinking     string     // of Chat Completions, as the rest
	field        string     // that the thinking came in
	tags         tagReader
	text         string
	calls        []*call
	refusal      string
	filtered     bool
	stop         llm.StopReason
	usage        llm.Usage
}

// call is a call whose arguments come in pieces.
type call struct {
	index int64
	llm.Call
}

func (a *answer) parts() []llm.Part {
	parts := a.items
	if a.thinking != "" {
		parts = append(parts, llm.Part{Thinking: &llm.Thinking{Maker: a.maker, Text: a.thinking, Data: []byte(a.field)}})
	}
	if a.text != "" {
		parts = append(parts, llm.TextPart(a.text))
	}
	for _, c := range a.calls {
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		parts = append(parts, llm.CallPart(c.Call))
	}
	return parts
}

// callAt returns the call to which a piece belongs. Some servers give every call
// the index 0, so that another ID begins another call. Some give no IDs either: then a name
// begins another call, if the one before is complete.
func (a *answer) callAt(piece chatCall) (found *call, isNew bool) {
	for _, v := range slices.Backward(a.calls) {
		if v.index != piece.Index || piece.ID != "" && v.ID != "" && v.ID != piece.ID {
			continue
		}
		if piece.ID == "" && v.ID == "" && piece.Function.Name != "" && json.Valid([]byte(v.Arguments)) {
			break
		}
		return v, false
	}
	found = &call{index: piece.Index}
	a.calls = append(a.calls, found)
	return found, true
}
