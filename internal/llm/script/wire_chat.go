package script

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
)

// chatWire is OpenAI's Chat Completions format.
type chatWire struct{}

func (chatWire) name() string { return "openai-chat" }

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID       string `json:"tool_call_id"`
	ReasoningContent string `json:"reasoning_content"`
}

func (c chatWire) read(body []byte) (asked, error) {
	var raw struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens           int64           `json:"max_tokens"`
		MaxCompletionTokens int64           `json:"max_completion_tokens"`
		ReasoningEffort     string          `json:"reasoning_effort"`
		Tools               json.RawMessage `json:"tools"`
		Messages            json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return asked{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	if raw.Model == "" {
		return asked{}, errors.New("you must provide a model parameter")
	}
	ask := asked{stream: raw.Stream, usage: raw.StreamOptions.IncludeUsage, ordered: ordered(raw.Tools, raw.Messages)}
	ask.request.MaxTokens = max(raw.MaxTokens, raw.MaxCompletionTokens)
	if len(raw.Tools) > 0 && toolsElsewhere(raw.Model, raw.ReasoningEffort) {
		return asked{}, fmt.Errorf("function tools with reasoning_effort are not supported for %s in /v1/chat/completions; use /v1/responses", raw.Model)
	}
	var tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if len(raw.Tools) > 0 {
		if err := json.Unmarshal(raw.Tools, &tools); err != nil {
			return asked{}, fmt.Errorf("tools: %w", err)
		}
	}
	for i, tool := range tools {
		if tool.Type != "function" || objectSchema(tool.Function.Parameters) != nil {
			return asked{}, fmt.Errorf("invalid schema for function %q in tools[%d]", tool.Function.Name, i)
		}
		ask.request.Tools = append(ask.request.Tools, llm.Tool{
			Name: tool.Function.Name, Description: tool.Function.Description, Schema: tool.Function.Parameters,
		})
	}
	var messages []chatMessage
	if err := json.Unmarshal(raw.Messages, &messages); err != nil {
		return asked{}, fmt.Errorf("messages: %w", err)
	}
	return ask, c.messages(&ask.request, messages)
}

var (
	newer  = lazyregexp.New(`^gpt-(?:5\.[4-9]|[6-9])`)
	newest = lazyregexp.New(`^gpt-(?:5\.[6-9]|[6-9])`)
)

// toolsElsewhere reports whether a model takes tools by Responses only: OpenAI's since gpt-5.4 if an
// effort is asked for, and since gpt-5.6 unless it is "none".
func toolsElsewhere(model, effort string) bool {
	return effort != "none" && (newest.MatchString(model) || effort != "" && newer.MatchString(model))
}

func (chatWire) messages(request *llm.Request, messages []chatMessage) error {
	names := map[string]string{}
	for i, message := range messages {
		text, err := plainContent(message.Content)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		switch message.Role {
		case "system", "developer":
			request.System += text
		case "user":
			parts, err := contentParts(message.Content)
			if err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
			addParts(request, llm.User, parts...)
		case "tool":
			addParts(request, llm.User, llm.ResultPart(llm.Result{
				CallID: message.ToolCallID, Name: names[message.ToolCallID], Text: text,
			}))
		case "assistant":
			parts, err := message.answered(text, names)
			if err != nil {
				return fmt.Errorf("messages[%d]%w", i, err)
			}
			request.Messages = append(request.Messages, llm.Message{Role: llm.Assistant, Parts: parts})
		default:
			return fmt.Errorf("messages[%d]: invalid role %q", i, message.Role)
		}
	}
	return nil
}

// answered are the parts of an answer of the model. The names of its calls are noted.
func (m chatMessage) answered(text string, names map[string]string) ([]llm.Part, error) {
	var parts []llm.Part
	if m.ReasoningContent != "" {
		parts = append(parts, llm.Part{Thinking: &llm.Thinking{Text: m.ReasoningContent}})
	}
	if text != "" {
		parts = append(parts, llm.TextPart(text))
	}
	for _, call := range m.ToolCalls {
		if call.Function.Arguments == nil {
			return nil, errors.New(".tool_calls: arguments is required")
		}
		names[call.ID] = call.Function.Name
		parts = append(parts, llm.CallPart(llm.Call{ID: call.ID, Name: call.Function.Name, Arguments: *call.Function.Arguments}))
	}
	return parts, nil
}

// addParts joins parts of one speaker into one message, as they were before the
// wire format took them apart.
func addParts(request *llm.Request, role llm.Role, parts ...llm.Part) {
	if last := len(request.Messages) - 1; last >= 0 && request.Messages[last].Role == role {
		request.Messages[last].Parts = append(request.Messages[last].Parts, parts...)
		return
	}
	request.Messages = append(request.Messages, llm.Message{Role: role, Parts: parts})
}

// plainContent reads content that is null, a text, or a list of texts.
func plainContent(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("content: %w", err)
	}
	for _, item := range list {
		text += item.Text + item.Refusal
	}
	return text, nil
}

