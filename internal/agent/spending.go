package agent

import (
	"context"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// spending is the task's budget, which the server keeps.
type spending struct{ held *wire.RunClient }

// Reserve implements Spending. A reservation that was made though its answer was
// lost counts as spent in full: that errs on the safe side.
func (s spending) Reserve(ctx context.Context, spend wire.Spend) (wire.Reservation, error) {
	return persist(ctx, callTimeout, func(ctx context.Context) (wire.Reservation, error) { return s.held.Reserve(ctx, spend) })
}

// Settle implements Spending.
func (s spending) Settle(ctx context.Context, settlement wire.Settlement) error {
	_, err := persist(ctx, callTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.held.Settle(ctx, settlement)
	})
	return err
}

// Ledger lets models be paid from the budget of one run.
type Ledger struct{ Spending Spending }

var _ llm.Ledger = Ledger{}

// Reserve implements llm.Ledger. The server decides, so that all that is known of
// a refusal is its text.
func (l Ledger) Reserve(ctx context.Context, _ llm.Account, most llm.Amount) (llm.Reservation, error) {
	reserved, err := l.Spending.Reserve(ctx, wire.Spend{Tokens: most.Tokens, Money: int64(most.Money)})
	if task.CodeOf(err) == task.OverBudget {
		return "", &overBudgetError{BudgetError: llm.BudgetError{Scope: llm.TaskBudget, Wanted: most}, refusal: err}
	}
	return llm.Reservation(reserved.ID), err
}

// Settle implements llm.Ledger.
func (l Ledger) Settle(ctx context.Context, reservation llm.Reservation, used llm.Amount) error {
	return l.Spending.Settle(ctx, wire.Settlement{Reservation: string(reservation), Tokens: used.Tokens, Money: int64(used.Money)})
}

// Spent implements llm.Ledger. An agent is not told what others have spent.
func (l Ledger) Spent(context.Context, task.ID) (ofTask, ofDay llm.Amount, err error) {
	return llm.Amount{}, llm.Amount{}, task.Errorf(task.Unsupported, "an agent does not know what was spent in all")
}

// overBudgetError is the server's refusal in the words that it used.
type overBudgetError struct {
	llm.BudgetError
	refusal error
}

func (e *overBudgetError) Error() string { return e.refusal.Error() }

// Unwrap lets both the kind of the error and its code be found.
func (e *overBudgetError) Unwrap() []error { return []error{&e.BudgetError, e.refusal} }
