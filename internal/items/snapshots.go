package items

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Snapshot is an item as it was read: one unit with an age. Several callers are
// given the same one: none may change it.
type Snapshot struct {
	Item     forge.Item
	Comments []task.Comment // in the item's conversation, oldest first
	// ReviewComments are the texts of the reviews of a pull request, and then the
	// comments on its lines; see [Snapshots.ReadReviews].
	ReviewComments []task.Comment
	// Threads are the conversations on the lines of a pull request, with the same comments.
	Threads []forge.ReviewThread
	// ReadAt is the moment just before it was read. What happened later may be
	// in it or not.
	ReadAt time.Time
}

const (
	// longestReading bounds the reading of one snapshot.
	longestReading = 2 * time.Minute
	// settling is how long after a moment that a forge writes down something
	// else can happen in what it calls the same moment. Forges keep seconds.
	settling = 2 * time.Second
	// commentsAge is how old comments may become on an item that seems not to
	// have changed: an edited comment does not show in the item on every forge.
	commentsAge = 2 * time.Minute
	// maxEntries is how many items are remembered.
	maxEntries = 4096
)

// ReviewSource reads what reviewers said.
type ReviewSource interface {
	ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error)
	Reviews(ctx context.Context, key task.Key) ([]forge.Review, error)
}

// Snapshots reads items and remembers them. Its methods may be called by any
// number of goroutines.
//
// An item that has not changed costs one request, and if the forge knows ETags
// that is a conditional one. Callers that want the same item at the same time
// share one reading.
type Snapshots struct {
	forges  map[task.Forge]forge.Reader
	ages    Ages
	now     func() time.Time
	flights singleflight.Group
	reviews map[task.Forge]ReviewSource
	trust   *WebhookTrust // nil if nobody counts webhooks

	mu      sync.Mutex
	entries map[task.Key]*entry
	stopped bool
	stop    chan struct{}
	reading sync.WaitGroup
}

// entry is what is known of an item.
type entry struct {
	snapshot Snapshot // ReadAt is zero if it was never read
	changes  int64    // how often the item was said to have changed
	included int64    // how many of these the snapshot has seen
	asked    time.Time

	commentsAt time.Time // when the comments were read
	since      time.Time // when we first saw that the item was last updated then
	listed     time.Time // when a listing last said that it was updated
}

// NewSnapshots makes snapshots of the items of the forges. Without
// [Snapshots.TrustWebhooks] no webhooks are trusted. A nil now means the real time.
func NewSnapshots(forges map[task.Forge]forge.Reader, ages Ages, now func() time.Time) *Snapshots {
	if now == nil {
		now = time.Now
	}
	return &Snapshots{
		forges: forges, ages: ages, now: now,
		entries: map[task.Key]*entry{}, stop: make(chan struct{}),
	}
}

// ReadReviews has the reviews of pull requests read too. It is called before anything
// else.
func (s *Snapshots) ReadReviews(from map[task.Forge]ReviewSource) { s.reviews = from }

// readReviews reads what people wrote in the reviews of a pull request.
func (s *Snapshot) readReviews(ctx context.Context, from ReviewSource, pull task.Key) error {
	reviews, err := from.Reviews(ctx, pull)
	if err != nil {
		return fmt.Errorf("read the reviews of %s: %w", pull, err)
	}
	if s.Threads, err = from.ReviewThreads(ctx, pull); err != nil {
		return fmt.Errorf("read the review comments of %s: %w", pull, err)
	}
	s.ReviewComments = append(forge.ReviewTexts(reviews), forge.ReviewComments(s.Threads)...)
	return nil
}

// Get returns a snapshot that is not older than maxAge and that was read after
// every change that [Snapshots.Changed] told of before the call. Only edits of
// comments, which some forges do not show in the item, may be up to two minutes
// late; with a maxAge of 0 everything is read anew. If the item cannot be read,
// the error is the forge's, and the last snapshot that there is comes with it.
func (s *Snapshots) Get(ctx context.Context, key task.Key, maxAge time.Duration) (Snapshot, error) {
	if err := key.Validate(); err != nil {
		return Snapshot{}, err
	}
	if maxAge <= 0 {
		s.Changed(key)
	}
	asked := s.now()
	oldest := asked.Add(-maxAge)
	last, change, good := s.last(key, oldest)
	for !good {
		flight := s.flights.DoChan(key.String(), func() (any, error) { return s.read(ctx, key) })
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-s.stop:
			return last, errStopped
		case result := <-flight:
			if result.Err != nil {
				return last, result.Err
			}
			// A reading that we joined may have begun before we needed it to.
			// The next one begins after.
			got, _ := result.Val.(reading) // read returns nothing else
			last, good = got.Snapshot, !got.ReadAt.Before(oldest) && got.included >= change
			if current := s.changesOf(key); current < change {
				// The entry was dropped, to make room, and its changes are counted from 0 again.
				// Whatever is read from now on has seen those that we wait for.
				change, oldest = 0, asked
				good = !got.ReadAt.Before(oldest)
			}
		}
	}
	return last, nil
}

