package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// SenderOptions is what a sender needs. Outbox, Tasks and Forges have to be set.
type SenderOptions struct {
	Outbox    store.Outbox
	Tasks     Generations
	Forges    map[task.Forge]forge.Forge
	Snapshots *items.Snapshots
	// Changes is told of reviews and merges that a forge has taken or refused for good: what
	// follows from them is decided by what the forge has. nil means that nobody is told.
	Changes *items.Feed
	Publish Publish // nil means that no branches are published
	// Pages is the address under which people reach the pages of this server, without a slash
	// at the end. Comments link to the page of their task; empty means that they do not.
	Pages string
	// Mask masks secrets in all that is written, whoever wrote it: an agent may know
	// fewer of them. nil means that there are none.
	Mask func(text string) string
	Log  *slog.Logger

	Workers int // how many actions are performed at once; 0 means 8
	// Timeout is how long one action may take; 0 means two minutes. It is held
	// while it takes, and for half a minute longer if we are gone: nobody else
	// begins with it while a request of ours may still be on its way.
	Timeout time.Duration
	// ProgressEvery is how often a progress comment is written at most; 0 means
	// every five seconds.
	ProgressEvery time.Duration
	// LookEvery is how often the outbox is looked at when nobody has said that
	// there is something in it: for what another server put or left there. 0
	// means twice a minute.
	LookEvery time.Duration
	// Now is the time that all senders on one outbox go by; nil means the clock of
	// the machine. See Clock in package leader.
	Now func() time.Time
}

// Generations tells the generation that a task is in.
type Generations interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
}

const (
	// heldLonger is by how much the hold on an action outlasts its attempt.
	heldLonger = 30 * time.Second
	// keepEvery is how often the hold on an action is extended that is being
	// performed, and heldFor how long it then lasts: an attempt ends when the hold
	// could not be extended twice in a row.
	keepEvery = 5 * time.Second
	heldFor   = 2*keepEvery + heldLonger
	// letGoWithin is how long after its action was taken over a process may still be writing: it
	// tries to extend its hold once more, is refused, and cuts off what is on its way.
	letGoWithin = 2*keepEvery + keepEvery + Settling
	// Settling is how long a write that was under way when its server ended may still be
	// on its way to the forge: only then the forge is looked at, and it is written again.
	Settling = 5 * time.Second
	// longestBackoff is the longest pause between two attempts, unless the forge
	// asks for more.
	longestBackoff = 10 * time.Minute
	// faultAttempts is how often an action is tried whose failures are faults of
	// our own: it must not stand in the way of others for ever.
	faultAttempts = 10
)

// Sender performs the actions in the outbox on the forges: in order for each
// item, until each is delivered or refused, and none twice. What the forge does not
// take for now holds up only what has to come after it: see laneOf.
//
// An action is refused when its run is over, or when the forge says that it will
// never take it. When the forge cannot be had, it is tried again for as long as
// it takes. An action that was tried before, even if we do not know how far that
// went, is performed so that the forge's adapter looks first.
type Sender struct {
	options  SenderOptions
	progress progress
	spacing  spacing

	wake  chan struct{} // has room for one: there may be something to do now
	later chan struct{} // has room for one: there will be something to do

	mu       sync.Mutex
	cancel   context.CancelFunc // ends what is being performed
	stop     chan struct{}      // closed to begin no more
	stopping bool
	stopped  chan struct{} // closed when all has ended
	due      []time.Time   // when there is something to do again, as far as we know
}

