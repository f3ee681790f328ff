package llm

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// MemoryLedger is a ledger for the agents of one process. It forgets everything
// when the process ends.
type MemoryLedger struct {
	now func() time.Time

	mu     sync.Mutex
	limits Limits
	last   int64
	open   map[Reservation]entry
	tasks  map[task.ID]Amount // spent and reserved
	days   map[string]Amount
}

type entry struct {
	task   task.ID
	day    string
	amount Amount
}

var _ Ledger = (*MemoryLedger)(nil)

// NewMemoryLedger returns a ledger with nothing spent.
func NewMemoryLedger(limits Limits, now func() time.Time) *MemoryLedger {
	return &MemoryLedger{
		now: now, limits: limits,
		open: map[Reservation]entry{}, tasks: map[task.ID]Amount{}, days: map[string]Amount{},
	}
}

// SetLimits changes the budgets. It holds from the next reservation on.
func (l *MemoryLedger) SetLimits(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
}

func (l *MemoryLedger) today() string { return l.now().UTC().Format(time.DateOnly) }

// Reserve implements [Ledger].
func (l *MemoryLedger) Reserve(_ context.Context, account Account, most Amount) (Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	day := l.today()
	l.forgetBefore(day)
	if err := l.limits.Admit(l.tasks[account.Task], l.days[day], most); err != nil {
		return "", err
	}
	l.last++
	reservation := Reservation(strconv.FormatInt(l.last, 10))
	l.open[reservation] = entry{task: account.Task, day: day, amount: most}
	l.charge(l.open[reservation], most)
	return reservation, nil
}

// forgetBefore drops the settled and unsettled calls of earlier days but the last,
// for which a late settlement may still come.
func (l *MemoryLedger) forgetBefore(day string) {
	if _, known := l.days[day]; known || len(l.days) < 2 {
		return
	}
	latest := ""
	for earlier := range l.days {
		latest = max(latest, earlier)
	}
	for reservation, e := range l.open {
		if e.day < latest {
			delete(l.open, reservation)
		}
	}
	for earlier := range l.days {
		if earlier < latest {
			delete(l.days, earlier)
		}
	}
}

// Settle implements [Ledger].
func (l *MemoryLedger) Settle(_ context.Context, reservation Reservation, used Amount) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.open[reservation]
	if !ok {
		return task.Errorf(task.NotFound, "there is no reservation %s", reservation)
	}
	l.charge(e, used.Sub(e.amount))
	e.amount = used
	l.open[reservation] = e
	return nil
}

func (l *MemoryLedger) charge(e entry, amount Amount) {
	l.tasks[e.task] = l.tasks[e.task].Add(amount)
	l.days[e.day] = l.days[e.day].Add(amount)
}

// Spent implements [Ledger].
func (l *MemoryLedger) Spent(_ context.Context, id task.ID) (ofTask, ofDay Amount, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks[id], l.days[l.today()], nil
}
