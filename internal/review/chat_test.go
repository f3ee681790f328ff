package review_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// model is a model whose answers a test gives.
type model struct {
	answer func(ctx context.Context, request llm.Request, sink llm.Sink) (string, error)

	standin *llm.Standin

	mu    sync.Mutex
	asked []llm.Request
}

func (m *model) Info() llm.Info { return llm.Info{Provider: "test", Model: "test", MaxTokens: 100} }

func (m *model) CountTokens(context.Context, llm.Request) (int64, error) { return 0, nil }

func (m *model) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, request)
	m.mu.Unlock()
	text, err := m.answer(ctx, request, sink)
	if err != nil {
		return llm.Response{}, err
	}
	sink.Send(llm.Delta{Text: text})
	return llm.Response{Message: llmtest.AssistantText(text), Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 5}, Standin: m.standin}, nil
}

func (m *model) requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// echo answers assistant_N to user_N.
func echo(_ context.Context, request llm.Request, _ llm.Sink) (string, error) {
	last := request.Messages[len(request.Messages)-1].Text()
	return "assistant_" + last[strings.LastIndex(last, "_")+1:], nil
}

// room is a service on a database, with its models.
type room struct {
	*review.Service
	store         store.Store
	chat, summary *model
	clock         *atomic.Int64 // what is added to the real time
}

func (r room) now() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }

func newRoom(t *testing.T, database store.Store) room {
	t.Helper()
	r := room{
		store: database, clock: new(atomic.Int64), chat: &model{answer: echo},
		summary: &model{answer: func(_ context.Context, request llm.Request, _ llm.Sink) (string, error) {
			return fmt.Sprintf("要約%d文字", len(request.Messages[0].Text())), nil
		}},
	}
	r.Service = review.New(review.Options{
		Store: database, Now: r.now, Log: slog.New(slog.DiscardHandler),
		Model: func(purpose review.Purpose) (llm.Model, error) {
			if purpose == review.ForSummary {
				return r.summary, nil
			}
			return r.chat, nil
		},
	})
	t.Cleanup(r.Stop)
	return r
}

// place is a database and the test that is run on it.
type place struct {
	store.Store
	t *testing.T
}

// onEachDatabase runs a test on SQLite and on PostgreSQL.
func onEachDatabase(t *testing.T, test func(place)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (store.Store, error){
		"sqlite": func(t *testing.T) (store.Store, error) {
			t.Helper()
			return sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
		},
		"postgres": func(t *testing.T) (store.Store, error) {
			t.Helper()
			return postgres.Open(t.Context(), testkit.Postgres(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = database.Close() })
			test(place{database, t})
		})
	}
}

func answerText() string {
	var b strings.Builder
	for n := 1; n <= 30; n++ {
		fmt.Fprintf(&b, "$$[%d]\ntext %d\n", n, n)
	}
	return b.String()
}

// thread makes a review of alice's and a thread about it.
func (r room) thread(t *testing.T) store.Thread {
	t.Helper()
	question, err := r.AddQuestion(t.Context(), "alice", store.Question{Text: "契約の成立を論ぜよ。", PurposeText: "趣旨の本文", GradingImpressionText: "実感の本文"})
	must(t, err)
	made, err := r.AddReview(t.Context(), "alice", store.Review{
		QuestionID: question.ID, AnswerText: answerText(), Judgement: []byte(`{"overall_review": "全体の講評"}`),
	})
	must(t, err)
	thread, err := r.AddThread(t.Context(), "alice", made.ID, "")
	must(t, err)
	if thread.Language != "ja" {
		t.Fatalf("the thread is %+v", thread)
	}
	return thread
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r room) say(t *testing.T, thread store.Thread, text string) store.Message {
	t.Helper()
	answer, err := r.try(t.Context(), thread, review.Message{Content: text})
	must(t, err)
	return answer
}

func (r room) try(ctx context.Context, thread store.Thread, said review.Message) (store.Message, error) {
	turn, err := r.Ask(ctx, "alice", thread.ID, said)
	if err != nil {
		return store.Message{}, err
	}
	return turn.Follow(ctx, nil)
}

func arrayOf(request llm.Request) []said {
	var array []said
	for _, message := range request.Messages {
		array = append(array, said{string(message.Role), message.Text()})
	}
	return array
}

