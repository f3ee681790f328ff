package gemini

import (
	"encoding/json"
	"math"

	"google.golang.org/genai"

	"github.com/toryo-dev/toryo/internal/llm"
)

func (m *Model) config(request llm.Request) *genai.GenerateContentConfig {
	config := &genai.GenerateContentConfig{MaxOutputTokens: limit(m.endpoint.Limit(request))}
	if m.endpoint.Temperature != nil {
		temperature := float32(*m.endpoint.Temperature)
		config.Temperature = &temperature
	}
	if request.System != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: request.System}}}
	}
	var functions []*genai.FunctionDeclaration
	for _, tool := range request.Tools {
		functions = append(functions, &genai.FunctionDeclaration{
			Name: tool.Name, Description: tool.Description, ParametersJsonSchema: json.RawMessage(tool.Schema),
		})
	}
	if len(functions) > 0 {
		config.Tools = []*genai.Tool{{FunctionDeclarations: functions}}
	}
	return config
}

// limit is a length limit in the SDK's type.
func limit(tokens int64) int32 {
	if tokens > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(tokens) //nolint:gosec // it was just compared
}

func contentsOf(request llm.Request) []*genai.Content {
	var contents []*genai.Content
	for _, message := range request.Messages {
		content := &genai.Content{Role: genai.RoleUser}
		if message.Role == llm.Assistant {
			content.Role = genai.RoleModel
		}
		for _, part := range message.Parts {
			if p := partOf(part); p != nil {
				content.Parts = append(content.Parts, p)
			}
		}
		if len(content.Parts) > 0 {
			contents = append(contents, content)
		}
	}
	return contents
}

func partOf(part llm.Part) *genai.Part {
	switch {
	case part.Call != nil:
		return &genai.Part{
			FunctionCall:     &genai.FunctionCall{ID: part.Call.ID, Name: part.Call.Name, Args: argumentsOf(part.Call.Arguments)},
			ThoughtSignature: part.Call.Signature,
		}
	case part.Result != nil:
		key := "output"
		if part.Result.Error {
			key = "error"
		}
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: part.Result.CallID, Name: part.Result.Name, Response: map[string]any{key: part.Result.Text},
		}}
	case part.Thinking != nil:
		if part.Thinking.Provider != provider || len(part.Thinking.Data) == 0 {
			return nil
		}
		return &genai.Part{ThoughtSignature: part.Thinking.Data}
	case part.Text != "":
		return &genai.Part{Text: part.Text}
	}
	return nil
}

// argumentsOf is the arguments as an object, which is all that the API accepts.
func argumentsOf(text string) map[string]any {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return object
	}
	return map[string]any{"invalid_arguments": text}
}
