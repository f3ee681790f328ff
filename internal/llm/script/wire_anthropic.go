package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/toryo-dev/toryo/internal/llm"
)

// anthropicWire is the Messages format.
type anthropicWire struct{}

func (anthropicWire) name() string { return "anthropic" }

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     json.RawMessage `json:"cache_control"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	} `json:"source"`
}

type anthropicRequest struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Thinking  struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	} `json:"thinking"`
	System   json.RawMessage `json:"system"`
	Tools    json.RawMessage `json:"tools"`
	Messages json.RawMessage `json:"messages"`
	Cache    json.RawMessage `json:"cache_control"`
}

func (a anthropicWire) read(body []byte) (asked, error) {
	var raw anthropicRequest
	if err := json.Unmarshal(body, &raw); err != nil {
		return asked{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	if raw.Model == "" {
		return asked{}, errors.New("model: Field required")
	}
	manual := raw.Thinking.Type == "enabled"
	if manual && (raw.Thinking.Budget < 1024 || raw.Thinking.Budget >= raw.MaxTokens) {
		return asked{}, errors.New("max_tokens must be greater than thinking.budget_tokens, which must be at least 1024")
	}
	ask := asked{stream: raw.Stream, usage: true, ordered: ordered(raw.Tools, raw.System, raw.Messages), bound: !manual}
	ask.request.MaxTokens = raw.MaxTokens
	system, err := anthropicContent(raw.System)
	if err != nil {
		return asked{}, fmt.Errorf("system: %w", err)
	}
	breakpoints := countBreakpoint(raw.Cache)
	for _, block := range system {
		ask.request.System += block.Text
		breakpoints += countBreakpoint(block.Cache)
	}
	tools, count, err := anthropicTools(raw.Tools)
	if err != nil {
		return asked{}, err
	}
	ask.request.Tools = tools
	more, err := a.messages(&ask.request, raw.Messages)
	if err != nil {
		return asked{}, err
	}
	if manual && !thoughtFirst(ask.request.Messages) {
		return asked{}, errors.New("when thinking is enabled, a final assistant message must start with a thinking block")
	}
	if breakpoints+count+more > 4 {
		return asked{}, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", breakpoints+count+more)
	}
	return ask, nil
}

// thoughtFirst reports whether the model thought before the calls that it waits for.
func thoughtFirst(messages []llm.Message) bool {
	last := len(messages) - 1
	return last < 1 || len(messages[last].Results()) == 0 || len(messages[last-1].Parts) > 0 && messages[last-1].Parts[0].Thinking != nil
}

func countBreakpoint(cache json.RawMessage) int {
	if len(cache) == 0 || string(cache) == "null" {
		return 0
	}
	return 1
}

func anthropicTools(raw json.RawMessage) (tools []llm.Tool, breakpoints int, err error) {
	var list []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Cache       json.RawMessage `json:"cache_control"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, 0, fmt.Errorf("tools: %w", err)
		}
	}
	for i, tool := range list {
		if err := objectSchema(tool.Schema); err != nil {
			return nil, 0, fmt.Errorf("tools.%d.input_schema: %w", i, err)
		}
		tools = append(tools, llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
		breakpoints += countBreakpoint(tool.Cache)
	}
	return tools, breakpoints, nil
}

func objectSchema(raw json.RawMessage) error {
	var schema struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil || schema.Type != "object" {
		return errors.New(`type: Input should be "object"`)
	}
	return nil
}

