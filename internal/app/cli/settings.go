package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// DefaultFile is the configuration that is read when none is named, and that of [config.Machine] the
// one that is read when it is not there either.
const DefaultFile = "toryo.yaml"

// Settings are the flags by which a command is told about its configuration.
type Settings struct {
	file     string
	flags    map[string]*string // by configuration key
	remote   bool               // the command can ask a server elsewhere
	own      bool               // the command works for whoever calls it
	secrets  bool               // the command needs secrets besides the database
	warnings []config.Problem   // of what was loaded
	report   config.Report      // of what was loaded
	database error              // why the URL of the database is not known
}

// DataFlag and AddrFlag are flags that go over configuration keys.
var (
	DataFlag = Flag{Name: "data", Key: "data_dir", Value: "DIR", Usage: "folder for the database and everything else that is kept"}
	AddrFlag = Flag{Name: "addr", Key: "server.addr", Value: "HOST:PORT", Usage: "address to listen on"}
)

// Flag is a flag that goes over a configuration key.
type Flag struct{ Name, Key, Value, Usage string }

// Bind adds --config and the flags to a command.
func (s *Settings) Bind(c *cobra.Command, flags ...Flag) {
	c.Flags().StringVar(&s.file, "config", "", "configuration `FILE` (default "+DefaultFile+" in this folder"+s.orElse()+", if it exists)")
	s.flags = make(map[string]*string)
	for _, flag := range flags {
		s.flags[flag.Key] = c.Flags().String(flag.Name, "", flag.Usage+" (`"+flag.Value+"`, over "+flag.Key+")")
	}
}

// PlaceFlags are the flags that were given by which another command finds the same data, each with
// a space before it.
func (s *Settings) PlaceFlags() string {
	flags := ""
	if s.file != "" {
		flags += " --config " + site.Quoted(s.file)
	}
	if data := s.flags[DataFlag.Key]; data != nil && *data != "" {
		flags += " --" + DataFlag.Name + " " + site.Quoted(*data)
	}
	return flags
}

// AllowRemote says that the command can also ask a server that is named by --server.
func (s *Settings) AllowRemote() { s.remote = true }

// Own says, before Bind, that the command has nothing to do with the server of this machine: it works
// for whoever calls it, here, and does not read the configuration of the machine.
func (s *Settings) Own() { s.own = true }

// NeedSecrets says that the command needs the data of an installation and the secrets of its
// configuration too.
func (s *Settings) NeedSecrets() { s.secrets = true }

// Load reads the configuration from file, environment and flags, with all that it names.
func (s *Settings) Load(p site.Program) (config.Config, error) {
	loaded, report := config.Load(s.FileOrDefault(), p.Environ, s.Given())
	return s.loaded(loaded, report)
}

// LoadData reads the configuration for a command that needs nothing but the data of an
// installation. It goes on without secrets that this user may not read. CheckDatabase says
// whether that of the database is among them.
func (s *Settings) LoadData(p site.Program) (config.Config, error) {
	if s.secrets {
		return s.Load(p)
	}
	loaded, report := config.Load(s.FileOrDefault(), p.Environ, s.Given())
	report, database := report.WithoutSecrets()
	s.database = s.explain(report, database)
	return s.loaded(loaded, report)
}

// LoadRemote reads the configuration for a command that asks a server that is named. That of this
// machine has nothing to do with it.
func (s *Settings) LoadRemote(p site.Program) (config.Config, error) {
	loaded, report := config.Load(s.find(false), p.Environ, s.Given())
	report, _ = report.WithoutSecrets()
	return s.loaded(loaded, report)
}

// CheckDatabase fails if this user may not read where the database is.
func (s *Settings) CheckDatabase() error { return s.database }

// loaded is what was read, unless something is wrong with it.
func (s *Settings) loaded(loaded config.Config, report config.Report) (config.Config, error) {
	s.warnings, s.report = report.Warnings, report
	err := report.Err()
	if report.Unread() {
		err = s.explain(report, err)
	}
	if err != nil {
		return config.Config{}, err
	}
	return loaded, nil
}

// explain says of a file that cannot be read that nobody has named it, if that is so.
func (s *Settings) explain(report config.Report, err error) error {
	if err == nil || s.file != "" || report.File() != config.Machine.File {
		return err
	}
	return task.Wrap(task.BadConfig, err, "the configuration of this machine cannot be used by this user").
		WithHint("run the command with sudo, or name another configuration with --config")
}

// Warn logs what is odd about the configuration that was loaded: once, when a program
// that goes on has started.
func (s *Settings) Warn(ctx context.Context, log *slog.Logger) {
	for _, warning := range s.warnings {
		log.WarnContext(ctx, "configuration warning", "problem", warning.String())
	}
}

// FileOrDefault is the configuration to read; empty if there is none.
func (s *Settings) FileOrDefault() string { return s.find(!s.own) }

// find decides which configuration counts. One that is there counts also if this user may not read
// it: to go on without it would be to work somewhere else.
func (s *Settings) find(machine bool) string {
	switch {
	case s.file != "":
		return s.file
	case isThere(DefaultFile):
		return DefaultFile
	case machine && config.Machine.File != "" && isThere(config.Machine.File):
		return config.Machine.File
	}
	return ""
}

// orElse names the configuration of the machine for a list of places, if it counts.
func (s *Settings) orElse() string {
	if s.own || config.Machine.File == "" {
		return ""
	}
	return ", or else " + config.Machine.File
}

// isThere reports whether there is a file, as far as this user can tell.
func isThere(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// Given are the flags that were given, by configuration key.
func (s *Settings) Given() map[string]string {
	given := make(map[string]string)
	for key, value := range s.flags {
		if *value != "" {
			given[key] = *value
		}
	}
	return given
}
