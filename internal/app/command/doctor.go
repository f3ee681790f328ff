package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
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
		Long: `Look at the machine and the configuration. Nothing is changed, and beside what is missing
stands how to fix it. The forges are asked whom they take the bot for, which repositories it
finds, what it may do in the first 20 of them, and whether they have the webhook. Where an
agent is configured, its server is asked whether it accepts the agent's token. The model is
asked only with --online, since that may cost a little. The exit code is 0 when nothing is
missing that Toryo cannot do without.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag, serverFlag, tokenFileFlag, caFileFlag)
	c.Flags().BoolVar(&o.online, "online", false, "also ask the model, with one short call")
	c.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	return c
}

func (o examination) run(ctx context.Context) error {
	file := o.settings.FileOrDefault()
	loaded, report := config.Load(file, o.Environ, o.settings.Given())
	surveys := []doctor.Survey{
		func(ctx context.Context) []doctor.Finding { return o.machine(ctx, loaded) },
		func(ctx context.Context) []doctor.Finding {
			model := doctor.Model(ctx, loaded.ModelFor(), o.askModel(loaded))
			findings := []doctor.Finding{doctor.NeededBy(loaded.Agent.Server != "" && site.UsesModel(loaded), model)}
			if second, configured := loaded.FallbackFor(); configured {
				alone := loaded
				alone.LLM = second
				findings = append(findings, doctor.Fallback(ctx, second, o.askModel(alone)))
			}
			return findings
		},
		func(ctx context.Context) []doctor.Finding { return agentFindings(ctx, loaded) },
	}
	if !site.OnlyAgent(loaded) {
		surveys = append(surveys, doctor.Forges(loaded, site.LookAtForges(loaded))...)
		surveys = append(surveys, func(ctx context.Context) []doctor.Finding { return serverFindings(ctx, loaded) })
	}
	findings := append([]doctor.Finding{doctor.Configuration(file, report)}, doctor.Explore(ctx, surveys)...)
	doctor.ForInstallation(findings, o.placeFlags(file), config.IsMachineFile(file) && os.Geteuid() > 0 && connect.Writable(file) != nil)
	if err := o.print(findings); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return task.Wrap(task.NotReady, cli.ErrReported, "something that Toryo needs is missing")
	}
	return nil
}

// placeFlags are the flags by which another command finds the same installation.
func (o examination) placeFlags(file string) (flags string) {
	if full, err := filepath.Abs(file); err == nil && file != "" && file != cli.DefaultFile {
		flags = " --config " + site.Quoted(full)
	}
	if data := o.settings.Given()[cli.DataFlag.Key]; data != "" {
		flags += " --data " + site.Quoted(data)
	}
	return flags
}

// machine looks at what server and agent need of a machine.
func (o examination) machine(ctx context.Context, c config.Config) []doctor.Finding {
	ways := []doctor.Check{
		doctor.ContainerEngine(cmp.Or(c.Sandbox.ContainerEngine, o.Variable("DOCKER_HOST"))),
		doctor.Bubblewrap,
		doctor.Landlock(site.LandlockVersion),
	}
	if c.Sandbox.Kind == kubernetes.Name {
		ways = append(ways, doctor.Cluster(askCluster(c.Sandbox.Kubernetes)))
	}
	checks := []doctor.Check{doctor.Git, doctor.DataDir(c.DataDir)}
	if !site.OnlyAgent(c) {
		checks = append(checks, doctor.Database(c.Database.Driver, site.LookAtDatabase(c)))
	}
	first := len(checks)
	found := doctor.Examine(ctx, slices.Concat(checks, ways))
	findings := slices.Concat(found[:first], doctor.WaysOf(c.Sandbox.Kind, found[first:]))
	if kind := c.Sandbox.Kind; kind != docker.Name && kind != kubernetes.Name { // these count by themselves
		findings = append(findings, doctor.ControlGroups(site.GroupsVersion))
	}
	return append(findings, doctor.Sandbox(ctx, c.Sandbox.Kind, site.LookForSandbox(c), found[first:]...))
}

// agentFindings looks at what an agent on this machine needs besides, if there is one.
func agentFindings(ctx context.Context, c config.Config) []doctor.Finding {
	if c.Agent.Server != "" {
		return doctor.AgentServer(site.LookAtServer(c))(ctx)
	}
	if file, found := site.HasAgentToken(c); found {
		return []doctor.Finding{doctor.Unnamed(file)}
	}
	return nil
}

// serverFindings looks at what a server on this machine needs besides.
func serverFindings(ctx context.Context, c config.Config) []doctor.Finding {
	board := doctor.Board(c.Database.Driver, filepath.Join(c.DataDir, site.BoardFolder))
	return slices.Concat(
		doctor.Examine(ctx, []doctor.Check{board}),
		doctor.Signing(ctx, c.Git, site.SignerOf),
		doctor.Webhooks(ctx, site.LookAtWebhooks(c), c.GitHub.AppID != 0),
		doctor.Notifications(ctx, site.LookAtNotifications(c)),
		[]doctor.Finding{doctor.Links(c, site.PublicURL(c, c.Server.Addr))},
	)
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
		c.LLM.Fallback = config.ModelOverride{} // this model is asked, and no other
		c.LLM.Retries = 0                       // whoever waits for the findings wants to know how it is now
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
