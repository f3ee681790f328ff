package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// largestRequest is the most that a request may have. A context of a million
// tokens has less.
const largestRequest = 64 << 20

// Server plays a script over HTTP in the wire formats of the vendors.
type Server struct {
	*Player
	mux *http.ServeMux
}

// NewServer returns a server that is at the start of its script.
func NewServer(script *Script) *Server {
	s := &Server{Player: NewPlayer(script), mux: http.NewServeMux()}
	s.mux.HandleFunc("POST /v1/messages", s.chat(anthropicWire{}))
	s.mux.HandleFunc("POST /v1/messages/count_tokens", s.count(anthropicWire{}))
	s.mux.HandleFunc("POST /v1/chat/completions", s.chat(chatWire{}))
	s.mux.HandleFunc("POST /v1/responses", s.chat(responsesWire{}))
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	s.serveClouds()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(llm.ScriptedHeader, "true")
	s.mux.ServeHTTP(w, r)
}

// Serve serves the script on the listener until the context ends.
func Serve(ctx context.Context, script *Script, listener net.Listener) error {
	server := &http.Server{Handler: NewServer(script), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the script: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		return errors.Join(server.Close(), ignoreClosed(<-ended))
	}
	return ignoreClosed(<-ended)
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// asked is a request that came over HTTP.
type asked struct {
	request llm.Request
	stream  bool
	usage   bool   // the stream shall tell the usage
	ordered []byte // see [Record]
	bound   bool   // what was thought is checked with the conversation before it
}

// wire is one wire format.
type wire interface {
	name() string
	// read reads a request. Its error is one that the vendor would give too.
	read(body []byte) (asked, error)
	// whole is the answer in one piece.
	whole(model string, answer played) any
	// open begins a stream.
	open(w io.Writer, model string, answer played, ask asked) eventStream
	// failure is the body of an error.
	failure(status int, failure Failure) any
	// counted is the answer to a request for a token count.
	counted(tokens int64) any
}

// eventStream writes the events of a streamed answer.
type eventStream interface {
	begin()
	piece(p piece)
	fail(failure Failure)
	end()
}

func (s *Server) chat(format wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, format, false) }
}

func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	_, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch method {
	case "generateContent":
		s.answer(w, r, geminiWire{}, false)
	case "streamGenerateContent":
		s.answer(w, r, geminiWire{}, true)
	case "countTokens":
		s.count(geminiWire{})(w, r)
	default:
		respond(w, http.StatusNotFound, geminiWire{}.failure(http.StatusNotFound, Failure{Message: "no such method " + method}))
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, format wire, stream bool) {
	ask, body, err := s.read(w, r, format)
	if err != nil {
		refuse(w, format, err)
		return
	}
	answer, err := s.play(Record{
		Wire: format.name(), Request: ask.request, Body: body, Ordered: ask.ordered,
		Header: map[string]string{"User-Agent": r.UserAgent(), "Authorization-Set": fmt.Sprint(hasKey(r))},
	})
	if err != nil {
		refuse(w, format, err)
		return
	}
	answer.sign(ask.request)
	if lifecycle.Sleep(r.Context(), answer.plan.Delay) != nil {
		return // the client has gone
	}
	if failure := answer.plan.Error; failure != nil && failure.After == 0 {
		maps.Copy(w.Header(), failure.header())
		respond(w, failure.Status, format.failure(failure.Status, *failure))
		return
	}
	if stream || ask.stream {
		s.stream(w, r, format, answer, ask)
		return
	}
	if answer.plan.Cut > 0 {
		panic(http.ErrAbortHandler)
	}
	respond(w, http.StatusOK, format.whole(s.script.Model, answer))
}

func hasKey(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" || r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("Api-Key") != ""
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, format wire) (asked, []byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestRequest))
	if err != nil {
		return asked{}, nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	ask, err := format.read(body)
	if err != nil {
		return asked{}, nil, err
	}
	ask.request.Run = r.Header.Get(llm.RunHeader)
	ask.request.Phase = task.Phase(r.Header.Get(llm.PhaseHeader))
	if err := check(ask.request); err != nil {
		return asked{}, nil, err
	}
	return ask, body, verify(ask.request, ask.bound)
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, format wire, answer played, ask asked) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if other, is := format.(interface{ contentType() string }); is {
		w.Header().Set("Content-Type", other.contentType())
	}
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	out := format.open(w, s.script.Model, answer, ask)
	out.begin()
	for i, p := range pieces(answer.parts) {
		if breaksOff(answer, i, out, flush) || lifecycle.Sleep(r.Context(), answer.plan.Pace) != nil {
			return
		}
		out.piece(p)
		if answer.plan.Pace > 0 {
			_ = flush.Flush() // the client has gone: the next write says so too
		}
	}
	if breaksOff(answer, 1<<30, out, flush) {
		return
	}
	out.end()
}

// breaksOff ends the stream where the script says so: with an error event, or by
// closing the connection without a word.
func breaksOff(answer played, sent int, out eventStream, flush *http.ResponseController) bool {
	if cut := answer.plan.Cut; cut > 0 && sent >= cut {
		_ = flush.Flush() // what was sent so far reaches the client
		panic(http.ErrAbortHandler)
	}
	if failure := answer.plan.Error; failure != nil && sent >= failure.After {
		out.fail(*failure)
		return true
	}
	return false
}

func (s *Server) count(format wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ask, _, err := s.read(w, r, format)
		if err != nil {
			refuse(w, format, err)
			return
		}
		respond(w, http.StatusOK, format.counted(tokensOf(len(ask.ordered))))
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": s.script.Model, "object": "model", "type": "model", "owned_by": "script"}},
	})
}

func refuse(w http.ResponseWriter, format wire, err error) {
	failure := Failure{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()}
	respond(w, failure.Status, format.failure(failure.Status, failure))
}

func respond(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has gone cannot be told
}

// event writes one server-sent event. The writer fails only when the client has
// gone, which the request's context tells.
func event(w io.Writer, name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte(`{}`)
	}
	if name != "" {
		_, _ = fmt.Fprintf(w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
}

// ordered joins the raw parts of a request that a provider caches.
func ordered(parts ...json.RawMessage) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// fields is a JSON object for an answer.
type fields = map[string]any

// argumentsObject is the arguments as an object, for wire formats that have no
// place for anything else.
func argumentsObject(text string) any {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return fields{}
	}
	return object
}
