package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/task"
)

// today is the day of these tests.
var today = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func clock() time.Time { return today }

func TestBudgetRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ledger := llm.NewMemoryLedger(llm.Limits{Task: llm.Amount{Tokens: 1000}, Day: llm.Amount{Money: 5 * llm.Unit}}, clock)
	one := llm.Account{Task: "one"}
	first, err := ledger.Reserve(ctx, one, llm.Amount{Tokens: 800, Money: llm.Unit})
	if err != nil {
		t.Fatal(err)
	}
	var over *llm.BudgetError
	if _, err := ledger.Reserve(ctx, one, llm.Amount{Tokens: 300}); !errors.As(err, &over) || over.Scope != llm.TaskBudget {
		t.Fatalf("%v, want the task's budget to be exhausted", err)
	}
	if err := ledger.Settle(ctx, first, llm.Amount{Tokens: 100, Money: llm.Unit / 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Reserve(ctx, one, llm.Amount{Tokens: 300}); err != nil {
		t.Errorf("after settling there is room: %v", err)
	}
	if _, err := ledger.Reserve(ctx, llm.Account{Task: "two"}, llm.Amount{Money: 5 * llm.Unit}); !errors.As(err, &over) || over.Scope != llm.DayBudget {
		t.Errorf("%v, want the day's budget to be exhausted", err)
	} else if want := "the budget of the day is 5.00; 0.50 are spent and the next call may cost 5.00"; over.Error() != want {
		t.Errorf("%q, want %q", over.Error(), want)
	}
	ledger.SetLimits(llm.Limits{})
	if _, err := ledger.Reserve(ctx, llm.Account{Task: "two"}, llm.Amount{Money: 5 * llm.Unit}); err != nil {
		t.Errorf("a raised budget lets the run go on: %v", err)
	}
	if err := ledger.Settle(ctx, "nothing", llm.Amount{}); task.CodeOf(err) != task.NotFound {
		t.Errorf("%v, want not found", err)
	}
}

func TestANewDayHasANewBudget(t *testing.T) {
	t.Parallel()
	now := today
	ledger := llm.NewMemoryLedger(llm.Limits{Day: llm.Amount{Tokens: 100}}, func() time.Time { return now })
	late, err := ledger.Reserve(t.Context(), llm.Account{Task: "a"}, llm.Amount{Tokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(24 * time.Hour)
	if _, err := ledger.Reserve(t.Context(), llm.Account{Task: "a"}, llm.Amount{Tokens: 60}); err != nil {
		t.Fatalf("a new day: %v", err)
	}
	// Yesterday's call is charged to yesterday.
	if err := ledger.Settle(t.Context(), late, llm.Amount{Tokens: 5000}); err != nil {
		t.Fatal(err)
	}
	if _, day, _ := ledger.Spent(t.Context(), "a"); day.Tokens != 60 {
		t.Errorf("%d tokens spent today, want 60", day.Tokens)
	}
}

// spender is a model that uses as much as it was told, or fails.
type spender struct {
	mu   sync.Mutex
	next func() (llm.Usage, error)
}

func (s *spender) Info() llm.Info {
	return llm.Info{Provider: "test", MaxTokens: 50, Prices: llm.Prices{Input: 2 * llm.Unit, Output: 10 * llm.Unit}}
}
func (s *spender) CountTokens(context.Context, llm.Request) (int64, error) { return 0, nil }
func (s *spender) Chat(context.Context, llm.Request, llm.Sink) (llm.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage, err := s.next()
	if err != nil {
		return llm.Response{}, &llm.Error{Kind: llm.CutStream, Provider: "test", Usage: usage, Err: err}
	}
	return llm.Response{Message: llmtest.AssistantText("ok"), Usage: usage}, nil
}

// TestNothingOverspendsByMoreThanOneCall lets many agents spend at once. A call
// uses at most what it reserved, except that the input may be larger than it was
// estimated, as happens in life. What is spent never exceeds the budget by more
// than the largest call, whatever the order.
func TestNothingOverspendsByMoreThanOneCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := llm.Amount{
			Tokens: rapid.Int64Range(0, 3000).Draw(t, "tokens"),
			Money:  llm.Money(rapid.Int64Range(0, 20_000).Draw(t, "money")),
		}
		agents := rapid.IntRange(1, 12).Draw(t, "agents")
		usages := rapid.SliceOfN(rapid.Int64Range(0, 150), 40, 40).Draw(t, "usages")
		ledger := llm.NewMemoryLedger(llm.Limits{Day: limit}, clock)
		calls, made := 0, int64(0)
		model := &spender{next: func() (llm.Usage, error) {
			calls++
			made++
			u := usages[calls%len(usages)]
			if u%7 == 0 {
				return llm.Usage{Input: 100, Output: u / 3}, errors.New("cut")
			}
			return llm.Usage{Input: 100, Output: u / 3}, nil // at most 50, as reserved
		}}
		var group sync.WaitGroup
		for i := range agents {
			group.Go(func() {
				budgeted := llm.Budgeted(model, ledger, llm.Account{Task: task.ID(fmt.Sprint(i))}, quiet())
				for range 8 {
					request := llm.Request{InputTokens: 100, Messages: []llm.Message{llm.UserText("x")}}
					_, err := budgeted.Chat(context.Background(), request, nil)
					if k := llm.KindOf(err); err != nil && k != llm.CutStream && k != llm.BudgetExhausted {
						t.Errorf("unexpected: %v", err)
					}
				}
			})
		}
		group.Wait()
		_, spent, err := ledger.Spent(context.Background(), "0")
		if err != nil {
			t.Fatal(err)
		}
		if limit.Tokens > 0 && spent.Tokens > limit.Tokens || limit.Money > 0 && spent.Money > limit.Money {
			t.Fatalf("spent %+v of %+v in %d calls: calls that keep to their reservation never overspend", spent, limit, made)
		}
	})
}

