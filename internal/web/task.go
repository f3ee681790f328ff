package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// taskStore is what the page of a task needs of the database.
type taskStore interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
	LastPosition(ctx context.Context, id task.ID) (int64, error)
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	ReceiptsOf(ctx context.Context, id task.ID) ([]store.Receipt, error)
}

// journalPage is how many entries of a journal a page has, and olderPage how many
// more are sent when the reader wants to see what was before.
const (
	journalPage = 150
	olderPage   = 500
)

// Steering moves tasks on behalf of people. Each method returns when what is wanted
// is noted; a run that is under way ends a little later. An error says why the
// task cannot go there.
type Steering interface {
	Stop(ctx context.Context, id task.ID) error
	Pause(ctx context.Context, id task.ID) error
	Resume(ctx context.Context, id task.ID) error
	// Approve approves a revision of the plan of a task that waits for that.
	Approve(ctx context.Context, id task.ID, revision int) error
	Retry(ctx context.Context, id task.ID) error
	// ResumeAll takes back the pause of everything that an operator wanted.
	ResumeAll(ctx context.Context) error
}

func (p *Pages) registerTasks(mux *http.ServeMux) {
	mux.HandleFunc("GET /tasks/{id}", p.page(access.Viewer, p.showTask))
	mux.HandleFunc("GET /tasks/{id}/journal", p.page(access.Viewer, p.showJournal))
	mux.HandleFunc("GET /tasks/{id}/entries/{position}", p.page(access.Viewer, p.showEntry))
	mux.HandleFunc("GET /tasks/{id}/changes", p.page(access.Viewer, p.showFile))
	mux.HandleFunc("GET /tasks/{id}/live", p.signedIn(access.Viewer, p.followTask))
	mux.HandleFunc("POST /tasks/{id}/comments", p.act(action{name: "task.comment", role: access.Operator, do: p.sayOnItem}))
	p.registerLinked(mux)
	if p.Steering == nil {
		return
	}
	mux.HandleFunc("POST /tasks/{id}/approve", p.act(action{name: "task.approve", role: access.Operator, noted: []string{"plan"}, do: p.approvePlan}))
	for name, move := range p.moves() {
		mux.HandleFunc("POST /tasks/{id}/"+name, p.act(action{name: "task." + name, role: access.Operator,
			do: func(r *http.Request, v visit) (string, error) {
				return "/tasks/" + r.PathValue("id"), move(r.Context(), v, task.ID(r.PathValue("id")))
			}}))
	}
}

// approvePlan approves the plan that the page has shown.
func (p *Pages) approvePlan(r *http.Request, _ visit) (string, error) {
	id := r.PathValue("id")
	revision, err := strconv.Atoi(r.PostForm.Get("plan"))
	if err != nil || revision < 1 {
		return "", task.Errorf(task.Invalid, "the form does not say which plan is approved")
	}
	return "/tasks/" + id, p.Steering.Approve(r.Context(), task.ID(id), revision)
}

