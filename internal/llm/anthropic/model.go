package anthropic

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/toryo-dev/toryo/internal/llm"
)

const provider = "anthropic"

// Model is a model of Anthropic, or of a server that speaks its protocol.
type Model struct {
	endpoint llm.Endpoint
	messages sdk.MessageService
}

var _ llm.Model = (*Model)(nil)

// New returns the model of an endpoint. It makes no call.
func New(endpoint llm.Endpoint) *Model {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithEnvironmentProduction(),
		option.WithoutOpenTelemetry(),
		option.WithMaxRetries(0),
		option.WithHTTPClient(endpoint.HTTPClient()),
		option.WithAPIKey(endpoint.Key),
	}
	if endpoint.BaseURL != "" {
		options = append(options, option.WithBaseURL(endpoint.BaseURL))
	}
	return &Model{endpoint: endpoint, messages: sdk.NewMessageService(options...)}
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info { return m.endpoint.Info(provider) }

func (m *Model) options(request llm.Request) []option.RequestOption {
	var options []option.RequestOption
	for key, value := range m.endpoint.Headers(request) {
		options = append(options, option.WithHeader(key, value))
	}
	return options
}

// CountTokens implements [llm.Model].
func (m *Model) CountTokens(ctx context.Context, request llm.Request) (int64, error) {
	params := m.params(request)
	tools := make([]sdk.MessageCountTokensToolUnionParam, len(params.Tools))
	for i, tool := range params.Tools {
		tools[i] = sdk.MessageCountTokensToolUnionParam{OfTool: tool.OfTool}
	}
	ctx, exchange := llm.WithExchange(ctx)
	count, err := m.messages.CountTokens(ctx, sdk.MessageCountTokensParams{
		Model: params.Model, Messages: params.Messages, Tools: tools,
		System: sdk.MessageCountTokensParamsSystemUnion{OfTextBlockArray: params.System},
	}, m.options(request)...)
	if err != nil {
		err = m.failure(ctx, exchange, false, err)
		if llm.KindOf(err) == llm.UnknownModel && m.endpoint.BaseURL != "" {
			return 0, llm.NewError(llm.CannotCount, provider, err)
		}
		return 0, err
	}
	return count.InputTokens, nil
}

// Chat implements [llm.Model].
func (m *Model) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	stream := m.messages.NewStreaming(ctx, m.params(request), m.options(request)...)
	defer func() { _ = stream.Close() }() // the answer is read or given up
	var answer answer
	for stream.Next() {
		answer.take(stream.Current(), sink)
	}
	if err := stream.Err(); err != nil {
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, answer.begun, err), answer.usage)
	}
	if !answer.ended {
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, true, errors.New("the stream ended early")), answer.usage)
	}
	if answer.stop == sdk.StopReasonRefusal {
		return llm.Response{}, &llm.Error{Kind: llm.Refused, Provider: provider, Detail: answer.refusal, Usage: answer.usage}
	}
	return llm.Response{
		Message:  llm.Message{Role: llm.Assistant, Parts: answer.parts()},
		Stop:     answer.stopReason(),
		Usage:    answer.usage,
		Cost:     m.endpoint.Prices.Cost(answer.usage),
		Model:    answer.model,
		Scripted: exchange.Scripted(),
	}, nil
}

// failure turns an error of the SDK into one of the port.
func (m *Model) failure(ctx context.Context, exchange *llm.Exchange, begun bool, err error) error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return &llm.Error{Kind: llm.BadAnswer, Provider: provider, Detail: err.Error(), Err: err}
		}
		return llm.ConnectionError(ctx, provider, begun, err)
	}
	_, header := exchange.Answered()
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	detail := api.RawJSON()
	if json.Unmarshal([]byte(detail), &body) == nil && body.Error.Message != "" {
		detail = body.Error.Message
	}
	return llm.StatusError(provider, api.StatusCode, header, string(api.Type()), detail, err)
}
