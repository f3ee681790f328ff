package app

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/task"
)

// defaultFile is the configuration that is read when none is named.
const defaultFile = "toryo.yaml"

// settings are the flags by which a command is told about its configuration.
type settings struct {
	file     string
	flags    map[string]*string // by configuration key
	warnings []config.Problem   // of what was loaded
}

// dataFlag and addrFlag are flags that go over configuration keys.
var (
	dataFlag = settingFlag{"data", "data_dir", "DIR", "folder for the database and everything else that is kept"}
	addrFlag = settingFlag{"addr", "server.addr", "HOST:PORT", "address to listen on"}
)

type settingFlag struct{ name, key, value, usage string }

func (s *settings) bind(c *cobra.Command, flags ...settingFlag) {
	c.Flags().StringVar(&s.file, "config", "", "configuration `FILE` (default "+defaultFile+" if it exists)")
	s.flags = make(map[string]*string)
	for _, flag := range flags {
		s.flags[flag.key] = c.Flags().String(flag.name, "", flag.usage+" (`"+flag.value+"`, over "+flag.key+")")
	}
}

// load reads the configuration from file, environment and flags.
func (s *settings) load(p program) (config.Config, error) {
	loaded, report := config.Load(s.fileOrDefault(), p.environ, s.given())
	if err := report.Err(); err != nil {
		return config.Config{}, err
	}
	s.warnings = report.Warnings
	return loaded, nil
}

// warn logs what is odd about the configuration that was loaded: once, when a program
// that goes on has started.
func (s *settings) warn(ctx context.Context, log *slog.Logger) {
	for _, warning := range s.warnings {
		log.WarnContext(ctx, "something about the configuration is odd", "problem", warning.String())
	}
}

func (s *settings) fileOrDefault() string {
	if s.file != "" {
		return s.file
	}
	if _, err := os.Stat(defaultFile); err == nil {
		return defaultFile
	}
	return ""
}

func (s *settings) given() map[string]string {
	given := make(map[string]string)
	for key, value := range s.flags {
		if *value != "" {
			given[key] = *value
		}
	}
	return given
}

// startTelemetry wires logs, metrics and traces as the configuration says. Logs
// go to standard error: standard output is for what a command was asked for.
func (p program) startTelemetry(c config.Config, name string) (*telemetry.Telemetry, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "log.level is not valid")
	}
	return telemetry.Start(telemetry.Options{
		Program:      name,
		Version:      Version(),
		LogTo:        p.stderr,
		LogLevel:     level,
		LogJSON:      c.Log.Format == "json",
		OTLPEndpoint: c.Telemetry.OTLPEndpoint,
		Redactor:     c.Redactor(),
	})
}
