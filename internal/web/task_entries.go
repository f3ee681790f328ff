package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// journalPage is how many entries of a journal a page has at most, and olderPage how many
	// more are sent when the reader wants to see what was before.
	journalPage = 150
	olderPage   = 500
	// aheadPage is how many entries behind those of a piece are looked at for the ends of calls.
	aheadPage = 300
)

// readConversation reads the entries that the page has: the newest, those around a position, or those
// after one; and what was looked for.
func (p *Pages) readConversation(ctx context.Context, v visit, view *taskView, query url.Values) (err error) {
	if words := query.Get("q"); words != "" {
		if view.search, err = p.searchTask(ctx, view.ID, words, positionOf(query, "before")); err != nil {
			return err
		}
	}
	if after := positionOf(query, "after"); after > 0 && after < view.last {
		return p.readAfter(ctx, v, view, after)
	}
	newest, err := p.Store.EventsBefore(ctx, view.ID, view.last+1, journalPage)
	if err != nil {
		return err
	}
	at := positionOf(query, "at")
	if at > 0 && len(newest) > 0 && at < newest[0].Position {
		return p.readAt(ctx, v, view, at)
	}
	entries := journal.Shown(newest, nil, at)
	laid, err := layOut(ctx, v, view.Task, view.roomForRows(), entries, len(entries))
	switch {
	case err != nil:
		return err
	case at > 0 && laid.first > at: // it did not fit
		return p.readAt(ctx, v, view, at)
	}
	view.now = nowOf(view.Task, newest)
	view.rows, view.latest = laid.rows, view.last
	view.earliest, err = p.earliestOf(ctx, view.ID, newest, laid, journalPage)
	return err
}

// readAt reads the entries around a position.
func (p *Pages) readAt(ctx context.Context, v visit, view *taskView, at int64) error {
	const half = journalPage / 2
	before, err := p.Store.EventsBefore(ctx, view.ID, at, half)
	if err != nil {
		return err
	}
	after, err := p.Store.EventsAfter(ctx, view.ID, at-1, half)
	if err != nil {
		return err
	}
	later, err := p.ahead(ctx, view.ID, after)
	if err != nil {
		return err
	}
	entries := journal.Shown(slices.Concat(before, after), later, at)
	middle := slices.IndexFunc(entries, func(e journal.Entry) bool { return e.Position >= at })
	if middle < 0 {
		middle = len(entries)
	}
	laid, err := layOut(ctx, v, view.Task, view.roomForRows(), entries, middle)
	if err != nil {
		return err
	}
	view.rows, view.latest = laid.rows, latestOf(after, laid, at-1)
	if view.latest >= view.last {
		view.now = nowOf(view.Task, after)
	}
	view.earliest, err = p.earliestOf(ctx, view.ID, before, laid, half)
	return err
}

// readAfter reads the entries after a position.
func (p *Pages) readAfter(ctx context.Context, v visit, view *taskView, after int64) error {
	events, err := p.Store.EventsAfter(ctx, view.ID, after, journalPage)
	if err != nil {
		return err
	}
	later, err := p.ahead(ctx, view.ID, events)
	if err != nil {
		return err
	}
	laid, err := layOut(ctx, v, view.Task, view.roomForRows(), journal.Shown(events, later, 0), 0)
	if err != nil {
		return err
	}
	view.rows, view.earliest, view.latest = laid.rows, after+1, latestOf(events, laid, after)
	if view.latest >= view.last {
		view.now = nowOf(view.Task, events)
	}
	return nil
}

// ahead are some of the entries behind others.
func (p *Pages) ahead(ctx context.Context, id task.ID, of []task.Event) ([]task.Event, error) {
	if len(of) == 0 {
		return nil, nil
	}
	return p.Store.EventsAfter(ctx, id, of[len(of)-1].Position, aheadPage)
}

// positionOf is a position that an address names, 0 if it names none.
func positionOf(query url.Values, name string) int64 {
	position, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil || position < 0 {
		return 0
	}
	return position
}

// earliestOf is the position of the first entry that is sent, or 1 if there are none before it. Positions
// have gaps where old entries were removed, and fewer entries than were asked for may be all that fits.
func (p *Pages) earliestOf(ctx context.Context, id task.ID, events []task.Event, laid laidOut, limit int) (int64, error) {
	switch {
	case laid.first > 0:
		return laid.first, nil
	case len(events) == 0:
		return 1, nil
	case len(events) >= limit:
		return events[0].Position, nil
	}
	before, err := p.Store.EventsBefore(ctx, id, events[0].Position, 1)
	if err != nil || len(before) == 0 {
		return 1, err
	}
	return events[0].Position, nil
}

// latestOf is the position of the last entry that is sent.
func latestOf(events []task.Event, laid laidOut, otherwise int64) int64 {
	switch {
	case laid.last > 0:
		return laid.last
	case len(events) == 0:
		return otherwise
	default:
		return events[len(events)-1].Position
	}
}

