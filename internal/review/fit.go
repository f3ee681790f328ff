package review

import (
	"context"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// extent is how much of what was said before a model is sent.
type extent int

const (
	whole    extent = iota // as the rules say
	summed                 // everything but the last exchange as summaries
	shortest               // of the summaries and of the last exchange only a part
)

const (
	// shortSummary and shortMessage are how many bytes are left of the summaries and
	// of a message in the shortest form.
	shortSummary = 6000
	shortMessage = 3000
	// countWithin bounds the question how long a request is.
	countWithin = 10 * time.Second
)

// summarised is up to which of so many turns there are summaries in place of what was
// said.
func (e extent) summarised(turns int) int {
	if e == whole {
		return turns / segment * segment
	}
	return turns
}

// shortened is the thread of which the shortest form is made: it has the newest part of
// the summaries, and at most one summary is missing.
func (e extent) shortened(thread store.Thread, upTo int) store.Thread {
	if e < shortest {
		return thread
	}
	if text := thread.ConversationSummary; len(text) > shortSummary {
		thread.ConversationSummary = gap + "\n" + strings.ToValidUTF8(text[len(text)-shortSummary:], "")
	}
	thread.SummaryUpToTurn = max(thread.SummaryUpToTurn, upTo-segment)
	return thread
}

// message is what is sent of a message: in the shortest form its beginning.
func (e extent) message(text string) string {
	if e < shortest || len(text) <= shortMessage {
		return text
	}
	return textfmt.Clip(text, shortMessage) + gap
}

// fits reports whether a request leaves room for the answer, as far as that is known. A
// provider that counts is asked before the estimate is believed.
func fits(ctx context.Context, model llm.Model, request llm.Request) bool {
	info := model.Info()
	room := info.ContextLength - info.MaxTokens
	var meter llm.Meter
	if info.ContextLength == 0 || room <= 0 || meter.Estimate(request.Size()) <= room {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	exact, err := model.CountTokens(ctx, request)
	if err != nil {
		return llm.KindOf(err) != llm.CannotCount // whatever else is wrong, the call itself says it
	}
	return exact <= room
}

// tighter is the next form to try when one is too long. Summaries are of no use where no
// more than the last exchange is sent: that is sent beside them too.
func (a *answering) tighter(how extent) extent {
	turns := len(a.begun.History) / 2
	if how == whole && turns > max(a.begun.Thread.SummaryUpToTurn, how.summarised(turns), 1) {
		return summed
	}
	return shortest
}

// compose puts together what the model is given, with the newest summaries.
func (a *answering) compose(ctx context.Context, how extent) (Composition, error) {
	s, history := a.service, a.begun.History
	w, err := s.wordingIn(s.spokenIn(a.begun.Thread, a.review, a.material, a.begun.Message.Content))
	if err != nil {
		return Composition{}, err
	}
	if how < shortest {
		newest, err := s.newestSummaries(ctx, a.begun.Thread, history, how)
		if err != nil {
			return Composition{}, err
		}
		a.begun.Thread = newest
	}
	return compose(w, a.material, a.begun.Thread, history, a.begun.Message.Content, how), nil
}
