package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/llm"
)

// responsesModel speaks Responses, without keeping anything on the server.
type responsesModel struct {
	connection
	// noThinking says that the server has refused to hand out what the model thought.
	noThinking atomic.Bool
	// refused has the reasoning items that the server could not read, by their encrypted content.
	refused sync.Map
}

var _ llm.Model = (*responsesModel)(nil)

// Chat implements [llm.Model]. A request that is refused for what the model thought is sent once more
// without: models that do not reason have none to hand out, and what another account's key was
// given cannot be read with this one.
func (m *responsesModel) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	params := m.params(request)
	response, err := m.send(ctx, request, params, sink)
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.BadRequest {
		return response, err
	}
	switch about := strings.ToLower(failed.Detail); {
	case strings.Contains(about, "encrypted content is not supported") && len(params.Include) > 0:
		m.noThinking.Store(true)
		params = m.params(request)
	case strings.Contains(about, "encrypted") && params.hasReasoning():
		for _, item := range params.Input {
			if reasoning, is := item.(reasoningItem); is {
				m.refused.Store(reasoning.EncryptedContent, true)
			}
		}
		params = m.params(request)
	default:
		return response, err
	}
	return m.send(ctx, request, params, sink)
}

// send makes one call.
func (m *responsesModel) send(ctx context.Context, request llm.Request, params responsesRequest, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	answer := &answer{maker: m.endpoint.Maker(provider)}
	err := m.stream(ctx, "/responses", request, params, func(event llm.Event) error {
		var taken responseEvent
		if err := event.Decode(&taken); err != nil {
			return err
		}
		return answer.takeEvent(taken, sink)
	})
	if failed, ok := errors.AsType[*eventError](err); ok {
		status, header := exchange.Answered()
		return llm.Response{}, llm.WithUsage(llm.StatusError(provider, status, header, failed.code, failed.message, err), answer.usage)
	}
	if err != nil {
		return llm.Response{}, m.withHint(m.failure(ctx, exchange, answer, err))
	}
	if !answer.ended {
		answer.begun = true
		return llm.Response{}, m.failure(ctx, exchange, answer, errEndedEarly)
	}
	return m.response(answer, exchange)
}

// withHint says what to do about a server that does not have this API.
func (m *responsesModel) withHint(err error) error {
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Status == http.StatusNotFound && m.endpoint.BaseURL != "" {
		failed.Hint = "set llm.api: chat if the server has no responses; else check llm.model and llm.base_url"
	}
	return err
}

func (m *responsesModel) params(request llm.Request) responsesRequest {
	params := responsesRequest{
		Model:           m.endpoint.Model,
		Instructions:    request.System,
		Input:           []any{},
		MaxOutputTokens: m.endpoint.Limit(request),
		Temperature:     m.endpoint.Temperature,
		PromptCacheKey:  m.cacheKey(request),
		Stream:          true,
	}
	if !m.endpoint.NoReasoning && !m.noThinking.Load() {
		// With nothing kept on the server, what the model thought has to go to and
		// fro in this form.
		params.Include = []string{"reasoning.encrypted_content"}
	}
	if effort := m.endpoint.Reasoning.Effort; effort != "" {
		params.Reasoning = &reasoningEffort{effort}
		params.Temperature = m.temperature()
	}
	for _, message := range request.Messages {
		params.Input = append(params.Input, m.inputItems(message)...)
	}
	for _, tool := range request.Tools {
		params.Tools = append(params.Tools, responsesTool{Type: "function", Name: tool.Name, Description: tool.Description, Parameters: schemaOf(tool)})
	}
	return params
}

// reasoningData is what the vendor wants back of what its model thought.
type reasoningData struct {
	ID        string        `json:"id"`
	Summary   []summaryText `json:"summary,omitempty"`
	Encrypted string        `json:"encrypted"`
}

// inputItems takes a message apart: calls, results and what was thought are items of
// their own. All that a user says is one message, as it is in the other APIs.
func (m *responsesModel) inputItems(message llm.Message) []any {
	var items []any
	for _, part := range message.Parts {
		switch {
		case part.Call != nil:
			items = append(items, callItem{Type: "function_call", CallID: part.Call.ID, Name: part.Call.Name, Arguments: part.Call.Arguments})
		case part.Result != nil:
			items = append(items, resultItem{Type: "function_call_output", CallID: part.Result.CallID, Output: resultText(*part.Result)})
		case part.Thinking != nil:
			if item, ok := m.reasoningOf(*part.Thinking); ok {
				items = append(items, item)
			}
		case part.Text != "" && message.Role == llm.Assistant:
			items = append(items, messageItem{Role: "assistant", Content: part.Text})
		}
	}
	if len(message.Images()) > 0 {
		return append(items, messageItem{Role: "user", Content: inputParts(message)})
	}
	if text := message.Text(); text != "" && message.Role != llm.Assistant {
		items = append(items, messageItem{Role: "user", Content: text}) // behind the results that it is about
	}
	return withoutLoose(items)
}