// showJournal is a piece of the journal that comes before what is on the page.
func (p *Pages) showJournal(r *http.Request, v visit) (templ.Component, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 {
		return nil, task.Errorf(task.Invalid, "before is not a position")
	}
	id := task.ID(r.PathValue("id"))
	of, err := p.Store.Task(r.Context(), id)
	if err != nil {
		return nil, err
	}
	events, err := p.Store.EventsBefore(r.Context(), id, before, olderPage)
	if err != nil {
		return nil, err
	}
	later, err := p.Store.EventsAfter(r.Context(), id, before-1, aheadPage)
	if err != nil {
		return nil, err
	}
	entries := journal.Shown(events, later, 0)
	laid, err := layOut(r.Context(), v, of, room{pageInline, pageRows}, entries, len(entries))
	if err != nil {
		return nil, err
	}
	earliest, err := p.earliestOf(r.Context(), id, events, laid, olderPage)
	return journalEntries(laid.rows, earliest), err
}

// showEntry is one entry whole: as a page, or as a part of one.
func (p *Pages) showEntry(r *http.Request, v visit) (templ.Component, error) {
	position, err := strconv.ParseInt(r.PathValue("position"), 10, 64)
	if err != nil || position < 1 {
		return nil, task.Errorf(task.NotFound, "there is no such entry")
	}
	of, err := p.Store.Task(r.Context(), task.ID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	found, err := p.readEntry(r.Context(), of.ID, position)
	if err != nil {
		return nil, err
	}
	entry := newEntryView(of, found)
	entry.away, entry.open, entry.whole = false, true, true
	if query := r.URL.Query(); query.Has("part") {
		return entryPart(v, entry, query.Get("part")), nil
	}
	return entryPage(v, of, entry), nil
}

// readEntry reads an entry: output with all that follows, and of a call the end if it is known.
func (p *Pages) readEntry(ctx context.Context, id task.ID, position int64) (journal.Entry, error) {
	events, err := p.Store.EventsAfter(ctx, id, position-1, 1)
	if err != nil {
		return journal.Entry{}, err
	}
	if len(events) == 0 || events[0].Position != position {
		return journal.Entry{}, task.Errorf(task.NotFound, "there is no entry %d", position).WithHint("entries are removed when they are old")
	}
	entry := journal.Read(events[0])
	if begins := entry.CallKey() != "" && entry.Result == nil; !begins && !entry.IsOutput() {
		return entry, nil
	}
	later, err := p.ahead(ctx, id, events)
	if err != nil {
		return journal.Entry{}, err
	}
	if entry.IsOutput() {
		return journal.WholeOutput(append(events, later...)), nil
	}
	for _, event := range later {
		switch next := journal.Read(event); {
		case next.CallKey() != entry.CallKey():
		case next.Result != nil:
			return next, nil
		default: // another call of the same name
			entry.Interrupted = true
			return entry, nil
		}
	}
	return entry, nil
}

const (
	// pageInline is how many bytes the entries have together that are in a page with their texts, and
	// pageRows how many all its entries have. Both are of HTML: a few colours make much of it.
	pageInline = 110 << 10
	pageRows   = 160 << 10
)

// roomForRows is how much room the page has for entries. There is less where other things are on it.
func (t *taskView) roomForRows() room {
	switch {
	case t.search != nil:
		return room{pageInline / 4, pageRows / 4}
	case t.question != "" || len(t.waiting.comments) > 0:
		return room{pageInline / 2, pageRows / 2}
	default:
		return room{pageInline, pageRows}
	}
}

// laidOut is a piece of a journal as HTML.
type laidOut struct {
	rows []string
	// first is the position of the first entry and last of the last one, each 0 if there is nothing
	// that did not fit on that side.
	first, last int64
}

// layOut lays entries out for a page, beginning at the one that people look at and going both ways
// from there, as far as they fit.
func layOut(ctx context.Context, v visit, of task.Task, space room, entries []journal.Entry, middle int) (laid laidOut, err error) {
	if middle > 0 && middle < len(entries) {
		space = room{space.inline / 2, space.all / 2}
	}
	after := space
	var before []string
	for i, entry := range slices.Backward(entries[:middle]) {
		html, fits, err := space.row(ctx, v, newEntryView(of, entry))
		if err != nil {
			return laid, err
		}
		if !fits && len(before) > 0 {
			laid.first = entries[i+1].Position
			break
		}
		before = append(before, html)
	}
	slices.Reverse(before)
	laid.rows = before
	for i, entry := range entries[middle:] {
		html, fits, err := after.row(ctx, v, newEntryView(of, entry))
		if err != nil {
			return laid, err
		}
		if !fits && i > 0 {
			laid.last = entry.Position - 1
			break
		}
		laid.rows = append(laid.rows, html)
	}
	return laid, nil
}

// room is how many bytes of HTML entries may have: those with their texts, and all.
type room struct{ inline, all int }

// row is an entry as HTML, and whether there was room for it. Its text is in it if there is room for
// that.
func (r *room) row(ctx context.Context, v visit, entry entryView) (html string, fits bool, err error) {
	if entry.Kind == task.ModelUsed { // which is part of the cost
		return "", true, nil
	}
	if entry.IsOutput() {
		entry.away = entry.size() > maxInline
	}
	if html, err = renderText(ctx, entryCard(v, entry)); err != nil {
		return "", false, err
	}
	switch {
	case entry.away:
	case len(html) <= r.inline:
		r.inline -= len(html)
	default:
		entry.away, entry.open = true, false
		if html, err = renderText(ctx, entryCard(v, entry)); err != nil {
			return "", false, err
		}
	}
	r.all -= len(html)
	return html, r.all >= 0, nil
}