// A whole conversation of 16 turns: every array, every summary, and nothing stored
// but what was said.
func TestConversation(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		const turns = 16
		summary := ""
		for turn := 1; turn <= turns; turn++ {
			input := fmt.Sprint("user_", turn)
			preview, err := r.Preview(t.Context(), "alice", thread.ID, input)
			must(t, err)
			answer := r.say(t, thread, input)
			if answer.Turn != turn || answer.Role != store.AssistantMessage || answer.Content != fmt.Sprint("assistant_", turn) {
				t.Fatalf("turn %d is answered with %+v", turn, answer)
			}
			request := r.chat.requests()[turn-1]
			want := reference(request.Messages[0].Text(), turn-1, (turn-1)/5*5, summary, input)
			if diff := cmp.Diff(want, arrayOf(request)); diff != "" {
				t.Fatalf("turn %d (-want +got):\n%s", turn, diff)
			}
			if diff := cmp.Diff(arrayOf(preview.Request), arrayOf(request)); diff != "" {
				t.Errorf("turn %d is not what was shown before (-shown +sent):\n%s", turn, diff)
			}
			if turn%5 == 0 {
				r.Wait(t.Context())
				after, err := r.Thread(t.Context(), "alice", thread.ID)
				must(t, err)
				summary = after.ConversationSummary
				if after.SummaryUpToTurn != turn || !strings.Contains(summary, fmt.Sprintf("【%d～%dターンの要約】\n要約", turn-4, turn)) {
					t.Fatalf("after turn %d the thread is %+v", turn, after)
				}
			}
		}
		if want := []string{"【1～5ターンの要約】", "【6～10ターンの要約】", "【11～15ターンの要約】"}; !slices.Equal(headings(summary), want) {
			t.Errorf("the summaries are %v", headings(summary))
		}
		for i, request := range r.summary.requests() {
			text := request.Messages[0].Text()
			for turn := 1; turn <= turns; turn++ {
				if strings.Contains(text, fmt.Sprintf("user_%d\n", turn)) != (turn > 5*i && turn <= 5*i+5) {
					t.Errorf("summary %d is of %s", i, text)
				}
			}
			for _, part := range []string{"疑問・観点", "行った回答", "残っている論点"} {
				if !strings.Contains(request.System, part) {
					t.Errorf("the prompt of the summary lacks %q", part)
				}
			}
		}
		said, err := r.Messages(t.Context(), "alice", thread.ID)
		must(t, err)
		var contents []string
		for _, message := range said {
			contents = append(contents, string(message.Role)+" "+message.Content)
		}
		var want []string
		for turn := 1; turn <= turns; turn++ {
			want = append(want, fmt.Sprint("user user_", turn), fmt.Sprint("assistant assistant_", turn))
		}
		if !slices.Equal(contents, want) {
			t.Errorf("what is kept is %q", contents)
		}
	})
}

func TestMentionsPersistInAThread(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		for i, step := range []struct {
			input string
			turn  int
			want  []int
		}{{"§2_1", 1, []int{2}}, {"なぜ_2", 1, []int{2}}, {"§３と第8段落_3", 3, []int{3, 8}}, {"_4", 3, []int{3, 8}}, {"_5", 3, []int{3, 8}}, {"_6", 3, []int{3, 8}}} {
			r.say(t, thread, step.input)
			got, err := r.Thread(t.Context(), "alice", thread.ID)
			must(t, err)
			if got.LastSectionMentionTurn != step.turn || !slices.Equal(got.LastSectionParagraphNumbers, step.want) {
				t.Errorf("turn %d: the thread remembers %+v", i+1, got)
			}
			given := strings.Contains(r.chat.requests()[i].Messages[0].Text(), "【指定段落付き答案（Specified）】")
			if given != (i < 5) { // turn 6 is T+3
				t.Errorf("turn %d is given sections: %v", i+1, given)
			}
		}
	})
}

