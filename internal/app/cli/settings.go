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
)

// DefaultFile is the configuration that is read when none is named, and [MachineFile] the one
// that is read when that is not there either.
const DefaultFile = "toryo.yaml"

// Settings are the flags by which a command is told about its configuration.
type Settings struct {
	file     string
	flags    map[string]*string // by configuration key
	remote   bool               // the command can ask a server elsewhere
	warnings []config.Problem   // of what was loaded
	report   config.Report      // of what was loaded
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
	c.Flags().StringVar(&s.file, "config", "", "configuration `FILE` (default "+DefaultFile+" in this folder"+elseMachineFile+", if it exists)")
	s.flags = make(map[string]*string)
	for _, flag := range flags {
		s.flags[flag.Key] = c.Flags().String(flag.Name, "", flag.Usage+" (`"+flag.Value+"`, over "+flag.Key+")")
	}
}

// AllowRemote says that the command can also ask a server that is named by --server.
func (s *Settings) AllowRemote() { s.remote = true }

// Load reads the configuration from file, environment and flags. The file of the machine is left
// out if this user may not read its secrets: it is of the server.
func (s *Settings) Load(p site.Program) (config.Config, error) {
	file := s.FileOrDefault()
	loaded, report := s.read(p, file)
	if s.file == "" && file == MachineFile && report.SecretsUnread() {
		left := report.Problems
		loaded, report = s.read(p, "")
		report.Warnings = append(report.Warnings, left...)
	}
	return s.loaded(loaded, report)
}

// LoadData reads the configuration for a command that needs nothing but the data of an
// installation. It goes on without secrets that this user may not read, but for that of the
// database.
func (s *Settings) LoadData(p site.Program) (config.Config, error) {
	loaded, report := s.read(p, s.FileOrDefault())
	if report.SecretsUnread() {
		report.Problems, report.Warnings = nil, append(report.Warnings, report.Problems...)
	}
	return s.loaded(loaded, report)
}

// read reads a configuration. That of the machine is of a service, whose data is where services
// have it.
func (s *Settings) read(p site.Program, file string) (config.Config, config.Report) {
	loaded, report := config.Load(file, p.Environ, s.Given())
	if file == MachineFile && file != "" && report.Origin("data_dir").IsDefault() {
		loaded.DataDir = machineData
	}
	return loaded, report
}

func (s *Settings) loaded(loaded config.Config, report config.Report) (config.Config, error) {
	if err := report.Err(); err != nil {
		return config.Config{}, err
	}
	s.warnings, s.report = report.Warnings, report
	if unreadable := s.unreadable(); unreadable != "" {
		s.warnings = append(s.warnings, config.Problem{File: MachineFile, Message: unreadable, Hint: "name the configuration with --config"})
	}
	return loaded, nil
}

// Warn logs what is odd about the configuration that was loaded: once, when a program
// that goes on has started.
func (s *Settings) Warn(ctx context.Context, log *slog.Logger) {
	for _, warning := range s.warnings {
		log.WarnContext(ctx, "configuration warning", "problem", warning.String())
	}
}

// FileOrDefault is the configuration to read; empty if there is none. The file of the
// machine is left out if this user may not read it: it is of the server, and not everybody
// who uses the program here has to do with that.
func (s *Settings) FileOrDefault() string {
	if s.file != "" {
		return s.file
	}
	if _, err := os.Stat(DefaultFile); err == nil {
		return DefaultFile
	}
	if file, err := os.Open(MachineFile); err == nil {
		_ = file.Close() // nothing was written
		return MachineFile
	}
	return ""
}

// unreadable says why the configuration of the machine was left out; empty if it was not.
func (s *Settings) unreadable() string {
	if s.FileOrDefault() != "" {
		return ""
	}
	if _, err := os.Stat(MachineFile); err == nil || errors.Is(err, fs.ErrPermission) {
		return "it was left out because this user may not read it"
	}
	return ""
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