// TestAnUnderestimateOverspendsByOneCallOnly has every call use more input than
// was estimated. What is spent goes over the limit by less than one call for each
// call that was under way at once, and with one agent by less than one.
func TestAnUnderestimateOverspendsByOneCallOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 5000).Draw(t, "limit")
		actual := rapid.Int64Range(100, 900).Draw(t, "real input")
		ledger := llm.NewMemoryLedger(llm.Limits{Task: llm.Amount{Tokens: limit}}, clock)
		model := &spender{next: func() (llm.Usage, error) { return llm.Usage{Input: actual, Output: 50}, nil }}
		budgeted := llm.Budgeted(model, ledger, llm.Account{Task: "a"}, quiet())
		for range 100 {
			if _, err := budgeted.Chat(context.Background(), llm.Request{InputTokens: 100}, nil); llm.KindOf(err) == llm.BudgetExhausted {
				break
			}
		}
		spent, _, _ := ledger.Spent(context.Background(), "a")
		if spent.Tokens > limit+actual+50 {
			t.Fatalf("spent %d of %d with calls of %d", spent.Tokens, limit, actual+50)
		}
	})
}

func TestExhaustedBudgetSaysSoPlainly(t *testing.T) {
	t.Parallel()
	ledger := llm.NewMemoryLedger(llm.Limits{Task: llm.Amount{Tokens: 10}}, clock)
	model := &spender{next: func() (llm.Usage, error) { t.Error("the model was called"); return llm.Usage{}, nil }}
	_, err := llm.Wrap(model, llm.Layers{Ledger: ledger, Account: llm.Account{Task: "a"}}).Chat(t.Context(), llm.Request{InputTokens: 5}, nil)
	if llm.KindOf(err) != llm.BudgetExhausted || !strings.Contains(err.Error(), "the budget of the task is 10 tokens; 0 are spent and the next call may use 55") {
		t.Errorf("got %v", err)
	}
}

func TestACutAnswerIsPaidFor(t *testing.T) {
	t.Parallel()
	ledger := llm.NewMemoryLedger(llm.Limits{}, clock)
	for _, c := range []struct {
		err  error
		want int64
	}{
		{&llm.Error{Kind: llm.CutStream, Usage: llm.Usage{Input: 70, Output: 3}}, 73}, // what the provider said
		{&llm.Error{Kind: llm.CutStream}, 100},                                        // the whole input
		{&llm.Error{Kind: llm.RateLimited}, 0},                                        // nothing was done
		{context.Canceled, 100},                                                       // it was under way
	} {
		before, _, _ := ledger.Spent(t.Context(), "a")
		model := llm.Budgeted(&failing{errors: []error{c.err}}, ledger, llm.Account{Task: "a"}, quiet())
		_, _ = model.Chat(t.Context(), llm.Request{InputTokens: 100}, nil)
		if after, _, _ := ledger.Spent(t.Context(), "a"); after.Tokens-before.Tokens != c.want {
			t.Errorf("%v costs %d tokens, want %d", c.err, after.Tokens-before.Tokens, c.want)
		}
	}
}

// stuck is a ledger that cannot settle.
type stuck struct{ llm.Ledger }

func (stuck) Settle(context.Context, llm.Reservation, llm.Amount) error {
	return errors.New("no database")
}

func TestAnAnswerIsKeptWhenItCannotBeSettled(t *testing.T) {
	t.Parallel()
	ledger := llm.NewMemoryLedger(llm.Limits{}, clock)
	model := llm.Budgeted(&failing{}, stuck{ledger}, llm.Account{Task: "a"}, quiet())
	if response, err := model.Chat(t.Context(), llm.Request{InputTokens: 100}, nil); err != nil || response.Message.Text() != "ok" {
		t.Errorf("%+v, %v", response, err)
	}
	if spent, _, _ := ledger.Spent(t.Context(), "a"); spent.Tokens != 200 {
		t.Errorf("%d tokens count, want the whole reservation of 200", spent.Tokens)
	}
}
