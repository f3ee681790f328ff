package llm

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed textcalls.md
var textCallsIntroduction string

// TextCalls drives a model that has no tool calls of its own: the tools are
// described in the system prompt, the model writes its calls as JSON in its
// text, and the results go back as text.
func TextCalls(model Model) Model { return &textCalls{Model: model} }

type textCalls struct{ Model }

func (t *textCalls) CountTokens(ctx context.Context, request Request) (int64, error) {
	return t.Model.CountTokens(ctx, inText(request))
}

func (t *textCalls) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	response, err := t.Model.Chat(ctx, inText(request), sink)
	if err != nil || len(request.Tools) == 0 || len(response.Message.Calls()) > 0 {
		return response, err
	}
	text, calls := FindCalls(response.Message.Text(), request.Tools)
	if len(calls) == 0 || response.Stop == StopMaxTokens && !endsWhole(response.Message.Text()) {
		return response, nil
	}
	// Thinking goes on as it is; the text is replaced by what remains of it.
	var parts []Part
	for _, part := range response.Message.Parts {
		if part.Thinking != nil {
			parts = append(parts, part)
		}
	}
	if text != "" {
		parts = append(parts, TextPart(text))
	}
	turn := len(request.Messages)
	for i, call := range calls {
		call.ID = fmt.Sprintf("text_%d_%d", turn, i+1)
		parts = append(parts, CallPart(call))
	}
	response.Message = Message{Role: Assistant, Parts: parts}
	response.Stop = StopCalls
	return response, nil
}

// endsWhole reports whether an answer that the length limit ended had all of its
// blocks closed.
func endsWhole(text string) bool { return strings.Count(text, "```")%2 == 0 }

// inText is the request without tools, calls and results: all of it is text.
func inText(request Request) Request {
	if len(request.Tools) > 0 {
		request.System = strings.TrimSpace(request.System + "\n\n" + describeTools(request.Tools))
	}
	request.Tools = nil
	messages := make([]Message, 0, len(request.Messages))
	for _, message := range request.Messages {
		messages = append(messages, messageInText(message))
	}
	request.Messages = messages
	return request
}

func describeTools(tools []Tool) string {
	var b strings.Builder
	b.WriteString(textCallsIntroduction)
	for _, tool := range tools {
		fmt.Fprintf(&b, "## %s\n%s\n```json\n%s\n```\n\n", tool.Name, strings.TrimSpace(tool.Description), tool.Schema)
	}
	return b.String()
}

func messageInText(message Message) Message {
	var parts []Part
	var calls []string
	for _, part := range message.Parts {
		switch {
		case part.Call != nil:
			arguments := part.Call.Arguments
			if _, ok := lenientObject(arguments); !ok {
				arguments = quoteJSON(arguments)
			}
			calls = append(calls, fmt.Sprintf(`{"name": %s, "arguments": %s}`, quoteJSON(part.Call.Name), arguments))
		case part.Result != nil:
			parts = append(parts, TextPart(resultInText(*part.Result)))
		case part.Thinking == nil:
			parts = append(parts, part)
		}
	}
	if len(calls) > 0 {
		parts = append(parts, TextPart("```tool_calls\n["+strings.Join(calls, ",\n")+"]\n```"))
	}
	return Message{Role: message.Role, Parts: parts}
}

func resultInText(result Result) string {
	outcome := "result"
	if result.Error {
		outcome = "error"
	}
	return fmt.Sprintf("The %s of %s:\n%s", outcome, result.Name, result.Text)
}
