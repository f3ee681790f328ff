package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// segment is how many turns one summary is of.
	segment = 5
	// summaryWithin bounds one summary.
	summaryWithin = time.Minute
	// defaultSummaryWait is how long a turn waits for a summary that was just begun.
	defaultSummaryWait = 5 * time.Second
	// longerWait is how much longer a turn waits for a summary without which it would
	// not fit.
	longerWait = 4
	// excerptOf is how many characters of a message are sent where there is no summary
	// of it yet.
	excerptOf = 300
	// leastTranscript is how many bytes of a message a summary is made from at least.
	leastTranscript = 200
)

// underWay knows the threads that this process writes summaries of.
type underWay struct {
	mu   sync.Mutex
	jobs map[string]writing // by thread
}

type writing struct {
	since time.Time
	ended chan struct{} // closed at the end
}

// begin notes that the summaries of a thread are being written, until end is called. It
// reports false if they are already.
func (u *underWay) begin(thread string) (end func(), begun bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.jobs[thread]; there {
		return nil, false
	}
	if u.jobs == nil {
		u.jobs = map[string]writing{}
	}
	mine := writing{time.Now(), make(chan struct{})}
	u.jobs[thread] = mine
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.jobs, thread)
		close(mine.ended)
	}, true
}

// wait waits for the summaries of a thread, but not for those that are in the making
// for longer than so.
func (u *underWay) wait(ctx context.Context, thread string, most time.Duration) {
	u.mu.Lock()
	job, there := u.jobs[thread]
	u.mu.Unlock()
	if !there {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, job.since.Add(most))
	defer cancel()
	select {
	case <-job.ended:
	case <-ctx.Done():
	}
}

func (s *Service) summaryWait() time.Duration {
	if s.SummaryWait > 0 {
		return s.SummaryWait
	}
	return defaultSummaryWait
}

// newestSummaries returns the thread with the summaries that a request needs, as far as
// they are there in good time. They are written after every fifth turn; a conversation
// that is too long for the model has them earlier.
func (s *Service) newestSummaries(ctx context.Context, thread store.Thread, history []store.Message, how extent) (store.Thread, error) {
	if thread.SummaryUpToTurn >= how.summarised(len(history)/2) {
		return thread, nil
	}
	wait := s.summaryWait()
	if how > whole {
		wait *= longerWait
		s.summariseNow(ctx, thread, history)
	}
	s.underWay.wait(ctx, thread.ID, wait)
	return s.Store.Thread(ctx, thread.ID)
}

// summariseNow begins to write summaries of everything that was said.
func (s *Service) summariseNow(ctx context.Context, thread store.Thread, history []store.Message) {
	end, begun := s.underWay.begin(thread.ID)
	if !begun {
		return
	}
	ctx = context.WithoutCancel(ctx) // what comes too late for this turn is there for the next
	started := s.start(func() {
		defer end()
		s.logFailure(ctx, thread.ID, s.summariseUpTo(ctx, thread, history, len(history)/2))
	})
	if !started {
		end()
	}
}

// summarise writes the summaries that are due. One that fails is due again after the
// next turn; until then excerpts stand in for it.
func (s *Service) summarise(ctx context.Context, threadID string) {
	for {
		more, err := s.summariseNext(ctx, threadID)
		s.logFailure(ctx, threadID, err)
		if err != nil || !more {
			return
		}
	}
}

func (s *Service) logFailure(ctx context.Context, threadID string, err error) {
	if err != nil && task.CodeOf(err) != task.NotFound { // the review may be gone by now
		s.Log.WarnContext(ctx, "failed to summarize a conversation; retrying after the next turn", "thread", threadID, "error", err)
	}
}

// summariseNext writes what is due now, and reports whether there was something.
func (s *Service) summariseNext(ctx context.Context, threadID string) (more bool, err error) {
	thread, err := s.Store.Thread(ctx, threadID)
	if err != nil {
		return false, err
	}
	said, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return false, err
	}
	history := answered(said)
	due := whole.summarised(len(history) / 2)
	if thread.SummaryUpToTurn >= due {
		return false, nil
	}
	return true, s.summariseUpTo(ctx, thread, history, due)
}

