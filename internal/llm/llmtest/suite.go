package llmtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
)

// Subject makes the model under test play a script. The player tells what it was
// asked.
type Subject func(t testing.TB, s *script.Script, endpoint llm.Endpoint) (llm.Model, *script.Player)

// Features are the differences between wire formats that the suite allows for.
type Features struct {
	Counts       bool // has a call that counts tokens
	RawArguments bool // can carry arguments that are not JSON from the model
	ErrorFlag    bool // has a field that marks a result as an error
	Network      bool // is reached over HTTP
	Vendor       bool // is told neither run nor phase

	Reasoning []Asked  // how reasoning is asked for
	Thoughts  Thoughts // what of it comes back
}

// Thoughts is what a wire format carries of what a model thought.
type Thoughts int

// The kinds.
const (
	ThoughtsNone   Thoughts = iota
	ThoughtsWhole           // as it was, also when it was not told
	ThoughtsTold            // what was told
	ThoughtsSigned          // by signatures only
)

// OverHTTP is the subject for an adapter: it serves the script on loopback and
// connects the adapter to it, with path added to the server's address.
func OverHTTP(connect func(endpoint llm.Endpoint) (llm.Model, error), path string) Subject {
	return OverHTTPBehind(connect, path, func(_ testing.TB, next http.Handler) http.Handler { return next })
}

// OverHTTPBehind is OverHTTP with something before the server, which looks at each request.
func OverHTTPBehind(connect func(endpoint llm.Endpoint) (llm.Model, error), path string, before func(testing.TB, http.Handler) http.Handler) Subject {
	return func(t testing.TB, s *script.Script, endpoint llm.Endpoint) (llm.Model, *script.Player) {
		t.Helper()
		server := script.NewServer(s)
		listening := httptest.NewServer(before(t, server))
		t.Cleanup(listening.Close)
		endpoint.BaseURL = listening.URL + path
		endpoint.Key = "key-of-the-test"
		if endpoint.Model == "" {
			endpoint.Model = s.Model
		}
		model, err := connect(endpoint)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		return model, server.Player
	}
}

// Run runs the whole suite.
func Run(t *testing.T, subject Subject, features Features) {
	t.Helper()
	s := suite{open: subject, features: features}
	tests := map[string]func(*testing.T){
		"Text":            s.text,
		"Calls":           s.calls,
		"Images":          s.images,
		"RoundTrip":       s.roundTrip,
		"InvalidJSON":     s.invalidArguments,
		"Thinking":        s.thinking,
		"MaxTokens":       s.maxTokens,
		"Refusal":         s.refusal,
		"Empty":           s.empty,
		"Statuses":        s.statuses,
		"CutStream":       s.cutStream,
		"ErrorInStream":   s.errorInStream,
		"Cancelled":       s.cancelled,
		"Megabyte":        s.megabyte,
		"ManyCalls":       s.manyCalls,
		"Count":           s.count,
		"AtOnce":          s.atOnce,
		"Retried":         s.retried,
		"TextCalls":       s.textCalls,
		"OtherLanguage":   s.otherLanguage,
		"RunsAndPhases":   s.runsAndPhases,
		"BadConversation": s.badConversation,
	}
	if features.Network {
		tests["StablePrefix"] = s.stablePrefix
		tests["Silence"] = s.silence
		tests["Unreachable"] = s.unreachable
		tests["PageInstead"] = s.pageInstead
		tests["SentElsewhere"] = s.sentElsewhere
		tests["ReasoningAsked"] = s.reasoningAsked
		tests["ReasoningReturned"] = s.reasoningReturned
		tests["ReasoningOfOthers"] = s.reasoningOfOthers
		tests["ReasoningAfterChange"] = s.reasoningAfterChange
		tests["ReasoningInterrupted"] = s.reasoningInterrupted
	}
	if features.Vendor {
		delete(tests, "RunsAndPhases")
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type suite struct {
	open     Subject
	features Features
}

// play opens the model with rules that were made in code.
func (s suite) play(t *testing.T, rules ...script.Rule) (llm.Model, *script.Player) {
	t.Helper()
	return s.playWith(t, llm.Endpoint{}, rules...)
}

func (s suite) playWith(t *testing.T, endpoint llm.Endpoint, rules ...script.Rule) (llm.Model, *script.Player) {
	t.Helper()
	made, err := script.New(script.Script{Model: "scripted", Rules: rules})
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	return s.open(t, made, endpoint)
}

// AssistantText returns an assistant message with one text.
func AssistantText(text string) llm.Message {
	return llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.TextPart(text)}}
}

func answer(a script.Answer) script.Rule { return script.Rule{Answer: a} }

func ask(text string) llm.Request {
	return llm.Request{System: "You are tested.", Messages: []llm.Message{llm.UserText(text)}}
}

// withTools adds the two tools that the tests use.
func withTools(request llm.Request) llm.Request {
	request.Tools = []llm.Tool{
		{Name: "read", Description: "Reads a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		{Name: "run", Description: "Runs a command.", Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
	}
	return request
}

func mustChat(t *testing.T, model llm.Model, request llm.Request, sink llm.Sink) llm.Response {
	t.Helper()
	response, err := model.Chat(context.Background(), request, sink)
	if err != nil {
		t.Fatalf("Chat: %v", err)
	}
	return response
}

// mustBe checks the kind of the error and that nothing of an answer came.
func mustBe(t *testing.T, model llm.Model, request llm.Request, want llm.Kind) {
	t.Helper()
	if failed := mustFail(t, model, request, want); failed.Error() == "" {
		t.Error("the error says nothing")
	}
}

// mustFail is mustBe for tests that look at the error.
func mustFail(t *testing.T, model llm.Model, request llm.Request, want llm.Kind) *llm.Error {
	t.Helper()
	response, err := model.Chat(context.Background(), request, nil)
	if err == nil {
		t.Fatalf("Chat gave %+v, want an error of the kind %s", response, want)
	}
	if len(response.Message.Parts) > 0 {
		t.Errorf("an answer came with the error: %+v", response.Message)
	}
	var failed *llm.Error
	if !asError(err, &failed) || failed.Kind != want {
		t.Fatalf("Chat: %v (kind %q), want the kind %q", err, llm.KindOf(err), want)
	}
	return failed
}
