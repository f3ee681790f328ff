package openai

import (
	"context"
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/toryo-dev/toryo/internal/llm"
)

// chatModel speaks Chat Completions.
type chatModel struct {
	connection
	completions sdk.ChatCompletionService
}

var _ llm.Model = (*chatModel)(nil)

// Chat implements [llm.Model].
func (m *chatModel) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	stream := m.completions.NewStreaming(ctx, m.params(request), m.options(request)...)
	defer func() { _ = stream.Close() }() // the answer is read or given up
	answer := &answer{}
	for stream.Next() {
		answer.takeChunk(stream.Current(), sink)
	}
	if err := stream.Err(); err != nil {
		return llm.Response{}, m.failure(ctx, exchange, answer, err)
	}
	if !answer.ended {
		answer.begun = true
		return llm.Response{}, m.failure(ctx, exchange, answer, errEndedEarly)
	}
	return m.response(answer, exchange)
}

func (m *chatModel) params(request llm.Request) sdk.ChatCompletionNewParams {
	params := sdk.ChatCompletionNewParams{
		Model:         m.endpoint.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	limit := param.NewOpt(m.endpoint.Limit(request))
	if m.endpoint.BaseURL == "" {
		params.MaxCompletionTokens = limit
	} else {
		params.MaxTokens = limit // what compatible servers know
	}
	if m.endpoint.Temperature != nil {
		params.Temperature = param.NewOpt(*m.endpoint.Temperature)
	}
	if key := m.cacheKey(request); key != "" {
		params.PromptCacheKey = param.NewOpt(key)
	}
	if request.System != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(request.System))
	}
	for _, message := range request.Messages {
		params.Messages = append(params.Messages, chatMessages(message)...)
	}
	for _, tool := range request.Tools {
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.Name, Description: param.NewOpt(tool.Description), Parameters: schemaOf(tool),
		}))
	}
	return params
}

// chatMessages takes a message apart: each result is a message of its own.
func chatMessages(message llm.Message) []sdk.ChatCompletionMessageParamUnion {
	if message.Role == llm.Assistant {
		return assistantMessage(message)
	}
	var messages []sdk.ChatCompletionMessageParamUnion
	for _, result := range message.Results() {
		messages = append(messages, sdk.ToolMessage(resultText(result), result.CallID))
	}
	if text := message.Text(); text != "" {
		messages = append(messages, sdk.UserMessage(text))
	}
	return messages
}

// resultText marks errors, for which the API has no field.
func resultText(result llm.Result) string {
	if result.Error {
		return "Error: " + result.Text
	}
	return result.Text
}

func assistantMessage(message llm.Message) []sdk.ChatCompletionMessageParamUnion {
	assistant := sdk.ChatCompletionAssistantMessageParam{}
	text, calls := message.Text(), message.Calls()
	if text == "" && len(calls) == 0 {
		return nil
	}
	if text != "" {
		assistant.Content.OfString = param.NewOpt(text)
	}
	for _, call := range calls {
		assistant.ToolCalls = append(assistant.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       call.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: call.Arguments},
			},
		})
	}
	return []sdk.ChatCompletionMessageParamUnion{{OfAssistant: &assistant}}
}

func (a *answer) takeChunk(chunk sdk.ChatCompletionChunk, sink llm.Sink) {
	a.begun = true
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = llm.Usage{
			Input: chunk.Usage.PromptTokens, Cached: chunk.Usage.PromptTokensDetails.CachedTokens, Output: chunk.Usage.CompletionTokens,
		}
	}
	for _, choice := range chunk.Choices {
		a.takeDelta(choice.Delta, sink)
		if choice.FinishReason != "" {
			a.finish(choice.FinishReason)
		}
	}
}

func (a *answer) takeDelta(delta sdk.ChatCompletionChunkChoiceDelta, sink llm.Sink) {
	if delta.Content != "" {
		a.text += delta.Content
		sink.Send(llm.Delta{Text: delta.Content})
	}
	a.refusal += delta.Refusal
	if thinking := reasoningOf(delta); thinking != "" {
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

// reasoningOf reads the field in which several servers, though not OpenAI, show
// what the model thinks. It is shown and not sent back.
func reasoningOf(delta sdk.ChatCompletionChunkChoiceDelta) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if field, ok := delta.JSON.ExtraFields[name]; ok && json.Unmarshal([]byte(field.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
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
