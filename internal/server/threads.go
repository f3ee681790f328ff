package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	newThread      struct{ Body wire.NewThread }
	threadOutput   struct{ Body wire.Thread }
	messagesOutput struct{ Body wire.Messages }
	contextInput   struct {
		ID    string `path:"id"`
		Input string `query:"input" doc:"What would be said"`
	}
	contextOutput struct{ Body wire.ChatContext }
	newMessage    struct {
		ID     string `path:"id"`
		Accept string `header:"Accept" doc:"text/event-stream streams the answer"`
		Body   wire.NewMessage
	}
)

const eventStream = "text/event-stream"

func (r reviews) registerThreads(unknown []int) {
	s := r.server
	register(s, access.Operator, huma.Operation{
		OperationID: "add-thread", Method: http.MethodPost, Path: "/v1/threads", Summary: "Begin a conversation about a review",
		DefaultStatus: http.StatusCreated, Errors: unknown,
	}, r.addThread)
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-thread", Method: http.MethodGet, Path: "/v1/threads/{id}", Summary: "One conversation", Errors: unknown,
	}, r.getThread)
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-messages", Method: http.MethodGet, Path: "/v1/threads/{id}/messages", Summary: "What was said", Errors: unknown,
	}, r.listMessages)
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-chat-context", Method: http.MethodGet, Path: "/v1/threads/{id}/context", Summary: "What the model would be sent for an input", Errors: unknown,
	}, r.getContext)
	register(s, access.Operator, huma.Operation{
		OperationID: "add-message", Method: http.MethodPost, Path: "/v1/threads/{id}/messages", Summary: "Say something; the answer is the assistant's message",
		Description: "With Accept: text/event-stream the answer is streamed: the events asked, delta, and at the end message or problem. " +
			"An answer goes on when the caller goes away, and is found among the messages.",
		Errors: append([]int{http.StatusRequestEntityTooLarge, http.StatusBadGateway, http.StatusServiceUnavailable}, unknown...),
		Responses: map[string]*huma.Response{"200": {
			Description: "The assistant's message", Content: map[string]*huma.MediaType{
				"application/json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Message](), true, "")},
				eventStream:        {Schema: &huma.Schema{Type: huma.TypeString}},
			},
		}},
	}, r.addMessage)
}

// ThreadOf is a thread as clients see it.
func ThreadOf(t store.Thread) wire.Thread {
	numbers := t.LastSectionParagraphNumbers
	if numbers == nil {
		numbers = []int{}
	}
	return wire.Thread{
		ID: t.ID, ReviewID: t.ReviewID, Language: t.Language, Shared: t.Owner == "", ConversationSummary: t.ConversationSummary,
		SummaryUpToTurn: t.SummaryUpToTurn, LastSectionMentionTurn: t.LastSectionMentionTurn,
		LastSectionParagraphNumbers: numbers, CreatedAt: t.CreatedAt,
	}
}

// MessageOf is a message as clients see it.
func MessageOf(said review.Said) wire.Message {
	shown := wire.Message{
		ID: said.ID, ThreadID: said.ThreadID, Role: string(said.Role), Content: said.Content, Turn: said.Turn,
		State: string(said.State), Cause: said.Cause, Author: said.Author, CreatedAt: said.CreatedAt,
	}
	for _, c := range said.Citations {
		shown.Citations = append(shown.Citations, wire.Citation{
			Text: c.Text, Section: c.Section, Path: c.Path, Start: c.Start, End: c.End, Commit: c.Commit, Quote: c.Quote, State: string(c.State),
		})
	}
	return shown
}

func (r reviews) addThread(ctx context.Context, input *newThread) (*threadOutput, error) {
	who := person(ctx)
	made, err := r.service.AddThread(ctx, who, input.Body.ReviewID, task.Language(input.Body.Language))
	return &threadOutput{ThreadOf(made)}, err
}

func (r reviews) getThread(ctx context.Context, input *byID) (*threadOutput, error) {
	who := person(ctx)
	found, err := r.service.Thread(ctx, who, input.ID)
	return &threadOutput{ThreadOf(found)}, err
}

