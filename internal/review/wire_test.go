package review_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// received is a request as the server of a provider got it.
type received struct {
	System string
	Array  []said
	Size   int
}

// wire is how a provider is spoken to.
type wire struct {
	connect func(llm.Endpoint) (llm.Model, error)
	path    string
	read    func(t *testing.T, body []byte) received
	tooLong string // what its server says of a request that is too long
}

// roleAndTexts is a message in the formats that have a list of texts.
type roleAndTexts struct {
	Role    string
	Content []struct{ Text string }
	Parts   []struct{ Text string }
}

func (m roleAndTexts) said() said {
	var texts []string
	for _, part := range append(m.Content, m.Parts...) {
		texts = append(texts, part.Text)
	}
	if m.Role == "model" {
		m.Role = "assistant"
	}
	return said{m.Role, strings.Join(texts, "\n")}
}

func decoded[T any](t *testing.T, body []byte) (into T) {
	t.Helper()
	must(t, json.Unmarshal(body, &into))
	return into
}

// wires are all that there are.
var wires = map[string]wire{
	"anthropic": {
		connect: func(e llm.Endpoint) (llm.Model, error) { return anthropic.New(e), nil },
		read: func(t *testing.T, body []byte) (got received) {
			t.Helper()
			raw := decoded[struct {
				System   []struct{ Text string }
				Messages []roleAndTexts
			}](t, body)
			got.System = raw.System[0].Text
			for _, message := range raw.Messages {
				got.Array = append(got.Array, message.said())
			}
			return got
		},
		tooLong: `{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213001 tokens > 200000 maximum"}}`,
	},
	"openai chat": {
		connect: func(e llm.Endpoint) (llm.Model, error) { return openai.New(e, openai.Chat) }, path: "/v1",
		read: func(t *testing.T, body []byte) (got received) {
			t.Helper()
			raw := decoded[struct {
				Messages []struct{ Role, Content string }
			}](t, body)
			got.System = raw.Messages[0].Content
			for _, message := range raw.Messages[1:] {
				got.Array = append(got.Array, said{message.Role, message.Content})
			}
			return got
		},
		tooLong: `{"error": {"message": "This model's maximum context length is 128000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}`,
	},
	"openai responses": {
		connect: func(e llm.Endpoint) (llm.Model, error) { return openai.New(e, openai.Responses) }, path: "/v1",
		read: func(t *testing.T, body []byte) (got received) {
			t.Helper()
			raw := decoded[struct {
				Instructions string
				Input        []struct{ Role, Content string }
			}](t, body)
			got.System = raw.Instructions
			for _, message := range raw.Input {
				got.Array = append(got.Array, said{message.Role, message.Content})
			}
			return got
		},
		tooLong: `{"error": {"message": "Your input exceeds the context window.", "type": "invalid_request_error", "code": "context_length_exceeded"}}`,
	},
	"gemini": {
		connect: func(e llm.Endpoint) (llm.Model, error) { return gemini.New(e) },
		read: func(t *testing.T, body []byte) (got received) {
			t.Helper()
			raw := decoded[struct {
				SystemInstruction roleAndTexts
				Contents          []roleAndTexts
			}](t, body)
			got.System = raw.SystemInstruction.said().Text
			for _, message := range raw.Contents {
				got.Array = append(got.Array, message.said())
			}
			return got
		},
		tooLong: `{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."}}`,
	},
}

// provider is a server of a provider: it keeps what it is sent, refuses what is too
// long for it, and follows a script else.
type provider struct {
	wire
	t      *testing.T
	script http.Handler
	limit  int // bytes of a request; 0 means none

	mu   sync.Mutex
	asks []received
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
		return
	}
	if strings.Contains(strings.ToLower(r.URL.Path), "count") { // what counts is said by the server, too late
		http.NotFound(w, r)
		return
	}
	got := p.read(p.t, body)
	got.Size = len(body)
	p.mu.Lock()
	p.asks = append(p.asks, got)
	p.mu.Unlock()
	if p.limit > 0 && len(body) > p.limit {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, p.tooLong)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.script.ServeHTTP(w, r)
}

