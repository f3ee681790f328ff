package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/task"
)

type examination struct {
	program
	settings settings
	json     bool
}

func (p program) doctorCommand() *cobra.Command {
	o := examination{program: p}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is there, what is missing and how to mend it",
		Long:  "Look at the machine and the configuration. Nothing is changed. The exit code is 0 when\nnothing is missing that Toryo cannot do without.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c, dataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	return c
}

func (o examination) run(ctx context.Context) error {
	file := o.settings.fileOrDefault()
	loaded, report := config.Load(file, o.environ, o.settings.given())
	found := doctor.Examine(ctx, append([]doctor.Check{
		doctor.Git,
		doctor.DataDir(loaded.DataDir),
		doctor.Database(loaded.Database.Driver, lookAtDatabase(loaded)),
		doctor.ContainerEngine(cmp.Or(loaded.Sandbox.ContainerEngine, o.variable("DOCKER_HOST"))),
		doctor.Bubblewrap,
		doctor.Landlock(landlockVersion),
	}, doctor.Forges(loaded, selfOn(loaded))...))
	findings := slices.Concat(
		[]doctor.Finding{doctor.Configuration(file, report)},
		found[:6],
		[]doctor.Finding{doctor.Sandbox(found[3:6]...), doctor.Model(loaded.LLM)},
		found[6:],
	)
	if err := o.print(findings); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return task.Wrap(task.NotReady, errReported, "something that Toryo needs is missing")
	}
	return nil
}

func (o examination) print(findings []doctor.Finding) error {
	if !o.json {
		return doctor.Print(o.stdout, findings)
	}
	out := json.NewEncoder(o.stdout)
	out.SetIndent("", "  ")
	return out.Encode(findings)
}

// variable is the value of an environment variable.
func (p program) variable(name string) string {
	for _, entry := range p.environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}
