package conversation

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Verify checks what a compaction promises: the system prompt and the tools are
// the same, every pinned block is there word for word at the start, no call is
// without its result and no result without its call, and the conversation is
// smaller than it was.
func Verify(before, after llm.Request, pinned []Block) error {
	if after.System != before.System || len(after.Tools) != len(before.Tools) {
		return task.Errorf(task.Internal, "the system prompt or the tools have changed")
	}
	if len(after.Messages) == 0 {
		return task.Errorf(task.Internal, "nothing is left of the conversation")
	}
	head := after.Messages[0].Text()
	for _, block := range pinned {
		if !strings.Contains(head, renderBlock(block)) {
			return task.Errorf(task.Internal, "the pinned block %q is not there word for word", block.Name)
		}
	}
	if err := paired(after.Messages); err != nil {
		return err
	}
	if after.Size() >= before.Size() {
		return task.Errorf(task.Internal, "the conversation has grown from %d to %d bytes", before.Size(), after.Size())
	}
	return nil
}

// paired checks that speakers take turns and that calls and results go together.
func paired(messages []llm.Message) error {
	var open []llm.Call
	for i, message := range messages {
		want := llm.User
		if i%2 == 1 {
			want = llm.Assistant
		}
		if message.Role != want {
			return task.Errorf(task.Internal, "message %d is from the wrong speaker", i)
		}
		if err := matches(open, message.Results()); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		open = message.Calls()
	}
	return nil
}

// matches checks that there is one result for each call and none besides.
func matches(open []llm.Call, results []llm.Result) error {
	wanted := make(map[string]bool, len(open))
	for _, call := range open {
		wanted[call.ID] = true
	}
	for _, result := range results {
		if !wanted[result.CallID] {
			return task.Errorf(task.Conflict, "the result %q belongs to no open call", result.CallID)
		}
		delete(wanted, result.CallID)
	}
	for id := range wanted {
		return task.Errorf(task.Conflict, "the call %q has no result", id)
	}
	return nil
}

func uniqueIDs(message llm.Message) error {
	seen := map[string]bool{}
	for _, call := range message.Calls() {
		if call.ID == "" || seen[call.ID] {
			return task.Errorf(task.Invalid, "the call id %q is empty or used twice", call.ID)
		}
		seen[call.ID] = true
	}
	return nil
}
