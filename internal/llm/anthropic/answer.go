package anthropic

import (
	"encoding/json"

	"github.com/toryo-dev/toryo/internal/llm"
)

// answer is what has come of a streamed answer.
type answer struct {
	maker, prefix string // see thinkingData
	begun, ended  bool
	model         string
	blocks        []*blockAnswer
	stop          string
	refusal       string
	usage         llm.Usage
}

// blockAnswer is a block whose content comes in pieces.
type blockAnswer struct {
	index     int64
	kind      string
	text      string
	id, name  string
	given     string // arguments that came whole with the start
	arguments string
	thinking  string
	data      thinkingData
}

func (a *answer) take(event streamEvent, sink llm.Sink) {
	a.begun = true
	switch event.Type {
	case "message_start":
		a.model = event.Message.Model
		usage := event.Message.Usage
		a.setInput(usage)
		a.usage.Output = usage.OutputTokens
	case "content_block_start":
		a.start(event, sink)
	case "content_block_delta":
		a.add(event, sink)
	case "message_delta":
		a.stop = event.Delta.StopReason
		a.refusal = event.Delta.StopDetails.Explanation
		a.usage.Output = event.Usage.OutputTokens
		a.usage.Reasoning = event.Usage.OutputTokensDetails.ThinkingTokens
		if event.Usage.InputTokens > 0 {
			a.setInput(event.Usage)
		}
	case "message_stop":
		a.ended = true
	}
}

// setInput takes the three counts, which the API gives apart from each other.
func (a *answer) setInput(usage usage) {
	a.usage.Cached, a.usage.CacheWrite = usage.CacheReadInputTokens, usage.CacheCreationInputTokens
	a.usage.Input = usage.InputTokens + a.usage.Cached + a.usage.CacheWrite
}

func (a *answer) start(event streamEvent, sink llm.Sink) {
	content := event.ContentBlock
	b := &blockAnswer{index: event.Index, kind: content.Type, text: content.Text, id: content.ID, name: content.Name, thinking: content.Thinking}
	b.data = thinkingData{Signature: content.Signature, Redacted: content.Data}
	if len(content.Input) > 0 {
		b.given = string(content.Input)
	}
	a.blocks = append(a.blocks, b)
	if b.kind == "tool_use" {
		sink.Send(llm.Delta{CallName: b.name})
	}
	if b.text != "" {
		sink.Send(llm.Delta{Text: b.text})
	}
}

func (a *answer) add(event streamEvent, sink llm.Sink) {
	for _, b := range a.blocks {
		if b.index != event.Index {
			continue
		}
		switch event.Delta.Type {
		case "text_delta":
			b.text += event.Delta.Text
			sink.Send(llm.Delta{Text: event.Delta.Text})
		case "input_json_delta":
			b.arguments += event.Delta.PartialJSON
		case "thinking_delta":
			b.thinking += event.Delta.Thinking
			sink.Send(llm.Delta{Thinking: event.Delta.Thinking})
		case "signature_delta":
			b.data.Signature += event.Delta.Signature
		}
	}
}

func (a *answer) parts() []llm.Part {
	var parts []llm.Part
	for _, b := range a.blocks {
		switch b.kind {
		case "text":
			if b.text != "" {
				parts = append(parts, llm.TextPart(b.text))
			}
		case "tool_use":
			parts = append(parts, llm.CallPart(llm.Call{ID: b.id, Name: b.name, Arguments: b.allArguments()}))
		case "thinking", "redacted_thinking":
			b.data.Text, b.data.Prefix = digestOf(b.thinking), a.prefix
			if data, err := json.Marshal(b.data); err == nil {
				parts = append(parts, llm.Part{Thinking: &llm.Thinking{Maker: a.maker, Text: b.thinking, Data: data}})
			}
		}
	}
	return parts
}

func (b *blockAnswer) allArguments() string {
	switch {
	case b.arguments != "":
		return b.arguments
	case b.given != "":
		return b.given
	}
	return "{}"
}

func (a *answer) stopReason() llm.StopReason {
	switch a.stop {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopCalls
	case "max_tokens":
		return llm.StopMaxTokens
	}
	return llm.StopOther
}
