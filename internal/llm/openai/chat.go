package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/llm"
)

// chatModel speaks Chat Completions.
type chatModel struct {
	connection
	// completion says that the server has refused max_tokens and wants max_completion_tokens.
	completion atomic.Bool
}

var _ llm.Model = (*chatModel)(nil)

// Chat implements [llm.Model]. A request that is refused for the name of its limit is sent once more
// with the newer name: gateways pass on what a model behind them says.
func (m *chatModel) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	params := m.params(request)
	response, err := m.send(ctx, request, params, sink)
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.BadRequest {
		return response, err
	}
	if params.MaxTokens > 0 && strings.Contains(failed.Detail, "max_completion_tokens") {
		m.completion.Store(true)
		return m.send(ctx, request, m.params(request), sink)
	}
	if strings.Contains(failed.Detail, "/v1/responses") { // OpenAI's newer models take tools there only
		failed.Hint = "set llm.api: responses"
	}
	return response, err
}

// send makes one call.
func (m *chatModel) send(ctx context.Context, request llm.Request, params chatRequest, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	answer := &answer{maker: m.endpoint.Maker(provider)}
	err := m.stream(ctx, "/chat/completions", request, params, func(event llm.Event) error {
		var chunk chatChunk
		if err := event.Decode(&chunk); err != nil {
			return err
		}
		answer.takeChunk(chunk, sink)
		return nil
	})
	if whole, ok := wholeAnswer(err); ok {
		answer.takeChunk(whole, sink)
		err = nil
	}
	if err != nil {
		return llm.Response{}, m.failure(ctx, exchange, answer, err)
	}
	thinking, text := answer.tags.rest()
	answer.takeText(thinking, text, sink)
	if !answer.ended {
		answer.begun = true
		return llm.Response{}, m.failure(ctx, exchange, answer, errEndedEarly)
	}
	return m.response(answer, exchange)
}

// wholeAnswer finds an answer in one piece where a stream was asked for: some servers do not stream,
// or not with tools.
func wholeAnswer(err error) (chatChunk, bool) {
	unreadable, ok := errors.AsType[*llm.UnreadableError](err)
	if !ok {
		return chatChunk{}, false
	}
	var whole chatChunk
	if json.Unmarshal([]byte(unreadable.Text), &whole) != nil || len(whole.Choices) == 0 || whole.Choices[0].Message == nil {
		return chatChunk{}, false
	}
	return whole, true
}

func (m *chatModel) params(request llm.Request) chatRequest {
	params := chatRequest{Model: m.endpoint.Model, Stream: true, Temperature: m.endpoint.Temperature, PromptCacheKey: m.cacheKey(request)}
	params.StreamOptions.IncludeUsage = true
	if m.endpoint.Vendor() || m.completion.Load() {
		params.MaxCompletionTokens = m.endpoint.Limit(request)
	} else {
		params.MaxTokens = m.endpoint.Limit(request) // what compatible servers know
	}
	if request.System != "" {
		params.Messages = append(params.Messages, chatMessage{Role: "system", Content: &request.System})
	}
	m.reason(&params, m.endpoint.Limit(request))
	for _, message := range request.Messages {
		params.Messages = append(params.Messages, m.chatMessages(message)...)
	}
	for _, tool := range request.Tools {
		function := chatTool{Type: "function"}
		function.Function.Name, function.Function.Description, function.Function.Parameters = tool.Name, tool.Description, schemaOf(tool)
		params.Tools = append(params.Tools, function)
	}
	return params
}

// reason asks for reasoning in the ways that servers have for it.
func (m *chatModel) reason(params *chatRequest, limit int64) {
	asked := m.endpoint.Reasoning
	if asked.Effort != "" {
		params.ReasoningEffort = asked.Effort
		params.Temperature = m.temperature()
	}
	if asked.Type != "" {
		params.Thinking = &chatThinking{asked.Type}
	}
	if asked.Budget != 0 {
		params.ThinkingBudget = asked.BudgetFor(limit)
		on := params.ThinkingBudget > 0
		params.EnableThinking = &on
	}
}

// chatMessages takes a message apart: each result is a message of its own.
func (m *chatModel) chatMessages(message llm.Message) []chatMessage {
	if message.Role == llm.Assistant {
		return m.assistantMessage(message)
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

func (m *chatModel) assistantMessage(message llm.Message) []chatMessage {
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
	m.giveBack(&assistant, message)
	return []chatMessage{assistant}
}

// The fields in which servers, though not OpenAI, tell what the model thought. It goes
// back in the same field, because several models only go on well from it.
const (
	reasoningContent = "reasoning_content"
	reasoningField   = "reasoning"
)

// giveBack puts what the model thought into its message. A server that insists on the
// field gets it with every call, empty where nothing is known.
func (m *chatModel) giveBack(assistant *chatMessage, message llm.Message) {
	empty := ""
	if m.endpoint.Reasoning.Returned == reasoningContent && len(assistant.ToolCalls) > 0 {
		assistant.ReasoningContent = &empty
	}
	for _, part := range message.Parts {
		if part.Thinking == nil || part.Thinking.Maker != m.endpoint.Maker(provider) {
			continue
		}
		switch string(part.Thinking.Data) {
		case reasoningContent:
			assistant.ReasoningContent = &part.Thinking.Text
		case reasoningField:
			assistant.Reasoning = &part.Thinking.Text
		}
	}
}

func (a *answer) takeChunk(chunk chatChunk, sink llm.Sink) {
	a.begun = true
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if usage := chunk.Usage; usage != nil {
		a.usage = usage.usage()
	}
	for _, choice := range chunk.Choices {
		if choice.Message != nil {
			choice.Delta = *choice.Message
		}
		a.takeDelta(choice.Delta, sink)
		if choice.FinishReason != "" {
			a.finish(choice.FinishReason)
		}
	}
}

func (a *answer) takeDelta(delta chatDelta, sink llm.Sink) {
	switch {
	case delta.ReasoningContent != "":
		a.think(delta.ReasoningContent, reasoningContent, sink)
	case delta.Reasoning != "":
		a.think(delta.Reasoning, reasoningField, sink)
	case delta.Content.Thinking != "":
		a.think(delta.Content.Thinking, "", sink)
	}
	thinking, text := a.tags.read(delta.Content.Text)
	a.takeText(thinking, text, sink)
	a.refusal += delta.Refusal
	for _, piece := range delta.ToolCalls {
		c, isNew := a.callAt(piece)
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

// think takes a piece of what the model thinks, and the field that it came in.
func (a *answer) think(text, field string, sink llm.Sink) {
	a.thinking += text
	a.field = field
	sink.Send(llm.Delta{Thinking: text})
}

// takeText takes a piece of what the model says, after what it thinks between tags.
func (a *answer) takeText(thinking, text string, sink llm.Sink) {
	if thinking != "" {
		a.think(thinking, "", sink)
	}
	if text != "" {
		a.text += text
		sink.Send(llm.Delta{Text: text})
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
