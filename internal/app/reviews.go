package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// startReviews makes what keeps reviews and talks about them, and lets it look at
// what people reply on the forges.
func startReviews(ctx context.Context, c config.Config, f *forgeSide, free freeing) (*review.Service, error) {
	models, err := reviewModels(c, f.store, f.clock.Now, f.log)
	if err != nil {
		return nil, err
	}
	service := review.New(review.Options{
		Store: f.store, Model: models, Language: task.Language(c.Language), Forges: f.forges, Pulls: f.snapshots, Steering: f.steering,
		Free: free.free, Wake: f.sender.Wake, Now: f.clock.Now, Log: f.log,
	})
	f.heard = service.Heard
	service.StartWatching(ctx, c.SyncInterval)
	return service, nil
}

func stopReviews(service *review.Service) {
	service.StopWatching()
	service.Stop()
}

// modelNames are the names in llm_overrides for what a review needs a model for.
var modelNames = map[review.Purpose]string{
	review.ForChat: config.ChatModel, review.ForSummary: config.SummaryModel, review.ForReview: config.ReviewModel,
}

// reviewModels gives the model for each purpose. It is made when it is first
// needed, and every call is charged to the day.
func reviewModels(c config.Config, spending store.Spending, now func() time.Time, log *slog.Logger) (func(review.Purpose) (llm.Model, error), error) {
	made, err := newModels(c, ledger.Ledger{Store: spending, Limits: limitsOf(c.Budget), Now: now}, log)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	known := map[review.Purpose]llm.Model{}
	return func(purpose review.Purpose) (llm.Model, error) {
		mu.Lock()
		defer mu.Unlock()
		if model, found := known[purpose]; found {
			return model, nil
		}
		model, err := made.model(llm.Account{}, modelNames[purpose])
		if err == nil {
			known[purpose] = model
		}
		return model, err
	}, nil
}

// hearing is someone on the board whose answers in review threads are told of.
type hearing struct {
	server.BoardPerson
	heard func(task.Key)
}

// Answer implements server.BoardPerson.
func (h hearing) Answer(ctx context.Context, key task.Key, thread, body string) (task.Comment, error) {
	made, err := h.BoardPerson.Answer(ctx, key, thread, body)
	if err == nil {
		h.heard(key)
	}
	return made, err
}

// told passes on what a webhook says about pull requests.
func (f *forgeSide) told(delivery forge.Delivery) {
	if f.heard == nil {
		return
	}
	for _, item := range delivery.Items {
		if item.Kind == task.Pull {
			f.heard(item)
		}
	}
}

// withReviews runs a command that works on reviews without a server, beside one or
// not.
func (p program) withReviews(ctx context.Context, s *settings, do func(*review.Service, config.Config) error) (err error) {
	loaded, err := s.load(p)
	if err != nil {
		return err
	}
	database, err := openStore(ctx, loaded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	process, err := startProcess(loaded.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	database.ActAs(process.ID())
	log := p.quietLog(loaded)
	models, err := reviewModels(loaded, database, p.now, log)
	if err != nil {
		return err
	}
	service := review.New(review.Options{
		Store: database, Model: models, Language: task.Language(loaded.Language), Now: p.now, Log: log,
		Free: freeing{process, database, p.now, nil, log}.free,
	})
	defer service.Stop()
	defer service.Wait(ctx) // a summary may be due
	return do(service, loaded)
}
