package llm

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// Model answers conversations.
//
// A Model may be used by any number of goroutines at once. It keeps nothing
// between calls: the request is the whole conversation.
type Model interface {
	// Info says what the model is. It makes no call.
	Info() Info

	// Chat sends the conversation and waits for the whole answer. While it comes
	// in, sink, if not nil, is given its pieces in order, from this goroutine;
	// they are for showing only. The tool calls of an answer exist when Chat
	// returns them and not before: an answer that breaks off is an error, and
	// nothing of it may be acted on.
	//
	// Every error is an [*Error] or comes from the context. Its kind says whether
	// another try may go better. An adapter does not try again by itself.
	Chat(ctx context.Context, request Request, sink Sink) (Response, error)

	// CountTokens asks the provider how many tokens the request's input has. A
	// provider that cannot count gives an error with the kind [CannotCount].
	CountTokens(ctx context.Context, request Request) (int64, error)
}

// Info says what a model is.
type Info struct {
	Provider      string // "anthropic", "openai", "gemini", "script"
	Model         string
	ContextLength int64 // tokens of input and output together; 0 when not known
	MaxTokens     int64 // of one answer
	Prices        Prices
	Images        bool // whether it takes images
	// Scripted says that the answers come from a script and not from a model.
	// Whoever shows them to people says so too.
	Scripted bool
}

// Request is a whole conversation and what may be done in answer to it.
type Request struct {
	System   string    `json:"system,omitempty"`
	Tools    []Tool    `json:"tools,omitempty"`
	Messages []Message `json:"messages"`

	// MaxTokens limits the answer; 0 means what the model was configured with.
	MaxTokens int64 `json:"max_tokens,omitempty"`

	// Pinned is the number of messages at the start that stay the same for long.
	// An adapter may use it to tell its provider what to keep in a cache.
	Pinned int `json:"pinned,omitempty"`

	// PinnedParts is how many parts of the last pinned message stay the same; 0
	// means all of them.
	PinnedParts int `json:"pinned_parts,omitempty"`

	// InputTokens is the caller's estimate of the input, for the budget. 0 lets
	// the budget estimate by itself.
	InputTokens int64 `json:"-"`

	// Run and Phase tell a scripted model which of several runs asks, and from
	// where. A vendor is told neither, except that an adapter may use Run as an
	// opaque key by which the vendor finds its cache again.
	Run   string     `json:"-"`
	Phase task.Phase `json:"-"`
}

// Size is the number of bytes of the request's input, see [Message.Size].
func (r Request) Size() int {
	size := len(r.System)
	for _, tool := range r.Tools {
		size += partFrame + len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	for _, message := range r.Messages {
		size += message.Size()
	}
	return size
}

// Response is a whole answer.
type Response struct {
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop"`
	Usage   Usage      `json:"usage"`
	Cost    Money      `json:"cost"`
	Model   string     `json:"model"` // as the provider names what answered
	// Scripted is true when the answer came from a script, also over HTTP.
	Scripted bool `json:"scripted,omitempty"`
	// Standin is set when a fallback answered; see [WithFallback].
	Standin *Standin `json:"standin,omitempty"`
}

// StopReason says why an answer ended.
type StopReason string

// The stop reasons. A refusal is not among them: it is an error.
const (
	StopEnd       StopReason = "end"        // the model had said what it wanted to say
	StopCalls     StopReason = "calls"      // the model waits for the results of its calls
	StopMaxTokens StopReason = "max_tokens" // the limit cut the answer short
	StopOther     StopReason = "other"      // something that this port does not know
)

// Delta is a piece of an answer that comes in. Exactly one field is set.
type Delta struct {
	Text     string
	Thinking string
	CallName string // a call of this tool begins
	// Restart says that the pieces so far belong to an answer that broke off, and
	// that the answer begins again.
	Restart bool
}

// Sink takes the pieces of an answer.
type Sink func(Delta)

// Send gives the delta to the sink, if there is one.
func (s Sink) Send(delta Delta) {
	if s != nil {
		s(delta)
	}
}

// ScriptedHeader marks the HTTP answers of the scripted model, so that an
// adapter that talks to it over the network knows that they are scripted.
const ScriptedHeader = "Toryo-Scripted"

// The headers that tell a scripted model over HTTP what [Request.Run] and
// [Request.Phase] are. An adapter sends them to a configured base URL only.
const (
	RunHeader   = "Toryo-Run"
	PhaseHeader = "Toryo-Phase"
)
