package web

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

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
	// foundRoom is how many bytes of HTML what was found has, about, and foundRow how many a row of it
	// has besides its excerpt.
	foundRoom = 80 << 10
	foundRow  = 350
)

// searchView is what was found in a run, the newest first.
type searchView struct {
	words string
	found []foundEntry
	next  int64 // the position before which was not looked yet; 0 if there is nothing
	size  int   // of what was found, as HTML
	// ended are the calls, by their keys, whose end was seen and whose beginning was not: what is before
	// the end is not shown. A name may come again before that.
	ended map[string]bool
	// wrote are the positions of output that was found, by the key of a call whose beginning was not
	// seen yet.
	wrote map[string][]int64
}

// foundEntry is an entry that has what was looked for.
type foundEntry struct {
	entryView
	excerpt string
}

// searchTask looks for entries that have a text, without regard to case: those before a position, or
// all for 0.
func (p *Pages) searchTask(ctx context.Context, id task.ID, words string, before int64) (*searchView, error) {
	view := &searchView{words: words, ended: make(map[string]bool), wrote: make(map[string][]int64)}
	wanted := strings.ToLower(strings.TrimSpace(words))
	if wanted == "" {
		return view, nil
	}
	if before == 0 {
		before = math.MaxInt64
	} else if err := p.lookAhead(ctx, id, view, before); err != nil {
		return nil, err
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
			if len(view.found) == mostFound || view.size > foundRoom {
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

// lookAhead notes which calls end behind a position from which a search goes on, as far as the page
// looks for that too.
func (p *Pages) lookAhead(ctx context.Context, id task.ID, view *searchView, before int64) error {
	later, err := p.Store.EventsAfter(ctx, id, before-1, aheadPage)
	for _, event := range slices.Backward(later) {
		view.follow(journal.Read(event))
	}
	return err
}

// follow notes the ends of calls, going back. It reports whether the page shows what the entry has of
// a call: of one that has ended that is the end, which has what the call has written.
func (s *searchView) follow(entry journal.Entry) (shown bool) {
	call, output := entry.CallKey(), entry.OutputKey()
	switch {
	case call != "" && entry.Result != nil:
		// Output of it that came later is not shown.
		late := s.wrote[call]
		s.found = slices.DeleteFunc(s.found, func(one foundEntry) bool { return slices.Contains(late, one.Position) })
		delete(s.wrote, call)
		s.ended[call] = true
		return true
	case call != "":
		ended := s.ended[call]
		delete(s.ended, call)
		delete(s.wrote, call)
		return !ended
	default:
		return output == "" || !s.ended[output]
	}
}

// look looks for a text in an entry.
func (s *searchView) look(id task.ID, entry journal.Entry, wanted string) (found bool) {
	if !s.follow(entry) {
		return false
	}
	text := searchable(entry)
	at := strings.Index(strings.ToLower(text), wanted)
	if at < 0 {
		return false
	}
	// Only that is kept which is shown: entries may be large.
	kept := journal.Entry{Position: entry.Position, Kind: entry.Kind, At: entry.At}
	one := foundEntry{entryView{Entry: kept, of: id}, excerptOf(text, at)}
	s.found = append(s.found, one)
	if output := entry.OutputKey(); output != "" {
		s.wrote[output] = append(s.wrote[output], entry.Position)
	}
	s.size += foundRow + len(templ.EscapeString(one.excerpt))
	return true
}

// searchable is what people can see of an entry.
func searchable(e journal.Entry) string {
	said := e.Text
	if e.IsOutput() {
		said = textfmt.StripEscapes(said)
	}
	texts := []string{e.Title, e.Body, said, e.Commit}
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
