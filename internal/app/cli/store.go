package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
)

const databaseFile = site.DatabaseFile

// OnMissing says what a command does where there is no database.
type OnMissing bool

// Most commands fail, and say where they looked. Those that put the first things into an
// installation make one, if somebody has said where it is to be.
const (
	Fail OnMissing = false
	Make OnMissing = true
)

// WithStore runs a command that works on the database of an installation, which is there,
// without a server.
func WithStore(ctx context.Context, p site.Program, s *Settings, do func(store.Store) error) error {
	return WithData(ctx, p, s, Fail, func(_ config.Config, database store.Store) error { return do(database) })
}

// WithNewStore does the same, and makes the installation if it is not there and somebody
// has said where it is to be.
func WithNewStore(ctx context.Context, p site.Program, s *Settings, do func(store.Store) error) error {
	return WithData(ctx, p, s, Make, func(_ config.Config, database store.Store) error { return do(database) })
}

// WithData does either, for a command that needs the configuration too.
func WithData(ctx context.Context, p site.Program, s *Settings, missing OnMissing, do func(config.Config, store.Store) error) (err error) {
	loaded, err := s.LoadData(p)
	if err != nil {
		return err
	}
	database, err := s.open(ctx, p, loaded, missing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return do(loaded, database)
}

func (s *Settings) open(ctx context.Context, p site.Program, c config.Config, missing OnMissing) (store.Store, error) {
	if err := s.CheckDatabase(); err != nil {
		return nil, err
	}
	there, err := site.HasDatabase(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case there:
		return site.OpenExistingStore(ctx, c)
	case missing == Fail || !s.named(c):
		return nil, s.missing(c, missing == Make)
	}
	made, err := site.OpenStore(ctx, c)
	if err != nil {
		return nil, err
	}
	where := absolute(c.DataDir)
	if c.Database.Driver == "postgres" {
		where += " and in the PostgreSQL database of the configuration"
	}
	_, _ = fmt.Fprintf(p.Stderr, "created a new installation in %s\n", where) // the command goes on all the same
	return made, nil
}

// auditStore is what it takes of the database to note what a command does.
type auditStore interface {
	access.AuditStore
	access.PeopleStore
}

// Audited notes what is done by a command without a server: by the person that the user of
// this machine is, if that is known.
func Audited(ctx context.Context, p site.Program, database auditStore, action, subject string, do func() error) error {
	log := slog.New(slog.NewTextHandler(p.Stderr, nil))
	actor := "the command line"
	if person, err := (access.People{Store: database}).Here(ctx, MachineUser()); err == nil && person.Account { // else it is noted without a name
		actor = person.Login + " (command line)"
	}
	return access.Auditor{Store: database, Now: p.Now, Log: log}.Do(ctx, actor, action, subject, do)
}
