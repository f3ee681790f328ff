package llm

import (
	"context"
	"sync"
)

// Redactor takes secrets out of a text. The same text always gives the same
// result, so that a conversation that was sent once stays the same.
type Redactor interface {
	String(text string) string
}

// Redacting returns a model that is sent nothing but redacted text.
func Redacting(model Model, redactor Redactor) Model {
	return &redacting{Model: model, redactor: redactor}
}

type redacting struct {
	Model
	redactor Redactor

	mu sync.Mutex
	// known holds what the texts of the last request became, so that a growing
	// conversation is not searched again from its start on every turn.
	known map[string]string
}

func (r *redacting) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	return r.Model.Chat(ctx, r.redact(request), sink)
}

func (r *redacting) CountTokens(ctx context.Context, request Request) (int64, error) {
	return r.Model.CountTokens(ctx, r.redact(request))
}

func (r *redacting) redact(request Request) Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := make(map[string]string, len(r.known))
	text := func(raw string) string {
		clean, ok := used[raw]
		if !ok {
			if clean, ok = r.known[raw]; !ok {
				clean = r.redactor.String(raw)
			}
			used[raw] = clean
		}
		return clean
	}
	request.System = text(request.System)
	tools := make([]Tool, len(request.Tools))
	for i, tool := range request.Tools {
		tool.Description = text(tool.Description)
		tools[i] = tool
	}
	messages := make([]Message, len(request.Messages))
	for i, message := range request.Messages {
		messages[i] = redactMessage(message, text)
	}
	request.Tools, request.Messages = tools, messages
	r.known = used
	return request
}

func redactMessage(message Message, text func(string) string) Message {
	parts := make([]Part, len(message.Parts))
	for i, part := range message.Parts {
		part.Text = text(part.Text)
		if part.Call != nil {
			call := *part.Call
			call.Arguments = text(call.Arguments)
			part.Call = &call
		}
		if part.Result != nil {
			result := *part.Result
			result.Text = text(result.Text)
			part.Result = &result
		}
		parts[i] = part
	}
	return Message{Role: message.Role, Parts: parts}
}
