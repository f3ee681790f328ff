package review_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// judgeModel is a model that submits a review when it is let, or fails.
type judgeModel struct {
	*model
	gate chan error
}

// Chat implements llm.Model.
func (m judgeModel) Chat(ctx context.Context, _ llm.Request, _ llm.Sink) (llm.Response, error) {
	select {
	case err := <-m.gate:
		return llm.Response{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Call: &llm.Call{
			ID: "1", Name: "submit_review", Arguments: `{"overall_review": "Good."}`,
		}}}}, Stop: llm.StopCalls}, err
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
}

// judging lets a room judge documents.
func (r room) judging() (gate chan error) {
	gate = make(chan error)
	r.Model = func(review.Purpose) (llm.Model, error) { return judgeModel{r.chat, gate}, nil }
	return gate
}

// A document is kept before the model judges it. What becomes of it stands with the review,
// also if nobody waits for it, and it can be tried again.
func TestDocumentIsKeptBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		gate := r.judging()
		ctx, gone := context.WithCancel(t.Context())
		judging, err := r.BeginJudging(ctx, "alice", store.Question{Text: "What is a contract?", PurposeText: "why"}, "An agreement.")
		must(t, err)
		gone() // the tab is closed
		id := judging.ID
		now := func() store.Review {
			t.Helper()
			found, err := r.Review(t.Context(), "alice", id)
			must(t, err)
			return found
		}
		if found := now(); found.State != store.Judging || !strings.Contains(found.AnswerText, "An agreement.") {
			t.Errorf("while the model works it is %+v", found)
		}
		if _, err := r.AddThread(t.Context(), "alice", id, ""); task.CodeOf(err) != task.Conflict {
			t.Errorf("to talk about it gives %v", err)
		}
		if err := r.JudgeAgain(t.Context(), "alice", id); task.CodeOf(err) != task.Conflict {
			t.Errorf("to begin once more gives %v", err)
		}
		gate <- &llm.Error{Kind: llm.BadRequest, Provider: "test", Detail: "no such model"}
		r.Wait(t.Context())
		if found := now(); found.State != store.NotJudged || found.Cause == "" || !strings.Contains(found.AnswerText, "An agreement.") {
			t.Errorf("after the failure it is %+v", found)
		}
		if err := r.JudgeAgain(t.Context(), "bob", id); task.CodeOf(err) != task.NotFound {
			t.Errorf("somebody else tries again: %v", err)
		}
		must(t, r.JudgeAgain(t.Context(), "alice", id))
		gate <- nil
		r.Wait(t.Context())
		if found := now(); found.State != store.Judged || !strings.Contains(string(found.Judgement), "Good.") || found.Cause != "" {
			t.Errorf("at the end it is %+v", found)
		}
		if _, err := r.AddThread(t.Context(), "alice", id, ""); err != nil {
			t.Errorf("to talk about it gives %v", err)
		}
	})
}

// A service that stops, or ends without a word, leaves a review that can be tried again.
func TestJudgingThatNobodyEnds(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		first, second := newRoom(t, database), newRoom(t, database)
		first.judging()
		judging, err := first.BeginJudging(t.Context(), "alice", store.Question{Text: "What is a contract?"}, "An agreement.")
		must(t, err)
		first.Stop()
		found, err := second.Review(t.Context(), "alice", judging.ID)
		must(t, err)
		if found.State != store.NotJudged || !strings.Contains(found.Cause, "stopping") {
			t.Errorf("after the stop it is %+v", found)
		}
		if _, err := first.BeginJudging(t.Context(), "alice", store.Question{Text: "What is a contract?"}, "An agreement."); task.CodeOf(err) != task.Interrupted {
			t.Errorf("a service that stops says %v", err)
		}
		killed, err := database.AddReview(t.Context(), store.Review{Owner: "alice", CustomQuestionText: "Why?", AnswerText: "So.", State: store.Judging, HeldUntil: second.now().Add(time.Minute)})
		must(t, err)
		for _, state := range []store.ReviewState{store.Judging, store.NotJudged} {
			found, err := second.Review(t.Context(), "alice", killed.ID)
			must(t, err)
			if found.State != state {
				t.Errorf("it is %+v, want %q", found, state)
			}
			second.clock.Add(int64(2 * time.Minute))
		}
	})
}