// Messages that come at the same time, to two servers on one database, are put in
// order and never mixed.
func TestMessagesAtOnce(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		var busy, most atomic.Int64
		slow := func(ctx context.Context, request llm.Request, sink llm.Sink) (string, error) {
			most.Store(max(most.Load(), busy.Add(1)))
			defer busy.Add(-1)
			roles := ""
			for _, message := range request.Messages {
				roles += string(message.Role[0])
			}
			if !regexp.MustCompile(`^uu?(ua)*u$`).MatchString(roles) { // context, summaries, pairs, question
				return "", fmt.Errorf("the history is not in pairs: %s", roles)
			}
			return echo(ctx, request, sink)
		}
		servers := []room{newRoom(t, database), newRoom(t, database)}
		for _, server := range servers {
			server.chat.answer = slow
		}
		thread := servers[0].thread(t)
		const many = 12
		var group sync.WaitGroup
		for i := range many {
			group.Go(func() {
				if _, err := servers[i%2].try(t.Context(), thread, review.Message{Content: fmt.Sprint("user_", i)}); err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			})
		}
		group.Wait()
		said, err := servers[1].Messages(t.Context(), "alice", thread.ID)
		must(t, err)
		seen := map[string]bool{}
		for i, message := range said {
			if message.Turn != i/2+1 || (message.Role == store.UserMessage) != (i%2 == 0) || message.State != store.Answered {
				t.Errorf("message %d is %+v", i, message)
			}
			if i%2 == 1 && "assistant_"+strings.TrimPrefix(said[i-1].Content, "user_") != message.Content {
				t.Errorf("%q is answered with %q", said[i-1].Content, message.Content)
			}
			seen[message.Content] = true
		}
		if len(said) != 2*many || len(seen) != 2*many || most.Load() != 1 {
			t.Errorf("%d messages, %d different ones, %d calls at once", len(said), len(seen), most.Load())
		}
	})
}

func TestModelErrorLeavesTheThreadAsItWas(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		r.say(t, thread, "user_1")
		before, err := r.Thread(t.Context(), "alice", thread.ID)
		must(t, err)
		r.chat.answer = func(_ context.Context, _ llm.Request, sink llm.Sink) (string, error) {
			sink.Send(llm.Delta{Text: "half of an ans"})
			return "", &llm.Error{Kind: llm.CutStream, Provider: "test"}
		}
		if _, err := r.try(t.Context(), thread, review.Message{Content: "§2_x"}); task.CodeOf(err) != task.Unavailable {
			t.Fatalf("the error is %v", err)
		}
		after, err := r.Thread(t.Context(), "alice", thread.ID)
		must(t, err)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the thread has changed:\n%s", diff)
		}
		said, err := r.Messages(t.Context(), "alice", thread.ID)
		must(t, err)
		if len(said) != 3 || said[2].State != store.Unanswered || said[2].Turn != 2 || !strings.Contains(said[2].Cause, "broke off") {
			t.Fatalf("the messages are %+v", said)
		}

		// It can be repeated by its id.
		r.chat.answer = echo
		again, err := r.try(t.Context(), thread, review.Message{Repeat: said[2].ID})
		must(t, err)
		last := r.chat.requests()[2].Messages
		if again.Turn != 2 || last[len(last)-1].Text() != "ユーザーの質問: §2_x" || len(last) != 4 {
			t.Errorf("repeated as %+v with %v", again, arrayOf(r.chat.requests()[2]))
		}
		if after, err = r.Thread(t.Context(), "alice", thread.ID); err != nil || after.LastSectionMentionTurn != 2 {
			t.Errorf("the thread is %+v, %v", after, err)
		}
		if _, err := r.try(t.Context(), thread, review.Message{Repeat: said[2].ID}); task.CodeOf(err) != task.Conflict {
			t.Errorf("repeating what has an answer gives %v", err)
		}
		if _, err := r.try(t.Context(), thread, review.Message{Repeat: "nothing"}); task.CodeOf(err) != task.NotFound {
			t.Errorf("repeating what does not exist gives %v", err)
		}
		if said, err = r.Messages(t.Context(), "alice", thread.ID); err != nil || len(said) != 4 {
			t.Errorf("%d messages, %v", len(said), err)
		}
	})
}

// A caller who goes away finds the answer stored.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		began, goOn := make(chan struct{}), make(chan struct{})
		r.chat.answer = func(ctx context.Context, request llm.Request, sink llm.Sink) (string, error) {
			close(began)
			select {
			case <-goOn:
				return echo(ctx, request, sink)
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		turn, err := r.Ask(ctx, "alice", thread.ID, review.Message{Content: "user_1"})
		must(t, err)
		<-began
		leave()
		if _, err := turn.Follow(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("following ends with %v", err)
		}
		close(goOn)
		answer, err := turn.Follow(t.Context(), nil) // someone else may still follow
		must(t, err)
		said, err := r.Messages(t.Context(), "alice", thread.ID)
		if err != nil || len(said) != 2 || said[1].ID != answer.ID || said[1].Content != "assistant_1" {
			t.Errorf("the messages are %+v, %v", said, err)
		}
	})
}

