package script

import (
	"errors"
	"fmt"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
)

var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// check refuses what the vendors refuse: a conversation without messages or that
// ends with the model's own words, calls without their results right after, and
// results without their calls.
func check(request llm.Request) error {
	if len(request.Messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	names := map[string]bool{}
	for _, tool := range request.Tools {
		if !toolName.MatchString(tool.Name) {
			return fmt.Errorf("tools: %q is not a valid tool name", tool.Name)
		}
		if names[tool.Name] {
			return fmt.Errorf("tools: tool names must be unique, %q is not", tool.Name)
		}
		names[tool.Name] = true
	}
	var open []llm.Call
	for i, message := range request.Messages {
		if len(message.Parts) == 0 {
			return fmt.Errorf("messages.%d: content must be non-empty", i)
		}
		if err := answered(i, message, open); err != nil {
			return err
		}
		open = message.Calls()
		if err := uniqueIDs(i, open); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages.%d: tool calls without tool results immediately after: %s", len(request.Messages)-1, open[0].ID)
	}
	if request.Messages[0].Role != llm.User {
		return errors.New("messages: the first message must be from the user")
	}
	if request.Messages[len(request.Messages)-1].Role != llm.User {
		return errors.New("messages: the last message must be from the user")
	}
	return nil
}

func answered(i int, message llm.Message, open []llm.Call) error {
	given := map[string]bool{}
	for _, result := range message.Results() {
		given[result.CallID] = true
	}
	wanted := map[string]bool{}
	for _, call := range open {
		wanted[call.ID] = true
		if !given[call.ID] {
			return fmt.Errorf("messages.%d: tool call %q has no tool result immediately after", i, call.ID)
		}
	}
	for id := range given {
		if !wanted[id] {
			return fmt.Errorf("messages.%d: tool result %q has no tool call immediately before", i, id)
		}
	}
	return nil
}

func uniqueIDs(i int, calls []llm.Call) error {
	seen := map[string]bool{}
	for _, call := range calls {
		if call.ID == "" {
			return fmt.Errorf("messages.%d: a tool call has no id", i)
		}
		if seen[call.ID] {
			return fmt.Errorf("messages.%d: tool call ids must be unique, %q is not", i, call.ID)
		}
		seen[call.ID] = true
	}
	return nil
}
