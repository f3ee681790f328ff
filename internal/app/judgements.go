package app

import (
	"context"

	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// judgements keeps what review tasks come to among the reviews that people can talk
// with, and has it submitted.
type judgements struct {
	reviews *review.Service
	wake    func()
}

var _ server.Judged = judgements{}

// Reviewed implements server.Judged.
func (j judgements) Reviewed(ctx context.Context, t task.Task, result wire.ReviewResult) error {
	if _, err := j.reviews.Reviewed(ctx, t.Key, server.ReportOf(result)); err != nil {
		return err
	}
	j.wake()
	return nil
}
