package review

import (
	"context"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Store is what reviews need of the database.
type Store interface {
	store.Questions
	store.Reviews
	store.Threads
	store.Turns
	store.Shares
	User(ctx context.Context, login string) (store.User, error)
}

// Purpose says what a model is for.
type Purpose string

// The purposes.
const (
	ForChat    Purpose = "chat"
	ForSummary Purpose = "summary"
	ForReview  Purpose = "review"
)

// Pulls reads pull requests as they were last seen; [items.Snapshots] does.
type Pulls interface {
	Get(ctx context.Context, key task.Key, maxAge time.Duration) (items.Snapshot, error)
	MaxAge(key task.Key) time.Duration
}

// Options is what a service needs.
type Options struct {
	Store Store
	// Model returns the model for a purpose, with everything around it that calls
	// pass through: budget, retries, redaction.
	Model func(Purpose) (llm.Model, error)
	// Language is that of conversations; empty or automatic means that of what people
	// write in them.
	Language task.Language
	// Prompts has files that replace the built-in prompts of the same names: those of
	// this package and of package judge. It may be nil.
	Prompts fs.FS
	// SummaryWait is how long a turn waits for a summary that is being written; 0 means
	// five seconds.
	SummaryWait time.Duration
	// Forges, Pulls and Steering are nil where there are no pull requests to look at.
	Forges   map[task.Forge]forge.Forge
	Pulls    Pulls
	Steering *items.Steering // says whose replies are answered
	// Free frees what processes held that have ended for certain, and reports whether
	// there was a turn among it. It is called while a thread waits for another
	// process; nil means that nothing is known of other processes.
	Free func(ctx context.Context) (turns bool, err error)
	// Wake tells the sender that there is something in the outbox; it may be nil.
	Wake func()
	Now  func() time.Time
	Log  *slog.Logger
}

// Service keeps reviews and talks about them. Its methods may be called by any
// number of goroutines. It has to be stopped.
//
// Reviews and threads belong to who made them, and to everyone else they do not
// exist, unless a review is shared: then others can read it, and have threads of their
// own about it. Reviews of pull requests are there for all to see, and so are the threads
// of the people on the forge; but these are spoken in on the forge only.
type Service struct {
	Options
	queues    queues
	underWay  underWay
	diffs     diffs
	materials materials

	stop     chan struct{} // closed when what is under way is broken off
	mu       sync.Mutex
	draining *time.Timer // closes stop; nil unless the service is stopping
	answers  sync.WaitGroup
	watching *watch
}

// New makes a service.
func New(options Options) *Service {
	return &Service{Options: options, stop: make(chan struct{})}
}

// drainFor is how long what is being answered has to end when the service is to stop.
const drainFor = 3 * time.Second

// Drain begins to stop: nothing more is asked, and what is being answered is broken off
// if it has not ended in a few seconds. Whoever follows it is told so. It does not wait.
func (s *Service) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining == nil {
		s.draining = time.AfterFunc(drainFor, func() { close(s.stop) })
	}
}

// Stop breaks off what is being answered, so that it is marked as unanswered, and
// waits for it. Nothing is answered from then on.
func (s *Service) Stop() {
	s.Drain()
	if s.draining.Stop() { // else it is closed already, or about to be
		close(s.stop)
	}
	s.answers.Wait()
}

// untilStop is a context that also ends, with [errStopping] as its cause, when what is
// under way is broken off.
func (s *Service) untilStop(ctx context.Context) (until context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopWhen(ctx, func() { cancel(errStopping) }, s.stop)
	return ctx, func() { cancel(nil) }
}