// requests are those of the chat, or those for summaries.
func (p *provider) requests(summaries bool) []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []received
	for _, one := range p.asks {
		if strings.Contains(one.System, "残っている論点") == summaries {
			found = append(found, one)
		}
	}
	return found
}

const wireScript = `
rules:
  - when: {system: 残っている論点}
    answer: {text: "要約の本文"}
  - when: {last: "長い話"}
    answer: {text: "途中まで", stop: max_tokens}
  - answer: {text: "はい。"}
`

// onEachWire runs a test with a service that speaks to a server of each provider.
func onEachWire(t *testing.T, endpoint llm.Endpoint, test func(t *testing.T, r room, p *provider)) {
	t.Helper()
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
			must(t, err)
			t.Cleanup(func() { _ = database.Close() })
			rules, err := script.Parse("wire.yaml", []byte(wireScript))
			must(t, err)
			p := &provider{wire: wire, t: t, script: script.NewServer(rules)}
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			endpoint := endpoint // the tests of all wires run at the same time
			endpoint.BaseURL, endpoint.Key, endpoint.Model = server.URL+wire.path, "key", "scripted"
			model, err := wire.connect(endpoint)
			must(t, err)
			r := room{store: database, Service: review.New(review.Options{
				Store: database, Now: time.Now, Log: slog.New(slog.DiscardHandler),
				Model: func(review.Purpose) (llm.Model, error) { return llm.Wrap(model, llm.Layers{}), nil },
			})}
			t.Cleanup(r.Stop)
			test(t, r, p)
		})
	}
}

// escapedThread is a thread about a review whose JSON has only ASCII in it.
func (r room) escapedThread(t *testing.T) store.Thread {
	t.Helper()
	question, err := r.AddQuestion(t.Context(), "alice", store.Question{Text: "契約の成立を論ぜよ。", PurposeText: "趣旨の本文", GradingImpressionText: "実感の本文"})
	must(t, err)
	made, err := r.AddReview(t.Context(), "alice", store.Review{
		QuestionID: question.ID, AnswerText: answerText(),
		Judgement: []byte(`{"overall_review": "\u5168\u4f53\u306e\u8b1b\u8a55", "weaknesses": [{"text": "\u5951\u7d04\u306e\u6210\u7acb\u304c\u66d6\u6627 \ud842\udfb7 a \u003c b", "paragraph_numbers": [2]}]}`),
	})
	must(t, err)
	thread, err := r.AddThread(t.Context(), "alice", made.ID, "")
	must(t, err)
	return thread
}

// Every provider is sent the same array: the context is one user message, then the
// summaries, the history and the question; and what was kept for people is what was sent.
func TestEveryProviderIsSentTheArray(t *testing.T) {
	t.Parallel()
	onEachWire(t, llm.Endpoint{}, func(t *testing.T, r room, p *provider) {
		t.Helper()
		thread := r.escapedThread(t)
		const turns = 7
		for turn := 1; turn <= turns; turn++ {
			input := fmt.Sprintf("§2と出題趣旨と採点実感について_%d", turn)
			answer := r.say(t, thread, input)
			r.Wait(t.Context())
			got := p.requests(false)[turn-1]
			sent, err := r.Sent(t.Context(), "alice", thread.ID, answer.ID)
			must(t, err)
			want := received{System: sent.System, Size: got.Size}
			for _, message := range sent.Messages {
				want.Array = append(want.Array, said{message.Role, message.Text})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("turn %d (-kept for people +received):\n%s", turn, diff)
			}
			roles := ""
			for _, message := range got.Array {
				roles += message.Role[:1]
			}
			wantRoles := "u" + strings.Repeat("ua", turn-1) + "u"
			if turn > 5 {
				wantRoles = "uu" + strings.Repeat("ua", turn-5) + "u"
			}
			if roles != wantRoles {
				t.Errorf("turn %d has the roles %s, want %s", turn, roles, wantRoles)
			}
			blocks := []string{"【問題文】", "【講評（全体）】", "【出題趣旨／参考文章】", "【採点実感】", "【指定段落付き答案（Specified）】", "【指定段落に関連する講評（Related）】"}
			if got := headings(got.Array[0].Text); !slices.Equal(got, blocks) {
				t.Errorf("turn %d has the blocks %q in its first message", turn, got)
			}
			if last := got.Array[len(got.Array)-1]; last != (said{"user", "ユーザーの質問: " + input}) {
				t.Errorf("turn %d ends with %+v", turn, last)
			}
		}
	})
}

