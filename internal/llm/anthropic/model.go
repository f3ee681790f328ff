package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

const (
	provider   = "anthropic"
	ownAddress = "https://api.anthropic.com"
	apiVersion = "2023-06-01"
)

// Model is a model of Anthropic, or of a server that speaks its protocol.
type Model struct {
	endpoint llm.Endpoint
	client   *http.Client
	address  string // of the messages
}

var _ llm.Model = (*Model)(nil)

// New returns the model of an endpoint. It makes no call.
func New(endpoint llm.Endpoint) *Model {
	address := endpoint.BaseURL
	if address == "" {
		address = ownAddress
	}
	return &Model{endpoint: endpoint, client: endpoint.HTTPClient(), address: strings.TrimSuffix(address, "/") + "/v1/messages"}
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info { return m.endpoint.Info(provider) }

func (m *Model) headers(request llm.Request) map[string]string {
	headers := m.endpoint.Headers(request)
	headers["Anthropic-Version"] = apiVersion
	if m.endpoint.Key != "" {
		headers["X-Api-Key"] = m.endpoint.Key
	}
	return headers
}

// CountTokens implements [llm.Model].
func (m *Model) CountTokens(ctx context.Context, request llm.Request) (int64, error) {
	ctx, exchange := llm.WithExchange(ctx)
	var count countResponse
	body, _ := m.input(request)
	if err := llm.PostForJSON(ctx, m.client, m.address+"/count_tokens", m.headers(request), body, &count); err != nil {
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
	body, prefix := m.input(request)
	body.MaxTokens, body.CacheControl, body.Stream = m.endpoint.Limit(request), ephemeral(), true
	m.reason(&body)
	ctx, exchange := llm.WithExchange(ctx)
	answer := answer{maker: m.endpoint.Maker(provider), prefix: prefix}
	err := llm.PostForEvents(ctx, m.client, m.address, m.headers(request), body, func(event llm.Event) error {
		var taken streamEvent
		if err := event.Decode(&taken); err != nil {
			return err
		}
		if taken.Type == "error" {
			return &streamError{taken.errorBody}
		}
		answer.take(taken, sink)
		return nil
	})
	if !answer.ended {
		if err == nil {
			answer.begun, err = true, errors.New("the stream ended early")
		}
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, answer.begun, err), answer.usage)
	}
	if answer.stop == "refusal" {
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

// failure turns what went wrong into an error of the port.
func (m *Model) failure(ctx context.Context, exchange *llm.Exchange, begun bool, err error) error {
	status, header := exchange.Answered()
	if inStream, ok := errors.AsType[*streamError](err); ok {
		return llm.StatusError(provider, status, header, inStream.Failed.Type, inStream.Failed.Message, err)
	}
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok {
		return llm.ConnectionError(ctx, provider, begun, err)
	}
	var body errorBody
	if json.Unmarshal(refused.Body, &body) != nil || body.Failed.Message == "" {
		body.Failed.Message = string(refused.Body)
	}
	return llm.StatusError(provider, status, header, body.Failed.Type, body.Failed.Message, err)
}
