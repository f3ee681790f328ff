package llm

import "strings"

// Role says who speaks.
type Role string

// The roles. Tool results are part of a user message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation. It is a value: once it is part of a
// conversation nobody changes it.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is a piece of a message. Exactly one of its fields is set.
type Part struct {
	Text     string    `json:"text,omitempty"`
	Call     *Call     `json:"call,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Thinking *Thinking `json:"thinking,omitempty"`
	Image    *Image    `json:"image,omitempty"`
}

// Call is a model's wish to use a tool. Arguments is the text as the model wrote
// it, which need not be valid JSON.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Signature is opaque to everyone but its maker, who wants it back with the call.
	Signature []byte `json:"signature,omitempty"`
	SignedBy  string `json:"signed_by,omitempty"` // see [Endpoint.Maker]
}

// Result is what a tool answered to the call with the same ID.
type Result struct {
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Error  bool   `json:"error,omitempty"`
}

// Thinking is what a model thought before it answered. It is no part of the answer. Data
// is the maker's own form, which goes back to it as it came and to no other.
type Thinking struct {
	Maker string `json:"maker,omitempty"` // see [Endpoint.Maker]
	Text  string `json:"text,omitempty"`
	Data  []byte `json:"data,omitempty"`
}

// Tool describes a tool to the model. Schema is the JSON schema of an object. It
// is sent as it is, so that the same tool gives the same bytes each time.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      []byte `json:"schema"`
}

// TextPart returns a part with text.
func TextPart(text string) Part { return Part{Text: text} }

// CallPart returns a part with a call.
func CallPart(call Call) Part { return Part{Call: &call} }

// ResultPart returns a part with a result.
func ResultPart(result Result) Part { return Part{Result: &result} }

// UserText returns a user message with one text.
func UserText(text string) Message { return Message{Role: User, Parts: []Part{TextPart(text)}} }

// Text is all text of the message, without calls, results and thinking.
func (m Message) Text() string {
	var texts []string
	for _, part := range m.Parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Calls returns the calls of the message in order.
func (m Message) Calls() []Call {
	var calls []Call
	for _, part := range m.Parts {
		if part.Call != nil {
			calls = append(calls, *part.Call)
		}
	}
	return calls
}

// Images returns the images of the message in order.
func (m Message) Images() []Image {
	var images []Image
	for _, part := range m.Parts {
		if part.Image != nil {
			images = append(images, *part.Image)
		}
	}
	return images
}

// Results returns the results of the message in order.
func (m Message) Results() []Result {
	var results []Result
	for _, part := range m.Parts {
		if part.Result != nil {
			results = append(results, *part.Result)
		}
	}
	return results
}

// Empty reports whether the message has neither text nor calls nor results.
func (m Message) Empty() bool {
	return strings.TrimSpace(m.Text()) == "" && len(m.Calls()) == 0 && len(m.Results()) == 0
}

// partFrame is about what the wire formats put around one part.
const partFrame = 24

// Size is the number of bytes that the message takes in a request, the frame of
// the wire format included roughly. It is what a [Meter] measures against.
func (m Message) Size() int {
	size := partFrame
	for _, part := range m.Parts {
		size += partFrame + len(part.Text)
		if part.Call != nil {
			size += len(part.Call.ID) + len(part.Call.Name) + len(part.Call.Arguments)
		}
		if part.Result != nil {
			size += len(part.Result.CallID) + len(part.Result.Text)
		}
		if part.Thinking != nil {
			size += len(part.Thinking.Text)
		}
		if part.Image != nil {
			size += part.Image.size()
		}
	}
	return size
}