// Remarks are given as what they say, whatever their JSON was written with.
func TestRelatedRemarksAreText(t *testing.T) {
	t.Parallel()
	onEachWire(t, llm.Endpoint{}, func(t *testing.T, r room, p *provider) {
		t.Helper()
		r.say(t, r.escapedThread(t), "§2について")
		got := p.requests(false)[0].Array[0].Text
		for _, part := range []string{"全体の講評", `weaknesses: {"text":"契約の成立が曖昧 𠮷 a < b","paragraph_numbers":[2]}`} {
			if !strings.Contains(got, part) {
				t.Errorf("%q is not in the context:\n%s", part, got)
			}
		}
		if strings.Contains(got, `\u`) {
			t.Errorf("there are escapes in the context:\n%s", got)
		}
	})
}

// The note below an answer that was cut is for people. The model is given its own words.
func TestNoteBelowACutAnswerIsForPeople(t *testing.T) {
	t.Parallel()
	const note = "（回答が長すぎるため、ここで切れています。）"
	onEachWire(t, llm.Endpoint{}, func(t *testing.T, r room, p *provider) {
		t.Helper()
		thread := r.escapedThread(t)
		turn, err := r.Ask(t.Context(), "alice", thread.ID, review.Message{Content: "長い話をして"})
		must(t, err)
		var streamed strings.Builder
		answer, err := turn.Follow(t.Context(), func(piece review.Piece) { streamed.WriteString(piece.Text) })
		must(t, err)
		shown, err := r.Answer(t.Context(), "alice", answer)
		must(t, err)
		all, err := r.Messages(t.Context(), "alice", thread.ID)
		must(t, err)
		for where, text := range map[string]string{"pieces": streamed.String(), "answer": shown.Content, "list": all[1].Content} {
			if text != "途中まで\n\n"+note {
				t.Errorf("people see in the %s: %q", where, text)
			}
		}
		for turn := 2; turn <= 6; turn++ {
			r.say(t, thread, fmt.Sprintf("続きは？_%d", turn))
			r.Wait(t.Context())
		}
		if got := p.requests(false)[1].Array[2]; got != (said{"assistant", "途中まで"}) {
			t.Errorf("the model is given its answer as %+v", got)
		}
		for _, request := range append(p.requests(false), p.requests(true)...) {
			for _, message := range request.Array {
				if strings.Contains(message.Text, note) {
					t.Errorf("the model is given the note: %q", message.Text)
				}
			}
		}
	})
}