// A server that stops marks what it was answering as unanswered; one that dies
// holds the thread up for a minute at most.
func TestStopAndDeath(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		began := make(chan struct{})
		r.chat.answer = func(ctx context.Context, _ llm.Request, _ llm.Sink) (string, error) {
			close(began)
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		turn, err := r.Ask(t.Context(), "alice", thread.ID, review.Message{Content: "user_1"})
		must(t, err)
		<-began
		r.Stop()
		if _, err := turn.Follow(t.Context(), nil); task.CodeOf(err) != task.Interrupted {
			t.Errorf("the turn ends with %v", err)
		}
		if _, err := r.Ask(t.Context(), "alice", thread.ID, review.Message{Content: "user_2"}); task.CodeOf(err) != task.Interrupted {
			t.Errorf("asking a stopped server gives %v", err)
		}
		next := newRoom(t, database)
		said, err := next.Messages(t.Context(), "alice", thread.ID)
		must(t, err)
		for _, message := range said {
			if message.State != store.Unanswered {
				t.Errorf("the message is %+v", message)
			}
		}

		// As if a server had died in the middle.
		now := next.now()
		_, begun, err := database.BeginTurn(t.Context(), store.Ask{ThreadID: thread.ID, Content: "user_3", Claim: "dead", Now: now, Until: now.Add(time.Minute)})
		if err != nil || !begun {
			t.Fatalf("%v, %v", begun, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := next.Ask(ctx, "alice", thread.ID, review.Message{Content: "user_4"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a thread that is held gives %v", err)
		}
		next.clock.Store(int64(2 * time.Minute))
		said, err = next.Messages(t.Context(), "alice", thread.ID)
		if err != nil || said[len(said)-1].State != store.Unanswered {
			t.Errorf("the messages are %+v, %v", said, err)
		}
		if answer := next.say(t, thread, "user_4"); answer.Turn != 1 {
			t.Errorf("answered with %+v", answer)
		}
	})
}

func TestOthersSeeNothing(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		for _, who := range []string{"bob", "", "Alice"} {
			_, reviewErr := r.Review(t.Context(), who, thread.ReviewID)
			_, threadErr := r.Thread(t.Context(), who, thread.ID)
			_, listErr := r.Threads(t.Context(), who, thread.ReviewID)
			_, messagesErr := r.Messages(t.Context(), who, thread.ID)
			_, previewErr := r.Preview(t.Context(), who, thread.ID, "x")
			_, askErr := r.Ask(t.Context(), who, thread.ID, review.Message{Content: "x"})
			deleteErr := r.DeleteReview(t.Context(), who, thread.ReviewID)
			for i, err := range []error{reviewErr, threadErr, listErr, messagesErr, previewErr, askErr, deleteErr} {
				if task.CodeOf(err) != task.NotFound {
					t.Errorf("%q, call %d: %v", who, i, err)
				}
			}
		}
		if _, err := r.AddThread(t.Context(), "bob", thread.ReviewID, ""); task.CodeOf(err) != task.NotFound {
			t.Errorf("a thread about someone else's review: %v", err)
		}
		if _, err := r.History(t.Context(), "", "", 0); task.CodeOf(err) != task.Forbidden {
			t.Errorf("the history of nobody: %v", err)
		}
		if mine, err := r.History(t.Context(), "bob", "", 0); err != nil || len(mine) != 0 {
			t.Errorf("bob's history is %v, %v", mine, err)
		}
		if mine, err := r.History(t.Context(), "alice", "", 0); err != nil || len(mine) != 1 {
			t.Errorf("alice's history is %v, %v", mine, err)
		}
	})
}