// summariseUpTo writes the summaries up to a turn, none of which goes beyond a multiple
// of five.
func (s *Service) summariseUpTo(ctx context.Context, thread store.Thread, history []store.Message, upTo int) error {
	record, err := s.Store.Review(ctx, thread.ReviewID)
	if err != nil {
		return err
	}
	material, err := s.material(ctx, record)
	if err != nil {
		return err
	}
	w, err := s.wordingIn(s.spokenIn(thread, record, material, ""))
	if err != nil {
		return err
	}
	for thread.SummaryUpToTurn < upTo {
		from := thread.SummaryUpToTurn
		to := min(nextSegment(from), upTo)
		text, err := s.summaryOf(ctx, w, thread.ID, history[2*from:2*to])
		if err != nil {
			return err
		}
		err = s.Store.AddSummary(ctx, thread.ID, from, to, w.text("conversation.segment", from+1, to)+"\n"+text)
		if err != nil && task.CodeOf(err) != task.Conflict { // another server may be quicker
			return err
		}
		if thread, err = s.Store.Thread(ctx, thread.ID); err != nil {
			return err
		}
	}
	return nil
}

// nextSegment is where the summary ends that begins after a turn.
func nextSegment(turn int) int { return (turn/segment + 1) * segment }

// withExcerpts is the thread as if it were summarised up to a turn: where a summary is
// missing, because it failed or is still being written, stand the beginnings of what was
// said. So a request never has the whole history, and loses nothing entirely.
func (w wording) withExcerpts(thread store.Thread, history []store.Message, upTo int) store.Thread {
	for thread.SummaryUpToTurn < upTo {
		from := thread.SummaryUpToTurn
		to := min(nextSegment(from), upTo)
		excerpt := w.text("conversation.excerpt", from+1, to) + "\n" +
			llm.Quote(llm.Origin{Source: "conversation"}, w.transcript(history[2*from:2*to], func(text string) string {
				return textfmt.Shorten(textfmt.OneLine(text), excerptOf)
			}))
		if thread.ConversationSummary != "" {
			excerpt = thread.ConversationSummary + "\n\n" + excerpt
		}
		thread.ConversationSummary, thread.SummaryUpToTurn = excerpt, to
	}
	return thread
}

// transcript shows messages as text.
func (w wording) transcript(said []store.Message, shown func(string) string) string {
	var b strings.Builder
	for _, message := range said {
		name := w.text("conversation.user")
		if message.Role == store.AssistantMessage {
			name = w.text("conversation.assistant")
		}
		fmt.Fprintf(&b, "%s (%d): %s\n\n", name, message.Turn, llm.QuoteEntry(shown(message.Content)))
	}
	return b.String()
}

// stopWhen cancels a context when the channel closes before the context ends.
func stopWhen(ctx context.Context, cancel context.CancelFunc, stop <-chan struct{}) {
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
}

// answered leaves out messages that have no answer.
func answered(said []store.Message) []store.Message {
	var history []store.Message
	for _, message := range said {
		if message.State == store.Answered {
			history = append(history, message)
		}
	}
	return history
}

// summaryOf has the model summarise an exchange or several. Messages that are too long
// for it are cut.
func (s *Service) summaryOf(ctx context.Context, w wording, run string, said []store.Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryWithin)
	defer cancel()
	stopWhen(ctx, cancel, s.stop)
	model, err := s.Model(ForSummary)
	if err != nil {
		return "", err
	}
	for most := longestEntry(said, transcriptRoom(model.Info())); ; most /= 4 {
		text, err := askForSummary(ctx, model, llm.Request{
			System: w.summarize, Run: run + "/summary",
			Messages: []llm.Message{llm.UserText(llm.Quote(llm.Origin{Source: "conversation"}, w.transcript(said, func(text string) string {
				return textfmt.Clip(text, most)
			})))},
		})
		if llm.KindOf(err) != llm.TooLong || most <= leastTranscript {
			return text, err
		}
	}
}

func askForSummary(ctx context.Context, model llm.Model, request llm.Request) (string, error) {
	response, err := model.Chat(ctx, request, nil)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(forge.Clean(response.Message.Text()))
	if text == "" || response.Stop == llm.StopMaxTokens {
		return "", errNoSummary
	}
	return text, nil
}

var errNoSummary = errors.New("the model gave no whole summary")

// transcriptRoom is how many bytes a model can be given to summarise, at two bytes a
// token; 0 if that is not known.
func transcriptRoom(info llm.Info) int {
	return int(max(0, min(info.ContextLength-info.MaxTokens, maxAnswer))) * 2
}

// longestEntry is how many bytes of each message are shown, so that all of them have
// room: short messages leave theirs to long ones.
func longestEntry(said []store.Message, room int) int {
	lengths := make([]int, len(said))
	for i, message := range said {
		lengths[i] = len(message.Content)
	}
	slices.Sort(lengths)
	if room == 0 {
		return max(lengths[len(lengths)-1], leastTranscript)
	}
	for i, length := range lengths {
		if share := room / (len(lengths) - i); length > share {
			return max(share, leastTranscript)
		}
		room -= length
	}
	return max(lengths[len(lengths)-1], leastTranscript)
}
