package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var today = time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC)

func database(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func assigned(t *testing.T, s store.Store, number int64) task.ID {
	t.Helper()
	made, _, err := s.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number},
		Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// The rules of [llm.Ledger]: what is refused and in which words, what counts,
// and that a raised budget lets the run go on.
func TestLedgerKeepsTheRules(t *testing.T) {
	t.Parallel()
	s, now := database(t), today
	books := ledger.Ledger{Store: s, Now: func() time.Time { return now }, Limits: llm.Limits{
		Task: llm.Amount{Tokens: 1000}, Day: llm.Amount{Money: 5 * llm.Unit},
	}}
	one, two := llm.Account{Task: assigned(t, s, 1), Generation: 1}, llm.Account{Task: assigned(t, s, 2), Generation: 1}
	first, err := books.Reserve(t.Context(), one, llm.Amount{Tokens: 800, Money: llm.Unit})
	if err != nil {
		t.Fatal(err)
	}
	var over *llm.BudgetError
	if _, err := books.Reserve(t.Context(), one, llm.Amount{Tokens: 300}); !errors.As(err, &over) || over.Scope != llm.TaskBudget || over.Spent.Tokens != 800 {
		t.Fatalf("%v, want the task's budget to be exhausted", err)
	}
	if err := books.Settle(t.Context(), first, llm.Amount{Tokens: 100, Money: llm.Unit / 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := books.Reserve(t.Context(), two, llm.Amount{Money: 5 * llm.Unit}); err == nil ||
		err.Error() != "the budget of the day is 5.00; 0.50 are spent and the next call may cost 5.00" {
		t.Errorf("%v, want the day's budget to be exhausted", err)
	}
	raised := books
	raised.Limits = llm.Limits{}
	if _, err := raised.Reserve(t.Context(), two, llm.Amount{Money: 5 * llm.Unit}); err != nil {
		t.Errorf("a raised budget lets the run go on: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if ofTask, ofDay, err := books.Spent(t.Context(), one.Task); err != nil || ofTask != (llm.Amount{Tokens: 100, Money: llm.Unit / 2}) || ofDay != (llm.Amount{}) {
		t.Errorf("on the next day the task has spent %+v and everyone %+v, %v", ofTask, ofDay, err)
	}
	if err := books.Settle(t.Context(), "nothing", llm.Amount{}); task.CodeOf(err) != task.NotFound {
		t.Errorf("%v, want not found", err)
	}
}

// Many agents call one model through the whole of the layers until the budget of
// the day stops them. Nobody overspends, and each is told so plainly.
func TestAgentsShareTheBudget(t *testing.T) {
	t.Parallel()
	made, err := script.New(script.Script{Rules: []script.Rule{{Answer: script.Answer{Text: "ok", Usage: &llm.Usage{Input: 80, Output: 15}}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := database(t)
	books := ledger.Ledger{Store: s, Now: func() time.Time { return today }, Limits: llm.Limits{Day: llm.Amount{Tokens: 3000}}}
	var group sync.WaitGroup
	for agent := range 12 {
		account := llm.Account{Task: assigned(t, s, int64(agent+1)), Generation: 1}
		model := llm.Wrap(script.NewModel(made, llm.Endpoint{MaxTokens: 20}), llm.Layers{Ledger: books, Account: account, Logger: slog.New(slog.DiscardHandler)})
		group.Go(func() {
			for {
				_, err := model.Chat(context.Background(), llm.Request{InputTokens: 80, Messages: []llm.Message{llm.UserText(fmt.Sprint(agent))}}, nil)
				if llm.KindOf(err) == llm.BudgetExhausted {
					return
				}
				if err != nil {
					t.Errorf("agent %d: %v", agent, err)
					return
				}
			}
		})
	}
	group.Wait()
	_, ofDay, err := books.Spent(t.Context(), "")
	if err != nil || ofDay.Tokens > 3000 || ofDay.Tokens%95 != 0 || ofDay.Tokens == 0 {
		t.Errorf("everyone together has spent %+v of 3000 in calls of 95, %v", ofDay, err)
	}
}
