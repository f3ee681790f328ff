package openai

import (
	"cmp"
	"context"

	"github.com/toryo-dev/toryo/internal/llm"
)

// chatModel speaks Chat Completions.
type chatModel struct{ connection }

var _ llm.Model = (*chatModel)(nil)

// Chat implements [llm.Model].
func (m *chatModel) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	answer := &answer{}
	err := m.stream(ctx, "/chat/completions", request, m.params(request), func(event llm.Event) error {
		var chunk chatChunk
		if err := event.Decode(&chunk); err != nil {
			return err
		}
		answer.takeChunk(chunk, sink)
		return nil
	})
	if err != nil {
		return llm.Response{}, m.failure(ctx, exchange, answer, err)
	}
	if !answer.ended {
		answer.begun = true
		return llm.Response{}, m.failure(ctx, exchange, answer, errEndedEarly)
	}
	return m.response(answer, exchange)
}

func (m *chatModel) params(request llm.Request) chatRequest {
	params := chatRequest{Model: m.endpoint.Model, Stream: true, Temperature: m.endpoint.Temperature, PromptCacheKey: m.cacheKey(request)}
	params.StreamOptions.IncludeUsage = true
	if m.endpoint.BaseURL == "" {
		params.MaxCompletionTokens = m.endpoint.Limit(request)
	} else {
		params.MaxTokens = m.endpoint.Limit(request) // what compatible servers know
	}
	if request.System != "" {
		params.Messages = append(params.Messages, chatMessage{Role: "system", Content: &request.System})
	}
	for _, message := range request.Messages {
		params.Messages = append(params.Messages, chatMessages(message)...)
	}
	for _, tool := range request.Tools {
		function := chatTool{Type: "function"}
		function.Function.Name, function.Function.Description, function.Function.Parameters = tool.Name, tool.Description, schemaOf(tool)
		params.Tools = append(params.Tools, function)
	}
	return params
}

// chatMessages takes a message apart: each result is a message of its own.
func chatMessages(message llm.Message) []chatMessage {
	if message.Role == llm.Assistant {
		return assistantMessage(message)
	}
	var messages []chatMessage
	for _, result := range message.Results() {
		text := resultText(result)
		messages = append(messages, chatMessage{Role: "tool", Content: &text, ToolCallID: result.CallID})
	}
	if len(message.Images()) > 0 {
		return append(messages, chatMessage{Role: "user", Content: chatParts(message)})
	}
	if text := message.Text(); text != "" {
		messages = append(messages, chatMessage{Role: "user", Content: &text})
	}
	return messages
}

// chatParts is what a user says with images.
func chatParts(message llm.Message) []chatPart {
	var parts []chatPart
	for _, part := range message.Parts {
		switch {
		case part.Image != nil:
			parts = append(parts, chatPart{Type: "image_url", ImageURL: &imageURL{dataURL(*part.Image)}})
		case part.Text != "":
			parts = append(parts, chatPart{Type: "text", Text: part.Text})
		}
	}
	return parts
}

// dataURL is an image as an address.
func dataURL(image llm.Image) string { return "data:" + image.Type + ";base64," + image.Base64() }

// resultText marks errors, for which the API has no field.
func resultText(result llm.Result) string {
	if result.Error {
		return "Error: " + result.Text
	}
	return result.Text
}

func assistantMessage(message llm.Message) []chatMessage {
	assistant := chatMessage{Role: "assistant"}
	text, calls := message.Text(), message.Calls()
	if text == "" && len(calls) == 0 {
		return nil
	}
	if text != "" {
		assistant.Content = &text
	}
	for _, call := range calls {
		assistant.ToolCalls = append(assistant.ToolCalls, chatCall{
			ID: call.ID, Type: "function", Function: chatFunction{Name: call.Name, Arguments: call.Arguments},
		})
	}
	return []chatMessage{assistant}
}

func (a *answer) takeChunk(chunk chatChunk, sink llm.Sink) {
	a.begun = true
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if usage := chunk.Usage; usage != nil {
		a.usage = llm.Usage{Input: usage.PromptTokens, Cached: usage.PromptTokensDetails.CachedTokens, Output: usage.CompletionTokens}
	}
	for _, choice := range chunk.Choices {
		a.takeDelta(choice.Delta, sink)
		if choice.FinishReason != "" {
			a.finish(choice.FinishReason)
		}
	}
}

func (a *answer) takeDelta(delta chatDelta, sink llm.Sink) {
	if delta.Content != "" {
		a.text += delta.Content
		sink.Send(llm.Delta{Text: delta.Content})
	}
	a.refusal += delta.Refusal
	// What the model thinks is shown and not sent back.
	if thinking := cmp.Or(delta.ReasoningContent, delta.Reasoning); thinking != "" {
		sink.Send(llm.Delta{Thinking: thinking})
	}
	for _, piece := range delta.ToolCalls {
		c, isNew := a.callAt(piece.Index, piece.ID)
		if piece.ID != "" {
			c.ID = piece.ID
		}
		c.Name += piece.Function.Name
		c.Arguments += piece.Function.Arguments
		if isNew {
			sink.Send(llm.Delta{CallName: c.Name})
		}
	}
}

func (a *answer) finish(reason string) {
	a.ended = true
	switch reason {
	case "stop":
		a.stop = llm.StopEnd
		if len(a.calls) > 0 {
			a.stop = llm.StopCalls // several servers say stop for calls too
		}
	case "tool_calls", "function_call":
		a.stop = llm.StopCalls
	case "length":
		a.stop = llm.StopMaxTokens
	case "content_filter":
		a.filtered = true
	default:
		a.stop = llm.StopOther
	}
}
