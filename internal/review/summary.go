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
	jobs map[string]*writing // by thread
}

type writing struct {
	since time.Time     // when what is being written was begun
	ended chan struct{} // closed at the end
	asked bool          // what was asked for is not begun yet
	upTo  int           // the turn up to which it is
}

// ask asks for the summaries of a thread that are due, and for those up to a turn. It reports
// whether the caller has to write them, see next. If they are being written already, whoever
// does that goes on with these: what is due may have been read before the last turn ended.
func (u *underWay) ask(thread string, upTo int) (ours bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	job, there := u.jobs[thread]
	if !there {
		if u.jobs == nil {
			u.jobs = map[string]*writing{}
		}
		job = &writing{since: time.Now(), ended: make(chan struct{})}
		u.jobs[thread] = job
	}
	job.asked, job.upTo = true, max(job.upTo, upTo)
	return !there
}

// next is what whoever writes the summaries of a thread has to begin now. Without more, the
// thread is free for the next one who asks.
func (u *underWay) next(thread string) (upTo int, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	job := u.jobs[thread]
	if !job.asked {
		u.end(thread)
		return 0, false
	}
	upTo = job.upTo
	job.since, job.asked, job.upTo = time.Now(), false, 0
	return upTo, true
}

// abandon leaves what was asked for undone.
func (u *underWay) abandon(thread string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end(thread)
}

func (u *underWay) end(thread string) {
	close(u.jobs[thread].ended)
	delete(u.jobs, thread)
}

// wait waits for the summaries of a thread, but not for those that are in the making
// for longer than so.
func (u *underWay) wait(ctx context.Context, thread string, most time.Duration) {
	u.mu.Lock()
	job, there := u.jobs[thread]
	if !there {
		u.mu.Unlock()
		return
	}
	ended, latest := job.ended, job.since.Add(most)
	u.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, latest)
	defer cancel()
	select {
	case <-ended:
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
		s.summariseNow(ctx, thread.ID, history)
	}
	s.underWay.wait(ctx, thread.ID, wait)
	return s.Store.Thread(ctx, thread.ID)
}

// summariseNow begins to write summaries of everything that was said.
func (s *Service) summariseNow(ctx context.Context, threadID string, history []store.Message) {
	if ours := s.underWay.ask(threadID, len(history)/2); ours && !s.start(func() { s.summarise(ctx, threadID) }) {
		s.underWay.abandon(threadID)
	}
}

// summarise writes the summaries that were asked for. One that fails is due again after the
// next turn; until then excerpts stand in for it. What comes too late for a turn is there for
// the next, so that the end of the context does not count: each summary has its own.
func (s *Service) summarise(ctx context.Context, threadID string) {
	ctx = context.WithoutCancel(ctx)
	for {
		upTo, more := s.underWay.next(threadID)
		if !more {
			return
		}
		s.logFailure(ctx, threadID, s.summariseUpTo(ctx, threadID, upTo))
	}
}

func (s *Service) logFailure(ctx context.Context, threadID string, err error) {
	if err != nil && task.CodeOf(err) != task.NotFound { // the review may be gone by now
		s.Log.WarnContext(ctx, "failed to summarize a conversation; retrying after the next turn", "thread", threadID, "error", err)
	}
}

// summariseUpTo writes the summaries that are due, and those up to a turn. None of them goes
// beyond a multiple of five.
func (s *Service) summariseUpTo(ctx context.Context, threadID string, upTo int) error {
	thread, err := s.Store.Thread(ctx, threadID)
	if err != nil {
		return err
	}
	said, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return err
	}
	history := answered(said)
	turns := len(history) / 2
	upTo = min(max(upTo, whole.summarised(turns)), turns)
	if thread.SummaryUpToTurn >= upTo {
		return nil
	}
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