// NewSender makes a sender. It does nothing until it is started.
func NewSender(options SenderOptions) *Sender {
	if options.Workers == 0 {
		options.Workers = 8
	}
	if options.Timeout == 0 {
		options.Timeout = 2 * time.Minute
	}
	if options.ProgressEvery == 0 {
		options.ProgressEvery = 5 * time.Second
	}
	if options.LookEvery == 0 {
		options.LookEvery = 30 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{options: options, wake: make(chan struct{}, 1), later: make(chan struct{}, 1)}
}

// Put stores an action and wakes the sender. A progress comment is given a time
// that keeps it apart from the one before.
func (s *Sender) Put(ctx context.Context, action store.Action) (store.Action, error) {
	if action.DueAt.IsZero() {
		action.DueAt = s.options.Now()
	}
	if action.Kind == (Progress{}).Kind() {
		action.DueAt = s.spacing.next(action.Coalesce, action.DueAt, s.options.ProgressEvery)
	}
	stored, _, err := s.options.Outbox.Put(ctx, action)
	if err != nil {
		return store.Action{}, err
	}
	if action.Kind == (Progress{}).Kind() {
		s.spacing.put(action.Coalesce, stored.DueAt)
	}
	s.WakeAt(stored.DueAt)
	return stored, nil
}

// Wake makes the sender look into the outbox now. Whoever puts actions there by
// other ways than [Sender.Put], such as with a move of a task, calls it then.
func (s *Sender) Wake() { lifecycle.Signal(s.wake) }

// WakeAt makes the sender look into the outbox at the given time.
func (s *Sender) WakeAt(at time.Time) {
	s.mu.Lock()
	s.due = append(s.due, at)
	s.mu.Unlock()
	lifecycle.Signal(s.later)
}

// Start begins to send. It must be called once only. Sending does not end with
// the context, whose values are kept, but with Stop.
func (s *Sender) Start(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.cancel, s.stop, s.stopped = cancel, make(chan struct{}), make(chan struct{})
	s.mu.Unlock()
	s.WakeAt(s.options.Now().Add(Settling)) // what a server had that is known to have ended is free then
	go s.run(ctx)
}

// Stop begins no more actions and waits for those that are being performed. When
// the context ends they are cut off, and will be tried again after the next
// start. It returns when all has ended, and may be called again.
func (s *Sender) Stop(ctx context.Context) {
	s.mu.Lock()
	cancel, stopped := s.cancel, s.stopped
	if s.stop != nil && !s.stopping {
		s.stopping = true
		close(s.stop)
	}
	s.mu.Unlock()
	if stopped == nil {
		return // it was never started
	}
	select {
	case <-stopped:
	case <-ctx.Done():
	}
	cancel()
	<-stopped
}

// run takes actions and hands them to workers until it is stopped.
func (s *Sender) run(ctx context.Context) {
	defer close(s.stopped)
	var workers sync.WaitGroup
	defer workers.Wait()
	free := make(chan struct{}, s.options.Workers)
	for range s.options.Workers {
		free <- struct{}{}
	}
	trouble := lifecycle.NewBackoff(longestBackoff)
	for {
		begun := time.Now()
		actions, pause, err := s.look(ctx, len(free))
		if err != nil {
			pause = min(pause, trouble.NextBackOff())
			s.options.Log.ErrorContext(ctx, "failed to read the outbox", "error", err, "again", pause)
		} else {
			trouble.Reset()
		}
		for _, action := range actions {
			<-free
			workers.Go(func() {
				s.handle(ctx, action, begun)
				free <- struct{}{}
				s.Wake() // the next action of the item can be had now
			})
		}
		if !s.rest(pause) {
			return
		}
	}
}

// look takes what is due, as much as there are workers for, and says when to look again at the latest: when
// the first of the holds ends that others have, too. What a server had that was killed holds up what comes
// after it until then.
func (s *Sender) look(ctx context.Context, room int) (taken []store.Action, pause time.Duration, err error) {
	now := s.options.Now()
	s.mu.Lock()
	s.due = slices.DeleteFunc(s.due, func(at time.Time) bool { return !at.After(now) })
	s.mu.Unlock()
	pause = s.options.LookEvery
	if room == 0 {
		return nil, pause, nil // whoever is done first wakes us
	}
	ctx, cancel := context.WithTimeout(ctx, heldLonger)
	defer cancel()
	taken, err = s.options.Outbox.Take(ctx, now, now.Add(heldFor), room)
	if err != nil || len(taken) == room {
		return taken, pause, err
	}
	ends, err := s.options.Outbox.HeldUntil(ctx, now)
	if err == nil && !ends.IsZero() {
		pause = min(pause, ends.Sub(s.options.Now()))
	}
	return taken, pause, err
}

// rest waits until there is something to do, or for the pause. It is false when
// the sender is stopped.
func (s *Sender) rest(pause time.Duration) bool {
	end := time.Now().Add(pause)
	for {
		timer := time.NewTimer(s.untilDue(time.Until(end)))
		select {
		case <-s.stop:
			timer.Stop()
			return false
		case <-s.wake:
		case <-timer.C:
		case <-s.later:
			timer.Stop()
			continue
		}
		timer.Stop()
		select {
		case <-s.stop:
			return false
		default:
			return true
		}
	}
}

// untilDue returns how long it is until something falls due, and at most pause.
func (s *Sender) untilDue(pause time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.due {
		pause = min(pause, at.Sub(s.options.Now()))
	}
	return pause
}

// handle performs an action that was taken after a moment, and records what became of it.
func (s *Sender) handle(ctx context.Context, action store.Action, after time.Time) {
	log := s.options.Log.With("action", action.IdempotencyKey, "kind", action.Kind, "item", action.Item.String(), "attempt", action.Attempts)
	result, err := s.perform(ctx, action, after)
	if errors.Is(err, errLeft) {
		log.InfoContext(ctx, "a forge write is left to others", "error", err)
		return
	}
	// What became of it has to be recorded even while we are stopping.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heldLonger/2)
	defer cancel()
	end := s.judge(action, err)
	switch end.status {
	case store.Delivered:
		err = s.options.Outbox.Deliver(ctx, action.ID, result)
		log.InfoContext(ctx, "wrote to the forge")
	case store.Refused:
		log.WarnContext(ctx, "forge write rejected", "reason", end.reason, "error", err)
		err = s.options.Outbox.Refuse(ctx, action.ID, end.reason, s.masked(err))
	default:
		log.WarnContext(ctx, "forge write failed; retrying", "error", err, "again", end.again)
		at := s.options.Now().Add(end.again)
		err = s.options.Outbox.Retry(ctx, action.ID, action.Attempts, at, s.masked(err))
		s.WakeAt(at)
	}
	if err != nil {
		// It stays held, is taken again when the hold ends, and then the forge
		// is looked at first.
		log.ErrorContext(ctx, "failed to record the result of a forge write", "error", err)
	}
	if s.options.Snapshots != nil && end.status == store.Delivered && action.Lane != laneOf(Progress{}) {
		s.options.Snapshots.Changed(action.Item)
	}
	if s.options.Changes != nil && end.status != store.Pending && slices.Contains(consequential, action.Kind) {
		s.options.Changes.Publish(items.Change{Repository: action.Item.Repo(), Items: []task.Key{action.Item}})
	}
}

// masked is what an error says, as it is kept and shown to people: a forge may have said again
// what it was sent. Control characters go first, so that none is in a secret.
func (s *Sender) masked(err error) string {
	text := textfmt.Plain(err.Error())
	if s.options.Mask == nil {
		return text
	}
	return s.options.Mask(text)
}

// consequential are the kinds of action whose end is a reason to look at the item: what
// follows is decided by what the forge has, or did not take.
var consequential = []string{SubmitReview{}.Kind(), MergePull{}.Kind()}

// perform performs an action on its forge, unless its run is over.
func (s *Sender) perform(ctx context.Context, action store.Action, after time.Time) (result json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	var holding sync.WaitGroup
	defer holding.Wait()
	ended, end := context.WithCancel(ctx)
	defer end()
	holding.Go(func() { s.keepTaken(ended, action, cancel) })
	defer func() {
		if fault := recover(); fault != nil {
			err = task.Errorf(task.Internal, "performing %s panicked: %v\n%s", action.Kind, fault, debug.Stack())
		}
	}()
	if err := s.makeOurs(ctx, action, after); err != nil {
		return nil, fmt.Errorf("%w: %w", errLeft, err)
	}
	of, err := s.taskOf(ctx, action)
	if err != nil {
		return nil, err
	}
	on, found := s.options.Forges[action.Item.Forge]
	if !found {
		return nil, task.Errorf(task.Unsupported, "no forge %s is configured", action.Item.Forge)
	}
	perform, found := performers[action.Kind]
	if !found {
		return nil, task.Errorf(task.Unsupported, "there is no action of kind %q", action.Kind)
	}
	answer, err := perform(ctx, delivery{Action: action, on: on, sender: s, of: of, text: s.neutraliser(ctx, action.Item)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", action.Kind, err)
	}
	if answer == nil {
		return nil, nil
	}
	return json.Marshal(answer)
}

// errLeft says that somebody else has to do with the action: nothing is recorded. If it has not
// ended, it is taken over when our hold ends.
var errLeft = errors.New("it is not ours")

// makeOurs sees to it that nobody else is writing what we have taken after a moment.
//
// If it took long to hear of it, as in a process that was frozen, somebody may have taken it since.
//
// If a hold has ended, that is only what our clock says, and whoever had it may have another: the
// clock of the database, which all follow, may have been set. They are told that it was taken over when they
// try to extend the hold, and the time until then is measured here, by the steady clock.
func (s *Sender) makeOurs(ctx context.Context, action store.Action, after time.Time) error {
	if time.Since(after) > keepEvery {
		if err := s.options.Outbox.KeepTaken(ctx, action.ID, action.Attempts, s.options.Now().Add(heldFor)); err != nil {
			return err
		}
	}
	if !action.TakenOver {
		return nil
	}
	if err := lifecycle.Sleep(ctx, letGoWithin); err != nil {
		return err
	}
	now, err := s.options.Outbox.Action(ctx, action.IdempotencyKey)
	if err == nil && now.Status != store.Pending {
		err = task.Errorf(task.Conflict, "another server has made it")
	}
	return err
}

// keepTaken extends our hold on an action until the context ends. When that does
// not succeed in time, the attempt is cut off: someone else may begin soon.
func (s *Sender) keepTaken(ctx context.Context, action store.Action, cut func()) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	safe := time.Now().Add(heldFor - heldLonger)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		begun := time.Now()
		once, cancel := context.WithTimeout(ctx, keepEvery)
		err := s.options.Outbox.KeepTaken(once, action.ID, action.Attempts, s.options.Now().Add(heldFor))
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			safe = begun.Add(heldFor - heldLonger)
		case task.CodeOf(err) == task.Conflict || !time.Now().Before(safe):
			s.options.Log.WarnContext(ctx, "forge write canceled: its lease could not be extended", "action", action.IdempotencyKey, "error", err)
			cut()
			return
		}
	}
}

// taskOf reads the task that an action is for, and fails if its run is over.
func (s *Sender) taskOf(ctx context.Context, action store.Action) (task.Task, error) {
	if action.Task == "" {
		return task.Task{}, nil
	}
	current, err := s.options.Tasks.Task(ctx, action.Task)
	if err != nil {
		return task.Task{}, fmt.Errorf("read the task of the action: %w", err)
	}
	if current.Generation != action.Generation && !action.Lasting {
		return task.Task{}, task.Errorf(task.StaleGeneration, "the task is in generation %d, the write is of %d", current.Generation, action.Generation)
	}
	return current, nil
}
