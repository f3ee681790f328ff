package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

// responsesWire is OpenAI's Responses format.
type responsesWire struct{}

func (responsesWire) name() string { return "openai-responses" }

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

func (r responsesWire) read(body []byte) (asked, error) {
	var raw struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		MaxTokens    int64           `json:"max_output_tokens"`
		Instructions json.RawMessage `json:"instructions"`
		Tools        json.RawMessage `json:"tools"`
		Input        json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return asked{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	if raw.Model == "" {
		return asked{}, errors.New("missing required parameter: 'model'")
	}
	ask := asked{stream: raw.Stream, usage: true, ordered: ordered(raw.Tools, raw.Instructions, raw.Input)}
	ask.request.MaxTokens = raw.MaxTokens
	if len(raw.Instructions) > 0 {
		if err := json.Unmarshal(raw.Instructions, &ask.request.System); err != nil {
			return asked{}, fmt.Errorf("instructions: %w", err)
		}
	}
	var tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	if len(raw.Tools) > 0 {
		if err := json.Unmarshal(raw.Tools, &tools); err != nil {
			return asked{}, fmt.Errorf("tools: %w", err)
		}
	}
	for i, tool := range tools {
		if tool.Type == "" {
			return asked{}, fmt.Errorf("missing required parameter: 'tools[%d].type'", i)
		}
		if tool.Type != "function" { // the provider's own, which a script does not call
			continue
		}
		if objectSchema(tool.Parameters) != nil {
			return asked{}, fmt.Errorf("invalid schema for function %q in tools[%d]", tool.Name, i)
		}
		ask.request.Tools = append(ask.request.Tools, llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Parameters})
	}
	return ask, r.input(&ask.request, raw.Input)
}

func (responsesWire) input(request *llm.Request, raw json.RawMessage) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		addParts(request, llm.User, llm.TextPart(text))
		return nil
	}
	var items []responsesItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	if err := followed(items); err != nil {
		return err
	}
	names := map[string]string{}
	for i, item := range items {
		switch item.Type {
		case "", "message":
			if err := item.say(request); err != nil {
				return fmt.Errorf("input[%d]: %w", i, err)
			}
		case "function_call":
			names[item.CallID] = item.Name
			addParts(request, llm.Assistant, llm.CallPart(llm.Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments}))
		case "function_call_output":
			output, err := plainContent(item.Output)
			if err != nil {
				return fmt.Errorf("input[%d]: %w", i, err)
			}
			addParts(request, llm.User, llm.ResultPart(llm.Result{CallID: item.CallID, Name: names[item.CallID], Text: output}))
		case "reasoning":
			addParts(request, llm.Assistant, item.thinking())
		default:
			return fmt.Errorf("input[%d]: unknown item type %q", i, item.Type)
		}
	}
	return nil
}

// followed checks that something of the model's answer follows each of its thoughts.
func followed(items []responsesItem) error {
	for i, item := range items {
		if item.Type == "reasoning" && (i+1 == len(items) || !items[i+1].fromModel()) {
			return fmt.Errorf("input[%d]: item of type 'reasoning' was provided without its required following item", i)
		}
	}
	return nil
}

// say adds what the item, a message, says.
func (r responsesItem) say(request *llm.Request) error {
	if r.Role == "user" {
		parts, err := contentParts(r.Content)
		addParts(request, llm.User, parts...)
		return err
	}
	content, err := plainContent(r.Content)
	if err != nil {
		return err
	}
	switch r.Role {
	case "assistant":
		addParts(request, llm.Assistant, llm.TextPart(content))
	case "system", "developer":
		request.System += content
	default:
		return fmt.Errorf("invalid role %q", r.Role)
	}
	return nil
}

// fromModel reports whether the item is part of what the model answered.
func (r responsesItem) fromModel() bool {
	return r.Type == "function_call" || r.Type == "reasoning" || r.Role == string(llm.Assistant)
}

func (r responsesItem) thinking() llm.Part {
	var text strings.Builder
	for _, summary := range r.Summary {
		text.WriteString(summary.Text)
	}
	return llm.Part{Thinking: &llm.Thinking{Text: text.String(), Data: []byte(r.Encrypted)}}
}

func responsesUsage(usage llm.Usage) fields {
	return fields{
		"input_tokens": usage.Input, "input_tokens_details": fields{"cached_tokens": usage.Cached},
		"output_tokens": usage.Output, "output_tokens_details": fields{"reasoning_tokens": usage.Reasoning}, "total_tokens": usage.Total(),
	}
}

