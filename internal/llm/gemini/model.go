package gemini

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	provider   = "gemini"
	ownAddress = "https://generativelanguage.googleapis.com"
	version    = "/v1beta/"
)

// Model is a model of Google, or of a server that speaks its protocol.
type Model struct {
	endpoint llm.Endpoint
	client   *http.Client
	name     string // of the model, as the API has it
	address  string // of the model
}

var _ llm.Model = (*Model)(nil)

// New returns the model of an endpoint. It makes no call.
func New(endpoint llm.Endpoint) (*Model, error) {
	address := endpoint.BaseURL
	if address == "" {
		address = ownAddress
		if endpoint.Key == "" {
			return nil, task.Errorf(task.BadConfig, "there is no key for the Gemini API").
				WithHint("set TORYO_LLM_API_KEY, GOOGLE_API_KEY or GEMINI_API_KEY, or the api_key_file of the model")
		}
	}
	name := endpoint.Model
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return &Model{
		endpoint: endpoint, client: endpoint.HTTPClient(),
		name: name, address: strings.TrimSuffix(address, "/") + version + name,
	}, nil
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info { return m.endpoint.Info(provider) }

func (m *Model) headers(request llm.Request) map[string]string {
	headers := m.endpoint.Headers(request)
	if m.endpoint.Key != "" {
		headers["X-Goog-Api-Key"] = m.endpoint.Key
	}
	return headers
}

// CountTokens implements [llm.Model].
func (m *Model) CountTokens(ctx context.Context, request llm.Request) (int64, error) {
	whole := m.generateRequest(request)
	whole.Model = m.name
	whole.GenerationConfig = nil
	ctx, exchange := llm.WithExchange(ctx)
	var count countResponse
	if err := llm.PostForJSON(ctx, m.client, m.address+":countTokens", m.headers(request), countRequest{whole}, &count); err != nil {
		return 0, m.failure(ctx, exchange, false, err)
	}
	return count.TotalTokens, nil
}

// Chat implements [llm.Model].
func (m *Model) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	ctx, exchange := llm.WithExchange(ctx)
	answer := answer{model: m.endpoint.Model, maker: m.endpoint.Maker(provider)}
	err := llm.PostForEvents(ctx, m.client, m.address+":streamGenerateContent?alt=sse", m.headers(request), m.generateRequest(request),
		func(event llm.Event) error {
			var piece chunk
			if err := event.Decode(&piece); err != nil {
				return err
			}
			if piece.Error != nil {
				return piece.Error
			}
			answer.take(piece, sink)
			return nil
		})
	switch {
	case err != nil:
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, answer.begun, err), answer.usage)
	case answer.blocked != "":
		return llm.Response{}, &llm.Error{Kind: llm.Refused, Provider: provider, Detail: answer.blocked, Usage: answer.usage}
	case answer.finish == "":
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, true, errors.New("the stream ended early")), answer.usage)
	case answer.finish == finishMalformedFunction:
		return llm.Response{}, &llm.Error{Kind: llm.BadAnswer, Provider: provider, Detail: "a malformed function call", Usage: answer.usage}
	}
	return llm.Response{
		Message:  llm.Message{Role: llm.Assistant, Parts: answer.parts},
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
	api, inStream := errors.AsType[*apiError](err)
	if refused, ok := errors.AsType[*llm.HTTPError](err); ok {
		if api = readError(refused.Body); api == nil {
			api = &apiError{Message: string(refused.Body)}
		}
	} else if unreadable, ok := errors.AsType[*llm.UnreadableError](err); ok {
		api = readError([]byte(unreadable.Text)) // an error in place of the stream
		inStream = api != nil
	}
	if api == nil {
		return llm.ConnectionError(ctx, provider, begun, err)
	}
	if inStream {
		status = api.Code
	}
	if strings.Contains(api.Message, "API key not valid") {
		status = http.StatusUnauthorized // the API says 400
	}
	failed := llm.StatusError(provider, status, header, api.Status, api.Message, err)
	if failed.RetryAfter == 0 {
		failed.RetryAfter = retryDelay(api.Details)
	}
	return failed
}

// retryDelay reads how long to wait from the details of an error.
func retryDelay(details []map[string]any) time.Duration {
	for _, detail := range details {
		if text, ok := detail["retryDelay"].(string); ok {
			if delay, err := time.ParseDuration(text); err == nil {
				return delay
			}
		}
	}
	return 0
}