func (r reviews) listMessages(ctx context.Context, input *byID) (*messagesOutput, error) {
	who := person(ctx)
	said, err := r.service.Messages(ctx, who, input.ID)
	output := messagesOutput{wire.Messages{Messages: make([]wire.Message, 0, len(said))}}
	for _, one := range said {
		output.Body.Messages = append(output.Body.Messages, MessageOf(one))
	}
	return &output, err
}

func (r reviews) getContext(ctx context.Context, input *contextInput) (*contextOutput, error) {
	who := person(ctx)
	composed, err := r.service.Preview(ctx, who, input.ID, input.Input)
	if err != nil {
		return nil, err
	}
	shown := wire.ChatContext{Turn: composed.Turn, ParagraphNumbers: composed.Numbers, System: composed.Request.System}
	if shown.ParagraphNumbers == nil {
		shown.ParagraphNumbers = []int{}
	}
	for _, message := range composed.Request.Messages {
		shown.Messages = append(shown.Messages, wire.ChatMessage{Role: string(message.Role), Content: message.Text()})
	}
	return &contextOutput{shown}, nil
}

// addMessage answers when the answer is whole, or streams it. What is wrong with
// the message itself is a problem either way.
func (r reviews) addMessage(ctx context.Context, input *newMessage) (*huma.StreamResponse, error) {
	who := person(ctx)
	turn, err := r.service.Ask(ctx, who, input.ID, review.Message{Content: input.Body.Content, Repeat: input.Body.Repeat})
	if err != nil {
		return nil, err
	}
	if strings.Contains(input.Accept, eventStream) {
		return &huma.StreamResponse{Body: func(to huma.Context) { r.stream(to, who, turn) }}, nil
	}
	answer, err := turn.Follow(ctx, nil)
	if err != nil {
		return nil, err
	}
	said, err := r.service.Answer(ctx, who, answer)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(MessageOf(said))
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(to huma.Context) {
		to.SetHeader("Content-Type", "application/json")
		if _, err := to.BodyWriter().Write(body); err != nil {
			r.server.log.DebugContext(ctx, "client disconnected", "error", err)
		}
	}}, nil
}

// keepAlive is how often a silent stream shows that it is alive.
const keepAlive = 15 * time.Second

// stream sends a turn as server-sent events.
func (r reviews) stream(to huma.Context, who string, turn *review.Turn) {
	ctx, cancel := context.WithCancel(to.Context())
	defer cancel()
	to.SetHeader("Content-Type", eventStream)
	to.SetHeader("Cache-Control", "no-store")
	to.SetHeader("X-Accel-Buffering", "no")
	out := &events{to: to, cancel: cancel}
	out.send(wire.EventAsked, MessageOf(review.Said{Message: turn.Asked}))
	pieces := make(chan review.Piece)
	type ending struct {
		message store.Message
		err     error
	}
	ended := make(chan ending, 1)
	go func() {
		message, err := turn.Follow(ctx, func(piece review.Piece) {
			select {
			case pieces <- piece:
			case <-ctx.Done():
			}
		})
		ended <- ending{message, err}
	}()
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		select {
		case piece := <-pieces:
			out.send(wire.EventDelta, wire.ChatDelta{Text: piece.Text, Restart: piece.Restart})
		case <-ticker.C:
			out.write([]byte(": still there\n\n"))
		case end := <-ended:
			r.sendEnd(ctx, out, who, end.message, end.err)
			return
		}
	}
}

func (r reviews) sendEnd(ctx context.Context, out *events, who string, message store.Message, err error) {
	if ctx.Err() != nil {
		return // nobody is there; the answer is stored all the same
	}
	if err == nil {
		var said review.Said
		if said, err = r.service.Answer(ctx, who, message); err == nil {
			out.send(wire.EventMessage, MessageOf(said))
			return
		}
	}
	out.send(wire.EventProblem, r.server.problem(ctx, err).Problem)
}

// events writes server-sent events. A caller who is gone ends the stream.
type events struct {
	to     huma.Context
	cancel context.CancelFunc
}

func (e *events) send(name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		e.cancel()
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", name, encoded)
	e.write(text.Bytes())
}

func (e *events) write(text []byte) {
	writer := e.to.BodyWriter()
	if _, err := writer.Write(text); err != nil {
		e.cancel()
		return
	}
	if answer, ok := writer.(http.ResponseWriter); ok {
		if err := http.NewResponseController(answer).Flush(); err != nil {
			e.cancel()
		}
	}
}
