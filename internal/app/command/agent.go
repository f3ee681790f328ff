package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The flags that go over configuration keys of agents.
var (
	serverFlag    = cli.Flag{Name: "server", Key: "agent.server", Value: "URL", Usage: "address of the server"}
	parallelFlag  = cli.Flag{Name: "parallel", Key: "agent.parallel", Value: "N", Usage: "how many tasks to work on at the same time"}
	nameFlag      = cli.Flag{Name: "name", Key: "agent.name", Value: "ID", Usage: "what the agent is called"}
	tokenFileFlag = cli.Flag{Name: "token-file", Key: "agent.token_file", Value: "FILE", Usage: "file with the agent's token"}
	caFileFlag    = cli.Flag{Name: "ca-file", Key: "agent.ca_file", Value: "FILE", Usage: "certificates by which the server is known"}
)

const (
	// tokenFile is where an enrolled agent keeps its token, in its folder.
	tokenFile = "token"
	// enrolmentLasts is how long an enrolment token is good for.
	enrolmentLasts = time.Hour
	// enrolTimeout is how long the server has to answer an enrolment.
	enrolTimeout = 30 * time.Second
)

type agentRun struct {
	site.Program
	settings  cli.Settings
	enrol     string
	enrolFile string
}

// Agent is the command toryo agent.
func Agent(p site.Program) *cobra.Command {
	o := agentRun{Program: p}
	c := &cobra.Command{
		Use:   "agent --server URL",
		Short: "Run an agent, or manage agents",
		Long: `Run an agent until it is interrupted: it asks the server for a task, becomes the role
that the task needs, does the work in a sandbox, and asks again. On the first SIGTERM or
Ctrl-C it hands its tasks back and ends; on the second it ends at once.

A new agent enrols with a one-time token, which toryo agent token create makes where the
server is, and keeps a token of its own in its data directory. Later starts need no more
than --server.`,
		Args: cli.CommandsOnly,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag, serverFlag, parallelFlag, nameFlag, tokenFileFlag, caFileFlag)
	c.Flags().StringVar(&o.enrol, "enrol", "", "enrol with this one-time `TOKEN`, unless that was done before")
	c.Flags().StringVar(&o.enrolFile, "enrol-file", "", "the same, with the token in a `FILE`")
	c.AddCommand(cli.Group("token", "Let agents in", agentTokenCreateCommand(p)), agentListCommand(p), agentRevokeCommand(p))
	return c
}

func (o agentRun) run(ctx context.Context) (err error) {
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if c.Agent.Server == "" {
		return task.Errorf(task.Usage, "no server is named").WithHint("give its address with --server")
	}
	if _, err := url.Parse(c.Agent.Server); err != nil {
		return task.Errorf(task.Usage, "the server's address is not valid")
	}
	process, unlock, err := site.LockAgent(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	report, err := site.StartTelemetry(o.Program, c, "agent")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.StopTelemetry(ctx, report)) }()
	o.settings.Warn(ctx, report.Log)
	client, err := site.AgentClient(c.Agent.CAFile)
	if err != nil {
		return err
	}
	token, err := o.token(ctx, c, &wire.Client{Server: c.Agent.Server, HTTP: client})
	if err != nil {
		return err
	}
	settings := site.AgentSettings{
		Server: c.Agent.Server, Token: token, Name: c.Agent.Name, HTTP: client, CAFile: c.Agent.CAFile, Log: report.Log, Process: process,
	}
	if c.PauseResume.Enabled {
		settings.PauseFile = filepath.Join(c.ContextsPath(), site.PauseFile)
	}
	worker, err := site.NewAgent(ctx, o.Program, c, settings)
	if unable, is := errors.AsType[*agent.UnableError](err); is && task.CodeOf(err) == task.NotReady {
		return errors.Join(err, site.ReportUnable(ctx, settings, unable))
	}
	if err != nil {
		return err
	}
	return site.Work(ctx, worker, func(name string) error {
		_, err := fmt.Fprintf(o.Stdout, "%s asks %s for tasks\n", name, c.Agent.Server)
		return err
	})
}