// item is the output item of one part, whole or at its beginning.
func (responsesWire) item(number int, part llm.Part, refusal, done bool) fields {
	id := fmt.Sprintf("item_%d", number)
	status := "in_progress"
	if done {
		status = "completed"
	}
	switch {
	case part.Call != nil:
		arguments := ""
		if done {
			arguments = part.Call.Arguments
		}
		return fields{"type": "function_call", "id": id, "call_id": part.Call.ID, "name": part.Call.Name, "arguments": arguments, "status": status}
	case part.Thinking != nil:
		summary := []any{}
		if done && part.Thinking.Text != "" {
			summary = append(summary, fields{"type": "summary_text", "text": part.Thinking.Text})
		}
		return fields{"type": "reasoning", "id": id, "summary": summary, "encrypted_content": string(part.Thinking.Data)}
	}
	content := []any{}
	switch {
	case done && refusal:
		content = append(content, fields{"type": "refusal", "refusal": part.Text})
	case done:
		content = append(content, fields{"type": "output_text", "text": part.Text, "annotations": []any{}})
	}
	return fields{"type": "message", "id": id, "role": "assistant", "status": status, "content": content}
}

func (r responsesWire) response(model string, answer played, status string) fields {
	output := []any{}
	if status != "in_progress" {
		for i, part := range answer.parts {
			output = append(output, r.item(i, part, answer.stop == stopRefusal, true))
		}
	}
	response := fields{
		"id": answer.id("resp_"), "object": "response", "created_at": 0, "model": model, "status": status, "output": output,
		"error": nil, "incomplete_details": nil, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
	}
	if status != "in_progress" {
		response["usage"] = responsesUsage(answer.usage)
	}
	if status == "incomplete" {
		response["incomplete_details"] = fields{"reason": "max_output_tokens"}
	}
	return response
}

func finalStatus(answer played) string {
	if answer.stop == stopMaxTokens {
		return "incomplete"
	}
	return "completed"
}

func (r responsesWire) whole(model string, answer played) any {
	if answer.stop == stopRefusal && len(answer.parts) == 0 {
		answer.parts = []llm.Part{llm.TextPart("I cannot help with that.")}
	}
	return r.response(model, answer, finalStatus(answer))
}

func (responsesWire) counted(int64) any { return fields{} }

func (responsesWire) failure(status int, failure Failure) any { return openaiFailure(status, failure) }

func (r responsesWire) open(w io.Writer, model string, answer played, _ asked) eventStream {
	if answer.stop == stopRefusal && len(answer.parts) == 0 {
		answer.parts = []llm.Part{llm.TextPart("I cannot help with that.")}
	}
	return &responsesStream{w: w, model: model, answer: answer}
}

type responsesStream struct {
	w        io.Writer
	model    string
	answer   played
	sequence int
}

func (s *responsesStream) event(kind string, more fields) {
	more["type"], more["sequence_number"] = kind, s.sequence
	s.sequence++
	event(s.w, kind, more)
}

func (s *responsesStream) begin() {
	s.event("response.created", fields{"response": responsesWire{}.response(s.model, s.answer, "in_progress")})
	s.event("response.in_progress", fields{"response": responsesWire{}.response(s.model, s.answer, "in_progress")})
}

func (s *responsesStream) piece(p piece) {
	part := s.answer.parts[p.part]
	at := func(more fields) fields {
		more["item_id"], more["output_index"] = fmt.Sprintf("item_%d", p.part), p.part
		return more
	}
	refusal := s.answer.stop == stopRefusal
	if p.first {
		s.event("response.output_item.added", fields{"output_index": p.part, "item": responsesWire{}.item(p.part, part, refusal, false)})
	}
	switch {
	case p.call != nil:
		s.event("response.function_call_arguments.delta", at(fields{"delta": p.fragment}))
		if p.last {
			s.event("response.function_call_arguments.done", at(fields{"arguments": p.call.Arguments, "name": p.call.Name}))
		}
	case part.Thinking != nil:
		s.event("response.reasoning_summary_text.delta", at(fields{"summary_index": 0, "delta": p.thinking}))
	case refusal:
		s.event("response.refusal.delta", at(fields{"content_index": 0, "delta": p.text}))
	default:
		s.event("response.output_text.delta", at(fields{"content_index": 0, "delta": p.text, "logprobs": []any{}}))
		if p.last {
			s.event("response.output_text.done", at(fields{"content_index": 0, "text": part.Text, "logprobs": []any{}}))
		}
	}
	if p.last {
		s.event("response.output_item.done", fields{"output_index": p.part, "item": responsesWire{}.item(p.part, part, refusal, true)})
	}
}

func (s *responsesStream) fail(failure Failure) {
	kind := failure.Type
	if kind == "" {
		kind = "server_error"
	}
	response := responsesWire{}.response(s.model, s.answer, "failed")
	response["error"] = fields{"code": kind, "message": failure.Message}
	s.event("response.failed", fields{"response": response})
}

func (s *responsesStream) end() {
	status := finalStatus(s.answer)
	s.event("response."+status, fields{"response": responsesWire{}.response(s.model, s.answer, status)})
}
