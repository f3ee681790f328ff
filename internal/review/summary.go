package review

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// segment is how many turns one summary is of.
const segment = 5

// summaryWithin bounds one summary: whoever asks next in the same thread waits for
// it.
const summaryWithin = time.Minute

// summarise writes the summaries that are due. One that fails is due again after
// the next turn; until then the history is sent whole.
func (s *Service) summarise(ctx context.Context, threadID string) {
	for {
		more, err := s.summariseNext(ctx, threadID)
		if err != nil && task.CodeOf(err) != task.NotFound { // the review may be gone by now
			s.Log.WarnContext(ctx, "failed to summarize a conversation; retrying after the next turn", "thread", threadID, "error", err)
		}
		if err != nil || !more {
			return
		}
	}
}

// summariseNext writes the oldest summary that is due, if there is one.
func (s *Service) summariseNext(ctx context.Context, threadID string) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, summaryWithin)
	defer cancel()
	stopWhen(ctx, cancel, s.stop)
	thread, err := s.Store.Thread(ctx, threadID)
	if err != nil {
		return false, err
	}
	said, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return false, err
	}
	history := answered(said)
	from, to := thread.SummaryUpToTurn, thread.SummaryUpToTurn+segment
	if len(history) < 2*to {
		return false, nil
	}
	w := wordingIn(thread.Language)
	text, err := s.summaryOf(ctx, w, thread.ID, history[2*from:2*to])
	if err != nil {
		return false, err
	}
	err = s.Store.AddSummary(ctx, threadID, from, to, w.text("conversation.segment", from+1, to)+"\n"+text)
	if task.CodeOf(err) == task.Conflict {
		err = nil // another server was quicker
	}
	return err == nil, err
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

func (s *Service) summaryOf(ctx context.Context, w wording, run string, said []store.Message) (string, error) {
	model, err := s.Model(ForSummary)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, message := range said {
		name := w.text("conversation.user")
		if message.Role == store.AssistantMessage {
			name = w.text("conversation.assistant")
		}
		fmt.Fprintf(&b, "%s (%d): %s\n\n", name, message.Turn, llm.QuoteEntry(message.Content))
	}
	response, err := model.Chat(ctx, llm.Request{
		System:   w.summarize,
		Messages: []llm.Message{llm.UserText(llm.Quote(llm.Origin{Source: "conversation"}, b.String()))},
		Run:      run + "/summary",
	}, nil)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(forge.Clean(response.Message.Text()))
	if text == "" || response.Stop == llm.StopMaxTokens {
		return "", task.Errorf(task.Unavailable, "the model gave no whole summary")
	}
	return text, nil
}