// changesOf is how often an item was said to have changed since it is remembered.
func (s *Snapshots) changesOf(key task.Key) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.entries[key]; found {
		return e.changes
	}
	return 0
}

var errStopped = task.Errorf(task.Interrupted, "the server is stopping")

// reading is a snapshot with the changes that it has seen.
type reading struct {
	Snapshot
	included int64
}

// last returns the snapshot that there is, how many changes the item has had, and
// whether the snapshot is good enough.
func (s *Snapshots) last(key task.Key, oldest time.Time) (last Snapshot, change int64, good bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	e.asked = s.now()
	read := !e.snapshot.ReadAt.IsZero()
	return e.snapshot, e.changes, read && e.included >= e.changes && !e.snapshot.ReadAt.Before(oldest)
}

// entry returns the entry of an item and makes room for a new one. The mutex is
// held.
func (s *Snapshots) entry(key task.Key) *entry {
	e, found := s.entries[key]
	if !found {
		if len(s.entries) >= maxEntries {
			s.dropOldest()
		}
		e = &entry{}
		s.entries[key] = e
	}
	return e
}

// dropOldest forgets the item for which nobody has asked for the longest time.
func (s *Snapshots) dropOldest() {
	var oldest task.Key
	var at time.Time
	for key, e := range s.entries {
		if at.IsZero() || e.asked.Before(at) {
			oldest, at = key, e.asked
		}
	}
	delete(s.entries, oldest)
}

// read reads an item for everyone who waits for it. It does not end with the
// context of the one caller who happened to be first.
func (s *Snapshots) read(ctx context.Context, key task.Key) (reading, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestReading)
	defer cancel()
	if !s.begin(ctx, cancel) {
		return reading{}, errStopped
	}
	defer s.reading.Done()
	source, found := s.forges[key.Forge]
	if !found {
		return reading{}, task.Errorf(task.Unsupported, "no forge %s is configured", key.Forge)
	}
	s.mu.Lock()
	before := *s.entry(key)
	s.mu.Unlock()

	at := s.now()
	item, err := source.Item(ctx, key)
	if err != nil {
		return reading{}, fmt.Errorf("read %s: %w", key, err)
	}
	after := before
	after.snapshot.Item, after.snapshot.ReadAt, after.included = item, at, before.changes
	if !item.UpdatedAt.Equal(before.snapshot.Item.UpdatedAt) {
		after.since = at
	}
	if before.needsComments(after, at) {
		comments, err := source.Comments(ctx, key)
		if err != nil {
			return reading{}, fmt.Errorf("read the comments of %s: %w", key, err)
		}
		after.snapshot.Comments, after.commentsAt = comments, at
		if reviews, read := s.reviews[key.Forge]; read && key.Kind == task.Pull {
			if err := after.snapshot.readReviews(ctx, reviews, key); err != nil {
				return reading{}, err
			}
		}
	}
	s.compare(key, &before, &after)
	s.remember(key, after)
	return reading{after.snapshot, after.included}, nil
}

// needsComments reports whether the comments have to be read again: the item was
// updated, or may have been within the second of its last update, or was said to
// have changed, or it is too long ago.
func (e *entry) needsComments(after entry, at time.Time) bool {
	return e.snapshot.ReadAt.IsZero() || after.included > e.included ||
		e.commentsAt.Before(after.since.Add(settling)) || at.Sub(e.commentsAt) >= commentsAge
}

func (s *Snapshots) remember(key task.Key, after entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	changes, asked, listed := e.changes, e.asked, e.listed // may have moved since
	*e = after
	e.changes, e.asked, e.listed = changes, asked, listed
}

// begin counts a reading that cancel ends, unless the snapshots are stopped.
func (s *Snapshots) begin(ctx context.Context, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.reading.Add(1)
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return true
}

// Stop ends all readings and waits for them. Get fails from then on.
func (s *Snapshots) Stop() {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.reading.Wait()
}

// Changed says that something happened to an item: what was read before does not
// count any more. It costs nothing until somebody asks for the item.
func (s *Snapshots) Changed(key task.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.entries[key]; found {
		e.changes++
	}
}

// ChangedAll says that something happened in a repository, nobody knows to which
// items.
func (s *Snapshots) ChangedAll(of task.Forge, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if key.Forge == of && key.Repository == name {
			e.changes++
		}
	}
}

// ParticipantsAge is how old the knowledge of who takes part in a conversation
// may be.
const ParticipantsAge = time.Hour

// olderThan reports whether the item was read before it became what the forge lists, and
// longer ago than it may be. It does so once for each version that is listed: a forge may list a later time than it
// shows in the item itself.
func (s *Snapshots) olderThan(listed forge.Item) bool {
	oldest := s.now().Add(-s.MaxAge(listed.Key))
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.entries[listed.Key]
	if !found || e.snapshot.ReadAt.IsZero() || !e.snapshot.ReadAt.Before(oldest) ||
		!listed.UpdatedAt.After(e.snapshot.Item.UpdatedAt) || listed.UpdatedAt.Equal(e.listed) {
		return false
	}
	e.listed = listed.UpdatedAt
	return true
}
