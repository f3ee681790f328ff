package site

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Program is the process as its commands see it: its streams, environment and clock.
type Program struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	Now     func() time.Time
	// Started says how a server was started.
	Started Started
	// Around wraps the executors of agents; nil means that they are used as they are.
	Around func(agent.Executor) agent.Executor
}

// Started says how a server was started, so that the pages can change its configuration and
// say how it is started again.
type Started struct {
	// File is the configuration, in full; it need not be there. Without one the pages change
	// nothing. Given is how the command was told of it.
	File, Given string
	Overrides   map[string]string // values of flags that go over it
	Command     string            // in full, to be typed into a shell
	Service     string            // of systemd, by which it is started in place of Command; else empty
	OwnAgent    bool              // an agent runs in the same process
}

// Variable is the value of an environment variable.
func (p Program) Variable(name string) string {
	for _, entry := range p.Environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// passedOn are the named variables as this process has them.
func (p Program) passedOn(names []string) map[string]string {
	passed := make(map[string]string)
	for _, variable := range p.Environ {
		name, value, _ := strings.Cut(variable, "=")
		for _, wanted := range names {
			if name == wanted {
				passed[name] = value
			}
		}
	}
	return passed
}

// StartTelemetry wires logs, metrics and traces as the configuration says. Logs
// go to standard error: standard output is for what a command was asked for.
func StartTelemetry(p Program, c config.Config, name string) (*telemetry.Telemetry, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "log.level is not valid")
	}
	return telemetry.Start(telemetry.Options{
		Program:      name,
		Version:      Version(),
		LogTo:        p.Stderr,
		LogLevel:     level,
		LogJSON:      c.Log.Format == "json",
		OTLPEndpoint: c.Telemetry.OTLPEndpoint,
		Redactor:     c.Redactor(),
	})
}

// flushTimeout is how long the last traces may take to be sent.
const flushTimeout = 5 * time.Second

// StopTelemetry sends the last traces. That some could not be sent is logged.
func StopTelemetry(ctx context.Context, report *telemetry.Telemetry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := report.Stop(ctx); err != nil {
		report.Log.WarnContext(ctx, "failed to send some traces", "error", err)
	}
	return nil
}

// QuietLog says what went wrong, and nothing else, for a command that talks to a
// person.
func QuietLog(p Program, c config.Config) *slog.Logger {
	return slog.New(redact.Handler(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}), c.Redactor()))
}
