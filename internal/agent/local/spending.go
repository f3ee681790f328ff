package local

import (
	"context"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Spending keeps the budget of one run.
type Spending struct {
	Ledger *llm.MemoryLedger
	Task   task.ID
}

var _ agent.Spending = Spending{}

// Reserve implements agent.Spending.
func (s Spending) Reserve(ctx context.Context, spend wire.Spend) (wire.Reservation, error) {
	reserved, err := s.Ledger.Reserve(ctx, llm.Account{Task: s.Task}, llm.Amount{Tokens: spend.Tokens, Money: llm.Money(spend.Money)})
	if err != nil {
		return wire.Reservation{}, task.Wrap(task.OverBudget, err, "the budget is used up").WithHint("raise budget in the configuration")
	}
	return wire.Reservation{ID: string(reserved)}, nil
}

// Settle implements agent.Spending.
func (s Spending) Settle(ctx context.Context, settlement wire.Settlement) error {
	return s.Ledger.Settle(ctx, llm.Reservation(settlement.Reservation), llm.Amount{Tokens: settlement.Tokens, Money: llm.Money(settlement.Money)})
}
