package broker

import (
	"context"
	"strings"
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
	// GitKept is how long that is possible after the end of the task; 0 means for ever.
	GitKept time.Duration
	// Now is the clock; nil means the real time.
	Now func() time.Time
}

// LanguageOf is the language of a task's item, as far as it is known: by its title and its
// body, or by the title if the forge cannot be asked.
func (w *StatusText) LanguageOf(ctx context.Context, t task.Task) task.Language {
	ctx, cancel := context.WithTimeout(ctx, languageWait)
	defer cancel()
	title, body := t.Title, ""
	if snapshot, _ := w.Snapshots.Get(ctx, t.Key, languageAge); !snapshot.ReadAt.IsZero() { // else the title will do
		title, body = snapshot.Item.Title, snapshot.Item.Body
	}
	return task.Language(w.Language).OfItem(title, body)
}

// about fills in what there is to say about the work that was kept.
func (w *StatusText) about(t task.Task, kept string) notice.Notice {
	n := notice.Notice{Review: t.Type == task.Review, Kept: kept, Ref: fetchedAs(kept), Branch: "toryo-" + string(t.ID)[max(0, len(t.ID)-8):]}
	if w.GitURL != nil && kept != "" {
		n.Fetch = w.GitURL(t.ID)
	}
	if until := w.keptUntil(kept); !until.IsZero() {
		n.Until = until.Add(-24 * time.Hour) // the last day on which it can be fetched all day long
	}
	return n
}

// fetchedAs is what people give to git to fetch the work: the commit, which stays when the task is
// assigned again. An agent may say anything in its place.
func fetchedAs(kept string) string {
	if (len(kept) == 40 || len(kept) == 64) && strings.Trim(kept, "0123456789abcdef") == "" {
		return kept
	}
	return task.WIPRef
}

// keptUntil is until when the work of a task that ends now can be fetched, by the database's clock; zero if
// nobody is told how, or if it is kept for ever.
func (w *StatusText) keptUntil(kept string) time.Time {
	if w.GitURL == nil || kept == "" || w.GitKept == 0 {
		return time.Time{}
	}
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	return now().Add(w.GitKept).UTC()
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
