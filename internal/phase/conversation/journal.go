package conversation

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// EntryKind says what a journal entry of a conversation is.
type EntryKind string

// The kinds of entry.
const (
	BeginEntry      EntryKind = "begin" // with the blocks that were pinned then
	MessageEntry    EntryKind = "message"
	PinEntry        EntryKind = "pin"
	ReplaceEntry    EntryKind = "replace" // of pinned blocks by another
	CompactionEntry EntryKind = "compaction"
)

// Entry is one entry of the journal. Exactly the fields of its kind are set.
type Entry struct {
	Kind       EntryKind    `json:"kind"`
	Begin      []Block      `json:"begin,omitempty"`
	Message    *llm.Message `json:"message,omitempty"`
	Block      *Block       `json:"block,omitempty"`
	Replaced   []string     `json:"replaced,omitempty"` // with the block: the names of those that it is in place of
	Compaction *Compaction  `json:"compaction,omitempty"`
}

// Journal keeps the entries of a conversation. An entry is durable when Append returns; a message of the
// model with calls may be with the next entry only, which comes before the first call begins.
type Journal interface {
	Append(ctx context.Context, entry Entry) error
}

// Restore rebuilds a conversation from its journal, so that the next request has
// the bytes that it would have had. It writes nothing to the journal.
func Restore(options Options, entries []Entry) (*Conversation, error) {
	options.Pinned = nil
	c := prepare(options)
	for i, entry := range entries {
		if err := c.replay(entry); err != nil {
			return nil, task.Wrap(task.Invalid, err, "the journal of the conversation cannot be read").
				WithHint("see its entry %d", i+1)
		}
	}
	return c, nil
}

func (c *Conversation) replay(entry Entry) error {
	switch {
	case entry.Kind == BeginEntry:
		c.state.Pinned, c.state.Head = entry.Begin, slices.Clone(entry.Begin)
	case entry.Compaction != nil:
		c.state = entry.Compaction.State
	case entry.Kind == ReplaceEntry && entry.Block != nil:
		c.replace(entry.Replaced, *entry.Block)
	case entry.Block != nil:
		c.pin(c.find(entry.Block.Name), *entry.Block)
	case entry.Message == nil:
		return task.Errorf(task.Invalid, "an entry of the kind %q is empty", entry.Kind)
	case entry.Message.Role == llm.Assistant:
		c.state.Turns = append(c.state.Turns, *entry.Message)
	case len(entry.Message.Results()) > 0:
		if err := matches(c.open(), entry.Message.Results()); err != nil {
			return err
		}
		c.addResults(*entry.Message)
	default:
		c.addUserParts(entry.Message.Parts...)
	}
	return nil
}
