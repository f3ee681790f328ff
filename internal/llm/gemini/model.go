package gemini

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

const provider = "gemini"

// vendorURL is Google's own address. The SDK is told it, so that it does not take
// another one from GOOGLE_GEMINI_BASE_URL and send the key there.
const vendorURL = "https://generativelanguage.googleapis.com/"

// Model is a model of Google, or of a server that speaks its protocol.
type Model struct {
	endpoint llm.Endpoint
	client   *genai.Client
}

var _ llm.Model = (*Model)(nil)

// New returns the model of an endpoint. It makes no call.
func New(endpoint llm.Endpoint) (*Model, error) {
	key := endpoint.Key
	if key == "" && endpoint.BaseURL != "" {
		key = "none" // the SDK insists on a key, a local server does not
	}
	address := endpoint.BaseURL
	if address == "" {
		address = vendorURL
	}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:     key,
		Backend:    genai.BackendGeminiAPI,
		HTTPClient: endpoint.HTTPClient(),
		// Without RetryOptions the SDK tries once.
		HTTPOptions: genai.HTTPOptions{BaseURL: address},
	})
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the Gemini client cannot be made").
			WithMend("check the key; toryo config check --print says where it comes from")
	}
	return &Model{endpoint: endpoint, client: client}, nil
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info { return m.endpoint.Info(provider) }

func (m *Model) headers(request llm.Request) http.Header {
	headers := http.Header{}
	for key, value := range m.endpoint.Headers(request) {
		headers.Set(key, value)
	}
	return headers
}

// CountTokens implements [llm.Model].
func (m *Model) CountTokens(ctx context.Context, request llm.Request) (int64, error) {
	config := m.config(request)
	ctx, exchange := llm.WithExchange(ctx)
	// The API counts system prompt and tools only inside a whole request, which
	// the SDK has no field for.
	whole := func(body map[string]any) map[string]any {
		inner := map[string]any{
			"model": "models/" + m.endpoint.Model, "contents": body["contents"],
			"systemInstruction": config.SystemInstruction, "tools": config.Tools,
		}
		return map[string]any{"generateContentRequest": inner}
	}
	count, err := m.client.Models.CountTokens(ctx, m.endpoint.Model, contentsOf(request), &genai.CountTokensConfig{
		HTTPOptions: &genai.HTTPOptions{Headers: m.headers(request), ExtrasRequestProvider: whole},
	})
	if err != nil {
		return 0, m.failure(ctx, exchange, false, err)
	}
	return int64(count.TotalTokens), nil
}

// Chat implements [llm.Model].
func (m *Model) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	config := m.config(request)
	config.HTTPOptions = &genai.HTTPOptions{Headers: m.headers(request)}
	ctx, exchange := llm.WithExchange(ctx)
	answer := answer{model: m.endpoint.Model}
	for chunk, err := range m.client.Models.GenerateContentStream(ctx, m.endpoint.Model, contentsOf(request), config) {
		if err != nil {
			return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, answer.begun, err), answer.usage)
		}
		answer.take(chunk, sink)
	}
	switch {
	case answer.blocked != "":
		return llm.Response{}, &llm.Error{Kind: llm.Refused, Provider: provider, Detail: answer.blocked, Usage: answer.usage}
	case answer.finish == "":
		return llm.Response{}, llm.WithUsage(m.failure(ctx, exchange, true, errors.New("the stream ended early")), answer.usage)
	case answer.finish == genai.FinishReasonMalformedFunctionCall:
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

// failure turns an error of the SDK into one of the port.
func (m *Model) failure(ctx context.Context, exchange *llm.Exchange, begun bool, err error) error {
	var api genai.APIError
	if !errors.As(err, &api) {
		if strings.Contains(err.Error(), "iterateResponseStream") {
			return &llm.Error{Kind: llm.BadAnswer, Provider: provider, Detail: "not an event stream", Err: err}
		}
		return llm.ConnectionError(ctx, provider, begun, err)
	}
	status, header := exchange.Answered()
	if begun || status == http.StatusOK {
		status = api.Code
	}
	detail := api.Message
	if strings.Contains(detail, "API key not valid") {
		status = http.StatusUnauthorized // the API says 400
	}
	failed := llm.StatusError(provider, status, header, api.Status, detail, err)
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