func TestReviewDeletedWhileAnswering(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		r.chat.answer = func(ctx context.Context, request llm.Request, sink llm.Sink) (string, error) {
			must(t, r.DeleteReview(ctx, "alice", thread.ReviewID))
			return echo(ctx, request, sink)
		}
		if _, err := r.try(t.Context(), thread, review.Message{Content: "user_1"}); task.CodeOf(err) != task.NotFound {
			t.Errorf("the answer to a deleted review gives %v", err)
		}
		for _, call := range []func() error{
			func() error { _, err := r.Thread(t.Context(), "alice", thread.ID); return err },
			func() error { _, err := r.AddThread(t.Context(), "alice", thread.ReviewID, task.English); return err },
			func() error { _, err := r.try(t.Context(), thread, review.Message{Content: "x"}); return err },
		} {
			if err := call(); task.CodeOf(err) != task.NotFound {
				t.Errorf("after that: %v", err)
			}
		}
	})
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		for code, text := range map[task.Code]string{
			task.Invalid: " \n\t", task.TooLarge: strings.Repeat("x", 1<<20), "": "x" + strings.Repeat("y", 200<<10) + "_1",
		} {
			if _, err := r.try(t.Context(), thread, review.Message{Content: text}); task.CodeOf(err) != code {
				t.Errorf("%.20q gives %v, want %s", text, err, code)
			}
		}
		r.chat.answer = func(context.Context, llm.Request, llm.Sink) (string, error) { return " \x00\n ", nil }
		if _, err := r.try(t.Context(), thread, review.Message{Content: "x"}); task.CodeOf(err) != task.Unavailable {
			t.Errorf("an empty answer gives %v", err)
		}
		r.chat.answer = func(context.Context, llm.Request, llm.Sink) (string, error) { return "good\x00 \xff", nil }
		answer, err := r.try(t.Context(), thread, review.Message{Content: "x"})
		if err != nil || answer.Content != "good \uFFFD" {
			t.Errorf("an answer with bad characters is %q, %v", answer.Content, err)
		}
		if _, err := r.try(t.Context(), store.Thread{ID: "nothing"}, review.Message{Content: "x"}); task.CodeOf(err) != task.NotFound {
			t.Errorf("an unknown thread gives %v", err)
		}
	})
}

// The calls of the chat count against the budget of the day.
func TestBudget(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		books := ledger.Ledger{Store: database, Now: time.Now, Limits: llm.Limits{Day: llm.Amount{Tokens: 30_000}}}
		r.Model = func(review.Purpose) (llm.Model, error) {
			return llm.Budgeted(r.chat, books, llm.Account{}, slog.New(slog.DiscardHandler)), nil
		}
		r.say(t, thread, "user_1")
		if _, ofDay, err := books.Spent(t.Context(), ""); err != nil || ofDay.Tokens != 15 {
			t.Errorf("spent %+v, %v", ofDay, err)
		}
		if _, err := r.try(t.Context(), thread, review.Message{Content: strings.Repeat("x", 100_000) + "_2"}); llm.KindOf(err) != llm.BudgetExhausted {
			t.Errorf("over the budget: %v", err)
		}
		if n := len(r.chat.requests()); n != 1 {
			t.Errorf("the model was called %d times", n)
		}
	})
}

// onForge is a database in which messages are from the forge. It keeps what is to be written there.
type onForge struct {
	store.Store
	writes []store.Action
}

func (o *onForge) BeginTurn(ctx context.Context, ask store.Ask) (store.Begun, bool, error) {
	begun, yes, err := o.Store.BeginTurn(ctx, ask)
	begun.Message.Place, begun.Message.Origin = "thread", "comment"
	return begun, yes, err
}

func (o *onForge) EndTurn(ctx context.Context, ended store.Ended) (store.Message, error) {
	o.writes, ended.Writes = append(o.writes, ended.Writes...), nil
	return o.Store.EndTurn(ctx, ended)
}

// Everybody may read a reply on the forge: it does not say which models there are, or what the account
// lacks. Our own pages do.
func TestTheFallbackInAReply(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, &onForge{Store: on.Store}
		r := newRoom(t, database)
		r.chat.standin = &llm.Standin{Instead: "azure secret-deployment", Model: "openai other-model", Reason: "the account's credit is used up (status 402)", Since: time.Now()}
		thread := r.thread(t)
		answer := r.say(t, thread, "user_1")
		for _, part := range []string{"secret-deployment", "other-model", "402"} {
			if !strings.Contains(answer.Cause, part) {
				t.Errorf("the page says %q", answer.Cause)
			}
			if len(database.writes) != 1 || strings.Contains(fmt.Sprintf("%+v %s", database.writes[0], database.writes[0].Payload), part) {
				t.Errorf("the forge is told %+v", database.writes)
			}
		}
		if reply := string(database.writes[0].Payload); !strings.Contains(reply, "assistant_1") || !strings.Contains(reply, "予備のモデル") {
			t.Errorf("the reply is %s", reply)
		}
	})
}