// contentParts reads the content of a user, which is a text or a list of texts and images.
func contentParts(raw json.RawMessage) ([]llm.Part, error) {
	var list []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Image json.RawMessage `json:"image_url"`
	}
	if json.Unmarshal(raw, &list) != nil {
		text, err := plainContent(raw)
		return []llm.Part{llm.TextPart(text)}, err
	}
	var parts []llm.Part
	for _, item := range list {
		part := llm.TextPart(item.Text)
		var err error
		switch item.Type {
		case "text", "input_text", "output_text":
		case "image_url": // of Chat Completions
			var image struct {
				URL string `json:"url"`
			}
			if err = json.Unmarshal(item.Image, &image); err == nil {
				part, err = imageOfURL(image.URL)
			}
		case "input_image": // of Responses
			var address string
			if err = json.Unmarshal(item.Image, &address); err == nil {
				part, err = imageOfURL(address)
			}
		default:
			err = fmt.Errorf("unexpected type %q", item.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// imageOfURL reads an image that is whole in its address.
func imageOfURL(address string) (llm.Part, error) {
	kind, encoded, found := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !found || !strings.HasPrefix(address, "data:") {
		return llm.Part{}, errors.New("image_url: only data:TYPE;base64,… is supported")
	}
	return imagePart(kind, data)
}

// imagePart is an image as it was sent. All vendors refuse other types and empty ones.
func imagePart(kind string, data []byte) (llm.Part, error) {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return llm.Part{}, fmt.Errorf("image: unsupported type %q", kind)
	}
	if len(data) == 0 {
		return llm.Part{}, errors.New("image: it is empty")
	}
	return llm.ImagePart(llm.Image{Type: kind, Data: data}), nil
}

var chatStops = map[string]string{
	stopEnd: "stop", stopCalls: "tool_calls", stopMaxTokens: "length", stopRefusal: "content_filter",
}

func chatUsage(usage llm.Usage) fields {
	return fields{
		"prompt_tokens": usage.Input, "completion_tokens": usage.Output, "total_tokens": usage.Total(),
		"prompt_tokens_details":     fields{"cached_tokens": usage.Cached},
		"completion_tokens_details": fields{"reasoning_tokens": usage.Reasoning},
	}
}

func chatCall(call llm.Call) fields {
	return fields{"id": call.ID, "type": "function", "function": fields{"name": call.Name, "arguments": call.Arguments}}
}

func (chatWire) whole(model string, answer played) any {
	message := fields{"role": "assistant", "content": nil}
	var calls []any
	for _, part := range answer.parts {
		switch {
		case part.Call != nil:
			calls = append(calls, chatCall(*part.Call))
		case part.Thinking != nil:
			message["reasoning_content"] = part.Thinking.Text
		case part.Text != "":
			message["content"] = part.Text
		}
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return fields{
		"id": answer.id("chatcmpl-"), "object": "chat.completion", "created": 0, "model": model,
		"choices": []any{fields{"index": 0, "message": message, "finish_reason": chatStops[answer.stop]}},
		"usage":   chatUsage(answer.usage),
	}
}

func (chatWire) counted(int64) any { return fields{} }

func (chatWire) failure(status int, failure Failure) any { return openaiFailure(status, failure) }

func openaiFailure(status int, failure Failure) any {
	kind := failure.Type
	if kind == "" {
		kind = map[int]string{400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}[status]
	}
	if kind == "" {
		kind = "server_error"
	}
	return fields{"error": fields{"message": failure.Message, "type": kind, "code": kind, "param": nil}}
}

func (chatWire) open(w io.Writer, model string, answer played, ask asked) eventStream {
	return &chatStream{w: w, model: model, answer: answer, usage: ask.usage}
}

type chatStream struct {
	w      io.Writer
	model  string
	answer played
	usage  bool
	calls  int
}

func (s *chatStream) chunk(choices []any, more fields) {
	chunk := fields{"id": s.answer.id("chatcmpl-"), "object": "chat.completion.chunk", "created": 0, "model": s.model, "choices": choices}
	maps.Copy(chunk, more)
	event(s.w, "", chunk)
}

func (s *chatStream) delta(delta fields, finish any) {
	s.chunk([]any{fields{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (s *chatStream) begin() { s.delta(fields{"role": "assistant", "content": ""}, nil) }

func (s *chatStream) piece(p piece) {
	switch {
	case p.call != nil && p.first:
		call := chatCall(llm.Call{ID: p.call.ID, Name: p.call.Name, Arguments: p.fragment})
		call["index"] = s.calls
		s.delta(fields{"tool_calls": []any{call}}, nil)
	case p.call != nil:
		s.delta(fields{"tool_calls": []any{fields{"index": s.calls, "function": fields{"arguments": p.fragment}}}}, nil)
	case p.thinking != "":
		s.delta(fields{"reasoning_content": p.thinking}, nil)
	default:
		s.delta(fields{"content": p.text}, nil)
	}
	if p.call != nil && p.last {
		s.calls++
	}
}

func (s *chatStream) fail(failure Failure) { event(s.w, "", openaiFailure(failure.Status, failure)) }

func (s *chatStream) end() {
	s.delta(fields{}, chatStops[s.answer.stop])
	if s.usage {
		s.chunk([]any{}, fields{"usage": chatUsage(s.answer.usage)})
	}
	_, _ = io.WriteString(s.w, "data: [DONE]\n\n") // see event
}
