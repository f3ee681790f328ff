package script

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
)

// The clouds have the wire formats of the vendors at other paths, with small differences.
func (s *Server) serveClouds() {
	s.mux.HandleFunc("POST /model/{model}/invoke-with-response-stream", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, bedrockWire{anthropicCloud{r.PathValue("model"), "bedrock-2023-05-31"}}, true)
	})
	const vertex = "POST /v1/projects/{project}/locations/{region}/publishers/"
	s.mux.HandleFunc(vertex+"google/models/{call}", s.gemini)
	s.mux.HandleFunc(vertex+"anthropic/models/{call}", func(w http.ResponseWriter, r *http.Request) {
		model, method, _ := strings.Cut(r.PathValue("call"), ":")
		format := anthropicCloud{model, "vertex-2023-10-16"}
		switch {
		case method == "streamRawPredict":
			s.answer(w, r, format, true)
		case method == "rawPredict" && model == "count-tokens":
			s.count(anthropicWire{})(w, r)
		default:
			respond(w, http.StatusNotFound, format.failure(http.StatusNotFound, Failure{Message: "no such method " + method}))
		}
	})
	s.mux.HandleFunc("POST /openai/v1/chat/completions", s.chat(chatWire{}))
	s.mux.HandleFunc("POST /openai/v1/responses", s.chat(responsesWire{}))
	s.mux.HandleFunc("POST /openai/deployments/{deployment}/chat/completions", s.dated(chatWire{}))
	s.mux.HandleFunc("POST /openai/responses", s.dated(responsesWire{}))
}

// dated wants a version of the API, as Azure does.
func (s *Server) dated(format wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("api-version") == "" {
			respond(w, http.StatusNotFound, fields{"error": fields{"code": "404", "message": "Resource not found"}})
			return
		}
		s.answer(w, r, format, false)
	}
}

// anthropicCloud is the Messages format as clouds have it: the model is in the path, the version in
// the body.
type anthropicCloud struct{ model, version string }

func (anthropicCloud) name() string { return "anthropic" }

func (a anthropicCloud) read(body []byte) (asked, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return asked{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	for _, name := range []string{"model", "cache_control"} {
		if _, there := raw[name]; there {
			return asked{}, fmt.Errorf("%s: Extra inputs are not permitted", name)
		}
	}
	if text := string(raw["anthropic_version"]); text != `"`+a.version+`"` {
		return asked{}, errors.New("anthropic_version: Field required")
	}
	delete(raw, "anthropic_version")
	name, err := json.Marshal(a.model)
	if err != nil {
		return asked{}, err
	}
	raw["model"] = name
	whole, err := json.Marshal(raw)
	if err != nil {
		return asked{}, err
	}
	ask, err := anthropicWire{}.read(whole)
	if err != nil {
		return asked{}, err
	}
	ask.ordered = ordered(raw["tools"], raw["system"], withoutMarks(raw["messages"]))
	return ask, nil
}

// withoutMarks is messages without the marks for the cache, which are no part of what is cached.
func withoutMarks(messages json.RawMessage) json.RawMessage {
	var list []struct {
		Role    string                       `json:"role"`
		Content []map[string]json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &list) != nil {
		return messages
	}
	for _, message := range list {
		for _, block := range message.Content {
			delete(block, "cache_control")
		}
	}
	plain, err := json.Marshal(list)
	if err != nil {
		return messages
	}
	return plain
}

func (anthropicCloud) whole(model string, answer played) any {
	return anthropicWire{}.whole(model, answer)
}

func (anthropicCloud) counted(tokens int64) any { return anthropicWire{}.counted(tokens) }

func (anthropicCloud) failure(status int, failure Failure) any {
	return anthropicWire{}.failure(status, failure)
}

func (anthropicCloud) open(w io.Writer, model string, answer played, ask asked) eventStream {
	return anthropicWire{}.open(w, model, answer, ask)
}

// bedrockWire has the events of Anthropic in frames of AWS.
type bedrockWire struct{ anthropicCloud }

func (b bedrockWire) read(body []byte) (asked, error) {
	if bytes.Contains(body, []byte(`"stream":true`)) {
		return asked{}, errors.New("stream: Extra inputs are not permitted")
	}
	return b.anthropicCloud.read(body)
}

// contentType is that of the streamed answer.
func (bedrockWire) contentType() string { return "application/vnd.amazon.eventstream" }

func (bedrockWire) failure(_ int, failure Failure) any { return fields{"message": failure.Message} }

func (bedrockWire) open(w io.Writer, model string, answer played, ask asked) eventStream {
	framed := &frames{to: w}
	return &bedrockStream{anthropicWire{}.open(framed, model, answer, ask), framed}
}

type bedrockStream struct {
	eventStream
	frames *frames
}

func (s *bedrockStream) fail(failure Failure) {
	kind := "modelStreamErrorException"
	switch failure.Status {
	case http.StatusTooManyRequests:
		kind = "throttlingException"
	case http.StatusServiceUnavailable:
		kind = "serviceUnavailableException"
	}
	body, err := json.Marshal(map[string]string{"message": failure.Message})
	if err != nil {
		body = []byte("{}") // a map of texts always has a form
	}
	s.frames.write(map[string]string{":message-type": "exception", ":exception-type": kind, ":content-type": "application/json"}, body)
}

// frames turns each server-sent event that is written to it into a frame.
type frames struct {
	to      io.Writer
	pending bytes.Buffer
}

// Write implements [io.Writer].
func (f *frames) Write(p []byte) (int, error) {
	f.pending.Write(p)
	for {
		text, rest, whole := bytes.Cut(f.pending.Bytes(), []byte("\n\n"))
		if !whole {
			return len(p), nil
		}
		_, data, _ := bytes.Cut(text, []byte("data: "))
		body, err := json.Marshal(map[string][]byte{"bytes": data})
		if err != nil {
			return 0, err
		}
		f.write(map[string]string{":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}, body)
		f.pending = *bytes.NewBuffer(bytes.Clone(rest))
	}
}

// write writes a frame. The writer fails only when the client has gone.
func (f *frames) write(headers map[string]string, payload []byte) {
	var named bytes.Buffer
	for name, value := range headers {
		named.WriteByte(byte(len(name))) //nolint:gosec // they are short
		named.WriteString(name)
		named.WriteByte(7)
		named.Write(binary.BigEndian.AppendUint16(nil, uint16(len(value)))) //nolint:gosec // they are short
		named.WriteString(value)
	}
	length := uint32(12 + named.Len() + len(payload) + 4)                                                  //nolint:gosec // an event is short
	made := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), uint32(named.Len())) //nolint:gosec // headers are short
	made = binary.BigEndian.AppendUint32(made, crc32.ChecksumIEEE(made))
	made = append(append(made, named.Bytes()...), payload...)
	_, _ = f.to.Write(binary.BigEndian.AppendUint32(made, crc32.ChecksumIEEE(made)))
}
