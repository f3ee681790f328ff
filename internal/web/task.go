package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
	LastEvent(ctx context.Context, id task.ID, kind task.EventKind) (task.Event, error)
	EventsOfAfter(ctx context.Context, id task.ID, position int64, limit int, kinds ...task.EventKind) ([]task.Event, error)
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	ReceiptsOf(ctx context.Context, id task.ID) ([]store.Receipt, error)
	CommentsStart(ctx context.Context, id task.ID) (int64, error)
	CommentsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.CommentEntry, error)
	LastComment(ctx context.Context, id task.ID) (int64, error)
}

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
	if name := query.Get("file"); view.tab == tabChanges && name != "" {
		only := query.Has("part") // the script asks for the file only
		view.file, err = p.changedFile(ctx, view.Task, view.saved, name)
		switch {
		case err != nil && !only && ctx.Err() == nil:
			view.file = nil // it is as it was again, or cannot be read now: the page goes on with all files
		case err != nil:
			return nil, err
		case only:
			return unifiedDiff(v, *view.file), nil
		}
	}
	if err := p.readAround(ctx, v, &view); err != nil {
		return nil, err
	}
	p.readAccount(r, v, &view)
	view.pickFiles(query.Get("from"))
	// A script that asks for the parts around the journal has the journal.
	if view.tab == tabConversation && !query.Has("parts") {
		if err := p.readConversation(ctx, v, &view, query); err != nil {
			return nil, err
		}
	}
	return taskPage(v, view), nil
}

// readAround reads what is known of a task besides its journal.
func (p *Pages) readAround(ctx context.Context, v visit, view *taskView) (err error) {
	if err := p.readItem(ctx, v, view); err != nil {
		return err
	}
	if view.receipts, err = p.Store.ReceiptsOf(ctx, view.ID); err != nil {
		return err
	}
	view.receipts = slices.DeleteFunc(view.receipts, func(one store.Receipt) bool { return one.Generation < view.FirstGeneration })
	if view.why, err = p.explain(ctx, v, view.Task); err != nil {
		return err
	}
	if err := p.readQuestion(ctx, view); err != nil {
		return err
	}
	if err := p.readWaiting(ctx, view); err != nil {
		return err
	}
	return p.readWork(ctx, view)
}

// readQuestion reads what the run asks, if the task waits for an answer.
func (p *Pages) readQuestion(ctx context.Context, view *taskView) error {
	if !view.AwaitsPeople() {
		return nil
	}
	view.why.detail = "" // the card has it
	if view.AwaitsApproval() {
		return nil
	}
	if view.question = view.Detail; view.question != "" && len(view.question) < nearlyCut {
		return nil
	}
	// A long one is cut there, and tasks that were paused by earlier versions do not have it.
	newest, err := p.Store.EventsBefore(ctx, view.ID, view.last+1, journalPage)
	if err != nil {
		return err
	}
	if noted := questionOf(newest); noted.Text != "" {
		view.question, view.questionAt = noted.Text, noted.Position
	} else if view.question != "" {
		view.question += "…"
	}
	return nil
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
	p.listen(w, r, "task "+string(id), p.seeTask(id), p.wakeOf(id), func(to stream, last, revision string) (string, error) {
		seen, heard, _ := strings.Cut(last, "-")
		position, err := strconv.ParseInt(seen, 10, 64)
		if err != nil {
			position = 0
		}
		_, comments, _ := strings.Cut(revision, "-")
		if heard != "" && heard != comments {
			if err := to.send("comments", seenID(position, comments), "{}"); err != nil {
				return "", err
			}
		}
		position, err = p.sendEntries(r.Context(), v, to, id, position, comments)
		return seenID(position, comments), err
	})
}

// sendEntries sends the entries after a position, and returns that of the last one.
func (p *Pages) sendEntries(ctx context.Context, v visit, to stream, id task.ID, position int64, comments string) (int64, error) {
	for {
		events, err := p.Store.EventsAfter(ctx, id, position, journalPage)
		if err != nil || len(events) == 0 {
			return position, err
		}
		for _, event := range events {
			v.now = p.Now()
			if err := p.sendEntry(ctx, v, to, event, comments); err != nil {
				return position, err
			}
			position = event.Position
		}
	}
}

// seeTask says how long the journal of a task is, and how much people have written on its item.
func (p *Pages) seeTask(id task.ID) look {
	return func(ctx context.Context) (string, error) {
		last, err := p.Store.LastPosition(ctx, id)
		if err != nil {
			return "", err
		}
		comments, err := p.Store.LastComment(ctx, id)
		return fmt.Sprintf("%d-%d", last, comments), err
	}
}

// seenID names what a page has seen: the journal up to a position, and the comments up to another.
func seenID(position int64, comments string) string {
	return strconv.FormatInt(position, 10) + "-" + comments
}

func (p *Pages) sendEntry(ctx context.Context, v visit, to stream, event task.Event, comments string) error {
	entry := journal.Read(event)
	sent := live{Kind: string(entry.Kind), Call: entry.CallKey(), Output: entry.IsOutput()}
	if !entry.Empty() && entry.Kind != task.ModelUsed {
		// What is sent has just happened: no call in it is over.
		html, err := renderText(ctx, entryCard(v, newEntryView(task.Task{ID: event.Task, State: task.Running, Generation: event.Generation}, entry)))
		if err != nil {
			return err
		}
		sent.HTML = html
	}
	if activity, says := entry.Activity(); says && !entry.IsOutput() { // the line says already what runs
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
	return to.send("entry", seenID(entry.Position, comments), string(data))
}

func renderText(ctx context.Context, component templ.Component) (string, error) {
	var html bytes.Buffer
	err := component.Render(ctx, &html)
	return html.String(), err
}
