package cloud

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Vertex returns the endpoint by which the adapter of the model's vendor reaches it at Vertex.
func Vertex(place Place, endpoint llm.Endpoint) (llm.Endpoint, error) {
	api, supported := llm.Spoken("vertex", endpoint.Model)
	if !supported {
		return endpoint, task.Errorf(task.Unsupported, "vertex: the model %s is not supported, only those of Anthropic and Gemini are", endpoint.Model).
			WithHint("name a model such as gemini-… or claude-…")
	}
	if place.Region == "" || place.Project == "" {
		return endpoint, missing("vertex needs llm.region and llm.project")
	}
	shows, err := place.google(endpoint.Key)
	if err != nil {
		return endpoint, err
	}
	if endpoint.BaseURL == "" {
		endpoint.BaseURL = vertexAddress(place.Region)
	}
	endpoint.Own = true
	models := "/v1/projects/" + place.Project + "/locations/" + place.Region + "/publishers/"
	if api == "anthropic" {
		return through(endpoint, &transport{rewrite: toVertexAnthropic(models), authorize: shows}), nil
	}
	return through(endpoint, &transport{rewrite: toVertexGemini(models), authorize: shows}), nil
}

func vertexAddress(region string) string {
	switch region {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + region + ".rep.googleapis.com"
	}
	return "https://" + region + "-aiplatform.googleapis.com"
}

const vertexVersion = `"vertex-2023-10-16"`

// toVertexAnthropic moves the model from the body into the path.
func toVertexAnthropic(models string) func(*http.Request, []byte) ([]byte, error) {
	return func(request *http.Request, body []byte) ([]byte, error) {
		message, err := readObject(body)
		if err != nil {
			return nil, err
		}
		message["anthropic_version"] = json.RawMessage(vertexVersion)
		request.Header.Del("Anthropic-Version")
		path := request.URL.Path
		if base, counts := strings.CutSuffix(path, "/v1/messages/count_tokens"); counts {
			request.URL.Path = base + models + "anthropic/models/count-tokens:rawPredict"
			return message.encode()
		}
		if err := message.cacheTheEnd(); err != nil {
			return nil, err
		}
		request.URL.Path = strings.TrimSuffix(path, "/v1/messages") + models + "anthropic/models/" + message.text("model") + ":streamRawPredict"
		delete(message, "model")
		return message.encode()
	}
}

// toVertexGemini changes the path. A request to count is not inside another one there.
func toVertexGemini(models string) func(*http.Request, []byte) ([]byte, error) {
	return func(request *http.Request, body []byte) ([]byte, error) {
		base, call, _ := strings.Cut(request.URL.Path, "/v1beta/models/")
		request.URL.Path = base + models + "google/models/" + call
		if !strings.HasSuffix(call, ":countTokens") {
			return body, nil
		}
		outer, err := readObject(body)
		if err != nil {
			return nil, err
		}
		inner, err := readObject(outer["generateContentRequest"])
		if err != nil {
			return nil, err
		}
		delete(inner, "model")
		return inner.encode()
	}
}
