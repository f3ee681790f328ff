package site

import (
	"context"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/retention"
	"github.com/toryo-dev/toryo/internal/store"
)

// tidyEvery is how often what was kept for long enough is removed from the database.
const tidyEvery = time.Hour

// DatabaseRetention removes what the database has kept for as long as the configuration says.
func DatabaseRetention(c config.Config, database store.Retention, now func() time.Time, log *slog.Logger) retention.Database {
	days := c.Retention
	return retention.Database{Store: database, Now: now, Log: log, Periods: retention.Periods{
		store.KeptJournals: config.Days(days.Journals), store.KeptGit: config.Days(days.Git), store.KeptSent: config.Days(days.Sent),
		store.KeptCalls: config.Days(days.Calls), store.KeptStatistics: config.Days(days.Statistics), store.KeptAudit: config.Days(days.Audit), store.KeptDeliveries: config.Days(days.Deliveries),
		store.KeptAnswers: config.Days(days.ForgeAnswers), store.KeptTokens: config.Days(days.Tokens),
	}}
}

// mirrorRetention removes from mirrors what was kept for as long as the configuration says.
func mirrorRetention(c config.Config, mirrors *mirror.Mirrors, tasks retention.Tasks, now func() time.Time, log *slog.Logger) *retention.Mirrors {
	return &retention.Mirrors{
		Mirrors: mirrors, Tasks: tasks, Git: config.Days(c.Retention.Git), Unused: config.Days(c.Retention.Mirrors), Now: now, Log: log,
	}
}

// tidying removes what the database has kept for long enough.
func tidying(c config.Config, f *connections) func(context.Context) error {
	database := DatabaseRetention(c, f.store, f.clock.Now, f.log)
	return func(ctx context.Context) error {
		_, err := database.Prune(ctx)
		return err
	}
}
