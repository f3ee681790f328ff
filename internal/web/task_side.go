package web

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostSide is how many of the moves and of the comments of a task the page has: the last ones.
	mostSide = 40
	// mostWaiting is how many comments that wait are read, and shownWaiting how many are shown.
	mostWaiting  = 100
	shownWaiting = 10
	// longestWaiting is how many characters of each are shown.
	longestWaiting = 1000
	// maxWaiting is how many bytes of HTML each has at most. Of one that has more, as of a text of many
	// marks, fewer characters are shown as they are.
	maxWaiting    = 4 << 10
	costlyWaiting = 300
	// nearlyCut is how long what a task says of its state is that may have been cut. What is unseemly
	// is taken out of it after that.
	nearlyCut = task.LongestDetail - 200
	// shownQuestion is how many bytes of a question are shown, in maxQuestion bytes of HTML. Of one
	// that has more, fewer bytes are shown as they are.
	shownQuestion  = 12 << 10
	maxQuestion    = 20 << 10
	costlyQuestion = task.LongestDetail
	// wholePlan is how many bytes a plan has that is shown whole, and longestAction how many
	// characters of each action are shown of a longer one.
	wholePlan     = 20 << 10
	maxPlan       = 60 << 10 // bytes of HTML
	longestAction = 120
)

// recent are the last ones of many that come one after the other.
type recent[T any] struct {
	kept  []T // some more than are wanted
	count int
}

func (r *recent[T]) add(one T) {
	if len(r.kept) == 2*mostSide {
		r.kept = append(r.kept[:0], r.kept[mostSide:]...)
	}
	r.kept = append(r.kept, one)
	r.count++
}

// last are the last ones, and how many there were before them.
func (r *recent[T]) last() (last []T, before int) {
	last = r.kept[max(0, len(r.kept)-mostSide):]
	return last, r.count - len(last)
}

// waitingView are comments that the server has seen and no run has taken up yet.
type waitingView struct {
	comments []task.CommentEntry
	more     int    // that are not shown
	seen     string // the position of the last comment that the server has seen; empty if it was not read
}

// readWaiting reads the comments that a run will be told of. A task that has ended has none: what it
// was not told of was named when it ended.
func (p *Pages) readWaiting(ctx context.Context, view *taskView) error {
	if !view.State.Active() || view.tab != tabConversation {
		return nil
	}
	start, err := p.Store.CommentsStart(ctx, view.ID)
	if err != nil {
		return err
	}
	last := max(start, view.taken)
	entries, err := p.Store.CommentsAfter(ctx, view.ID, last, mostWaiting)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		last = entries[len(entries)-1].Position
	}
	view.waiting = waitingOf(entries)
	view.waiting.seen = strconv.FormatInt(last, 10)
	return nil
}

// waitingOf are the comments that are new or were edited, each as it is now, in the order in which they
// came. One that counts for nothing does not wait for anything.
func waitingOf(entries []task.CommentEntry) (view waitingView) {
	newest := make(map[task.CommentRef]int64, len(entries))
	for _, entry := range entries {
		newest[entry.Ref()] = entry.Position
	}
	for _, entry := range entries {
		counts := entry.Refused == "" && (entry.Change == task.CommentNew || entry.Change == task.CommentEdited)
		if counts && newest[entry.Ref()] == entry.Position {
			view.comments = append(view.comments, entry)
		}
	}
	view.more = max(0, len(view.comments)-shownWaiting)
	view.comments = view.comments[:len(view.comments)-view.more]
	return view
}

// planSize is how many bytes of text a plan has.
func planSize(plan journal.Plan) int {
	size := len(plan.Goal.Goal)
	for _, action := range plan.Actions.Actions {
		size += len(action.What)
	}
	return size
}

// planText is a text of a plan as the page shows it.
func planText(plan journal.Plan, whole bool, text string) string {
	if whole || planSize(plan) <= wholePlan {
		return text
	}
	return textfmt.Shorten(text, longestAction)
}

// entryPath is where an entry of the task has a page of its own.
func (t *taskView) entryPath(position int64) string {
	return t.path() + "/entries/" + strconv.FormatInt(position, 10)
}

// within is a component if it has so many bytes at most, and another one if it has more.
func within(most int, whole, otherwise templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		html, err := renderText(ctx, whole)
		switch {
		case err != nil:
			return err
		case len(html) > most:
			return otherwise.Render(ctx, w)
		}
		_, err = io.WriteString(w, html)
		return err
	})
}

// blockName is what people call a text that a model has before it.
func blockName(v visit, name string) string {
	known, _, _ := strings.Cut(name, "-") // blocks with comments are numbered
	return v.textOr("block."+known, oneLabel(name))
}

// conversationName is what people call a conversation with a model: the phase that it is in. Some
// phases have several, which are numbered.
func conversationName(v visit, name string) string {
	phase, _, _ := strings.Cut(name, "-")
	return v.textOr("phase."+phase, oneLabel(name))
}
