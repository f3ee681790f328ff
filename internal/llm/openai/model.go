package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

const provider = "openai"

// API says which of the two APIs is spoken.
type API string

// The APIs. Without a choice it is Responses for OpenAI itself and Chat for any
// other server, because that is what most of them speak.
const (
	Chat      API = "chat"
	Responses API = "responses"
)

// New returns the model of an endpoint. It makes no call.
func New(endpoint llm.Endpoint, api API) (llm.Model, error) {
	if api == "" {
		api = Responses
		if endpoint.BaseURL != "" {
			api = Chat
		}
	}
	c := connection{endpoint: endpoint}
	switch api {
	case Chat:
		return &chatModel{connection: c, client: endpoint.HTTPClient()}, nil
	case Responses:
		return &responsesModel{connection: c, responses: responses.NewResponseService(sdkOptions(endpoint)...)}, nil
	}
	return nil, task.Errorf(task.BadConfig, "llm.api: %q is neither chat nor responses", api)
}

func sdkOptions(endpoint llm.Endpoint) []option.RequestOption {
	options := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithMaxRetries(0),
		option.WithHTTPClient(endpoint.HTTPClient()),
	}
	if endpoint.Key != "" {
		options = append(options, option.WithAPIKey(endpoint.Key))
	}
	if endpoint.BaseURL != "" {
		options = append(options, option.WithBaseURL(endpoint.BaseURL))
	}
	return options
}

// connection is what the two APIs have in common.
type connection struct{ endpoint llm.Endpoint }

// Info implements [llm.Model].
func (c connection) Info() llm.Info { return c.endpoint.Info(provider) }

// CountTokens implements [llm.Model]. Compatible servers have no call for it, so
// that this adapter does not count.
func (c connection) CountTokens(context.Context, llm.Request) (int64, error) {
	return 0, llm.NewError(llm.CannotCount, provider, nil)
}

func (c connection) options(request llm.Request) []option.RequestOption {
	var options []option.RequestOption
	for key, value := range c.endpoint.Headers(request) {
		options = append(options, option.WithHeader(key, value))
	}
	return options
}

// cacheKey lets OpenAI find the cache of a run again. Other servers may not know
// the field.
func (c connection) cacheKey(request llm.Request) string {
	if c.endpoint.BaseURL != "" {
		return ""
	}
	return request.Run
}

func (c connection) response(answer *answer, exchange *llm.Exchange) (llm.Response, error) {
	if answer.refusal != "" || answer.filtered {
		return llm.Response{}, &llm.Error{Kind: llm.Refused, Provider: provider, Detail: answer.refusal, Usage: answer.usage}
	}
	return llm.Response{
		Message:  llm.Message{Role: llm.Assistant, Parts: answer.parts()},
		Stop:     answer.stop,
		Usage:    answer.usage,
		Cost:     c.endpoint.Prices.Cost(answer.usage),
		Model:    answer.model,
		Scripted: exchange.Scripted(),
	}, nil
}

// failure turns an error of the SDK into one of the port.
func (c connection) failure(ctx context.Context, exchange *llm.Exchange, answer *answer, err error) error {
	return llm.WithUsage(c.classify(ctx, exchange, answer.begun, err), answer.usage)
}

func (c connection) classify(ctx context.Context, exchange *llm.Exchange, begun bool, err error) error {
	status, header := exchange.Answered()
	if api, ok := errors.AsType[*responses.Error](err); ok {
		detail := api.Message
		if detail == "" {
			detail = api.RawJSON()
		}
		return llm.StatusError(provider, api.StatusCode, header, api.Type+" "+api.Code, detail, err)
	}
	if answered, ok := errors.AsType[*statusError](err); ok {
		return reported(answered.status, header, answered.body, string(answered.body), err)
	}
	if inStream, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return reported(status, header, inStream.Event.Data, inStream.Message, err)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &llm.Error{Kind: llm.BadAnswer, Provider: provider, Detail: err.Error(), Err: err}
	}
	return llm.ConnectionError(ctx, provider, begun, err)
}

// reported makes the error of what the server says, in the vendor's form or in
// any other.
func reported(status int, header http.Header, body []byte, otherwise string, err error) error {
	var event struct {
		Error struct {
			Type    string `json:"type"`
			Code    any    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &event) != nil || event.Error.Message == "" {
		event.Error.Message = otherwise
	}
	return llm.StatusError(provider, status, header, event.Error.Type+" "+fmt.Sprint(event.Error.Code), event.Error.Message, err)
}

var errEndedEarly = errors.New("the stream ended early")

// schemaOf is the JSON schema of a tool. Its keys are sorted when it is sent, so
// that it is the same each time.
func schemaOf(tool llm.Tool) map[string]any {
	var schema map[string]any
	if json.Unmarshal(tool.Schema, &schema) != nil {
		return map[string]any{"type": "object"}
	}
	return schema
}
