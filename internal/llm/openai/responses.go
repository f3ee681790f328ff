package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toryo-dev/toryo/internal/llm"
)

// responsesModel speaks Responses, without keeping anything on the server.
type responsesModel struct {
	connection
	responses responses.ResponseService
}

var _ llm.Model = (*responsesModel)(nil)

// Chat implements [llm.Model].
func (m *responsesModel) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	stream := m.responses.NewStreaming(ctx, m.params(request), m.options(request)...)
	defer func() { _ = stream.Close() }() // the answer is read or given up
	answer := &answer{}
	for stream.Next() {
		if failed := answer.takeEvent(stream.Current(), sink); failed != nil {
			status, header := exchange.Answered()
			return llm.Response{}, llm.StatusError(provider, status, header, failed.code, failed.message, errors.New(failed.message))
		}
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

func (m *responsesModel) params(request llm.Request) responses.ResponseNewParams {
	params := responses.ResponseNewParams{
		Model:           m.endpoint.Model,
		MaxOutputTokens: param.NewOpt(m.endpoint.Limit(request)),
		Store:           param.NewOpt(false),
		// With nothing kept on the server, what the model thought has to go to and
		// fro in this form.
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
	}
	if request.System != "" {
		params.Instructions = param.NewOpt(request.System)
	}
	if m.endpoint.Temperature != nil {
		params.Temperature = param.NewOpt(*m.endpoint.Temperature)
	}
	if key := m.cacheKey(request); key != "" {
		params.PromptCacheKey = param.NewOpt(key)
	}
	var items responses.ResponseInputParam
	for _, message := range request.Messages {
		items = append(items, inputItems(message)...)
	}
	params.Input.OfInputItemList = items
	for _, tool := range request.Tools {
		function := responses.ToolParamOfFunction(tool.Name, schemaOf(tool), false)
		function.OfFunction.Description = param.NewOpt(tool.Description)
		params.Tools = append(params.Tools, function)
	}
	return params
}

// reasoningData is what the vendor wants back of what its model thought.
type reasoningData struct {
	ID        string `json:"id"`
	Encrypted string `json:"encrypted"`
}

func inputItems(message llm.Message) []responses.ResponseInputItemUnionParam {
	role := responses.EasyInputMessageRoleUser
	if message.Role == llm.Assistant {
		role = responses.EasyInputMessageRoleAssistant
	}
	var items, texts []responses.ResponseInputItemUnionParam
	for _, part := range message.Parts {
		switch {
		case part.Call != nil:
			items = append(items, responses.ResponseInputItemParamOfFunctionCall(part.Call.Arguments, part.Call.ID, part.Call.Name))
		case part.Result != nil:
			output := responses.ResponseInputItemParamOfFunctionCallOutput(resultText(*part.Result))
			output.OfFunctionCallOutput.CallID = param.NewOpt(part.Result.CallID)
			items = append(items, output)
		case part.Thinking != nil:
			if item, ok := reasoningItem(*part.Thinking); ok {
				items = append(items, item)
			}
		case part.Text != "" && message.Role == llm.Assistant:
			items = append(items, responses.ResponseInputItemParamOfMessage(part.Text, role))
		case part.Text != "":
			texts = append(texts, responses.ResponseInputItemParamOfMessage(part.Text, role))
		}
	}
	return append(items, texts...) // results before what the user says to them
}

func reasoningItem(thinking llm.Thinking) (responses.ResponseInputItemUnionParam, bool) {
	var data reasoningData
	if thinking.Provider != provider || json.Unmarshal(thinking.Data, &data) != nil || data.Encrypted == "" {
		return responses.ResponseInputItemUnionParam{}, false
	}
	item := responses.ResponseInputItemParamOfReasoning(data.ID, []responses.ResponseReasoningItemSummaryParam{})
	item.OfReasoning.EncryptedContent = param.NewOpt(data.Encrypted)
	return item, true
}

type eventFailure struct{ code, message string }

func (a *answer) takeEvent(event responses.ResponseStreamEventUnion, sink llm.Sink) *eventFailure {
	a.begun = true
	switch event.Type {
	case "response.output_text.delta":
		sink.Send(llm.Delta{Text: event.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		sink.Send(llm.Delta{Thinking: event.Delta})
	case "response.output_item.added":
		if event.Item.Type == "function_call" {
			sink.Send(llm.Delta{CallName: event.Item.Name})
		}
	case "response.output_item.done":
		a.takeItem(event.Item)
	case "response.completed", "response.incomplete":
		a.takeEnd(event.Response)
	case "response.failed":
		return &eventFailure{string(event.Response.Error.Code), event.Response.Error.Message}
	case "error":
		return &eventFailure{event.Code, event.Message}
	}
	return nil
}

func (a *answer) takeItem(item responses.ResponseOutputItemUnion) {
	switch item.Type {
	case "message":
		for _, content := range item.AsMessage().Content {
			a.text += content.Text
			a.refusal += content.Refusal
		}
	case "function_call":
		a.calls = append(a.calls, &call{Call: llm.Call{ID: item.CallID, Name: item.Name, Arguments: item.AsFunctionCall().Arguments}})
	case "reasoning":
		reasoning := item.AsReasoning()
		var text strings.Builder
		for _, summary := range reasoning.Summary {
			text.WriteString(summary.Text)
		}
		if data, err := json.Marshal(reasoningData{ID: reasoning.ID, Encrypted: reasoning.EncryptedContent}); err == nil {
			a.thinking = append(a.thinking, llm.Part{Thinking: &llm.Thinking{Provider: provider, Text: text.String(), Data: data}})
		}
	}
}

func (a *answer) takeEnd(response responses.Response) {
	a.ended = true
	a.model = response.Model
	a.usage = llm.Usage{
		Input: response.Usage.InputTokens, Cached: response.Usage.InputTokensDetails.CachedTokens, Output: response.Usage.OutputTokens,
	}
	switch {
	case response.IncompleteDetails.Reason == "max_output_tokens":
		a.stop = llm.StopMaxTokens
	case response.IncompleteDetails.Reason == "content_filter":
		a.filtered = true
	case len(a.calls) > 0:
		a.stop = llm.StopCalls
	default:
		a.stop = llm.StopEnd
	}
}
