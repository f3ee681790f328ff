package web

import (
	"context"
	"math"
	"slices"
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

// searchView is what was found in a run, the newest first.
type searchView struct {
	words string
	found []foundEntry
	next  int64 // the position before which was not looked yet; 0 if there is nothing
}

// foundEntry is an entry that has what was looked for.
type foundEntry struct {
	entryView
	excerpt string
}

// searchTask looks for entries that have a text, without regard to case: those before a position, or
// all for 0.
func (p *Pages) searchTask(ctx context.Context, id task.ID, words string, before int64) (*searchView, error) {
	view := &searchView{words: words}
	wanted := strings.ToLower(strings.TrimSpace(words))
	if wanted == "" {
		return view, nil
	}
	if before == 0 {
		before = math.MaxInt64
	}
	for until := time.Now().Add(longestSearch); ; {
		events, err := p.Store.EventsBefore(ctx, id, before, searchBatch)
		if err != nil || len(events) == 0 {
			return view, err
		}
		for _, event := range slices.Backward(events) {
			before = event.Position
			if !view.look(id, journal.Read(event), wanted) {
				continue
			}
			if len(view.found) == mostFound {
				view.next = before
				return view, nil
			}
		}
		if time.Now().After(until) {
			view.next = before
			return view, nil
		}
	}
}

// look looks for a text in an entry. What a call has written is in its end, which is what the page
// shows of it.
func (s *searchView) look(id task.ID, entry journal.Entry, wanted string) (found bool) {
	if entry.OutputKey() != "" || entry.CallKey() != "" && entry.Result == nil {
		return false
	}
	text := searchable(entry)
	at := strings.Index(strings.ToLower(text), wanted)
	if at < 0 {
		return false
	}
	s.found = append(s.found, foundEntry{entryView{Entry: entry, of: id}, excerptOf(text, at)})
	return true
}

// searchable is what people can see of an entry.
func searchable(e journal.Entry) string {
	texts := []string{e.Title, e.Body, e.Text, e.Commit}
	texts = append(texts, e.Texts()...)
	texts = append(texts, e.Thinking()...)
	if e.Call != nil {
		texts = append(texts, e.Call.Name)
		rows := argumentRows(e.Call.Arguments)
		for _, row := range rows {
			texts = append(texts, row.value)
		}
		if rows == nil {
			texts = append(texts, e.Call.Arguments)
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