// Who works on a review that somebody else has taken over meanwhile, because nothing was heard
// of the first for too long, leaves it alone: neither a failure nor a judgement of the first
// counts, and the judgement of the second is kept.
func TestJudgingThatSomebodyElseTakesOver(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"late failure": &llm.Error{Kind: llm.BadRequest, Provider: "test"}, "late judgement": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(on place) {
				t, database := on.t, on.Store
				first, second := newRoom(t, database), newRoom(t, database)
				var log bytes.Buffer
				first.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
				slow, fast := first.judging(), second.judging()
				judging, err := first.BeginJudging(t.Context(), "alice", store.Question{Text: "What is a contract?"}, "An agreement.")
				must(t, err)
				second.clock.Add(int64(time.Minute)) // the first was not heard of
				must(t, second.JudgeAgain(t.Context(), "alice", judging.ID))
				slow <- end
				first.Wait(t.Context())
				found, err := second.Review(t.Context(), "alice", judging.ID)
				must(t, err)
				if found.State != store.Judging {
					t.Errorf("while the second works it is %+v", found)
				}
				if log.Len() > 0 {
					t.Errorf("the first says %s", log.String())
				}
				fast <- nil
				second.Wait(t.Context())
				if found, err = second.Review(t.Context(), "alice", judging.ID); err != nil || found.State != store.Judged {
					t.Errorf("at the end it is %+v, %v", found, err)
				}
			})
		})
	}
}

// Who deletes a review that is being made does not pay for it any longer: the call of the model
// ends when the review is looked after the next time.
func TestDeletedReviewIsNotJudgedOn(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	must(t, err)
	t.Cleanup(func() { must(t, database.Close()) })
	r := newRoom(t, database)
	r.judging() // it never answers by itself
	judging, err := r.BeginJudging(t.Context(), "alice", store.Question{Text: "What is a contract?"}, "An agreement.")
	must(t, err)
	must(t, r.DeleteReview(t.Context(), "alice", judging.ID))
	patience, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	r.Wait(patience)
	if patience.Err() != nil {
		t.Error("the call of the model goes on")
	}
}

// What cannot be kept is refused before a model is paid for it, also by who waits for it.
func TestDocumentIsCheckedBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	must(t, err)
	t.Cleanup(func() { must(t, database.Close()) })
	r := newRoom(t, database)
	question := store.Question{Text: "What is a contract?"}
	for name, one := range map[string]struct {
		question store.Question
		answer   string
	}{
		"a long question":    {store.Question{Text: strings.Repeat("a", 2<<20)}, "An agreement."},
		"a long purpose":     {store.Question{Text: "Why?", PurposeText: strings.Repeat("a", 2<<20)}, "An agreement."},
		"many sections":      {question, manySections(10_001)},
		"one section, often": {question, strings.Repeat("$$[1]a\n", 10_001)},
		"many paragraphs":    {question, strings.Repeat("a\n\n", 10_001)},
		"a long answer":      {question, strings.Repeat("a", 5<<20)},
		"no question":        {store.Question{Text: " "}, "An agreement."},
	} {
		if _, err := r.Judge(t.Context(), "alice", one.question, one.answer); task.CodeOf(err) != task.TooLarge && task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.BeginJudging(t.Context(), "alice", one.question, one.answer); task.CodeOf(err) != task.TooLarge && task.CodeOf(err) != task.Invalid {
			t.Errorf("%s, in the background: %v", name, err)
		}
	}
	if asked := r.chat.requests(); len(asked) > 0 {
		t.Errorf("the model was asked %d times", len(asked))
	}
}

func manySections(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "$$[%d]a\n", i+1)
	}
	return text.String()
}
