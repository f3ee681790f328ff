package openai

import (
	"encoding/json"
	"slices"

	"github.com/toryo-dev/toryo/internal/llm"
)

// answer is what has come of a streamed answer.
type answer struct {
	begun, ended bool
	model        string
	thinking     []llm.Part
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
	parts := append([]llm.Part(nil), a.thinking...)
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
