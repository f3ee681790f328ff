package site

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// startReviews makes what keeps reviews and talks about them, and lets it look at
// what people reply on the forges.
func startReviews(ctx context.Context, c config.Config, f *connections, outages *llm.Outages, free freeing) (*review.Service, error) {
	models, err := reviewModels(c, f.store, f.clock.Now, outages, f.log)
	if err != nil {
		return nil, err
	}
	service := review.New(review.Options{
		Store: f.store, Model: models, Language: task.Language(c.Language), Prompts: promptsOf(c), Forges: f.forges, Pulls: f.snapshots, Steering: f.steering,
		Free: free.free, Wake: f.sender.Wake, Now: f.clock.Now, Log: f.log,
	})
	service.StartWatching(ctx, f.changes, c.SyncInterval)
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
func reviewModels(c config.Config, spending store.Spending, now func() time.Time, outages *llm.Outages, log *slog.Logger) (func(review.Purpose) (llm.Model, error), error) {
	made, err := NewModels(c, ledger.Ledger{Store: spending, Limits: LimitsOf(c.Budget), Now: now}, outages, log)
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
		model, err := made.Model(llm.Account{}, modelNames[purpose])
		if err == nil {
			known[purpose] = model
		}
		return model, err
	}, nil
}

// WithReviews runs a command that works on reviews without a server, beside one or
// not.
func WithReviews(ctx context.Context, p Program, c config.Config, database store.Store, do func(*review.Service) error) (err error) {
	process, err := startProcess(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	database.ActAs(process.ID())
	log := QuietLog(p, c)
	models, err := reviewModels(c, database, p.Now, new(llm.Outages), log)
	if err != nil {
		return err
	}
	service := review.New(review.Options{
		Store: database, Model: models, Language: task.Language(c.Language), Prompts: promptsOf(c), Now: p.Now, Log: log,
		Free: freeing{process, database, p.Now, nil, log}.free,
	})
	defer service.Stop()
	defer finishSummaries(ctx, service)
	return do(service)
}

// summariesWithin is how long a command that has done its work waits for the summary of a
// conversation. One that is cut off is written after the next message.
const summariesWithin = 15 * time.Second

func finishSummaries(ctx context.Context, service *review.Service) {
	ctx, cancel := context.WithTimeout(ctx, summariesWithin)
	defer cancel()
	service.Wait(ctx)
}
