package gemini

import "encoding/json"

// The part of the Gemini API that is spoken here. The vendor's SDK also speaks to
// its cloud, and brings gRPC and the cloud's ways to sign in along.

// generateRequest is the body of streamGenerateContent.
type generateRequest struct {
	Model             string            `json:"model,omitempty"` // inside a request to count only
	Contents          []content         `json:"contents"`
	SystemInstruction *content          `json:"systemInstruction,omitempty"`
	Tools             []functions       `json:"tools,omitempty"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitempty"`
}

// countRequest is the body of countTokens. System prompt and tools are counted only
// inside a whole request.
type countRequest struct {
	Request generateRequest `json:"generateContentRequest"`
}

type countResponse struct {
	TotalTokens int64 `json:"totalTokens"`
}

type generationConfig struct {
	MaxOutputTokens int64           `json:"maxOutputTokens,omitempty"`
	Temperature     *float64        `json:"temperature,omitempty"`
	ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitempty"`
}

// thinkingConfig is how the model is asked to think: by a level, or by tokens before
// Gemini 3.
type thinkingConfig struct {
	Level  string `json:"thinkingLevel,omitempty"`
	Budget *int64 `json:"thinkingBudget,omitempty"`
}

type functions struct {
	Declarations []declaration `json:"functionDeclarations"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             string            `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature []byte            `json:"thoughtSignature,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	InlineData       *inlineData       `json:"inlineData,omitempty"`
}

// inlineData is an image.
type inlineData struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

// chunk is a piece of a streamed answer, or an error in its place.
type chunk struct {
	Candidates     []candidate `json:"candidates"`
	ModelVersion   string      `json:"modelVersion"`
	PromptFeedback *struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	UsageMetadata *struct {
		PromptTokenCount        int64 `json:"promptTokenCount"`
		ToolUsePromptTokenCount int64 `json:"toolUsePromptTokenCount"`
		CachedContentTokenCount int64 `json:"cachedContentTokenCount"`
		CandidatesTokenCount    int64 `json:"candidatesTokenCount"`
		ThoughtsTokenCount      int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Error *apiError `json:"error"`
}

type candidate struct {
	Content       content `json:"content"`
	FinishReason  string  `json:"finishReason"`
	FinishMessage string  `json:"finishMessage"`
}

// The reasons to finish that mean more than that the answer was blocked.
const (
	finishStop              = "STOP"
	finishMaxTokens         = "MAX_TOKENS"
	finishMalformedFunction = "MALFORMED_FUNCTION_CALL"
)

// apiError is how the API says what went wrong.
type apiError struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`
}

func (e *apiError) Error() string { return e.Status + ": " + e.Message }

// readError reads the error out of an answer, or nil if there is none in it. The API
// puts it into an array when a stream was asked for.
func readError(body []byte) *apiError {
	var one struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(body, &one) == nil {
		return one.Error
	}
	var several []struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(body, &several) == nil && len(several) > 0 {
		return several[0].Error
	}
	return nil
}
