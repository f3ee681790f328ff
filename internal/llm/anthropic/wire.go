package anthropic

import "encoding/json"

// The part of the Messages API that is spoken here. The vendor's SDK has all of its
// APIs in one package, which takes longer to compile than any other of this
// program.

// messagesRequest is the body of a call to answer, and without its second half that
// of a call to count.
type messagesRequest struct {
	Model    string    `json:"model"`
	System   []block   `json:"system,omitempty"`
	Tools    []tool    `json:"tools,omitempty"`
	Messages []message `json:"messages"`

	MaxTokens    int64         `json:"max_tokens,omitempty"`
	Temperature  *float64      `json:"temperature,omitempty"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
	Stream       bool          `json:"stream,omitempty"`
}

// thinking is how the model is asked to think. Older models take a budget, newer ones
// only the type.
type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type countResponse struct {
	InputTokens int64 `json:"input_tokens"`
}

// cacheControl says that what stands before it may be kept in the vendor's cache.
type cacheControl struct {
	Type string `json:"type"`
}

func ephemeral() *cacheControl { return &cacheControl{Type: "ephemeral"} }

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message, of the type that Type names.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`

	ID    string `json:"id,omitempty"` // of a tool_use
	Name  string `json:"name,omitempty"`
	Input any    `json:"input,omitempty"`

	ToolUseID string `json:"tool_use_id,omitempty"` // of a tool_result
	IsError   bool   `json:"is_error,omitempty"`
	Content   string `json:"content,omitempty"`

	Thinking  *string `json:"thinking,omitempty"` // of a thinking
	Signature string  `json:"signature,omitempty"`
	Data      string  `json:"data,omitempty"` // of a redacted_thinking

	Source *imageSource `json:"source,omitempty"` // of an image

	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// streamEvent is an event of a streamed answer, of the type that Type names.
type streamEvent struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
		StopDetails struct {
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage usage `json:"usage"`
	errorBody
}

type usage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	OutputTokensDetails      struct {
		ThinkingTokens int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// errorBody is how the API says what went wrong, in an answer or in a stream.
type errorBody struct {
	Failed struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// streamError is an error in a stream that had begun well.
type streamError struct{ errorBody }

func (e *streamError) Error() string { return e.Failed.Type + ": " + e.Failed.Message }
