package broker

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// languageAge is how old the text may be by which the language is told, and
	// languageWait how long we wait for it: the title will do.
	languageAge  = time.Hour
	languageWait = 3 * time.Second
)

// StatusText is what the server says on a forge about the state of a task: one label,
// and a comment where people are to know why.
type StatusText struct {
	Labels    outbox.Labels
	Language  string // auto, ja or en
	Snapshots *items.Snapshots
	// GitURL is where people fetch the work of a task; "" if they cannot.
	GitURL func(id task.ID) string
}

// language is the language of a task's item, as far as it is known.
func (w *StatusText) language(ctx context.Context, t task.Task) task.Language {
	ctx, cancel := context.WithTimeout(ctx, languageWait)
	defer cancel()
	title, body := t.Title, ""
	if snapshot, _ := w.Snapshots.Get(ctx, t.Key, languageAge); !snapshot.ReadAt.IsZero() { // else the title will do
		title, body = snapshot.Item.Title, snapshot.Item.Body
	}
	return task.Language(w.Language).Of(title, body)
}

// about fills in what there is to say about the work that was kept.
func (w *StatusText) about(t task.Task, kept string) notice.Notice {
	n := notice.Notice{Review: t.Type == task.Review, Kept: kept, Ref: task.WIPRef, Branch: "toryo-" + string(t.ID)[max(0, len(t.ID)-8):]}
	if w.GitURL != nil && kept != "" {
		n.Fetch = w.GitURL(t.ID)
	}
	return n
}

// effects returns the forge writes that go with a move: the label of the state
// that it leads to, and a comment unless that is empty.
func (w *StatusText) effects(comment string) store.Effects {
	return func(before, after task.Task) []store.Action {
		actions := w.Labels.Effects(before, after)
		if comment != "" {
			actions = append(actions, outbox.CommentAction(after, outbox.AboutState+string(after.State), comment))
		}
		return actions
	}
}
