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
	Owner                 string // who keeps it; empty for one of before, which is everyone's
	Text                  string
	PurposeText           string // 出題趣旨
	GradingImpressionText string // 採点実感
	CreatedAt             time.Time
}

// QuestionFilter narrows a listing. Zero fields do not narrow.
type QuestionFilter struct {
	// Reader is someone who may read them: the owner, or a person who may read a review of
	// them. Those without an owner all may read.
	Reader string
	ID     string
	After  string // only what comes after the question with this id
	Newest bool   // newest first
	Brief  bool   // with the beginning of the text, and without the others
	Limit  int    // 0 means all
}

// Questions keeps official questions.
type Questions interface {
	// AddQuestion stores a question and returns it with its id. The same texts of the same
	// owner are one question.
	AddQuestion(ctx context.Context, q Question) (Question, error)
	// Question returns one question.
	Question(ctx context.Context, id string) (Question, error)
	// ListQuestions returns the questions that pass the filter, oldest first.
	ListQuestions(ctx context.Context, filter QuestionFilter) ([]Question, error)
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
	Verdict    string // of a pull request: approve, comment or request_changes
	// State says what became of a review that a model makes; empty when it is there. Cause is
	// why there is none, and until HeldUntil somebody works on it, who is known by Claim.
	State     ReviewState
	Cause     string
	HeldUntil time.Time
	Claim     string
	// Title is the beginning of the question, where reviews are listed.
	Title     string
	CreatedAt time.Time
}

// ReviewState says what became of a review.
type ReviewState string

// The states of reviews.
const (
	Judged    ReviewState = ""
	Judging   ReviewState = "judging" // see Review.HeldUntil
	NotJudged ReviewState = "failed"  // can be tried again
)

// ReviewFilter narrows a listing. Zero fields do not narrow.
type ReviewFilter struct {
	Owner string
	// Reader is someone who may read them: the owner, or a person with whom they are
	// shared. With Pulls, reviews of pull requests are among them too, which all may read.
	Reader string
	Pulls  bool
	Kind   string // DocumentReviews or PullReviews
	Text   string // each word of it in the question, the name of the pull request or that of the owner
	Pull   task.Key
	After  string // only what comes after the review with this id
	Before string // only what comes before it
	Newest bool   // newest first
	Brief  bool   // without answers and judgements, which are large, and of questions the beginning
	Limit  int    // 0 means all
}

// The kinds of reviews.
const (
	DocumentReviews = "documents"
	PullReviews     = "pulls"
)

// Reviews keeps reviews.
type Reviews interface {
	// AddReview stores a review and returns it with its id. It fails with
	// NotFound for an unknown question and with Conflict for a second review of
	// the same head commit of the same pull request. The forge writes that go with
	// it are put into the outbox in the same transaction.
	AddReview(ctx context.Context, r Review, writes ...Action) (Review, error)
	// Review returns one review.
	Review(ctx context.Context, id string) (Review, error)
	// ListReviews returns the reviews that pass the filter.
	ListReviews(ctx context.Context, filter ReviewFilter) ([]Review, error)
	// Verdicts returns what the reviews of a pull request decided, by head commit. Those
	// that were made before verdicts were kept are left out.
	Verdicts(ctx context.Context, pull task.Key) (map[string]string, error)
	// ReviewedPulls returns the pull requests that have a review made at the given
	// moment or later.
	ReviewedPulls(ctx context.Context, since time.Time) ([]task.Key, error)
	// DeleteReview removes a review with its threads, and its question if that has an owner
	// and no other review.
	DeleteReview(ctx context.Context, id string) error
	// SetReviewState says what became of a review that is being made, with its judgement if
	// it is there. From Judging it is done by whoever has the claim of the review, until
	// somebody else has taken it over. From NotJudged the claim is a new one; so is that of a
	// review on which nobody works any more at the given moment. Conflict if the review is not
	// in the state from which it is to go on, or if somebody else works on it.
	SetReviewState(ctx context.Context, from ReviewState, to Review, now time.Time) error
}

// Thread is a conversation about a review. One without an owner is that of the
// people on the forge.
type Thread struct {
	ID                          string
	ReviewID                    string
	Owner                       string
	Language                    string // empty means that of what people write in it
	Spoken                      string // the language in which they last did, if that tells
	ConversationSummary         string
	SummaryUpToTurn             int
	LastSectionMentionTurn      int
	LastSectionParagraphNumbers []int
	CreatedAt                   time.Time
}

// ThreadEntry is a thread in a listing.
type ThreadEntry struct {
	Thread
	Title string   // the beginning of the review's question
	Pull  task.Key // that the review is of, if it is
	Turns int      // that were answered
}