// withoutLoose leaves out reasoning that nothing follows: the API refuses it. An answer
// ends like that when the limit of its length was reached.
func withoutLoose(items []any) []any {
	for len(items) > 0 {
		if !isReasoning(items[len(items)-1]) {
			break
		}
		items = items[:len(items)-1]
	}
	return items
}

func isReasoning(item any) bool {
	_, is := item.(reasoningItem)
	return is
}

func (r responsesRequest) hasReasoning() bool { return slices.ContainsFunc(r.Input, isReasoning) }

// inputParts is what a user says with images.
func inputParts(message llm.Message) []inputPart {
	var parts []inputPart
	for _, part := range message.Parts {
		switch {
		case part.Image != nil:
			parts = append(parts, inputPart{Type: "input_image", ImageURL: dataURL(*part.Image)})
		case part.Text != "":
			parts = append(parts, inputPart{Type: "input_text", Text: part.Text})
		}
	}
	return parts
}

func (m *responsesModel) reasoningOf(thinking llm.Thinking) (reasoningItem, bool) {
	var data reasoningData
	if thinking.Maker != m.endpoint.Maker(provider) || json.Unmarshal(thinking.Data, &data) != nil || data.Encrypted == "" {
		return reasoningItem{}, false
	}
	if _, is := m.refused.Load(data.Encrypted); is {
		return reasoningItem{}, false
	}
	if data.Summary == nil {
		data.Summary = []summaryText{}
	}
	return reasoningItem{Type: "reasoning", ID: data.ID, Summary: data.Summary, EncryptedContent: data.Encrypted}, true
}

// eventError is an event that says that the answer failed.
type eventError struct{ code, message string }

func (f *eventError) Error() string { return f.message }

func (a *answer) takeEvent(event responseEvent, sink llm.Sink) error {
	a.begun = true
	switch event.Type {
	case "response.output_text.delta":
		sink.Send(llm.Delta{Text: event.text()})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		sink.Send(llm.Delta{Thinking: event.text()})
	case "response.output_item.added":
		if event.Item.Type == "function_call" {
			sink.Send(llm.Delta{CallName: event.Item.Name})
		}
	case "response.output_item.done":
		a.takeItem(event.Item)
	case "response.completed", "response.incomplete":
		a.takeEnd(event.Response)
	case "response.failed":
		return &eventError{event.Response.Error.Code, event.Response.Error.Message}
	case "error":
		return &eventError{event.Code, event.Message}
	}
	return nil
}

func (a *answer) takeItem(item outputItem) {
	switch item.Type {
	case "message":
		var text strings.Builder
		for _, content := range item.Content {
			text.WriteString(content.Text)
			a.refusal += content.Refusal
		}
		if text.Len() > 0 {
			a.items = append(a.items, llm.TextPart(text.String()))
		}
	case "function_call":
		a.items = append(a.items, llm.CallPart(llm.Call{ID: item.CallID, Name: item.Name, Arguments: cmp.Or(item.Arguments, "{}")}))
	case "reasoning":
		var text strings.Builder
		for _, summary := range item.Summary {
			text.WriteString(summary.Text)
		}
		if data, err := json.Marshal(reasoningData{ID: item.ID, Summary: item.Summary, Encrypted: item.EncryptedContent}); err == nil {
			a.items = append(a.items, llm.Part{Thinking: &llm.Thinking{Maker: a.maker, Text: text.String(), Data: data}})
		}
	}
}

func (a *answer) takeEnd(response responseEnd) {
	a.ended = true
	a.model = response.Model
	a.usage = llm.Usage{
		Input: response.Usage.InputTokens, Cached: response.Usage.InputTokensDetails.CachedTokens,
		Output: response.Usage.OutputTokens, Reasoning: response.Usage.OutputTokensDetails.ReasoningTokens,
	}
	switch {
	case response.IncompleteDetails.Reason == "max_output_tokens":
		a.stop = llm.StopMaxTokens
	case response.IncompleteDetails.Reason == "content_filter":
		a.filtered = true
	case len(llm.Message{Parts: a.items}.Calls()) > 0:
		a.stop = llm.StopCalls
	default:
		a.stop = llm.StopEnd
	}
}
