package gemini

import (
	"encoding/json"

	"github.com/toryo-dev/toryo/internal/llm"
)

func (m *Model) generateRequest(request llm.Request) generateRequest {
	whole := generateRequest{
		Contents:         contentsOf(request),
		GenerationConfig: &generationConfig{MaxOutputTokens: m.endpoint.Limit(request), Temperature: m.endpoint.Temperature},
	}
	if request.System != "" {
		whole.SystemInstruction = &content{Parts: []part{{Text: request.System}}}
	}
	var declared []declaration
	for _, tool := range request.Tools {
		declared = append(declared, declaration{Name: tool.Name, Description: tool.Description, Schema: json.RawMessage(tool.Schema)})
	}
	if len(declared) > 0 {
		whole.Tools = []functions{{declared}}
	}
	return whole
}

func contentsOf(request llm.Request) []content {
	var contents []content
	for _, message := range request.Messages {
		made := content{Role: "user"}
		if message.Role == llm.Assistant {
			made.Role = "model"
		}
		for _, given := range message.Parts {
			if p, ok := partOf(given); ok {
				made.Parts = append(made.Parts, p)
			}
		}
		if len(made.Parts) > 0 {
			contents = append(contents, made)
		}
	}
	return contents
}

func partOf(given llm.Part) (made part, ok bool) {
	switch {
	case given.Call != nil:
		return part{
			FunctionCall:     &functionCall{ID: given.Call.ID, Name: given.Call.Name, Args: argumentsOf(given.Call.Arguments)},
			ThoughtSignature: given.Call.Signature,
		}, true
	case given.Result != nil:
		key := "output"
		if given.Result.Error {
			key = "error"
		}
		return part{FunctionResponse: &functionResponse{
			ID: given.Result.CallID, Name: given.Result.Name, Response: map[string]string{key: given.Result.Text},
		}}, true
	case given.Image != nil && given.Image.Type == "image/gif": // the API takes none
		return part{Text: given.Image.NotShown()}, true
	case given.Image != nil:
		return part{InlineData: &inlineData{MimeType: given.Image.Type, Data: given.Image.Data}}, true
	case given.Thinking != nil:
		return part{ThoughtSignature: given.Thinking.Data}, given.Thinking.Provider == provider && len(given.Thinking.Data) > 0
	}
	return part{Text: given.Text}, given.Text != ""
}

// argumentsOf is the arguments as an object, which is all that the API accepts.
func argumentsOf(text string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": text})
	if err != nil {
		return json.RawMessage("{}") // a map of strings always has a form
	}
	return wrapped
}
