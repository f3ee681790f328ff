package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
)

type examination struct {
	program
	settings settings
	json     bool
	online   bool
}

func (p commands) doctorCommand() *cobra.Command {
	o := examination{program: p.program}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is there, what is missing and how to mend it",
		Long:  "Look at the machine and the configuration. Nothing is changed. The forges are asked\nwhom they take the bot for; the model is asked only with --online, since that may cost a\nlittle. The exit code is 0 when nothing is missing that Toryo cannot do without.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c, dataFlag)
	c.Flags().BoolVar(&o.online, "online", false, "also ask the model, with one short call")
	c.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	return c
}

func (o examination) run(ctx context.Context) error {
	file := o.settings.fileOrDefault()
	loaded, report := config.Load(file, o.environ, o.settings.given())
	machine := []doctor.Check{
		doctor.Git,
		doctor.DataDir(loaded.DataDir),
		doctor.Database(loaded.Database.Driver, lookAtDatabase(loaded)),
		doctor.ContainerEngine(cmp.Or(loaded.Sandbox.ContainerEngine, o.variable("DOCKER_HOST"))),
		doctor.Bubblewrap,
		doctor.Landlock(landlockVersion),
	}
	const firstSandbox = 3
	if loaded.Sandbox.Kind == kubernetes.Name {
		machine = append(machine, doctor.Cluster(askCluster(loaded.Sandbox.Kubernetes)))
	}
	found := doctor.Examine(ctx, slices.Concat(machine, doctor.Forges(loaded, selfOn(loaded)),
		[]doctor.Check{doctor.Board(loaded.Database.Driver, filepath.Join(loaded.DataDir, boardFolder))}))
	findings := slices.Concat(
		[]doctor.Finding{doctor.Configuration(file, report)},
		found[:len(machine)],
		[]doctor.Finding{doctor.ControlGroups(groupsVersion)},
		[]doctor.Finding{doctor.Sandbox(found[firstSandbox:len(machine)]...), doctor.Model(ctx, loaded.LLM, o.askModel(loaded))},
		found[len(machine):],
		signingFindings(ctx, loaded.Git),
		doctor.Webhooks(ctx, lookAtWebhooks(loaded)),
		[]doctor.Finding{doctor.Links(loaded, publicURL(loaded, loaded.Server.Addr))},
	)
	if err := o.print(findings); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return task.Wrap(task.NotReady, errReported, "something that Toryo needs is missing")
	}
	return nil
}

// askCluster asks the configured cluster whether pods can be made in it.
func askCluster(c config.Kubernetes) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		closed := func(sandbox.Policy) sandbox.Gate { return nil } // no sandbox is started
		engine, err := env.NewKubernetes(c, closed, slog.New(slog.DiscardHandler))
		if err != nil {
			return "", err
		}
		if err := engine.Check(ctx); err != nil {
			return "", err
		}
		missing, err := engine.MissingPolicies(ctx)
		if err != nil {
			return "", err
		}
		found := "pods can be made in the namespace " + c.Namespace
		if len(missing) > 0 {
			found += ", but it lacks the network policies " + strings.Join(missing, ", ")
		}
		return found, nil
	}
}

// askModel is one short call to the configured model, or nil if it is not to be
// asked.
func (o examination) askModel(c config.Config) func(context.Context) (string, error) {
	if !o.online {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		c.LLM.Retries = 0 // whoever waits for the findings wants to know how it is now
		answered, err := o.askOnce(ctx, c, question{text: "Answer with the word yes.", most: 16})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("answered after %s", answered.took), nil
	}
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