// A conversation that is too long for the model is summarised before its time.
func TestAConversationThatIsTooLongIsSummarisedEarlier(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string]llm.Endpoint{
		"the provider says so":   {},
		"the length is known":    {ContextLength: 12_000, MaxTokens: 1000},
		"the length is too high": {ContextLength: 1_000_000, MaxTokens: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachWire(t, endpoint, func(t *testing.T, r room, p *provider) {
				t.Helper()
				p.limit = 30_000 // of bytes, which are about 10,000 tokens
				thread := r.escapedThread(t)
				for turn := 1; turn <= 4; turn++ {
					r.say(t, thread, strings.Repeat("長い質問。", 500)+fmt.Sprint("_", turn)) // 7,500 bytes
				}
				after, err := r.Thread(t.Context(), "alice", thread.ID)
				must(t, err)
				if after.SummaryUpToTurn < 1 || after.SummaryUpToTurn > 3 || !strings.Contains(after.ConversationSummary, "要約の本文") {
					t.Errorf("the thread is %+v", after)
				}
				requests := p.requests(false)
				last := requests[len(requests)-1]
				if last.Size > p.limit || last.Array[1].Text != "【これまでの会話の要約】\n"+after.ConversationSummary {
					t.Errorf("the last request has %d bytes and the array %.300q", last.Size, last.Array)
				}
				if !strings.HasSuffix(last.Array[len(last.Array)-3].Text, "_3") || !strings.HasSuffix(last.Array[len(last.Array)-1].Text, "_4") {
					t.Error("the last exchange or the question is not whole")
				}
				// The next one is due after the fifth turn all the same.
				r.say(t, thread, "終わり_5")
				r.Wait(t.Context())
				if after, err = r.Thread(t.Context(), "alice", thread.ID); err != nil || after.SummaryUpToTurn != 5 {
					t.Errorf("after turn 5 the thread is %+v, %v", after, err)
				}
			})
		})
	}
}

// One message that fills the whole context does not end the conversation.
func TestAHugeExchangeIsShortened(t *testing.T) {
	t.Parallel()
	onEachWire(t, llm.Endpoint{}, func(t *testing.T, r room, p *provider) {
		t.Helper()
		p.limit = 60_000
		thread := r.escapedThread(t)
		r.say(t, thread, strings.Repeat("長い質問。", 3000)+"_1") // 45,000 bytes
		answer := r.say(t, thread, strings.Repeat("次の質問。", 2000)+"_2")
		if answer.Content != "はい。" || answer.Turn != 2 {
			t.Errorf("the answer is %+v", answer)
		}
		requests := p.requests(false)
		last := requests[len(requests)-1].Array
		if !strings.HasSuffix(last[len(last)-1].Text, "_2") || !strings.HasPrefix(last[len(last)-3].Text, "長い質問。") {
			t.Error("the question is not whole, or nothing is left of the exchange before")
		}
		_, err := r.try(t.Context(), thread, review.Message{Content: strings.Repeat("長い質問。", 10_000)})
		if coded, _ := task.AsError(err); task.CodeOf(err) != task.TooLarge || !strings.Contains(coded.Message, "this message") || !strings.Contains(coded.Hint, "shorter") {
			t.Errorf("a message that cannot fit gives %v", err)
		}
		if answer := r.say(t, thread, "短い質問_3"); answer.Turn != 3 {
			t.Errorf("after that: %+v", answer)
		}
	})
}

// What a provider refuses is its own error, in its own words.
func TestErrorsOfProvidersAreTheirs(t *testing.T) {
	t.Parallel()
	for status, kind := range map[int]llm.Kind{
		http.StatusBadRequest: llm.BadRequest, http.StatusUnauthorized: llm.Unauthorized,
		http.StatusForbidden: llm.Unauthorized, http.StatusNotFound: llm.UnknownModel,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			onEachWire(t, llm.Endpoint{}, func(t *testing.T, r room, p *provider) {
				t.Helper()
				p.script = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, `{"error": {"message": "what the provider says"}}`)
				})
				thread := r.escapedThread(t)
				_, err := r.try(t.Context(), thread, review.Message{Content: "なぜ"})
				if llm.KindOf(err) != kind || task.CodeOf(err) != task.ProviderError {
					t.Errorf("the error is %v with the code %s", err, task.CodeOf(err))
				}
				all, err := r.Messages(t.Context(), "alice", thread.ID)
				must(t, err)
				if !strings.Contains(all[0].Cause, "the model provider") || !strings.Contains(all[0].Cause, "what the provider says") {
					t.Errorf("people are told %q", all[0].Cause)
				}
			})
		})
	}
}
