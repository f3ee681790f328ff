package assignment

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// summaryAge and summaryTokens bound what a run is told of an earlier one.
	summaryAge    = 90 * 24 * time.Hour
	summaryTokens = 8000
)

// journalEntry is as much of an agent's journal entry as matters here.
type journalEntry struct {
	Phase  task.Phase `json:"phase"`
	Status string     `json:"status"`
	Text   string     `json:"text"`
	Commit string     `json:"commit"`
	Signal struct {
		Position int64 `json:"position"`
	} `json:"signal"`
}

// past reads from the journal where an earlier run was, and what one before said.
func (p *Preparer) past(ctx context.Context, made *Assignment) error {
	t := made.Task
	last, found, err := store.Optional(p.Events.LastFrom(ctx, t.ID, task.FromAgent))
	if err != nil {
		return err
	}
	if found && last.Generation >= t.FirstGeneration {
		resume := &Resume{Generation: last.Generation, Reason: made.Was, Events: last.Position}
		if err := p.fill(ctx, t, resume); err != nil {
			return err
		}
		made.Resume = resume
	}
	made.Earlier, err = p.earlier(ctx, t, made.Item)
	return err
}

// TakenUpTo is the position of the last comment that the task's runs have taken up.
func TakenUpTo(ctx context.Context, from Journals, t task.Task) (int64, error) {
	signals, err := from.EventsOf(ctx, t.ID, task.SignalTaken)
	if err != nil {
		return 0, err
	}
	var last int64
	for _, event := range signals {
		var entry journalEntry
		ofRun := event.Source == task.FromAgent && event.Generation >= t.FirstGeneration
		if ofRun && json.Unmarshal(event.Data, &entry) == nil { // else as in fill
			last = max(last, entry.Signal.Position)
		}
	}
	return last, nil
}

// fill reads the phase, the work in progress and the comments of the run that goes
// on.
func (p *Preparer) fill(ctx context.Context, t task.Task, resume *Resume) (err error) {
	if resume.Comments, err = TakenUpTo(ctx, p.Events, t); err != nil {
		return err
	}
	for kind, take := range map[task.EventKind]func(journalEntry){
		task.PhaseChanged: func(e journalEntry) { resume.Phase = e.Phase.Now(e.Status == task.PhaseActive) },
		task.Saved: func(e journalEntry) {
			if e.Commit != "" {
				resume.WIPRef = task.WIPRef
			}
		},
	} {
		event, found, err := store.Optional(p.Events.LastEvent(ctx, t.ID, kind))
		if err != nil {
			return err
		}
		if !found || event.Generation < t.FirstGeneration {
			continue
		}
		var entry journalEntry
		if err := json.Unmarshal(event.Data, &entry); err != nil {
			continue // an agent may write what it likes: what cannot be read is not there
		}
		take(entry)
	}
	return nil
}

// earlier is the last summary of an earlier run on the item, or, for a pull
// request, on the issue that it came from, if that may be told; see mayShow.
func (p *Preparer) earlier(ctx context.Context, t task.Task, item forge.Item) (string, error) {
	event, found, err := store.Optional(p.Events.LastEvent(ctx, t.ID, task.Summed))
	if err == nil && !found && t.Key.Kind == task.Pull && t.Type == task.Development {
		event, found, err = p.summaryOfOrigin(ctx, t, item)
	}
	if err != nil {
		return "", err
	}
	if !found || event.Task == t.ID && event.Generation >= t.FirstGeneration || p.Now().Sub(event.At) > summaryAge {
		return "", nil
	}
	var entry journalEntry
	if err := json.Unmarshal(event.Data, &entry); err != nil {
		return "", nil //nolint:nilerr // as in fill
	}
	return cutTokens(entry.Text, summaryTokens), nil
}

// summaryOfOrigin is the last summary of the task whose branch a pull request is from.
func (p *Preparer) summaryOfOrigin(ctx context.Context, t task.Task, item forge.Item) (event task.Event, found bool, err error) {
	origin, err := p.Tasks.TaskOfBranch(ctx, t.Key.Forge, t.Key.Repository, t.Branch)
	if task.CodeOf(err) == task.NotFound || err == nil && origin.ID == t.ID {
		return task.Event{}, false, nil
	}
	if err != nil {
		return task.Event{}, false, err
	}
	snapshot, err := p.Snapshots.Get(ctx, origin.Key, items.ParticipantsAge)
	if err != nil || !mayShow(item, snapshot.Item) {
		return task.Event{}, false, nil //nolint:nilerr // it is of use, and not needed
	}
	return store.Optional(p.Events.LastEvent(ctx, origin.ID, task.Summed))
}

// cutTokens cuts a text to about so many tokens: four letters of ASCII to one, and
// of other scripts one each.
func cutTokens(text string, tokens int) string {
	quarters := 4 * tokens
	for at, r := range text {
		if r < utf8.RuneSelf {
			quarters--
		} else {
			quarters -= 4
		}
		if quarters < 0 {
			return text[:at] + "\n[cut]"
		}
	}
	return text
}
