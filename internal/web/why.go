package web

import (
	"cmp"
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Turn says of a queued task when it is handed out, and why it waits; see broker.Turn, which has
// the same fields. Turns stand in the order in which tasks are handed out.
type Turn struct {
	Task   task.ID
	Place  int
	Reason task.Reason
	By     string
	Pauses []string
	Detail string
	Until  time.Time
}

// turns are the turns of all tasks that wait. Active is all tasks that are queued and running, and
// maybe others; nil if they have to be read.
func (p *Pages) turns(ctx context.Context, active []task.Task) ([]Turn, error) {
	if p.Turns == nil {
		return nil, nil
	}
	return p.Turns(ctx, active)
}

// byTask finds the turn of a task.
func byTask(turns []Turn) map[task.ID]Turn {
	found := make(map[task.ID]Turn, len(turns))
	for _, turn := range turns {
		found[turn.Task] = turn
	}
	return found
}

// explanation is why a task is in its state, for people. What is empty is not shown.
type explanation struct {
	reason string      // in words
	code   task.Reason // the same as a stable code
	by     string      // who paused everything, the agent that it is about, what blocks it, or the limit
	detail string      // a text of others
	fix    string
	until  time.Time
	place  int  // in the queue
	waits  bool // in the queue, and it is known why
}

// explain says why a task is in its state.
func (p *Pages) explain(ctx context.Context, v visit, t task.Task) (explanation, error) {
	if t.State != task.Queued {
		return explanationOf(v, t, Turn{}), nil
	}
	turns, err := p.turns(ctx, nil)
	return explanationOf(v, t, byTask(turns)[t.ID]), err
}

// explanationOf says why a task is in its state. The turn is of a queued one; empty if it is not
// known.
func explanationOf(v visit, t task.Task, turn Turn) explanation {
	why := explanation{code: t.Reason, reason: v.reasonOrCode(t.Reason), detail: t.Detail}
	switch t.State {
	case task.Running, task.Done:
		why.detail = ""
		return why
	case task.Queued:
		if turn.Task == "" {
			return why
		}
		why = explanation{
			code: turn.Reason, reason: v.reasonOrCode(turn.Reason), by: turn.By, detail: turn.Detail, until: turn.Until, place: turn.Place, waits: true,
			fix: messages.Fix(v.language, turn.Reason),
		}
		if turn.Reason == task.ReasonAllPaused {
			why.reason = v.t("needs.paused", messages.PausedBy(v.language, turn.Pauses...))
		}
		return why
	case task.Paused, task.Failed, task.Stopped:
	}
	if t.Reason == task.ReasonTurnsExhausted { // the detail is the limit
		why.by, why.detail = t.Detail, ""
	}
	why.fix = cmp.Or(t.Hint, messages.Fix(v.language, t.Reason))
	return why
}

// shown reports whether there is more to say than the reason alone.
func (e explanation) shown() bool {
	return e.detail != "" || e.fix != "" || e.waits
}

// short is the explanation in one line.
func (e explanation) short() string {
	text := e.reason
	if e.by != "" {
		text += " (" + e.by + ")"
	}
	if detail := textfmt.OneLine(e.detail); detail != "" {
		text += ": " + detail
	}
	return textfmt.Shorten(text, longestSaid)
}
