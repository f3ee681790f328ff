package phase

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// redactingForge masks secrets in all that is written to the forge.
type redactingForge struct {
	Forge
	redactor llm.Redactor
}

func (c redactingForge) Progress(ctx context.Context, text string) error {
	return c.Forge.Progress(ctx, c.redactor.String(text))
}

func (c redactingForge) AddComment(ctx context.Context, name, text string) error {
	return c.Forge.AddComment(ctx, name, c.redactor.String(text))
}

func (c redactingForge) Reply(ctx context.Context, name string, reply ThreadReply) error {
	reply.Text = c.redactor.String(reply.Text)
	return c.Forge.Reply(ctx, name, reply)
}

func (c redactingForge) OpenPull(ctx context.Context, open OpenPull) (Pulled, error) {
	open.Title, open.Body = c.redactor.String(open.Title), c.redactor.String(open.Body)
	return c.Forge.OpenPull(ctx, open)
}

// clean takes secrets out of a text that leaves the run.
func (r *run) clean(text string) string {
	if r.Redactor == nil {
		return text
	}
	return r.Redactor.String(text)
}

// cleanEntry takes secrets out of an entry of the journal. What the model
// answered and what its tools gave has none any more.
func (r *run) cleanEntry(kind task.EventKind, entry Entry) (Entry, error) {
	answered := entry.Message != nil && entry.Message.Kind == conversation.MessageEntry &&
		(entry.Message.Message.Role == llm.Assistant || len(entry.Message.Message.Results()) > 0)
	if r.Redactor == nil || answered || kind == task.ToolCalled || kind == task.ModelUsed || kind == task.Saved {
		return entry, nil
	}
	data, err := json.Marshal(entry)
	if err != nil {
		return entry, fmt.Errorf("write an entry: %w", err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return entry, fmt.Errorf("read an entry: %w", err)
	}
	if data, err = json.Marshal(r.cleanValue(value)); err != nil {
		return entry, fmt.Errorf("write an entry: %w", err)
	}
	var cleaned Entry
	if err := json.Unmarshal(data, &cleaned); err != nil {
		return entry, fmt.Errorf("read an entry: %w", err)
	}
	return cleaned, nil
}

func (r *run) cleanValue(value any) any {
	switch value := value.(type) {
	case string:
		return r.Redactor.String(value)
	case []any:
		for i := range value {
			value[i] = r.cleanValue(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = r.cleanValue(value[key])
		}
	}
	return value
}
