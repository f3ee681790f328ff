package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
)

// WithStore runs a command that works on the database without a server.
func WithStore(ctx context.Context, p site.Program, s *Settings, do func(store.Store) error) (err error) {
	loaded, err := s.Load(p)
	if err != nil {
		return err
	}
	database, err := site.OpenStore(ctx, loaded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return do(database)
}

// Audited notes what is done by a command without a server.
func Audited(ctx context.Context, p site.Program, database access.AuditStore, action, subject string, do func() error) error {
	log := slog.New(slog.NewTextHandler(p.Stderr, nil))
	return access.Auditor{Store: database, Now: p.Now, Log: log}.Do(ctx, "the command line", action, subject, do)
}
