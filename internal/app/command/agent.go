package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
server is, and keeps a token of its own in its data directory. That comes last: a start that
fails because something else is missing leaves the one-time token good. Later starts need
--server, and the model's section and key as the first one did.`,
		Args: cli.CommandsOnly,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag, serverFlag, parallelFlag, nameFlag, tokenFileFlag, caFileFlag)
	c.Flags().StringVar(&o.enrol, "enrol", "", "the same with the `TOKEN` itself, which other users of the machine can see in the list of processes")
	c.Flags().StringVar(&o.enrolFile, "enrol-file", "", "enrol with the one-time token in this `FILE`, or - for standard input, unless that was done before")
	c.AddCommand(cli.Group("token", "Let agents in", agentTokenCreateCommand(p)), agentListCommand(p), agentRevokeCommand(p))
	return c
}

func (o agentRun) run(ctx context.Context) (err error) {
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if c.Agent.Server == "" {
		return task.Errorf(task.Usage, "toryo agent needs the address of the server that it works for").WithHint("give it with --server URL, or as agent.server in the configuration")
	}
	if _, is := webAddress(c.Agent.Server); !is {
		return task.Errorf(task.Usage, "%q is not the address of a server", c.Agent.Server).WithHint("give it with its scheme, such as http://127.0.0.1:8750")
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
	token, oneTime, err := o.tokens(c)
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
	if unable, is := errors.AsType[*agent.UnableError](err); is && token != "" && task.CodeOf(err) == task.NotReady {
		return errors.Join(err, site.ReportUnable(ctx, settings, unable))
	}
	if err != nil {
		return err
	}
	// Only now: what an agent lacks must not cost it the token, which works once.
	if token == "" {
		if worker.Client.Token, err = enrol(ctx, c, worker.Client, oneTime); err != nil {
			return err
		}
	}
	return site.Work(ctx, worker, func(name string) error {
		_, err := fmt.Fprintf(o.Stdout, "%s is waiting for tasks from %s\n", name, c.Agent.Server)
		return err
	})
}

// tokens are the agent's own, which the configuration gives or which it got when it
// enrolled, or else the one to enrol with.
func (o agentRun) tokens(c config.Config) (own, oneTime string, err error) {
	if c.Agent.Token != "" {
		return c.Agent.Token.Reveal(), "", nil
	}
	text, err := os.ReadFile(ownTokenFile(c))
	if own = strings.TrimSpace(string(text)); err == nil && own != "" {
		return own, "", nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", task.Wrap(task.DataDir, err, "the agent's token cannot be read").WithHint("run the agent as the user who enrolled it, or remove the file and enrol it again")
	}
	oneTime, err = o.oneTimeToken()
	return "", oneTime, err
}

// ownTokenFile is where an agent keeps the token that it got when it enrolled.
func ownTokenFile(c config.Config) string {
	return filepath.Join(c.DataDir, site.AgentFolder, tokenFile)
}

// enrol exchanges a one-time token for one of the agent's own, which it keeps.
func enrol(ctx context.Context, c config.Config, with *wire.Client, oneTime string) (string, error) {
	name, err := nameOf(c)
	if err != nil {
		return "", err
	}
	if err := site.TrySecret(ownTokenFile(c)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, enrolTimeout)
	defer cancel()
	client := &wire.Client{Server: with.Server, HTTP: with.HTTP, Token: oneTime}
	enrolled, err := client.Enrol(ctx, name)
	if err != nil {
		return "", fmt.Errorf("enrol: %w", err)
	}
	return enrolled.Token, site.WriteSecret(ownTokenFile(c), enrolled.Token)
}

// oneTimeToken is the token to enrol with.
func (o agentRun) oneTimeToken() (string, error) {
	if o.enrol != "" {
		return o.enrol, nil
	}
	if o.enrolFile == "" {
		return "", task.Errorf(task.Unauthorized, "this agent has no token").
			WithHint("give it a token of toryo agent token create, in the file that --enrol-file names")
	}
	token, err := o.readEnrolFile()
	if err != nil {
		return "", task.Wrap(task.Usage, err, "the enrolment token cannot be read").WithHint("--enrol-file names a file with a token of toryo agent token create, or is - for standard input")
	}
	return token, nil
}

// maxEnrolFile is far beyond any token.
const maxEnrolFile = 4 << 10

// readEnrolFile reads the one-time token from the file, or from standard input.
func (o agentRun) readEnrolFile() (string, error) {
	source := o.Stdin
	if o.enrolFile != "-" {
		file, err := os.Open(o.enrolFile)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }() // nothing was written
		source = file
	}
	text, err := io.ReadAll(io.LimitReader(source, maxEnrolFile+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(text) > maxEnrolFile || len(strings.Fields(token)) != 1 {
		return "", errors.New("there is not one token and nothing else")
	}
	return token, nil
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
				return task.Errorf(task.Usage, "--expires is %s, and must be more than 0", lasts).WithHint("give it like 1h or 30m")
			}
			return cli.WithNewStore(c.Context(), p, &s, func(database store.Store) error {
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
	_, _ = fmt.Fprintln(table, "ID\tNAME\tLAST SEEN\tROLE\tTASK\tREVOKED\tNOT ACCEPTING TASKS") // Flush reports what went wrong
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
