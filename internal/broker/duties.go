package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// Duty is something that one server of all does, again and again. It may be cut
// off at any moment, and for a moment two servers may do it: it has to bear both.
type Duty struct {
	Name  string
	Every time.Duration
	Do    func(ctx context.Context) error
}

const (
	// background is the office of the server that does the duties.
	background = "background"
	// termOfOffice is how long a server that is not heard of keeps the office, and
	// holdEvery how often it says that it is there. So the office is taken over
	// within their sum.
	termOfOffice = 5 * time.Second
	holdEvery    = time.Second
	// ownTerm is how long a server that hears nothing believes that it is in office.
	// It is shorter than the term, so that it has stopped when another begins.
	ownTerm = termOfOffice - holdEvery
)

// Duties does the duties while this server holds the office.
type Duties struct {
	Offices store.Offices
	Holder  string // names this server, and no other
	Log     *slog.Logger
	All     []Duty

	cancel  context.CancelFunc
	stopped chan struct{}
}

// Start begins to try for the office. It must be called once only. It does not end
// with the context, whose values are kept, but with Stop.
func (d *Duties) Start(ctx context.Context) {
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.stopped = make(chan struct{})
	go d.run(ctx)
}

// Stop ends the duties, waits until they have ended, and gives up the office, so
// that another server has it at once.
func (d *Duties) Stop(ctx context.Context) {
	if d.cancel == nil {
		return
	}
	d.cancel()
	<-d.stopped
	if err := d.Offices.Resign(ctx, background, d.Holder); err != nil {
		d.Log.WarnContext(ctx, "cannot give up the background work; another server takes it over when the term ends", "error", err)
	}
}

// run holds the office for as long as it can, and tries for it again after that.
func (d *Duties) run(ctx context.Context) {
	defer close(d.stopped)
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	var current *term
	defer func() { current.end() }()
	for {
		asked := time.Now()
		held, err := d.hold(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.Log.WarnContext(ctx, "it is not known who does the background work", "error", err)
		case held && current.prolong(asked.Add(ownTerm)):
		case held:
			current.end()
			d.Log.InfoContext(ctx, "this server does the background work now", "server", d.Holder)
			current = d.begin(ctx, asked.Add(ownTerm))
		case err == nil && current != nil:
			d.Log.WarnContext(ctx, "another server does the background work now", "server", d.Holder)
			current.end()
			current = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// hold asks for the office. A database that does not answer is asked again.
func (d *Duties) hold(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ownTerm)
	defer cancel()
	return d.Offices.Hold(ctx, background, d.Holder, termOfOffice)
}

// term is a time in office: the duties are done until it is over, which they notice
// also while the database keeps us waiting.
type term struct {
	cancel  context.CancelFunc
	over    *time.Timer
	working sync.WaitGroup
}

// begin does each duty in a goroutine of its own.
func (d *Duties) begin(ctx context.Context, until time.Time) *term {
	ctx, cancel := context.WithCancel(ctx)
	t := &term{cancel: cancel, over: time.AfterFunc(time.Until(until), func() {
		d.Log.WarnContext(ctx, "this server does not do the background work any more: it could not say that it is there", "server", d.Holder)
		cancel()
	})}
	for _, duty := range d.All {
		t.working.Go(func() { d.doEvery(ctx, duty) })
	}
	return t
}

// prolong says whether the term goes on. One that was over stays so.
func (t *term) prolong(until time.Time) bool {
	if t == nil || !t.over.Stop() {
		return false
	}
	t.over.Reset(time.Until(until))
	return true
}

// end ends the duties and waits for them.
func (t *term) end() {
	if t == nil {
		return
	}
	t.over.Stop()
	t.cancel()
	t.working.Wait()
}

func (d *Duties) doEvery(ctx context.Context, duty Duty) {
	ticker := time.NewTicker(duty.Every)
	defer ticker.Stop()
	for {
		if err := duty.Do(ctx); err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "a part of the background work failed; it is tried again", "what", duty.Name, "error", err, "again", duty.Every)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
