package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/toryo-dev/toryo/internal/llm"
)

// input is the input of the request in the vendor's form, and its digest. The same
// conversation gives the same bytes, and a longer one begins with them.
func (m *Model) input(request llm.Request) (messagesRequest, string) {
	body := messagesRequest{Model: m.endpoint.Model, Messages: []message{}}
	if request.System != "" {
		body.System = []block{{Type: "text", Text: request.System, CacheControl: ephemeral()}}
	}
	for _, t := range request.Tools {
		body.Tools = append(body.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.Schema)})
	}
	before := sha256.New()
	addTo(before, request.System)
	addTo(before, body.Tools)
	for i, given := range request.Messages {
		blocks := m.blocksOf(given, sumOf(before))
		if len(blocks) == 0 {
			continue
		}
		role := "user"
		if given.Role == llm.Assistant {
			role = "assistant"
		}
		addTo(before, message{Role: role, Content: blocks})
		if i+1 == request.Pinned {
			markCached(&blocks[lastPinned(len(blocks), request.PinnedParts)])
		}
		body.Messages = append(body.Messages, message{Role: role, Content: blocks})
	}
	return body, sumOf(before)
}

// addTo adds a part of the conversation to its digest, without the marks of the cache,
// which move.
func addTo(digest hash.Hash, part any) {
	if data, err := json.Marshal(part); err == nil {
		digest.Write(append(data, '\n'))
	}
}

func sumOf(digest hash.Hash) string { return hex.EncodeToString(digest.Sum(nil)) }

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// reason asks for reasoning. The API takes no temperature with it, and a budget only if
// the answer that the model is in the middle of began with thinking.
func (m *Model) reason(body *messagesRequest) {
	asked := m.endpoint.Reasoning
	body.Temperature = m.endpoint.Temperature
	if asked.Effort != "" {
		body.OutputConfig = &outputConfig{Effort: asked.Effort}
	}
	switch budget := asked.BudgetFor(body.MaxTokens); {
	case asked.Type != "":
		body.Thinking = &thinking{Type: asked.Type}
	case budget > 0 && beganThinking(body.Messages):
		body.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
	}
	if body.Thinking != nil && body.Thinking.Type != "disabled" {
		body.Temperature = nil
	}
}

// beganThinking reports whether the model, if it waits for results, thought before it
// called. It did not if thinking was off then, or if another model made the calls.
func beganThinking(messages []message) bool {
	last := len(messages) - 1
	if last < 1 || len(messages[last].Content) == 0 || messages[last].Content[0].Type != "tool_result" {
		return true
	}
	first := messages[last-1].Content[0].Type
	return first == "thinking" || first == "redacted_thinking"
}

// lastPinned is the last of the blocks that stay the same.
func lastPinned(blocks, pinned int) int {
	if pinned > 0 && pinned < blocks {
		return pinned - 1
	}
	return blocks - 1
}

// markCached marks a block, unless it is of the kinds that the API takes no mark on.
func markCached(b *block) {
	if b.Type != "thinking" && b.Type != "redacted_thinking" {
		b.CacheControl = ephemeral()
	}
}

// thinkingData is what the vendor wants back with a thinking block, and by what one can
// tell that it would take it: only as it was, and from its newer models only behind the
// conversation that it was made in.
type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
	Text      string `json:"text,omitempty"`   // digest of the text
	Prefix    string `json:"prefix,omitempty"` // digest of what was before it
}

// blocksOf returns the blocks of a message, results before text as the API wants
// it. The API takes no empty text.
func (m *Model) blocksOf(message llm.Message, prefix string) []block {
	var results, blocks []block
	for _, part := range message.Parts {
		switch {
		case part.Result != nil:
			results = append(results, resultBlock(*part.Result))
		case part.Call != nil:
			blocks = append(blocks, block{Type: "tool_use", ID: part.Call.ID, Name: part.Call.Name, Input: inputOf(part.Call.Arguments)})
		case part.Thinking != nil:
			if thought, ok := m.thinkingBlock(*part.Thinking, prefix); ok {
				blocks = append(blocks, thought)
			}
		case part.Image != nil:
			blocks = append(blocks, block{Type: "image", Source: &imageSource{Type: "base64", MediaType: part.Image.Type, Data: part.Image.Base64()}})
		case part.Text != "":
			blocks = append(blocks, block{Type: "text", Text: part.Text})
		}
	}
	return append(results, blocks...)
}

func resultBlock(result llm.Result) block {
	return block{Type: "tool_result", ToolUseID: result.CallID, Content: result.Text, IsError: result.Error}
}

// thinkingBlock is the block of what was thought, if it can go back. With a budget, which
// is the older models' way, it may have another conversation before it, and has to go
// back; with the newer way it may be left out.
func (m *Model) thinkingBlock(thinking llm.Thinking, prefix string) (block, bool) {
	var data thinkingData
	if thinking.Maker != m.endpoint.Maker(provider) || json.Unmarshal(thinking.Data, &data) != nil || data.Text != digestOf(thinking.Text) {
		return block{}, false
	}
	if m.endpoint.Reasoning.Budget == 0 && data.Prefix != prefix {
		return block{}, false
	}
	if data.Redacted != "" {
		return block{Type: "redacted_thinking", Data: data.Redacted}, true
	}
	return block{Type: "thinking", Thinking: &thinking.Text, Signature: data.Signature}, data.Signature != ""
}

// inputOf is the arguments of a call as an object, which is all that the API
// accepts, also when the model wrote something else.
func inputOf(arguments string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return json.RawMessage(arguments)
	}
	return map[string]string{"invalid_arguments": arguments}
}