// Wait waits until nothing is being answered or summarised, or the context ends.
func (s *Service) Wait(ctx context.Context) {
	idle := make(chan struct{})
	go func() {
		s.answers.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

var errStopping = task.Errorf(task.Interrupted, "the server is stopping").WithHint("send the message again")

const (
	// maxMessage, maxText and maxAnswer bound what people give, in bytes.
	maxMessage = 256 << 10
	maxText    = 1 << 20
	maxAnswer  = 4 << 20
	// maxSections is how many sections an answer may have. A marker whose number is used
	// again counts too.
	maxSections = 10_000
)

func bounded(what, text string, most int) error {
	if len(text) > most {
		return task.Errorf(task.TooLarge, "the %s has %d bytes; %d are allowed", what, len(text), most)
	}
	return nil
}

// AddReview keeps a review of a document in the history of its owner.
func (s *Service) AddReview(ctx context.Context, who string, r store.Review) (store.Review, error) {
	if err := named(who); err != nil {
		return store.Review{}, err
	}
	if err := checkReview(r); err != nil {
		return store.Review{}, err
	}
	if r.QuestionID != "" { // whoever has a review of a question reads it
		if _, err := s.readableQuestion(ctx, who, r.QuestionID, true); err != nil {
			return store.Review{}, err
		}
	}
	r.Owner, r.Pull, r.HeadCommit, r.CreatedAt = who, task.Key{}, "", s.Now()
	return s.Store.AddReview(ctx, r)
}

func (s *Service) wake() {
	if s.Wake != nil {
		s.Wake()
	}
}

// named refuses who has no name: what belongs to nobody cannot be found again.
func named(who string) error {
	if who == "" {
		return task.Errorf(task.Forbidden, "reviews belong to a name, and this token has none").
			WithHint("make a token with toryo token create --name NAME")
	}
	return nil
}

func checkReview(r store.Review) error {
	if (r.QuestionID == "") == (strings.TrimSpace(r.CustomQuestionText) == "") {
		return task.Errorf(task.Invalid, "a review is of one question: give either question_id or custom_question_text")
	}
	if strings.TrimSpace(r.AnswerText) == "" {
		return task.Errorf(task.Invalid, "a review needs the text of the answer")
	}
	for _, part := range []struct {
		what, text string
		most       int
	}{{"question", r.CustomQuestionText, maxText}, {"answer", r.AnswerText, maxAnswer}, {"review", string(r.Judgement), maxText}} {
		if err := bounded(part.what, part.text, part.most); err != nil {
			return err
		}
	}
	if sections := judge.CountMarkers(r.AnswerText); sections > maxSections {
		return task.Errorf(task.TooLarge, "the answer has %d sections; %d are allowed", sections, maxSections)
	}
	_, err := judge.ParseJudgement(r.Judgement)
	return err
}

// Review returns a review that the caller may see.
func (s *Service) Review(ctx context.Context, who, id string) (store.Review, error) {
	found, err := s.Store.Review(ctx, id)
	if err != nil {
		return store.Review{}, err
	}
	may, err := s.mayRead(ctx, found, who)
	if err != nil {
		return store.Review{}, err
	}
	if !may {
		return store.Review{}, task.Errorf(task.NotFound, "there is no review %q", id)
	}
	return s.Current(found), nil
}

func mine(r store.Review, who string) bool { return who != "" && r.Owner == who }
func ofPull(r store.Review) bool           { return r.Pull != (task.Key{}) }

// History returns the caller's own reviews and those that are shared with the caller,
// oldest first.
func (s *Service) History(ctx context.Context, who, after string, limit int) ([]store.Review, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	found, err := s.Store.ListReviews(ctx, store.ReviewFilter{Reader: who, After: after, Limit: limit})
	for i, one := range found {
		found[i] = s.Current(one)
	}
	return found, err
}

// ReviewsOfPull returns the reviews of a pull request, oldest first.
func (s *Service) ReviewsOfPull(ctx context.Context, pull task.Key) ([]store.Review, error) {
	if err := pull.Validate(); err != nil {
		return nil, err
	}
	return s.Store.ListReviews(ctx, store.ReviewFilter{Pull: pull})
}

// DeleteReview removes a review of the caller's own with its threads. Those of
// pull requests stay: the forge has them too.
func (s *Service) DeleteReview(ctx context.Context, who, id string) error {
	if _, err := s.own(ctx, who, id); err != nil {
		return err
	}
	return s.Store.DeleteReview(ctx, id)
}

// material is what conversations about a review are made of.
func (s *Service) material(ctx context.Context, r store.Review) (Material, error) {
	if kept, found := s.materials.get(r.ID); found {
		return kept, nil
	}
	question, err := s.QuestionOf(ctx, r)
	if err != nil {
		return Material{}, err
	}
	made := Material{
		Question: question.Text, Purpose: question.PurposeText, Grading: question.GradingImpressionText,
		Sections: judge.ParseSections(r.AnswerText),
	}
	if made.Judgement, err = judge.ParseJudgement(r.Judgement); err != nil {
		return Material{}, err
	}
	if r.State == store.Judged { // until then it changes
		s.materials.keep(r.ID, made, len(r.AnswerText)+len(r.Judgement)+len(question.Text))
	}
	return made, nil
}

// materials remembers what reviews are made of: they never change, and taking them
// apart costs more than everything else in a turn.
type materials struct {
	mu    sync.Mutex
	known map[string]Material
	bytes int
}

// maxMaterials is how many bytes of reviews are remembered.
const maxMaterials = 32 << 20

func (m *materials) get(id string) (Material, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, found := m.known[id]
	return kept, found
}

func (m *materials) keep(id string, made Material, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || m.bytes+bytes > maxMaterials {
		m.known, m.bytes = map[string]Material{}, 0
	}
	if _, there := m.known[id]; !there {
		m.known[id] = made
		m.bytes += bytes
	}
}
