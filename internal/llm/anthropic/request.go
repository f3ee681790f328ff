package anthropic

import (
	"encoding/json"

	"github.com/toryo-dev/toryo/internal/llm"
)

// input is the input of the request in the vendor's form. The same conversation
// gives the same bytes, and a longer one begins with them.
func (m *Model) input(request llm.Request) messagesRequest {
	body := messagesRequest{Model: m.endpoint.Model, Messages: []message{}}
	if request.System != "" {
		body.System = []block{{Type: "text", Text: request.System, CacheControl: ephemeral()}}
	}
	for _, t := range request.Tools {
		body.Tools = append(body.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.Schema)})
	}
	for i, given := range request.Messages {
		blocks := blocksOf(given)
		if len(blocks) == 0 {
			continue
		}
		if i+1 == request.Pinned {
			markCached(&blocks[lastPinned(len(blocks), request.PinnedParts)])
		}
		role := "user"
		if given.Role == llm.Assistant {
			role = "assistant"
		}
		body.Messages = append(body.Messages, message{Role: role, Content: blocks})
	}
	return body
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

// thinkingData is what the vendor wants back with a thinking block.
type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// blocksOf returns the blocks of a message, results before text as the API wants
// it. The API takes no empty text.
func blocksOf(message llm.Message) []block {
	var results, blocks []block
	for _, part := range message.Parts {
		switch {
		case part.Result != nil:
			results = append(results, resultBlock(*part.Result))
		case part.Call != nil:
			blocks = append(blocks, block{Type: "tool_use", ID: part.Call.ID, Name: part.Call.Name, Input: inputOf(part.Call.Arguments)})
		case part.Thinking != nil:
			if thought, ok := thinkingBlock(*part.Thinking); ok {
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
	made := block{Type: "tool_result", ToolUseID: result.CallID, IsError: result.Error}
	if result.Text != "" {
		made.Content = []block{{Type: "text", Text: result.Text}}
	}
	return made
}

func thinkingBlock(thinking llm.Thinking) (block, bool) {
	var data thinkingData
	if thinking.Provider != provider || json.Unmarshal(thinking.Data, &data) != nil {
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
