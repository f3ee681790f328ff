package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	provider   = "openai"
	ownAddress = "https://api.openai.com/v1"
)

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
	c := connection{endpoint: endpoint, client: endpoint.HTTPClient()}
	switch api {
	case Chat:
		return &chatModel{connection: c}, nil
	case Responses:
		return &responsesModel{connection: c}, nil
	}
	return nil, task.Errorf(task.BadConfig, "llm.api: %q is neither chat nor responses", api)
}

// connection is what the two APIs have in common. They are spoken without the
// vendor's SDK, whose packages are among the largest of a program that has them.
type connection struct {
	endpoint llm.Endpoint
	client   *http.Client
}

// Info implements [llm.Model].
func (c connection) Info() llm.Info { return c.endpoint.Info(provider) }

// CountTokens implements [llm.Model]. Compatible servers have no call for it, so
// that this adapter does not count.
func (c connection) CountTokens(context.Context, llm.Request) (int64, error) {
	return 0, llm.NewError(llm.CannotCount, provider, nil)
}

// temperature is what is sent where reasoning is asked for: models that reason take
// none, unless it is switched off.
func (c connection) temperature() *float64 {
	if c.endpoint.Reasoning.Effort == "none" {
		return c.endpoint.Temperature
	}
	return nil
}

// stream posts a request and calls take with each event of the answer.
func (c connection) stream(ctx context.Context, path string, request llm.Request, body any, take func(llm.Event) error) error {
	address := c.endpoint.BaseURL
	if address == "" {
		address = ownAddress
	}
	headers := c.endpoint.Headers(request)
	headers["Accept"] = "text/event-stream"
	if c.endpoint.Key != "" {
		headers["Authorization"] = "Bearer " + c.endpoint.Key
	}
	return llm.PostForEvents(ctx, c.client, strings.TrimSuffix(address, "/")+path, headers, body, func(event llm.Event) error {
		if strings.HasPrefix(string(event.Data), "[DONE]") {
			return nil
		}
		var failed struct {
			Error json.RawMessage `json:"error"`
		}
		if err := event.Decode(&failed); err != nil {
			return err
		}
		if len(failed.Error) > 0 && string(failed.Error) != "null" {
			return &streamError{event.Data}
		}
		return take(event)
	})
}

// streamError is an error in a stream that had begun well.
type streamError struct{ body []byte }

func (e *streamError) Error() string {
	return "the server reports an error in its answer: " + string(e.body)
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

// failure turns what went wrong into an error of the port.
func (c connection) failure(ctx context.Context, exchange *llm.Exchange, answer *answer, err error) error {
	return llm.WithUsage(c.classify(ctx, exchange, answer.begun, err), answer.usage)
}

func (c connection) classify(ctx context.Context, exchange *llm.Exchange, begun bool, err error) error {
	status, header := exchange.Answered()
	if refused, ok := errors.AsType[*llm.HTTPError](err); ok {
		return reported(status, header, refused.Body, err)
	}
	if inStream, ok := errors.AsType[*streamError](err); ok {
		return reported(status, header, inStream.body, err)
	}
	return llm.ConnectionError(ctx, provider, begun, err)
}

// reported makes the error of what the server says, in the vendor's form or in
// any other.
func reported(status int, header http.Header, body []byte, err error) error {
	var event struct {
		Error struct {
			Type    string `json:"type"`
			Code    any    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &event) != nil || event.Error.Message == "" {
		event.Error.Message = string(body)
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
