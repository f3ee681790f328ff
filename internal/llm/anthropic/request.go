package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/toryo-dev/toryo/internal/llm"
)

// params is the request in the vendor's form. The same conversation gives the
// same bytes, and a longer one begins with them.
func (m *Model) params(request llm.Request) sdk.MessageNewParams {
	params := sdk.MessageNewParams{
		Model:        m.endpoint.Model,
		MaxTokens:    m.endpoint.Limit(request),
		CacheControl: sdk.NewCacheControlEphemeralParam(),
	}
	if m.endpoint.Temperature != nil {
		params.Temperature = param.NewOpt(*m.endpoint.Temperature)
	}
	if request.System != "" {
		params.System = []sdk.TextBlockParam{{Text: request.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	for _, tool := range request.Tools {
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name:        tool.Name,
			Description: param.NewOpt(tool.Description),
			InputSchema: param.Override[sdk.ToolInputSchemaParam](json.RawMessage(tool.Schema)),
		}})
	}
	for i, message := range request.Messages {
		blocks := blocksOf(message)
		if len(blocks) == 0 {
			continue
		}
		if i+1 == request.Pinned {
			markCached(blocks[lastPinned(len(blocks), request.PinnedParts)])
		}
		if message.Role == llm.Assistant {
			params.Messages = append(params.Messages, sdk.NewAssistantMessage(blocks...))
		} else {
			params.Messages = append(params.Messages, sdk.NewUserMessage(blocks...))
		}
	}
	return params
}

// lastPinned is the last of the blocks that stay the same.
func lastPinned(blocks, pinned int) int {
	if pinned > 0 && pinned < blocks {
		return pinned - 1
	}
	return blocks - 1
}

func markCached(block sdk.ContentBlockParamUnion) {
	if control := block.GetCacheControl(); control != nil {
		*control = sdk.NewCacheControlEphemeralParam()
	}
}

// thinkingData is what the vendor wants back with a thinking block.
type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// blocksOf returns the blocks of a message, results before text as the API wants
// it. The API takes no empty text.
func blocksOf(message llm.Message) []sdk.ContentBlockParamUnion {
	var results, blocks []sdk.ContentBlockParamUnion
	for _, part := range message.Parts {
		switch {
		case part.Result != nil:
			results = append(results, resultBlock(*part.Result))
		case part.Call != nil:
			blocks = append(blocks, sdk.NewToolUseBlock(part.Call.ID, input(part.Call.Arguments), part.Call.Name))
		case part.Thinking != nil:
			if block, ok := thinkingBlock(*part.Thinking); ok {
				blocks = append(blocks, block)
			}
		case part.Text != "":
			blocks = append(blocks, sdk.NewTextBlock(part.Text))
		}
	}
	return append(results, blocks...)
}

func resultBlock(result llm.Result) sdk.ContentBlockParamUnion {
	if result.Text == "" {
		return sdk.ContentBlockParamUnion{OfToolResult: &sdk.ToolResultBlockParam{
			ToolUseID: result.CallID, IsError: param.NewOpt(result.Error),
		}}
	}
	return sdk.NewToolResultBlock(result.CallID, result.Text, result.Error)
}

func thinkingBlock(thinking llm.Thinking) (sdk.ContentBlockParamUnion, bool) {
	var data thinkingData
	if thinking.Provider != provider || json.Unmarshal(thinking.Data, &data) != nil {
		return sdk.ContentBlockParamUnion{}, false
	}
	if data.Redacted != "" {
		return sdk.NewRedactedThinkingBlock(data.Redacted), true
	}
	return sdk.NewThinkingBlock(data.Signature, thinking.Text), data.Signature != ""
}

// input is the arguments of a call as an object, which is all that the API
// accepts, also when the model wrote something else.
func input(arguments string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return json.RawMessage(arguments)
	}
	return map[string]string{"invalid_arguments": arguments}
}
