package ledger

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Ledger is a [llm.Ledger] in the store.
type Ledger struct {
	Store  store.Spending
	Limits llm.Limits
	Now    func() time.Time
}

var _ llm.Ledger = Ledger{}

// Reserve implements [llm.Ledger].
func (l Ledger) Reserve(ctx context.Context, account llm.Account, most llm.Amount) (llm.Reservation, error) {
	call := store.Call{Task: account.Task, Generation: account.Generation, At: l.Now(), Most: stored(most)}
	id, err := l.Store.ReserveSpend(ctx, call, func(ofTask, ofDay store.Amount) error {
		return l.Limits.Admit(amount(ofTask), amount(ofDay), most)
	})
	return llm.Reservation(id), err
}

// Settle implements [llm.Ledger].
func (l Ledger) Settle(ctx context.Context, reservation llm.Reservation, used llm.Amount) error {
	return l.Store.SettleSpend(ctx, string(reservation), stored(used))
}

// Spent implements [llm.Ledger].
func (l Ledger) Spent(ctx context.Context, id task.ID) (ofTask, ofDay llm.Amount, err error) {
	byTask, onDay, err := l.Store.Spent(ctx, id, l.Now())
	return amount(byTask), amount(onDay), err
}

func stored(a llm.Amount) store.Amount { return store.Amount{Tokens: a.Tokens, Money: int64(a.Money)} }

func amount(a store.Amount) llm.Amount {
	return llm.Amount{Tokens: a.Tokens, Money: llm.Money(a.Money)}
}
