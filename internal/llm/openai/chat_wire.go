package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/toryo-dev/toryo/internal/llm"
)

// The part of Chat Completions that is spoken here. The SDK has it only in its
// root package, which brings every other API of the vendor along: ten megabytes.

type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	PromptCacheKey      string        `json:"prompt_cache_key,omitempty"`
	Stream              bool          `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	Index    int64        `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Parameters  map[string]any `json:"parameters"`
	} `json:"function"`
}

type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta        chatDelta `json:"delta"`
		FinishReason string    `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens        int64 `json:"prompt_tokens"`
		CompletionTokens    int64 `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// chatDelta has two fields in which several servers, though not OpenAI, show what
// the model thinks.
type chatDelta struct {
	Content          string     `json:"content"`
	Refusal          string     `json:"refusal"`
	ToolCalls        []chatCall `json:"tool_calls"`
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
}

// statusError is an answer that is not a success.
type statusError struct {
	status int
	body   []byte
}

func (e *statusError) Error() string { return http.StatusText(e.status) + ": " + string(e.body) }

const (
	ownAddress       = "https://api.openai.com/v1"
	longestErrorBody = 64 << 10
)

// stream posts the request and returns the stream of the answer.
func (m *chatModel) stream(ctx context.Context, request llm.Request) *ssestream.Stream[chatChunk] {
	response, err := m.post(ctx, request) //nolint:bodyclose // closing the stream closes it
	if err != nil {
		return ssestream.NewStream[chatChunk](nil, err)
	}
	return ssestream.NewStream[chatChunk](ssestream.NewDecoder(response), nil)
}

func (m *chatModel) post(ctx context.Context, request llm.Request) (*http.Response, error) {
	body, err := json.Marshal(m.params(request))
	if err != nil {
		return nil, err
	}
	address := m.endpoint.BaseURL
	if address == "" {
		address = ownAddress
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(address, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "text/event-stream")
	if m.endpoint.Key != "" {
		post.Header.Set("Authorization", "Bearer "+m.endpoint.Key)
	}
	for key, value := range m.endpoint.Headers(request) {
		post.Header.Set(key, value)
	}
	response, err := m.client.Do(post)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer func() { _ = response.Body.Close() }() // what is needed of it was read
	said, err := io.ReadAll(io.LimitReader(response.Body, longestErrorBody))
	if err != nil && len(said) == 0 {
		said = []byte(err.Error())
	}
	return nil, &statusError{status: response.StatusCode, body: said}
}
