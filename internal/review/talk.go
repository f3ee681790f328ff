package review

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Said is a message as people are shown it: with what they are told about it, and its
// citations as they are now.
type Said struct {
	store.Message
	Citations []Citation
}

// Messages returns what was said in a thread. A message whose answering ended
// unseen is shown as unanswered.
func (s *Service) Messages(ctx context.Context, who, threadID string) ([]Said, error) {
	_, record, err := s.thread(ctx, who, threadID)
	if err != nil {
		return nil, err
	}
	stored, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return nil, err
	}
	said := make([]Said, len(stored))
	for i, message := range stored {
		if said[i], err = s.said(message); err != nil {
			return nil, err
		}
	}
	s.freshen(ctx, record, said)
	return said, nil
}

// Answer is a stored answer as people are shown it.
func (s *Service) Answer(ctx context.Context, who string, message store.Message) (Said, error) {
	_, record, err := s.thread(ctx, who, message.ThreadID)
	if err != nil {
		return Said{}, err
	}
	one, err := s.said(message)
	if err != nil {
		return Said{}, err
	}
	all := []Said{one}
	s.freshen(ctx, record, all)
	return all[0], nil
}

func (s *Service) said(message store.Message) (Said, error) {
	if message.State == store.Answering && !message.HeldUntil.After(s.Now()) {
		message.State, message.Cause = store.Unanswered, Interrupted
	}
	if message.Role == store.AssistantMessage {
		message.Content, message.Cause = withNote(message.Content, message.Cause), ""
	}
	one := Said{Message: message}
	if len(message.Citations) > 0 {
		if err := json.Unmarshal(message.Citations, &one.Citations); err != nil {
			return Said{}, task.Wrap(task.Internal, err, "the citations of message "+message.ID+" cannot be read")
		}
	}
	return one, nil
}

// freshen marks citations that a later push made stale.
func (s *Service) freshen(ctx context.Context, record store.Review, said []Said) {
	if !slices.ContainsFunc(said, func(one Said) bool { return len(one.Citations) > 0 }) {
		return
	}
	newer, moved := s.newerSections(ctx, record)
	if !moved {
		return
	}
	sections := judge.ParseSections(record.AnswerText)
	for _, one := range said {
		markStale(one.Citations, sections, newer, record.HeadCommit)
	}
}

// Preview is what would be sent for an input in a thread, now.
func (s *Service) Preview(ctx context.Context, who, threadID, input string) (Composition, error) {
	thread, record, err := s.thread(ctx, who, threadID)
	if err != nil {
		return Composition{}, err
	}
	if err := bounded("message", input, maxMessage); err != nil {
		return Composition{}, err
	}
	material, err := s.material(ctx, record)
	if err != nil {
		return Composition{}, err
	}
	said, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return Composition{}, err
	}
	history := answered(said)
	thread.Language = string(s.spokenIn(thread, record, material, input))
	return Compose(s.Prompts, material, thread, history, input)
}

// Given is what a model is given, for people to look at.
type Given struct {
	System   string         `json:"system"`
	Messages []GivenMessage `json:"messages"`
}

// GivenMessage is one message of it.
type GivenMessage struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Given is what the composition gives the model.
func (c Composition) Given() Given {
	given := Given{System: c.Request.System}
	for _, message := range c.Request.Messages {
		given.Messages = append(given.Messages, GivenMessage{Role: string(message.Role), Text: message.Text()})
	}
	return given
}

// Sent is what the model was given for an answer, when it was. NotFound if that was
// not kept.
func (s *Service) Sent(ctx context.Context, who, threadID, answerID string) (given Given, err error) {
	if _, _, err := s.thread(ctx, who, threadID); err != nil {
		return Given{}, err
	}
	said, err := s.Store.Messages(ctx, threadID)
	if err != nil {
		return Given{}, err
	}
	if !slices.ContainsFunc(said, func(message store.Message) bool { return message.ID == answerID }) {
		return Given{}, task.Errorf(task.NotFound, "there is no such answer in this conversation")
	}
	kept, err := s.Store.Sent(ctx, answerID)
	if err != nil {
		return Given{}, err
	}
	if err := json.Unmarshal(kept, &given); err != nil {
		return Given{}, task.Wrap(task.Internal, err, "what the model was sent for message "+answerID+" cannot be read")
	}
	return given, nil
}

// withUnconfirmed adds to an answer which of its citations are not true.
func withUnconfirmed(answer string, cited []Citation, in task.Language) string {
	var wrong []string
	for _, citation := range cited {
		if shown := citation.Shown(); citation.State != Confirmed && !slices.Contains(wrong, shown) {
			wrong = append(wrong, shown)
		}
	}
	if len(wrong) == 0 {
		return answer
	}
	return answer + "\n\n" + messages.Text(in, "conversation.unconfirmed", strings.Join(wrong, ", "))
}
