package script

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/toryo-dev/toryo/internal/llm"
)

// geminiWire is the format of generateContent and streamGenerateContent.
type geminiWire struct{}

func (geminiWire) name() string { return "gemini" }

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature []byte `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string         `json:"id"`
		Name     string         `json:"name"`
		Response map[string]any `json:"response"`
	} `json:"functionResponse"`
	Inline *struct {
		Type string `json:"mimeType"`
		Data []byte `json:"data"`
	} `json:"inlineData"`
}

func (g geminiWire) read(body []byte) (asked, error) {
	type request struct {
		System   json.RawMessage `json:"systemInstruction"`
		Tools    json.RawMessage `json:"tools"`
		Contents json.RawMessage `json:"contents"`
		Config   struct {
			MaxTokens int64 `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	var raw struct {
		request
		Inner *request `json:"generateContentRequest"` // of a request to count
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return asked{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	if raw.Inner != nil {
		raw.request = *raw.Inner
	}
	ask := asked{usage: true, ordered: ordered(raw.Tools, raw.System, raw.Contents)}
	ask.request.MaxTokens = raw.Config.MaxTokens
	var system geminiContent
	if len(raw.System) > 0 {
		if err := json.Unmarshal(raw.System, &system); err != nil {
			return asked{}, fmt.Errorf("systemInstruction: %w", err)
		}
	}
	for _, part := range system.Parts {
		ask.request.System += part.Text
	}
	if err := g.tools(&ask.request, raw.Tools); err != nil {
		return asked{}, err
	}
	var contents []geminiContent
	if err := json.Unmarshal(raw.Contents, &contents); err != nil {
		return asked{}, fmt.Errorf("contents: %w", err)
	}
	if err := g.contents(&ask.request, contents); err != nil {
		return asked{}, err
	}
	return ask, verifyCalls(ask.request)
}

func (geminiWire) tools(request *llm.Request, raw json.RawMessage) error {
	var tools []struct {
		Declarations []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"parametersJsonSchema"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"functionDeclarations"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &tools); err != nil {
			return fmt.Errorf("tools: %w", err)
		}
	}
	for _, tool := range tools {
		for _, function := range tool.Declarations {
			schema := function.Schema
			if len(schema) == 0 {
				schema = function.Parameters
			}
			request.Tools = append(request.Tools, llm.Tool{Name: function.Name, Description: function.Description, Schema: schema})
		}
	}
	return nil
}

func (geminiWire) contents(request *llm.Request, contents []geminiContent) error {
	unnamed := 0
	for i, content := range contents {
		role := llm.User
		switch content.Role {
		case "model":
			role = llm.Assistant
		case "", "user":
		default:
			return fmt.Errorf("contents[%d]: please use a valid role: user, model", i)
		}
		var parts []llm.Part
		for _, part := range content.Parts {
			switch {
			case part.Call != nil:
				if part.Call.ID == "" {
					unnamed++
					part.Call.ID = fmt.Sprintf("unnamed_%d", unnamed)
				}
				parts = append(parts, llm.CallPart(llm.Call{ID: part.Call.ID, Name: part.Call.Name, Arguments: string(part.Call.Args), Signature: part.Signature}))
			case part.Response != nil:
				parts = append(parts, llm.ResultPart(geminiResult(part.Response.ID, part.Response.Name, part.Response.Response)))
			case part.Inline != nil:
				image, err := imagePart(part.Inline.Type, part.Inline.Data)
				if err != nil {
					return fmt.Errorf("contents[%d]: %w", i, err)
				}
				parts = append(parts, image)
			case part.Thought:
				parts = append(parts, llm.Part{Thinking: &llm.Thinking{Text: part.Text}})
			case part.Text == "" && len(part.Signature) > 0:
				parts = append(parts, llm.Part{Thinking: &llm.Thinking{Data: part.Signature}})
			default:
				parts = append(parts, llm.TextPart(part.Text))
			}
		}
		request.Messages = append(request.Messages, llm.Message{Role: role, Parts: parts})
	}
	return nil
}

func geminiResult(id, name string, response map[string]any) llm.Result {
	result := llm.Result{CallID: id, Name: name}
	if text, ok := response["error"].(string); ok {
		result.Text, result.Error = text, true
		return result
	}
	result.Text, _ = response["output"].(string)
	return result
}

var geminiStops = map[string]string{
	stopEnd: "STOP", stopCalls: "STOP", stopMaxTokens: "MAX_TOKENS", stopRefusal: "SAFETY",
}

func geminiUsage(usage llm.Usage) fields {
	return fields{
		"promptTokenCount": usage.Input, "cachedContentTokenCount": usage.Cached,
		"candidatesTokenCount": usage.Output - usage.Reasoning, "thoughtsTokenCount": usage.Reasoning, "totalTokenCount": usage.Total(),
	}
}

func geminiOut(part llm.Part) fields {
	switch {
	case part.Call != nil:
		call := fields{"name": part.Call.Name, "args": argumentsObject(part.Call.Arguments)}
		if part.Call.ID != "" {
			call["id"] = part.Call.ID
		}
		return fields{"functionCall": call, "thoughtSignature": part.Call.Signature}
	case part.Thinking != nil && part.Thinking.Text == "":
		return fields{"text": "", "thoughtSignature": part.Thinking.Data}
	case part.Thinking != nil:
		return fields{"text": part.Thinking.Text, "thought": true}
	}
	return fields{"text": part.Text}
}

func (geminiWire) chunk(model string, parts []any, finish string, usage llm.Usage) fields {
	candidate := fields{"index": 0, "content": fields{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return fields{"candidates": []any{candidate}, "usageMetadata": geminiUsage(usage), "modelVersion": model, "responseId": "script"}
}

func (g geminiWire) whole(model string, answer played) any {
	parts := []any{}
	for _, part := range answer.parts {
		parts = append(parts, geminiOut(part))
	}
	return g.chunk(model, parts, geminiStops[answer.stop], answer.usage)
}

func (geminiWire) counted(tokens int64) any { return fields{"totalTokens": tokens} }

var geminiStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (geminiWire) failure(status int, failure Failure) any {
	if status == 0 {
		status = http.StatusInternalServerError
	}
	name := geminiStatuses[status]
	if name == "" {
		name = "UNKNOWN"
	}
	return fields{"error": fields{"code": status, "message": failure.Message, "status": name}}
}

func (g geminiWire) open(w io.Writer, model string, answer played, _ asked) eventStream {
	return &geminiStream{w: w, model: model, answer: answer}
}

type geminiStream struct {
	w      io.Writer
	model  string
	answer played
}

func (s *geminiStream) begin() {}

// piece sends text in pieces and a call whole, as this format does.
func (s *geminiStream) piece(p piece) {
	part := s.answer.parts[p.part]
	switch {
	case p.call != nil && !p.last:
		return
	case p.call != nil:
	case part.Thinking != nil:
		part = llm.Part{Thinking: &llm.Thinking{Text: p.thinking, Data: part.Thinking.Data}}
	default:
		part = llm.TextPart(p.text)
	}
	event(s.w, "", geminiWire{}.chunk(s.model, []any{geminiOut(part)}, "", llm.Usage{Input: s.answer.usage.Input, Cached: s.answer.usage.Cached}))
}

func (s *geminiStream) fail(failure Failure) {
	event(s.w, "", geminiWire{}.failure(failure.Status, failure))
}

func (s *geminiStream) end() {
	event(s.w, "", geminiWire{}.chunk(s.model, []any{}, geminiStops[s.answer.stop], s.answer.usage))
}
