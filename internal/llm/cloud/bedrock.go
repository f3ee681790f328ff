package cloud

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Bedrock returns the endpoint by which the Anthropic adapter reaches a model at Amazon Bedrock.
func Bedrock(place Place, endpoint llm.Endpoint) (llm.Endpoint, error) {
	if _, supported := llm.Spoken("bedrock", endpoint.Model); !supported {
		return endpoint, task.Errorf(task.Unsupported, "bedrock: the model %s is not supported, only those of Anthropic are", endpoint.Model).
			WithHint("name a model such as eu.anthropic.claude-…, or the ARN of an inference profile")
	}
	if place.Region == "" {
		return endpoint, missing("bedrock needs llm.region")
	}
	shows, err := place.amazon(endpoint.Key)
	if err != nil {
		return endpoint, err
	}
	if endpoint.BaseURL == "" {
		endpoint.BaseURL = "https://bedrock-runtime." + place.Region + ".amazonaws.com"
	}
	endpoint.Own = true
	return through(endpoint, &transport{rewrite: toBedrock, authorize: shows, answer: fromBedrock}), nil
}

// amazon is how a request to Bedrock shows who asks.
func (p Place) amazon(key string) (authorize, error) {
	switch {
	case p.isKey() && key == "":
		return nil, missing("bedrock needs a key or llm.credentials")
	case p.isKey():
		return bearer(static(key)), nil
	case p.Credentials == "token_file":
		return p.fromFile(), nil
	}
	from, err := p.amazonKeys()
	if err != nil {
		return nil, err
	}
	return signer{keys: from, region: p.Region, service: "bedrock", now: time.Now}.authorize, nil
}

const bedrockVersion = `"bedrock-2023-05-31"`

// toBedrock moves the model from the body into the path. Tokens are not counted there: that needs a
// right of its own.
func toBedrock(request *http.Request, body []byte) ([]byte, error) {
	base, isMessage := strings.CutSuffix(request.URL.Path, "/v1/messages")
	if !isMessage {
		return nil, errNotThere
	}
	message, err := readObject(body)
	if err != nil {
		return nil, err
	}
	model := message.text("model")
	delete(message, "model")
	delete(message, "stream")
	message["anthropic_version"] = json.RawMessage(bedrockVersion)
	if err := message.cacheTheEnd(); err != nil {
		return nil, err
	}
	const method = "/invoke-with-response-stream"
	request.URL.Path = base + "/model/" + model + method
	request.URL.RawPath = (&url.URL{Path: base}).EscapedPath() + "/model/" + escape(model) + method
	request.Header.Del("Anthropic-Version")
	request.Header.Set("Accept", "application/vnd.amazon.eventstream")
	return message.encode()
}

// fromBedrock turns the answer into one of Anthropic.
func fromBedrock(response *http.Response) {
	if response.StatusCode/100 == 2 {
		if strings.HasPrefix(response.Header.Get("Content-Type"), "application/vnd.amazon.eventstream") {
			response.Body, response.ContentLength = &eventBody{from: response.Body}, -1
		}
		return
	}
	defer func() { _ = response.Body.Close() }() // what is needed of it was read
	said, err := io.ReadAll(io.LimitReader(response.Body, largestToken))
	if err != nil && len(said) == 0 {
		said = []byte(err.Error())
	}
	var failed struct{ Message string }
	if json.Unmarshal(said, &failed) != nil || failed.Message == "" {
		failed.Message = string(said)
	}
	kind, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
	body, err := json.Marshal(anthropicError(kind, failed.Message))
	if err != nil {
		body = said
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// anthropicKinds are what Anthropic calls the errors of Bedrock that mean something in the middle of
// a stream, where there is no status.
var anthropicKinds = map[string]string{
	"throttlingexception":         "rate_limit_error",
	"serviceunavailableexception": "overloaded_error",
	"modelnotreadyexception":      "overloaded_error",
}

func anthropicError(kind, message string) map[string]any {
	if known := anthropicKinds[strings.ToLower(kind)]; known != "" {
		kind = known
	}
	return map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}}
}