func (p *Pages) showTask(r *http.Request, v visit) (templ.Component, error) {
	ctx, query := r.Context(), r.URL.Query()
	view, err := p.readTask(ctx, task.ID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	if view.tab = query.Get("tab"); !slices.Contains(taskTabs, view.tab) {
		view.tab = tabConversation
	}
	if err := p.readAround(ctx, v, &view); err != nil {
		return nil, err
	}
	p.readAccount(r, v, &view)
	if name := query.Get("file"); view.tab == tabChanges && name != "" {
		if view.file, err = p.changedFile(ctx, view.Task, name); err != nil {
			return nil, err
		}
	}
	newest, err := p.Store.EventsBefore(ctx, view.ID, view.last+1, journalPage)
	if err != nil {
		return nil, err
	}
	if view.why, err = p.explain(ctx, v, view.Task); err != nil {
		return nil, err
	}
	view.now, view.question = nowOf(view.Task, newest), questionOf(view.Task, newest)
	if query.Has("parts") || view.tab != tabConversation { // the script asks for what is around the journal
		return taskPage(v, view), nil
	}
	if words := query.Get("q"); words != "" {
		if view.search, err = p.searchTask(ctx, view.ID, words); err != nil {
			return nil, err
		}
	}
	if err := p.readConversation(ctx, &view, newest, query.Get("at")); err != nil {
		return nil, err
	}
	return taskPage(v, view), nil
}

// readConversation reads the entries that the page has: the newest, or those around a position.
func (p *Pages) readConversation(ctx context.Context, view *taskView, newest []task.Event, at string) error {
	shown, most := newest, journalPage
	position, err := strconv.ParseInt(at, 10, 64)
	if err == nil && position > 0 && len(newest) > 0 && position < newest[0].Position {
		most = journalPage / 2
		if shown, err = p.Store.EventsBefore(ctx, view.ID, position, most); err != nil {
			return err
		}
		view.earliest = earliestOf(shown, most)
		after, err := p.Store.EventsAfter(ctx, view.ID, position-1, most)
		if err != nil {
			return err
		}
		shown = append(shown, after...)
	} else {
		view.earliest = earliestOf(shown, most)
	}
	if len(shown) > 0 {
		view.latest = shown[len(shown)-1].Position
	}
	view.entries = entriesOf(view.ID, shown)
	return nil
}

// earliestOf is the position of the first of entries, or 1 if there can be none before them. Positions
// have gaps where old entries were removed.
func earliestOf(events []task.Event, limit int) int64 {
	if len(events) < limit {
		return 1
	}
	return events[0].Position
}

// readAround reads what is known of a task besides its journal.
func (p *Pages) readAround(ctx context.Context, v visit, view *taskView) (err error) {
	if err := p.readItem(ctx, v, view); err != nil {
		return err
	}
	if view.receipts, err = p.Store.ReceiptsOf(ctx, view.ID); err != nil {
		return err
	}
	return p.readWork(ctx, view)
}

// readItem reads the item on the board and the pull requests about it, as far as the reader may see
// them.
func (p *Pages) readItem(ctx context.Context, v visit, view *taskView) error {
	if p.Board == nil || view.Key.Forge != task.Board {
		return nil
	}
	hands, err := p.person(ctx, v)
	if err != nil {
		return err
	}
	item, err := hands.Item(ctx, view.Key)
	switch code := task.CodeOf(err); {
	case code == task.NotFound || code == task.Forbidden:
		return nil // the task can be read nevertheless
	case err != nil:
		return err
	}
	view.item, view.speaks = &item, v.operator()
	if view.Key.Kind != task.Issue {
		return nil
	}
	view.pulls, err = hands.LinkedPulls(ctx, view.Key)
	return err
}

// showJournal is a piece of the journal that comes before what is on the page.
func (p *Pages) showJournal(r *http.Request, v visit) (templ.Component, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 {
		return nil, task.Errorf(task.Invalid, "before is not a position")
	}
	id := task.ID(r.PathValue("id"))
	events, err := p.Store.EventsBefore(r.Context(), id, before, olderPage)
	if err != nil {
		return nil, err
	}
	return journalEntries(v, entriesOf(id, events), earliestOf(events, olderPage)), nil
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
	events, err := p.Store.EventsAfter(r.Context(), of.ID, position-1, 1)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[0].Position != position {
		return nil, task.Errorf(task.NotFound, "there is no entry %d", position).WithHint("entries are removed when they are old")
	}
	entry := newEntryView(of.ID, journal.Read(events[0]))
	entry.away, entry.open = false, true
	if r.URL.Query().Has("part") {
		return entryPart(v, entry), nil
	}
	return entryPage(v, of, entry), nil
}

// live is an entry of the journal on its way to a page.
type live struct {
	Kind   string `json:"kind"`
	Call   string `json:"call,omitempty"`
	Output bool   `json:"output,omitempty"` // what a program wrote, to be added to what it wrote before
	HTML   string `json:"html"`
	// Now is the line about what the run does; nil if the entry says nothing of that, and empty if
	// it does nothing any more.
	Now *string `json:"now,omitempty"`
}

// followTask sends the journal as it grows.
func (p *Pages) followTask(w http.ResponseWriter, r *http.Request, v visit) {
	id := task.ID(r.PathValue("id"))
	if _, err := p.Store.Task(r.Context(), id); err != nil {
		p.fail(w, r, v, err)
		return
	}
	see := func(ctx context.Context) (string, error) {
		last, err := p.Store.LastPosition(ctx, id)
		return strconv.FormatInt(last, 10), err
	}
	p.listen(w, r, "task "+string(id), see, p.wakeOf(id), func(to stream, last, _ string) (string, error) {
		position, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			position = 0
		}
		for {
			events, err := p.Store.EventsAfter(r.Context(), id, position, journalPage)
			if err != nil || len(events) == 0 {
				return strconv.FormatInt(position, 10), err
			}
			for _, event := range events {
				v.now = p.Now()
				if err := p.sendEntry(r.Context(), v, to, event); err != nil {
					return "", err
				}
				position = event.Position
			}
		}
	})
}

func (p *Pages) sendEntry(ctx context.Context, v visit, to stream, event task.Event) error {
	entry := journal.Read(event)
	sent := live{Kind: string(entry.Kind), Call: entry.CallID(), Output: entry.IsOutput()}
	if !entry.Empty() && entry.Kind != task.ModelUsed {
		html, err := renderText(ctx, entryCard(v, newEntryView(event.Task, entry)))
		if err != nil {
			return err
		}
		sent.HTML = html
	}
	if activity, says := entry.Activity(); says {
		html := ""
		if now := newNow(entry, activity); now != nil {
			var err error
			if html, err = renderText(ctx, nowLine(v, *now)); err != nil {
				return err
			}
		}
		sent.Now = &html
	}
	data, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return to.send("entry", strconv.FormatInt(entry.Position, 10), string(data))
}

func renderText(ctx context.Context, component templ.Component) (string, error) {
	var html bytes.Buffer
	err := component.Render(ctx, &html)
	return html.String(), err
}
