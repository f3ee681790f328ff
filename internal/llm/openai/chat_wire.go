package openai

import (
	"encoding/json"

	"github.com/toryo-dev/toryo/internal/llm"
)

// The part of Chat Completions that is spoken here.

type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	PromptCacheKey      string        `json:"prompt_cache_key,omitempty"`
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
	Thinking            *chatThinking `json:"thinking,omitempty"`        // of DeepSeek, Kimi and GLM
	EnableThinking      *bool         `json:"enable_thinking,omitempty"` // of Qwen, as the next
	ThinkingBudget      int64         `json:"thinking_budget,omitempty"`
	Stream              bool          `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatThinking struct {
	Type string `json:"type"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          any        `json:"content,omitempty"` // a *string, or []chatPart with images
	ReasoningContent *string    `json:"reasoning_content,omitempty"`
	Reasoning        *string    `json:"reasoning,omitempty"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
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
		Delta        chatDelta  `json:"delta"`
		Message      *chatDelta `json:"message"` // of servers that do not stream
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage counts what was thought once. It is part of the completion, though some servers
// count it apart, which the total shows.
func (u chatUsage) usage() llm.Usage {
	used := llm.Usage{
		Input: u.PromptTokens, Cached: u.PromptTokensDetails.CachedTokens,
		Output: u.CompletionTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens,
	}
	if used.Reasoning > 0 && u.TotalTokens == used.Input+used.Output+used.Reasoning {
		used.Output += used.Reasoning
	}
	return used
}

// chatDelta has two fields in which several servers, though not OpenAI, show what
// the model thinks.
type chatDelta struct {
	Content          content    `json:"content"`
	Refusal          string     `json:"refusal"`
	ToolCalls        []chatCall `json:"tool_calls"`
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
}

// content is a text, or as Mistral's models that reason send it, a list of pieces.
type content struct{ Text, Thinking string }

// UnmarshalJSON reads either.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &c.Text)
	}
	var pieces []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if err := json.Unmarshal(data, &pieces); err != nil {
		return err
	}
	for _, piece := range pieces {
		c.Text += piece.Text
		for _, thought := range piece.Thinking {
			c.Thinking += thought.Text
		}
	}
	return nil
}
