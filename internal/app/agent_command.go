package app

import (
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
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The flags that go over configuration keys of agents.
var (
	serverFlag    = settingFlag{"server", "agent.server", "URL", "address of the server"}
	parallelFlag  = settingFlag{"parallel", "agent.parallel", "N", "how many tasks to work on at the same time"}
	nameFlag      = settingFlag{"name", "agent.name", "ID", "what the agent is called"}
	tokenFileFlag = settingFlag{"token-file", "agent.token_file", "FILE", "file with the agent's token"}
	caFileFlag    = settingFlag{"ca-file", "agent.ca_file", "FILE", "certificates by which the server is known"}
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
	program
	settings  settings
	enrol     string
	enrolFile string
}

func (p commands) agentCommand() *cobra.Command {
	o := agentRun{program: p.program}
	c := &cobra.Command{
		Use:   "agent --server URL",
		Short: "Run an agent, or manage agents",
		Long: `Run an agent until it is interrupted: it asks the server for a task, becomes the role
that the task needs, does the work in a sandbox, and asks again. On the first SIGTERM or
Ctrl-C it hands its tasks back and ends; on the second it ends at once.

A new agent enrols with a one-time token, which toryo agent token create makes where the
server is, and keeps a token of its own in its data directory. Later starts need no more
than --server.`,
		Args: commandsOnly,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c, dataFlag, serverFlag, parallelFlag, nameFlag, tokenFileFlag, caFileFlag)
	c.Flags().StringVar(&o.enrol, "enrol", "", "enrol with this one-time `TOKEN`, unless that was done before")
	c.Flags().StringVar(&o.enrolFile, "enrol-file", "", "the same, with the token in a `FILE`")
	c.AddCommand(group("token", "Let agents in", p.agentTokenCreateCommand()), p.agentListCommand(), p.agentRevokeCommand())
	return c
}

func (o agentRun) run(ctx context.Context) (err error) {
	c, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	if c.Agent.Server == "" {
		return task.Errorf(task.Usage, "no server is named").WithMend("give its address with --server")
	}
	if _, err := url.Parse(c.Agent.Server); err != nil {
		return task.Errorf(task.Usage, "the server's address is not valid")
	}
	process, unlock, err := lockAgent(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	report, err := o.startTelemetry(c, "agent")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTelemetry(ctx, report)) }()
	o.settings.warn(ctx, report.Log)
	client, err := agentClient(c.Agent.CAFile)
	if err != nil {
		return err
	}
	token, err := o.token(ctx, c, &wire.Client{Server: c.Agent.Server, HTTP: client})
	if err != nil {
		return err
	}
	settings := agentSettings{
		server: c.Agent.Server, token: token, name: c.Agent.Name, http: client, caFile: c.Agent.CAFile, log: report.Log, process: process,
	}
	if c.PauseResume.Enabled {
		settings.pauseFile = filepath.Join(c.ContextsPath(), pauseFile)
	}
	worker, err := o.newAgent(ctx, c, settings)
	if unable, is := errors.AsType[*unableError](err); is && task.CodeOf(err) == task.NotReady {
		return errors.Join(err, o.sayUnable(ctx, settings, unable))
	}
	if err != nil {
		return err
	}
	return work(ctx, worker, func(name string) error {
		_, err := fmt.Fprintf(o.stdout, "%s asks %s for tasks\n", name, c.Agent.Server)
		return err
	})
}

// token is the one that the configuration gives, or the one that the agent got
// when it enrolled, or the one that it gets by enrolling now.
func (o agentRun) token(ctx context.Context, c config.Config, client *wire.Client) (string, error) {
	if c.Agent.Token != "" {
		return c.Agent.Token.Reveal(), nil
	}
	file := filepath.Join(c.DataDir, agentFolder, tokenFile)
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
	return enrolled.Token, writeSecret(file, enrolled.Token)
}

// oneTimeToken is the token to enrol with.
func (o agentRun) oneTimeToken() (string, error) {
	if o.enrol != "" {
		return o.enrol, nil
	}
	if o.enrolFile == "" {
		return "", task.Errorf(task.Unauthorized, "this agent has no token").
			WithMend("enrol it with --enrol; the token for that is made with toryo agent token create")
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
		return "", task.Wrap(task.Usage, err, "the machine has no name").WithMend("name the agent with --name")
	}
	return host, nil
}

func (p commands) agentTokenCreateCommand() *cobra.Command {
	var s settings
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a one-time token with which one agent can enrol, and print it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if lasts <= 0 {
				return task.Errorf(task.Usage, "--expires must be more than 0")
			}
			return p.withStore(c.Context(), &s, func(database store.Store) error {
				token, err := access.Enrolment{Store: database, Now: p.now}.Create(c.Context(), lasts)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(p.stdout, token)
				return err
			})
		},
	}
	s.bind(c, dataFlag)
	c.Flags().DurationVar(&lasts, "expires", enrolmentLasts, "how long it is good for")
	return c
}

func (p commands) agentListCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "list",
		Short: "List the agents: when they were seen last, and what they are doing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), &s, func(database store.Store) error { return p.listAgents(c.Context(), database) })
		},
	}
	s.bind(c, dataFlag)
	return c
}

func (p program) listAgents(ctx context.Context, database store.Store) error {
	agents, err := server.ListAgents(ctx, database)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tNAME\tSEEN\tROLE\tTASK\tREVOKED\tTAKES NO TASKS") // Flush reports what went wrong
	for _, a := range agents {
		doing := a.Tasks
		if len(doing) == 0 {
			doing = []wire.AgentTask{{Role: "-", Item: "-"}}
		}
		for _, t := range doing {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.ID, a.Name, shortTime(a.SeenAt), t.Role, t.Item, shortTime(a.RevokedAt), unableText(a.Condition))
		}
	}
	return table.Flush()
}

// unableText says why an agent takes no tasks.
func unableText(c wire.Condition) string {
	if c.Unable == "" {
		return "-"
	}
	return strings.TrimSpace(c.Unable + ": " + c.Detail)
}

func shortTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05")
}

func (p commands) agentRevokeCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "End an agent's token; ID is its id or its name",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withStore(c.Context(), &s, func(database store.Store) error {
				return server.RevokeAgent(c.Context(), database, args[0], p.now())
			})
		},
	}
	s.bind(c, dataFlag)
	return c
}
