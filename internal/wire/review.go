package wire

import (
	"encoding/json"
	"time"
)

// NewQuestion is an official question that is to be kept.
type NewQuestion struct {
	Text              string `json:"text" maxLength:"1048576"`
	Purpose           string `json:"purpose_text,omitempty" maxLength:"1048576" doc:"What the question is meant to test (出題趣旨)"`
	GradingImpression string `json:"grading_impression_text,omitempty" maxLength:"1048576" doc:"What the graders found (採点実感)"`
}

// Question is an official question.
type Question struct {
	ID                string    `json:"id"`
	Text              string    `json:"text"`
	Purpose           string    `json:"purpose_text"`
	GradingImpression string    `json:"grading_impression_text"`
	CreatedAt         time.Time `json:"created_at"`
}

// Questions is a listing of questions.
type Questions struct {
	Questions []Question `json:"questions"`
}

// NewReview is a review that is to be kept.
type NewReview struct {
	QuestionID     string          `json:"question_id,omitempty" doc:"An official question, or"`
	CustomQuestion string          `json:"custom_question_text,omitempty" maxLength:"1048576" doc:"the text of another one"`
	Answer         string          `json:"answer_text" maxLength:"4194304" doc:"In sections, each begun by a line that starts with $$[N]"`
	Review         json.RawMessage `json:"review" doc:"An object with overall_review, strengths, weaknesses, important_points and future_considerations"`
}

// ReviewEntry is a review in a listing.
type ReviewEntry struct {
	ID         string    `json:"id"`
	Title      string    `json:"title" doc:"The first line of the question"`
	QuestionID string    `json:"question_id,omitempty"`
	Pull       string    `json:"pull,omitempty" doc:"The pull request that it is of" example:"github:owner/name!12"`
	HeadCommit string    `json:"head_commit,omitempty"`
	Verdict    string    `json:"verdict,omitempty" doc:"What a review of a pull request decided" enum:"approve,comment,request_changes"`
	State      string    `json:"state,omitempty" doc:"What became of an assessment that the model makes, while it is not there" enum:"judging,failed"`
	Cause      string    `json:"cause,omitempty" doc:"Why it has failed"`
	Sections   int       `json:"sections" doc:"How many the answer has"`
	Owner      string    `json:"owner,omitempty" doc:"Whose it is; nobody's if it is of a pull request"`
	CreatedAt  time.Time `json:"created_at"`
}

// ReviewEntries is a listing of reviews, oldest first.
type ReviewEntries struct {
	Reviews []ReviewEntry `json:"reviews"`
}

// Review is a review whole.
type Review struct {
	ReviewEntry
	Question          string          `json:"question_text"`
	Purpose           string          `json:"purpose_text,omitempty"`
	GradingImpression string          `json:"grading_impression_text,omitempty"`
	CustomQuestion    string          `json:"custom_question_text,omitempty"`
	Answer            string          `json:"answer_text"`
	Review            json.RawMessage `json:"review"`
	Shares            *Shares         `json:"shares,omitempty" doc:"Who may read it besides you, if it is yours and anybody may"`
	Threads           []Thread        `json:"threads" doc:"Those that you can see"`
}

// Shares says who may read a review besides its owner.
type Shares struct {
	Everyone bool     `json:"everyone,omitempty" doc:"All who can sign in, or have a token"`
	People   []string `json:"people,omitempty" maxItems:"1000" doc:"The logins of accounts"`
}

// NewThread begins a conversation about a review.
type NewThread struct {
	ReviewID string `json:"review_id"`
	Language string `json:"language,omitempty" doc:"Without it, that of what you write, and of the review before you do" enum:"ja,en"`
}

// Thread is a conversation about a review.
type Thread struct {
	ID                          string    `json:"id"`
	ReviewID                    string    `json:"review_id"`
	Language                    string    `json:"language" enum:"ja,en"`
	Shared                      bool      `json:"shared,omitempty" doc:"It is held on the forge, and everyone can read it"`
	ConversationSummary         string    `json:"conversation_summary"`
	SummaryUpToTurn             int       `json:"summary_up_to_turn"`
	LastSectionMentionTurn      int       `json:"last_section_mention_turn"`
	LastSectionParagraphNumbers []int     `json:"last_section_paragraph_numbers"`
	CreatedAt                   time.Time `json:"created_at"`
}

// NewMessage is something that a person says.
type NewMessage struct {
	Content string `json:"content,omitempty" maxLength:"262144"`
	Repeat  string `json:"repeat,omitempty" doc:"In place of content: the id of a message without an answer, to ask it again"`
}

// Message is something that was said in a thread.
type Message struct {
	ID        string     `json:"id"`
	ThreadID  string     `json:"thread_id"`
	Role      string     `json:"role" enum:"user,assistant"`
	Content   string     `json:"content"`
	Turn      int        `json:"turn" doc:"Counts from 1; a question and its answer have the same"`
	State     string     `json:"state" doc:"What became of a user's message; one that is unanswered can be repeated" enum:"answering,answered,unanswered"`
	Cause     string     `json:"cause,omitempty" doc:"Why it is unanswered"`
	Author    string     `json:"author,omitempty" doc:"Who wrote it on the forge"`
	Citations []Citation `json:"citations,omitempty" doc:"What an answer cites, checked"`
	CreatedAt time.Time  `json:"created_at"`
}

// Citation is a place that an answer cites.
type Citation struct {
	Text    string `json:"text" doc:"As the answer has it" example:"§3"`
	Section int    `json:"section,omitempty"`
	Path    string `json:"path,omitempty"`
	Start   int    `json:"start,omitempty" doc:"The first line"`
	End     int    `json:"end,omitempty" doc:"The last line"`
	Commit  string `json:"commit,omitempty"`
	Quote   string `json:"quote,omitempty" doc:"The words that are quoted"`
	State   string `json:"state" enum:"confirmed,missing,misquoted,stale" doc:"Whether it exists, the words stand there, and no later push changed it"`
}

// Messages is everything that was said in a thread, by turn.
type Messages struct {
	Messages []Message `json:"messages"`
}

// ChatContext is what the model would be sent for an input.
type ChatContext struct {
	Turn             int           `json:"turn"`
	ParagraphNumbers []int         `json:"paragraph_numbers" doc:"The sections that are given"`
	System           string        `json:"system"`
	Messages         []ChatMessage `json:"messages"`
}

// ChatMessage is one message of what the model is sent.
type ChatMessage struct {
	Role    string `json:"role" enum:"user,assistant"`
	Content string `json:"content"`
}

// The events of a streamed answer. It ends with a message or a problem.
const (
	EventAsked   = "asked"   // data is the user's message, as it was stored
	EventDelta   = "delta"   // data is a ChatDelta
	EventMessage = "message" // data is the assistant's message
	EventProblem = "problem" // data is a Problem
)

// ChatDelta is a piece of an answer. Restart says that the pieces so far are void.
type ChatDelta struct {
	Text    string `json:"text,omitempty"`
	Restart bool   `json:"restart,omitempty"`
}
