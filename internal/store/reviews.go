package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Question is an official question with what is known about grading it.
type Question struct {
	ID                    string
	Text                  string
	PurposeText           string // 出題趣旨
	GradingImpressionText string // 採点実感
	CreatedAt             time.Time
}

// Questions keeps official questions.
type Questions interface {
	// AddQuestion stores a question and returns it with its id.
	AddQuestion(ctx context.Context, q Question) (Question, error)
	// Question returns one question.
	Question(ctx context.Context, id string) (Question, error)
	// ListQuestions returns all questions.
	ListQuestions(ctx context.Context) ([]Question, error)
}

// Review is a judgement of an answer to a question.
type Review struct {
	ID                 string
	Owner              string // the user whose history it is in
	QuestionID         string // or:
	CustomQuestionText string
	AnswerText         string // sections marked $$[N]
	Judgement          json.RawMessage
	// Pull and HeadCommit say of which state of which pull request the review
	// is; zero for a document. A head commit is reviewed once.
	Pull       task.Key
	HeadCommit string
	CreatedAt  time.Time
}

// Reviews keeps reviews.
type Reviews interface {
	// AddReview stores a review and returns it with its id. It fails with
	// NotFound for an unknown question and with Conflict for a second review of
	// the same head commit of the same pull request.
	AddReview(ctx context.Context, r Review) (Review, error)
	// Review returns one review.
	Review(ctx context.Context, id string) (Review, error)
	// ListReviews returns the reviews of an owner; "" means everyone's.
	ListReviews(ctx context.Context, owner string) ([]Review, error)
	// DeleteReview removes a review with its threads.
	DeleteReview(ctx context.Context, id string) error
}

// Thread is a conversation about a review.
type Thread struct {
	ID                          string
	ReviewID                    string
	Owner                       string
	ConversationSummary         string
	SummaryUpToTurn             int
	LastSectionMentionTurn      int
	LastSectionParagraphNumbers []int
	CreatedAt                   time.Time
}

// MessageRole says who speaks in a thread.
type MessageRole string

// The roles of messages.
const (
	UserMessage      MessageRole = "user"
	AssistantMessage MessageRole = "assistant"
)

// Message is one utterance in a thread. Turn counts exchanges from 1: a user's
// message and the answer to it have the same turn.
type Message struct {
	ID        string
	ThreadID  string
	Turn      int
	Role      MessageRole
	Content   string
	CreatedAt time.Time
}

// Threads keeps conversations. What the model is given besides the messages is
// made anew each time and not kept.
type Threads interface {
	// AddThread stores a thread and returns it with its id; NotFound if its
	// review does not exist.
	AddThread(ctx context.Context, t Thread) (Thread, error)
	// Thread returns one thread.
	Thread(ctx context.Context, id string) (Thread, error)
	// ListThreads returns the threads of a review.
	ListThreads(ctx context.Context, reviewID string) ([]Thread, error)
	// UpdateThread stores the summary and section fields of the thread.
	UpdateThread(ctx context.Context, t Thread) error
	// AddMessage stores a message and returns it with its id. A turn holds at
	// most one message of each role: a second one is a Conflict.
	AddMessage(ctx context.Context, m Message) (Message, error)
	// Messages returns the messages of a thread by turn, the user's first.
	Messages(ctx context.Context, threadID string) ([]Message, error)
}