// token is the one that the configuration gives, or the one that the agent got
// when it enrolled, or the one that it gets by enrolling now.
func (o agentRun) token(ctx context.Context, c config.Config, client *wire.Client) (string, error) {
	if c.Agent.Token != "" {
		return c.Agent.Token.Reveal(), nil
	}
	file := filepath.Join(c.DataDir, site.AgentFolder, tokenFile)
	text, err := os.ReadFile(file)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", task.Wrap(task.DataDir, err, "the agent's token cannot be read")
	}
	oneTime, err := o.oneTimeToken()
	if err != nil {
		return "", err
	}
	name, err := nameOf(c)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, enrolTimeout)
	defer cancel()
	client.Token = oneTime
	enrolled, err := client.Enrol(ctx, name)
	if err != nil {
		return "", fmt.Errorf("enrol: %w", err)
	}
	return enrolled.Token, site.WriteSecret(file, enrolled.Token)
}

// oneTimeToken is the token to enrol with.
func (o agentRun) oneTimeToken() (string, error) {
	if o.enrol != "" {
		return o.enrol, nil
	}
	if o.enrolFile == "" {
		return "", task.Errorf(task.Unauthorized, "this agent has no token").
			WithHint("enrol it with --enrol; the token for that is made with toryo agent token create")
	}
	text, err := os.ReadFile(o.enrolFile)
	if err != nil {
		return "", task.Wrap(task.Usage, err, "the enrolment token cannot be read")
	}
	return strings.TrimSpace(string(text)), nil
}

// nameOf is what an agent is called: as configured, or as its machine is.
func nameOf(c config.Config) (string, error) {
	if c.Agent.Name != "" {
		return c.Agent.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", task.Wrap(task.Usage, err, "the machine has no name").WithHint("name the agent with --name")
	}
	return host, nil
}

func agentTokenCreateCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a one-time token to enrol an agent, and print it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if lasts <= 0 {
				return task.Errorf(task.Usage, "--expires must be more than 0")
			}
			return cli.WithStore(c.Context(), p, &s, func(database store.Store) error {
				token, err := access.Enrolment{Store: database, Now: p.Now}.Create(c.Context(), lasts)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(p.Stdout, token)
				return err
			})
		},
	}
	s.Bind(c, cli.DataFlag)
	c.Flags().DurationVar(&lasts, "expires", enrolmentLasts, "how long it is good for")
	return c
}

func agentListCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	c := &cobra.Command{
		Use:   "list",
		Short: "List the agents, when each was last seen and what it is doing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.WithStore(c.Context(), p, &s, func(database store.Store) error { return listAgents(c.Context(), p, database) })
		},
	}
	s.Bind(c, cli.DataFlag)
	return c
}

func listAgents(ctx context.Context, p site.Program, database server.AgentStore) error {
	agents, err := server.ListAgents(ctx, database)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tNAME\tSEEN\tROLE\tTASK\tREVOKED\tTAKES NO TASKS") // Flush reports what went wrong
	for _, a := range agents {
		doing := a.Tasks
		if len(doing) == 0 {
			doing = []wire.AgentTask{{Role: "-", Item: "-"}}
		}
		for _, t := range doing {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.ID, a.Name, shortTime(a.SeenAt), t.Role, t.Item, shortTime(a.RevokedAt), unableText(a))
		}
	}
	return table.Flush()
}

// unableText says why an agent takes no tasks, and what to do about it.
func unableText(a wire.Agent) string {
	if a.Unable == "" {
		return "-"
	}
	text := cmp.Or(a.UnableText, cli.OneLine(a.Unable))
	if a.Detail != "" {
		text += " (" + textfmt.OneLine(strings.Map(cli.Visible, a.Detail)) + ")"
	}
	if a.Fix != "" {
		text += " → " + a.Fix
	}
	return text
}

func shortTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05")
}

func agentRevokeCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke an agent's token; ID is its ID or name",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.WithStore(c.Context(), p, &s, func(database store.Store) error {
				return server.RevokeAgent(c.Context(), database, args[0], p.Now())
			})
		},
	}
	s.Bind(c, cli.DataFlag)
	return c
}
