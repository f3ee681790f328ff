package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// boardStore is what the pages of the board need of the database besides what
// [board.Board] has.
type boardStore interface {
	TaskOf(ctx context.Context, key task.Key, kind task.Type) (task.Task, error)
	BoardItem(ctx context.Context, repository string, number int64) (store.BoardItem, error)
	ListBoardItems(ctx context.Context, filter store.BoardFilter) ([]store.BoardItem, error)
}

// itemView is an issue or a pull request with all that belongs to it.
type itemView struct {
	forge.Item
	bot       string
	me        string
	history   []happening
	linked    []forge.LinkedPull
	tasks     []task.Task
	reviews   []store.Review // of the pull request, to talk about
	diff      diffView
	head      string
	threads   []forge.ReviewThread
	diffError string
	since     string // the revision that is shown
}

// happening is something in the history of an item: one of its fields is set.
type happening struct {
	at      time.Time
	comment *task.Comment
	event   *store.BoardEvent
	review  *forge.Review
	thread  *forge.ReviewThread
}

func (i *itemView) path() string        { return itemURL(i.Key) }
func (i *itemView) isOpen() bool        { return i.State == forge.Open }
func (i *itemView) isPull() bool        { return i.Key.Kind == task.Pull }
func (i *itemView) botAssigned() bool   { return i.assigned(i.bot) }
func (i *itemView) mine(c string) bool  { return task.SameLogin(c, i.me) }
func (i *itemView) byBot(c string) bool { return task.SameLogin(c, i.bot) }

func (i *itemView) assigned(login string) bool {
	return slices.ContainsFunc(i.Assignees, func(one string) bool { return task.SameLogin(one, login) })
}

func (p *Pages) showItem(r *http.Request, v visit, hands *board.Forge) (templ.Component, error) {
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	view := itemView{bot: p.Board.Bot()}
	if view.since, err = p.itemRevision(key)(ctx); err != nil {
		return nil, err
	}
	if view.Item, err = hands.Item(ctx, key); err != nil {
		return nil, err
	}
	if view.me, err = hands.Self(ctx); err != nil {
		return nil, err
	}
	if err := view.readComments(ctx, hands); err != nil {
		return nil, err
	}
	if view.tasks, err = p.tasksOf(ctx, key); err != nil {
		return nil, err
	}
	if !view.isPull() {
		view.linked, err = hands.LinkedPulls(ctx, key)
		return issuePage(v, view), err
	}
	if p.Reviews != nil {
		if view.reviews, err = p.Store.ListReviews(ctx, store.ReviewFilter{Pull: key}); err != nil {
			return nil, err
		}
	}
	if err := view.readPull(ctx, hands, anchorOf(r)); err != nil {
		return nil, err
	}
	switch {
	case r.URL.Query().Has("from"):
		view.diff.page(diffPlaceOf(r))
	case r.URL.Query().Has("thread"):
		view.diff.page(view.diff.placeOf(r.URL.Query().Get("thread")))
	}
	view.addThreads()
	return pullPage(v, view, r.URL.Query().Get("tab") == "changes" || r.URL.Query().Has("at")), nil
}

// readComments gathers what people said and did, in order.
func (i *itemView) readComments(ctx context.Context, hands *board.Forge) error {
	comments, err := hands.Comments(ctx, i.Key)
	if err != nil {
		return err
	}
	for _, comment := range comments {
		comment.Body = forge.StripMarker(comment.Body)
		i.history = append(i.history, happening{at: comment.CreatedAt, comment: &comment})
	}
	events, err := hands.Timeline(ctx, i.Key)
	if err != nil {
		return err
	}
	for _, event := range events {
		i.history = append(i.history, happening{at: event.At, event: &event})
	}
	if i.isPull() {
		reviews, err := hands.Reviews(ctx, i.Key)
		if err != nil {
			return err
		}
		for _, review := range reviews {
			review.Body = forge.StripMarker(review.Body)
			if review.Verdict == forge.Remark && review.Body == "" {
				continue // it is the comments on lines, which stand there themselves
			}
			i.history = append(i.history, happening{at: review.At, review: &review})
		}
	}
	i.sortHistory()
	return nil
}

func (i *itemView) sortHistory() {
	slices.SortStableFunc(i.history, func(a, b happening) int { return a.at.Compare(b.at) })
}

// addThreads puts the conversations about lines where they began.
func (i *itemView) addThreads() {
	for _, thread := range i.threads {
		i.history = append(i.history, happening{at: thread.Comments[0].CreatedAt, thread: &thread})
	}
	i.sortHistory()
}

// threadPlace names the line that a conversation is about.
func threadPlace(v visit, thread forge.ReviewThread) string {
	if thread.Anchor.Line == 0 {
		return thread.Anchor.Path
	}
	return v.t("thread.line", thread.Anchor.Path, thread.Anchor.Line)
}

func (i *itemView) readPull(ctx context.Context, hands *board.Forge, form *forge.Anchor) error {
	var err error
	if i.threads, err = hands.ReviewThreads(ctx, i.Key); err != nil {
		return err
	}
	for _, thread := range i.threads {
		for n := range thread.Comments {
			thread.Comments[n].Body = forge.StripMarker(thread.Comments[n].Body)
		}
	}
	changes, err := hands.Diff(ctx, i.Key)
	if task.CodeOf(err) == task.NotFound { // the branch is gone; the conversation is still worth reading
		i.diffError = "diff.gone"
		return nil
	}
	i.diff, i.head = newDiff(changes.Patch, i.threads, form), changes.Head
	return err
}

// tasksOf are the tasks that there are for an item.
func (p *Pages) tasksOf(ctx context.Context, key task.Key) ([]task.Task, error) {
	var found []task.Task
	for _, kind := range []task.Type{task.Development, task.Review} {
		one, err := p.Store.TaskOf(ctx, key, kind)
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// anchorOf reads on which line the reader wants to comment: at=new:12:path.
func anchorOf(r *http.Request) *forge.Anchor {
	side, rest, _ := strings.Cut(r.URL.Query().Get("at"), ":")
	number, path, found := strings.Cut(rest, ":")
	line, err := strconv.Atoi(number)
	if !found || err != nil || side != string(forge.NewSide) && side != string(forge.OldSide) {
		return nil
	}
	return &forge.Anchor{Path: path, Side: forge.Side(side), Line: line}
}