// messages adds the messages to a request. Newer models take system messages after the first.
func (anthropicWire) messages(request *llm.Request, raw json.RawMessage) (breakpoints int, err error) {
	var list []struct {
		Role    llm.Role        `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return 0, fmt.Errorf("messages: %w", err)
	}
	names := map[string]string{}
	for i, message := range list {
		isSystem := message.Role == "system" && i > 0
		if message.Role != llm.User && message.Role != llm.Assistant && !isSystem {
			return 0, fmt.Errorf("messages.%d: unexpected role %q", i, message.Role)
		}
		parts, marks, err := anthropicParts(message.Content, names)
		if err != nil {
			return 0, fmt.Errorf("messages.%d%w", i, err)
		}
		breakpoints += marks
		if isSystem {
			for _, part := range parts {
				request.System += part.Text
			}
			continue
		}
		request.Messages = append(request.Messages, llm.Message{Role: message.Role, Parts: parts})
	}
	return breakpoints, nil
}

// anthropicParts reads the content of a message. What an error says goes on after the message's place.
func anthropicParts(content json.RawMessage, names map[string]string) (parts []llm.Part, breakpoints int, err error) {
	blocks, err := anthropicContent(content)
	if err != nil {
		return nil, 0, fmt.Errorf(": %w", err)
	}
	textSeen := false
	for i, block := range blocks {
		breakpoints += countBreakpoint(block.Cache)
		part, err := block.part(names)
		if err != nil {
			return nil, 0, fmt.Errorf(".content.%d: %w", i, err)
		}
		if part.Result != nil && textSeen {
			return nil, 0, errors.New(": tool_result blocks must come first")
		}
		textSeen = textSeen || part.Text != "" || part.Image != nil
		parts = append(parts, part)
	}
	return parts, breakpoints, nil
}

func (b anthropicBlock) part(names map[string]string) (llm.Part, error) {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return llm.Part{}, errors.New("text content blocks must be non-empty")
		}
		return llm.TextPart(b.Text), nil
	case "image":
		if b.Source.Type != "base64" {
			return llm.Part{}, fmt.Errorf("source: unexpected type %q", b.Source.Type)
		}
		return imagePart(b.Source.MediaType, b.Source.Data)
	case "thinking":
		return llm.Part{Thinking: &llm.Thinking{Text: b.Thinking, Data: []byte(b.Signature)}}, nil
	case "redacted_thinking":
		return llm.Part{Thinking: &llm.Thinking{Data: []byte(b.Data)}}, nil
	case "tool_use":
		var object map[string]any
		if err := json.Unmarshal(b.Input, &object); err != nil || object == nil {
			return llm.Part{}, errors.New("tool_use.input: Input should be a valid dictionary")
		}
		names[b.ID] = b.Name
		return llm.CallPart(llm.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}), nil
	case "tool_result":
		content, err := anthropicContent(b.Content)
		if err != nil {
			return llm.Part{}, err
		}
		result := llm.Result{CallID: b.ToolUseID, Name: names[b.ToolUseID], Error: b.IsError}
		for _, block := range content {
			result.Text += block.Text
		}
		return llm.ResultPart(result), nil
	}
	return llm.Part{}, fmt.Errorf("unexpected block type %q", b.Type)
}

// anthropicContent reads content that is a text or a list of blocks.
func anthropicContent(raw json.RawMessage) ([]anthropicBlock, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return blocks, nil
}

var anthropicStops = map[string]string{
	stopEnd: "end_turn", stopCalls: "tool_use", stopMaxTokens: "max_tokens", stopRefusal: "refusal",
}

func anthropicUsage(usage llm.Usage) fields {
	return fields{
		"input_tokens":                usage.Input - usage.Cached - usage.CacheWrite,
		"cache_read_input_tokens":     usage.Cached,
		"cache_creation_input_tokens": usage.CacheWrite,
		"output_tokens":               usage.Output,
		"output_tokens_details":       fields{"thinking_tokens": usage.Reasoning},
	}
}

func (anthropicWire) whole(model string, answer played) any {
	content := []any{}
	for _, part := range answer.parts {
		switch {
		case part.Call != nil:
			content = append(content, fields{"type": "tool_use", "id": part.Call.ID, "name": part.Call.Name, "input": argumentsObject(part.Call.Arguments)})
		case part.Thinking != nil:
			content = append(content, anthropicThinking(*part.Thinking))
		default:
			content = append(content, fields{"type": "text", "text": part.Text})
		}
	}
	return fields{
		"id": answer.id("msg_"), "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": anthropicStops[answer.stop], "stop_sequence": nil, "usage": anthropicUsage(answer.usage),
	}
}

func anthropicThinking(thinking llm.Thinking) fields {
	if thinking.Text == "" {
		return fields{"type": "redacted_thinking", "data": string(thinking.Data)}
	}
	return fields{"type": "thinking", "thinking": thinking.Text, "signature": string(thinking.Data)}
}

func (anthropicWire) counted(tokens int64) any { return fields{"input_tokens": tokens} }

var anthropicErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}

func (anthropicWire) failure(status int, failure Failure) any {
	kind := failure.Type
	if kind == "" {
		kind = anthropicErrors[status]
	}
	if kind == "" {
		kind = "api_error"
	}
	return fields{"type": "error", "error": fields{"type": kind, "message": failure.Message}}
}

func (anthropicWire) open(w io.Writer, model string, answer played, _ asked) eventStream {
	return &anthropicStream{w: w, model: model, answer: answer}
}

type anthropicStream struct {
	w      io.Writer
	model  string
	answer played
}

func (s *anthropicStream) event(kind string, more fields) {
	more["type"] = kind
	event(s.w, kind, more)
}

func (s *anthropicStream) begin() {
	usage := anthropicUsage(s.answer.usage)
	usage["output_tokens"] = 1
	s.event("message_start", fields{"message": fields{
		"id": s.answer.id("msg_"), "type": "message", "role": "assistant", "model": s.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	s.event("ping", fields{})
}

func (s *anthropicStream) piece(p piece) {
	thinking := s.answer.parts[p.part].Thinking
	redacted := thinking != nil && thinking.Text == ""
	if p.first {
		block := fields{"type": "text", "text": ""}
		switch {
		case p.call != nil:
			block = fields{"type": "tool_use", "id": p.call.ID, "name": p.call.Name, "input": fields{}}
		case redacted:
			block = anthropicThinking(*thinking)
		case thinking != nil:
			block = fields{"type": "thinking", "thinking": "", "signature": ""}
		}
		s.event("content_block_start", fields{"index": p.part, "content_block": block})
	}
	delta := func(delta fields) { s.event("content_block_delta", fields{"index": p.part, "delta": delta}) }
	switch {
	case p.call != nil:
		delta(fields{"type": "input_json_delta", "partial_json": p.fragment})
	case thinking == nil:
		delta(fields{"type": "text_delta", "text": p.text})
	case !redacted:
		delta(fields{"type": "thinking_delta", "thinking": p.thinking})
		if p.last {
			delta(fields{"type": "signature_delta", "signature": string(thinking.Data)})
		}
	}
	if p.last {
		s.event("content_block_stop", fields{"index": p.part})
	}
}

func (s *anthropicStream) fail(failure Failure) {
	event(s.w, "error", anthropicWire{}.failure(failure.Status, failure))
}

func (s *anthropicStream) end() {
	s.event("message_delta", fields{
		"delta": fields{"stop_reason": anthropicStops[s.answer.stop], "stop_sequence": nil},
		"usage": fields{"output_tokens": s.answer.usage.Output, "output_tokens_details": fields{"thinking_tokens": s.answer.usage.Reasoning}},
	})
	s.event("message_stop", fields{})
}
