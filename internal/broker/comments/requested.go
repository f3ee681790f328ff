package comments

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longestRequest is how many bytes of an item's text are kept.
const longestRequest = 256 << 10

// noteRequest keeps what the item says when its task is handed out. People who may not
// steer can change it later, and it must not ask for more then.
func (k *Log) noteRequest(ctx context.Context, t task.Task, item forge.Item) error {
	plain := func(text string) string { // as the journal keeps it
		return strings.ToValidUTF8(strings.ReplaceAll(textfmt.Cut(text, longestRequest), "\x00", ""), "\uFFFD")
	}
	now := task.Requesting{Title: plain(item.Title), Body: plain(item.Body)}
	last, found, err := Requested(ctx, k.options.Store, t.ID)
	if err != nil || found && last == now {
		return err
	}
	data, err := json.Marshal(now)
	if err != nil {
		return task.Wrap(task.Internal, err, "what the item says cannot be written down")
	}
	_, err = k.options.Store.Append(ctx, []task.Event{{
		Task: t.ID, Generation: t.Generation, Source: task.FromServer, Kind: task.Requested, At: k.options.Now(), Data: data,
	}})
	return err
}

// Requested is what the item said when the task was last handed out. Runs cannot write
// such entries.
func Requested(ctx context.Context, from assignment.Journals, id task.ID) (said task.Requesting, found bool, err error) {
	event, found, err := store.Optional(from.LastEvent(ctx, id, task.Requested))
	if err != nil || !found {
		return said, false, err
	}
	if err := json.Unmarshal(event.Data, &said); err != nil {
		return said, false, task.Wrap(task.Internal, err, "what the item said cannot be read")
	}
	return said, true, nil
}
