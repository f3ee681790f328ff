package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/wire"
)

// gitTimeout bounds one try of what git does over the network.
const gitTimeout = 10 * time.Minute

// steady is a repository that tries again when the server is away for a while:
// work that is done is not lost because a push was. What it repeats may be
// repeated: a push of the same commit changes nothing.
type steady struct{ phase.Repository }

// Save implements phase.Repository.
func (s steady) Save(ctx context.Context, message string) (string, error) {
	return persistOn(ctx, gitTimeout, outside, func(ctx context.Context) (string, error) { return s.Repository.Save(ctx, message) })
}

// Commit implements phase.Repository.
func (s steady) Commit(ctx context.Context, message, saved string) (commit string, changed bool, err error) {
	commit, err = persistOn(ctx, gitTimeout, outside, func(ctx context.Context) (string, error) {
		made, differs, err := s.Repository.Commit(ctx, message, saved)
		changed = differs
		return made, err
	})
	return commit, changed, err
}

// Merge implements phase.Repository.
func (s steady) Merge(ctx context.Context) ([]string, error) {
	return persistOn(ctx, gitTimeout, outside, s.Repository.Merge)
}

// TakeBranch implements phase.Repository.
func (s steady) TakeBranch(ctx context.Context) ([]string, error) {
	return persistOn(ctx, gitTimeout, outside, s.Repository.TakeBranch)
}

// steadily makes a workspace, however often the server goes away.
func steadily(prepare Prepare, log *slog.Logger) Prepare {
	type made struct {
		repository phase.Repository
		tidy       func() error
	}
	return func(ctx context.Context, a wire.Assignment) (phase.Repository, func() error, error) {
		all, err := persistOn(ctx, gitTimeout, outside, func(ctx context.Context) (made, error) {
			repository, tidy, err := prepare(ctx, a)
			if err != nil {
				log.WarnContext(ctx, "failed to prepare the workspace", "again", outside(err), "error", err)
			}
			return made{repository, tidy}, err
		})
		if err != nil {
			return nil, nil, err
		}
		return steady{all.repository}, all.tidy, nil
	}
}
