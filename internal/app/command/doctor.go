package command

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

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
)

type examination struct {
	site.Program
	settings cli.Settings
	json     bool
	online   bool
}

// Doctor is the command toryo doctor.
func Doctor(p site.Program) *cobra.Command {
	o := examination{Program: p}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and say how to fix what is missing",
		Long:  "Look at the machine and the configuration. Nothing is changed. The forges are asked\nwhom they take the bot for; the model is asked only with --online, since that may cost a\nlittle. The exit code is 0 when nothing is missing that Toryo cannot do without.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&o.online, "online", false, "also ask the model, with one short call")
	c.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	return c
}

func (o examination) run(ctx context.Context) error {
	file := o.settings.FileOrDefault()
	loaded, report := config.Load(file, o.Environ, o.settings.Given())
	machine := []doctor.Check{
		doctor.Git,
		doctor.DataDir(loaded.DataDir),
		doctor.Database(loaded.Database.Driver, site.LookAtDatabase(loaded)),
		doctor.ContainerEngine(cmp.Or(loaded.Sandbox.ContainerEngine, o.Variable("DOCKER_HOST"))),
		doctor.Bubblewrap,
		doctor.Landlock(site.LandlockVersion),
	}
	const firstSandbox = 3
	if loaded.Sandbox.Kind == kubernetes.Name {
		machine = append(machine, doctor.Cluster(askCluster(loaded.Sandbox.Kubernetes)))
	}
	found := doctor.Examine(ctx, slices.Concat(machine, doctor.Forges(loaded, site.SelfOn(loaded)),
		[]doctor.Check{doctor.Board(loaded.Database.Driver, filepath.Join(loaded.DataDir, site.BoardFolder))}))
	findings := slices.Concat(
		[]doctor.Finding{doctor.Configuration(file, report)},
		found[:len(machine)],
		[]doctor.Finding{doctor.ControlGroups(site.GroupsVersion)},
		[]doctor.Finding{doctor.Sandbox(found[firstSandbox:len(machine)]...), doctor.Model(ctx, loaded.LLM, o.askModel(loaded))},
		found[len(machine):],
		doctor.Signing(ctx, loaded.Git, site.SignerOf),
		doctor.Webhooks(ctx, site.LookAtWebhooks(loaded)),
		[]doctor.Finding{doctor.Links(loaded, site.PublicURL(loaded, loaded.Server.Addr))},
	)
	if err := o.print(findings); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return task.Wrap(task.NotReady, cli.ErrReported, "something that Toryo needs is missing")
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
		answered, err := askOnce(ctx, o.Program, c, question{text: "Answer with the word yes.", most: 16})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("answered after %s", answered.took), nil
	}
}

func (o examination) print(findings []doctor.Finding) error {
	if !o.json {
		return doctor.Print(o.Stdout, findings)
	}
	out := json.NewEncoder(o.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(findings)
}