// Threads keeps conversations. What the model is given besides the messages is
// made anew each time: see [Turns.Sent] for what is kept of it, for people.
type Threads interface {
	// AddThread stores a thread and returns it with its id; NotFound if its
	// review does not exist.
	AddThread(ctx context.Context, t Thread) (Thread, error)
	// SharedThread returns the thread of the review that has no owner, and makes
	// it, with the given language, if there is none. There is never more than one.
	SharedThread(ctx context.Context, reviewID, language string) (Thread, error)
	// Thread returns one thread.
	Thread(ctx context.Context, id string) (Thread, error)
	// ListThreads returns the threads of a review.
	ListThreads(ctx context.Context, reviewID string) ([]Thread, error)
	// ThreadsOf returns the newest threads of a person about reviews that the person may
	// read, newest first, with those of the people on the forge; about one review, or all if
	// it is empty. They come without their summaries.
	ThreadsOf(ctx context.Context, reader, reviewID string, limit int) ([]ThreadEntry, error)
	// ThreadWith returns the thread of a person about a review that has a message of the
	// origin, or NotFound.
	ThreadWith(ctx context.Context, reviewID, owner, origin string) (Thread, error)
	// AddSummary appends a summary of the turns after the given one, up to the
	// other; Conflict if the summaries of the thread do not end there.
	AddSummary(ctx context.Context, threadID string, after, upTo int, text string) error
}

// MessageRole says who speaks in a thread.
type MessageRole string

// The roles of messages.
const (
	UserMessage      MessageRole = "user"
	AssistantMessage MessageRole = "assistant"
)

// MessageState says what became of a user's message.
type MessageState string

// The states of messages. One of the assistant is always Answered.
const (
	Answering  MessageState = "answering" // see Message.HeldUntil
	Answered   MessageState = "answered"
	Unanswered MessageState = "unanswered" // not part of the conversation; can be asked again
)

// Message is one utterance in a thread. Turn counts exchanges from 1: a user's
// message and the answer to it have the same turn. Messages without an answer have
// the turn that they would have been.
type Message struct {
	ID       string
	ThreadID string
	Turn     int
	Role     MessageRole
	Content  string
	Author   string // who wrote it on a forge; empty for the thread's owner
	// Origin is the comment on a forge that the message came from, and Place the
	// review thread in which it stands. A comment is a message once. One that a page has
	// sent has a name of the page's for its origin, so that it is a message once too.
	Origin    string
	Place     string
	State     MessageState
	Cause     string // why there is no answer, or what people are told below one
	Attempts  int    // to answer it
	HeldUntil time.Time
	Citations json.RawMessage
	CreatedAt time.Time
}

// Ask is a message on its way into a thread.
type Ask struct {
	ThreadID string
	Content  string
	Author   string
	Origin   string
	Place    string
	// Repeat is the id of a message without an answer that is to be asked again;
	// Content is of no account then.
	Repeat string
	// Claim names whoever answers, until the given moment or longer: see HoldTurn.
	Claim      string
	Now, Until time.Time
}

// Begun is a turn that was begun. History is every message of the turns before it,
// in order: always a user's and its answer.
type Begun struct {
	Thread  Thread
	Message Message
	History []Message
}

// Ended is the answer to a turn, and what it leaves on the thread.
type Ended struct {
	MessageID                   string // of the user
	Claim                       string
	Content                     string
	Note                        string // what people are told below the answer; see Message.Cause
	Citations                   json.RawMessage
	Spoken                      string // the language of the message; empty if that does not tell
	LastSectionMentionTurn      int
	LastSectionParagraphNumbers []int
	// Sent is what the model was given, kept for people to look at.
	Sent   json.RawMessage
	Writes []Action // put into the outbox in the same transaction
}

// Turns keeps what is said in threads. Of all processes together one answers in a
// thread at a time, so that turns never mix.
type Turns interface {
	// BeginTurn puts a message into the thread as its next turn. Begun is false,
	// and nothing has changed, while another turn is being answered. A message
	// that is the same as the last one without an answer is that one, asked again, unless
	// either stands on a forge, and so is one of the same origin. NotFound if there is no such thread or no
	// message to repeat; Conflict for an origin that was answered, or for a message
	// to repeat that has an answer.
	BeginTurn(ctx context.Context, ask Ask) (turn Begun, begun bool, err error)
	// HoldTurn extends the time in which the turn is answered; LeaseLost if
	// somebody else has taken it over.
	HoldTurn(ctx context.Context, messageID, claim string, until time.Time) error
	// EndTurn stores the answer and returns it. LeaseLost if somebody else has
	// taken the turn over, NotFound if the thread is gone.
	EndTurn(ctx context.Context, ended Ended) (Message, error)
	// Sent returns what the model was given for an answer, or NotFound if that was
	// not kept.
	Sent(ctx context.Context, answerID string) (json.RawMessage, error)
	// FailTurn says that there is no answer; LeaseLost and NotFound as above.
	FailTurn(ctx context.Context, messageID, claim, cause string) error
	// Messages returns the messages of a thread by turn: those without an answer
	// first, then the user's, then the assistant's.
	Messages(ctx context.Context, threadID string) ([]Message, error)
	// MessageOf returns the message that came from a comment on a forge, in any
	// thread of the pull request's reviews; NotFound if there is none.
	MessageOf(ctx context.Context, pull task.Key, origin string) (Message, error)
}
