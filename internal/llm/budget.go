package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Amount is tokens and money together.
type Amount struct {
	Tokens int64 `json:"tokens"`
	Money  Money `json:"money"`
}

// Add returns the sum of both.
func (a Amount) Add(b Amount) Amount {
	return Amount{Tokens: a.Tokens + b.Tokens, Money: a.Money + b.Money}
}

// Sub returns a without b.
func (a Amount) Sub(b Amount) Amount {
	return Amount{Tokens: a.Tokens - b.Tokens, Money: a.Money - b.Money}
}

// Limits are the budgets. A zero in an amount means no limit.
type Limits struct {
	Task Amount // over the whole life of one task
	Day  Amount // of all tasks together on one day, in UTC
}

// Account says on whose behalf a call is made.
type Account struct {
	Task       task.ID
	Generation int64
}

// Reservation is an admitted call that is not settled yet.
type Reservation string

// Ledger keeps budgets. Many agents use one ledger at once: an implementation
// decides and notes a reservation in one step that nobody else can come between.
type Ledger interface {
	// Reserve admits a call that uses at most the given amount, or refuses it
	// with a [*BudgetError]. It is admitted when what is spent, what is reserved
	// and this amount stay within every limit. So what is spent exceeds a limit
	// only by as much as calls use more than they reserved.
	//
	// A reservation that nobody settles, because its agent died, counts as spent
	// in full. The ledger may settle it so after a while; Settle still corrects
	// it when it comes late.
	Reserve(ctx context.Context, account Account, most Amount) (Reservation, error)

	// Settle replaces the reservation by what was really used. To settle twice
	// is to settle with the later amount. It is charged to the day of the
	// reservation. An unknown reservation is an error with the code NotFound.
	Settle(ctx context.Context, reservation Reservation, used Amount) error

	// Spent returns what the task has used in all and what all tasks have used
	// today, open reservations included.
	Spent(ctx context.Context, id task.ID) (ofTask, ofDay Amount, err error)
}

// BudgetScope says which budget is meant.
type BudgetScope string

// The scopes.
const (
	TaskBudget BudgetScope = "task"
	DayBudget  BudgetScope = "day"
)

// BudgetError says that a call does not fit into a budget.
type BudgetError struct {
	Scope  BudgetScope
	Limit  Amount
	Spent  Amount // open reservations included
	Wanted Amount
}

func (e *BudgetError) Error() string {
	if e.Limit.Money > 0 && e.Spent.Money+e.Wanted.Money > e.Limit.Money {
		return fmt.Sprintf("the budget of the %s is %s; %s are spent and the next call may cost %s",
			e.Scope, e.Limit.Money, e.Spent.Money, e.Wanted.Money)
	}
	return fmt.Sprintf("the budget of the %s is %d tokens; %d are spent and the next call may use %d",
		e.Scope, e.Limit.Tokens, e.Spent.Tokens, e.Wanted.Tokens)
}

// Admit returns the error for a call that does not fit into the limits, or nil.
// Every ledger decides by it.
func (l Limits) Admit(ofTask, ofDay, wanted Amount) error {
	for _, scope := range []struct {
		name         BudgetScope
		limit, spent Amount
	}{{TaskBudget, l.Task, ofTask}, {DayBudget, l.Day, ofDay}} {
		after := scope.spent.Add(wanted)
		if scope.limit.Tokens > 0 && after.Tokens > scope.limit.Tokens ||
			scope.limit.Money > 0 && after.Money > scope.limit.Money {
			return &BudgetError{Scope: scope.name, Limit: scope.limit, Spent: scope.spent, Wanted: wanted}
		}
	}
	return nil
}

// Budgeted returns a model whose every call is admitted by the ledger before it
// is made and settled with its real usage afterwards. A call that does not fit
// gives an error of the kind [BudgetExhausted].
func Budgeted(model Model, ledger Ledger, account Account, logger *slog.Logger) Model {
	return &budgeted{Model: model, ledger: ledger, account: account, logger: logger}
}

type budgeted struct {
	Model
	ledger  Ledger
	account Account
	meter   Meter
	logger  *slog.Logger
}

func (b *budgeted) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	info := b.Info()
	input := request.InputTokens
	if input == 0 {
		input = b.meter.Estimate(request.Size())
	}
	output := request.MaxTokens
	if output == 0 {
		output = info.MaxTokens
	}
	most := Amount{Tokens: input + output, Money: info.Prices.most(input, output)}
	reservation, err := b.ledger.Reserve(ctx, b.account, most)
	if err != nil {
		return Response{}, refusedByLedger(info, err)
	}
	written := 0
	response, err := b.Model.Chat(ctx, request, func(delta Delta) {
		written += len(delta.Text) + len(delta.Thinking) + len(delta.CallName)
		sink.Send(delta)
	})
	usage := response.Usage
	switch {
	case err != nil:
		usage = b.usageOfFailure(err, input, written)
	case usage == (Usage{}): // some servers do not say; nothing is not what it was
		usage = Usage{Input: input, Output: int64(float64(response.Message.Size()) / firstRatio)}
		response.Usage, response.Cost = usage, info.Prices.Cost(usage)
	default:
		b.meter.Observe(request.Size(), usage.Input)
	}
	b.settle(ctx, reservation, Amount{Tokens: usage.Total(), Money: info.Prices.Cost(usage)})
	return response, err
}

func refusedByLedger(info Info, err error) error {
	if over, ok := errors.AsType[*BudgetError](err); ok {
		return &Error{Kind: BudgetExhausted, Provider: info.Provider, Detail: over.Error(), Err: err}
	}
	return fmt.Errorf("reserve budget for a call to the model: %w", err)
}

// usageOfFailure is what a failed call has used: what the provider said, or what
// can be told from how it failed. An answer that broke off was paid for.
func (b *budgeted) usageOfFailure(err error, input int64, written int) Usage {
	if failed, ok := errors.AsType[*Error](err); ok {
		if failed.Usage != (Usage{}) {
			return failed.Usage
		}
		switch failed.Kind {
		case CutStream, TimedOut, BadAnswer:
		default:
			return Usage{}
		}
	}
	return Usage{Input: input, Output: int64(float64(written) / firstRatio)}
}

const settleWithin = 10 * time.Second

// settle also works when the call's own context has ended. When it fails, the
// reservation stays and counts as spent, which errs on the safe side.
func (b *budgeted) settle(ctx context.Context, reservation Reservation, used Amount) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if err := b.ledger.Settle(ctx, reservation, used); err != nil {
		b.logger.ErrorContext(ctx, "failed to settle a model call; its full reservation counts",
			"reservation", reservation, "tokens", used.Tokens, "error", err)
	}
}
