package web

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostFound is how many entries a search shows, and longestSearch how long it may take: a run
	// can have written a lot.
	mostFound     = 100
	longestSearch = 3 * time.Second
	searchBatch   = 500
	// aroundFound is how many bytes are shown before what was found.
	aroundFound  = 60
	longestFound = 200
)

// searchView is what was found in a run.
type searchView struct {
	words string
	found []foundEntry
	cut   bool // there may be more
}

// foundEntry is an entry that has what was looked for.
type foundEntry struct {
	entryView
	excerpt string
}

// searchTask looks for entries that have a text, without regard to case.
func (p *Pages) searchTask(ctx context.Context, id task.ID, words string) (*searchView, error) {
	view := &searchView{words: words}
	wanted := strings.ToLower(strings.TrimSpace(words))
	if wanted == "" {
		return view, nil
	}
	until := time.Now().Add(longestSearch)
	for position := int64(0); ; {
		events, err := p.Store.EventsAfter(ctx, id, position, searchBatch)
		if err != nil || len(events) == 0 {
			return view, err
		}
		for _, event := range events {
			position = event.Position
			entry := journal.Read(event)
			text := searchable(entry)
			at := strings.Index(strings.ToLower(text), wanted)
			if at < 0 || entry.Kind == task.ToolCalled && entry.Result == nil {
				continue
			}
			view.found = append(view.found, foundEntry{entryView{Entry: entry, of: id}, excerptOf(text, at)})
			if len(view.found) == mostFound {
				view.cut = true
				return view, nil
			}
		}
		if time.Now().After(until) {
			view.cut = true
			return view, nil
		}
	}
}

// searchable is what people can see of an entry.
func searchable(e journal.Entry) string {
	texts := []string{e.Title, e.Body, e.Text, e.Commit}
	texts = append(texts, e.Texts()...)
	texts = append(texts, e.Thinking()...)
	if e.Call != nil {
		texts = append(texts, e.Call.Name)
		for _, row := range argumentRows(e.Call.Arguments) {
			texts = append(texts, row.value)
		}
	}
	if e.Result != nil {
		texts = append(texts, textfmt.StripEscapes(e.Result.Printed()))
	}
	if e.Signal != nil {
		for _, comment := range e.Signal.Comments {
			texts = append(texts, comment.Author, comment.Body)
		}
	}
	if e.Plan != nil {
		texts = append(texts, e.Plan.Goal.Goal)
		for _, action := range e.Plan.Actions.Actions {
			texts = append(texts, action.What)
		}
	}
	return strings.Join(texts, "\n")
}

// excerptOf is what is around a place of a text. Lower case can have another length, so that the place
// is where it is about.
func excerptOf(text string, at int) string {
	begin := max(0, min(at, len(text))-aroundFound)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	cut := text[begin:]
	if begin > 0 {
		cut = "…" + cut
	}
	return textfmt.Shorten(textfmt.OneLine(textfmt.Plain(cut[:min(len(cut), 4*longestFound)])), longestFound)
}
