package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

func (m *Model) generateRequest(request llm.Request) generateRequest {
	whole := generateRequest{
		Contents: m.contentsOf(request),
		GenerationConfig: &generationConfig{
			MaxOutputTokens: m.endpoint.Limit(request), Temperature: m.endpoint.Temperature, ThinkingConfig: m.thinking(request),
		},
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

func (m *Model) thinking(request llm.Request) *thinkingConfig {
	asked := m.endpoint.Reasoning
	switch {
	case asked.Effort != "":
		return &thinkingConfig{Level: asked.Effort}
	case asked.Budget == llm.NoBudget:
		return &thinkingConfig{Budget: new(int64)}
	}
	if budget := asked.BudgetFor(m.endpoint.Limit(request)); budget > 0 {
		return &thinkingConfig{Budget: &budget}
	}
	return nil // no budget that the model takes has room in the answer; none at all would switch thinking off
}

func (m *Model) contentsOf(request llm.Request) []content {
	var contents []content
	for _, message := range request.Messages {
		made := content{Role: "user"}
		if message.Role == llm.Assistant {
			made.Role = "model"
		}
		for _, given := range message.Parts {
			if p, ok := m.partOf(given); ok {
				made.Parts = append(made.Parts, p)
			}
		}
		m.sign(made.Parts)
		if len(made.Parts) > 0 {
			contents = append(contents, made)
		}
	}
	return contents
}

// noSignature is what the vendor takes in place of the signature of a call that another
// model made. The text is the one that it documents, and always decodes.
var noSignature, _ = base64.URLEncoding.DecodeString("skip_thought_signature_validator")

// sign makes sure that the first of several calls has a signature, without which models
// since Gemini 3 refuse the conversation.
func (m *Model) sign(parts []part) {
	if strings.Contains(m.name, "gemini-2") {
		return
	}
	for i := range parts {
		if parts[i].FunctionCall != nil {
			if len(parts[i].ThoughtSignature) == 0 {
				parts[i].ThoughtSignature = noSignature
			}
			return
		}
	}
}

func (m *Model) partOf(given llm.Part) (made part, ok bool) {
	maker := m.endpoint.Maker(provider)
	switch {
	case given.Call != nil:
		made = part{FunctionCall: &functionCall{ID: given.Call.ID, Name: given.Call.Name, Args: argumentsOf(given.Call.Arguments)}}
		if given.Call.SignedBy == maker {
			made.ThoughtSignature = given.Call.Signature
		}
		return made, true
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
		return part{ThoughtSignature: given.Thinking.Data}, given.Thinking.Maker == maker && len(given.Thinking.Data) > 0
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
