package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// agentFolder is where an agent keeps its things, in the data directory.
	agentFolder = "agent"
	// processFolder is where processes are registered, in the data directory of a
	// server and in the folder of an agent.
	processFolder = "processes"
	// ownerFile holds the name under which the agent's sandboxes are known.
	ownerFile = "owner"
	// idleConnections is how many connections to the server are kept open.
	idleConnections = 32
	// deadAfter is how soon a connection on which nothing comes back is given up.
	deadAfter = 15 * time.Second
)

// agentSettings is what an agent needs besides the configuration.
type agentSettings struct {
	server string
	token  string
	name   string // empty: that of the token
	http   *http.Client
	caFile string
	engine sandbox.Engine // nil: the one that the configuration names
	log    *slog.Logger
	// pauseFile pauses the agent's tasks while it is there; empty: there is none, or the
	// server in this process follows it.
	pauseFile string
	// process is the one that the agent is, by its folder.
	process *processes.Process
}

// agentClient connects to a server, and trusts the certificates in the file too.
func agentClient(caFile string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: deadAfter,
		// A connection that died without a word must not be used again and again.
		HTTP2: &http.HTTP2Config{SendPingTimeout: deadAfter, PingTimeout: deadAfter},
	}
	if caFile != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, task.Wrap(task.Internal, err, "the certificates of the system cannot be read")
		}
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, task.Wrap(task.BadConfig, err, "the certificates cannot be read").WithMend("check agent.ca_file")
		}
		if !roots.AppendCertsFromPEM(text) {
			return nil, task.Errorf(task.BadConfig, "%s has no certificate in PEM", caFile).WithMend("check agent.ca_file")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}, nil
}

// newAgent makes the agent that the configuration describes. Its data directory
// is its own.
func (p program) newAgent(ctx context.Context, c config.Config, s agentSettings) (*agent.Agent, error) {
	folder := filepath.Join(c.DataDir, agentFolder)
	if err := makeDataDir(folder); err != nil {
		return nil, err
	}
	owner, err := ownerIn(folder)
	if err != nil {
		return nil, err
	}
	engine := s.engine
	if engine == nil {
		if engine, err = chooseEngine(ctx, c, s.log); err != nil {
			return nil, &unableError{task.ReasonNoSandbox, err}
		}
	}
	executors, err := p.executors(c, engine, owner, s.log)
	if err != nil {
		return nil, &unableError{task.ReasonNoModel, err}
	}
	if p.around != nil {
		for kind, executor := range executors {
			executors[kind] = p.around(executor)
		}
	}
	spaces := agent.Workspaces{Dir: filepath.Join(folder, "workspaces"), Server: s.server, CAFile: s.caFile, Language: task.Language(c.Language), Log: s.log}
	if err := spaces.Sweep(); err != nil {
		return nil, err
	}
	files, err := contexts.Open(c.ContextsPath(), contexts.Options{Redactor: c.Redactor(), Log: s.log, Now: p.now})
	if err != nil {
		return nil, err
	}
	// What was left for longer than a pause may last is not coming back.
	if _, err := files.Sweep(p.now().AddDate(0, 0, -c.PauseResume.PausedTaskExpiryDays)); err != nil {
		s.log.ErrorContext(ctx, "the context files of runs that were left cannot be put away; it is tried again", "error", err)
	}
	earlier, err := s.process.Ended(ctx, s.log)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the agent's folder cannot be used")
	}
	return &agent.Agent{
		Process: s.process.ID(), Earlier: earlier, Forget: s.process.Forget,
		Client: &wire.Client{Server: s.server, Token: s.token, HTTP: s.http}, Name: s.name, Parallel: c.Agent.Parallel,
		PauseFile: s.pauseFile,
		Executors: executors, Prepare: spaces.Prepare, Contexts: files, Sandboxes: engine, Owner: owner, Log: s.log,
		Language: task.Language(c.Language), Redactor: c.Redactor(),
	}, nil
}

// work checks in and works until the context ends.
func work(ctx context.Context, worker *agent.Agent, announce func(name string) error) error {
	me, err := worker.CheckIn(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if worker.Name == "" {
		worker.Name = me.Name
	}
	if err := worker.Report(ctx, "", ""); err != nil {
		worker.Log.WarnContext(ctx, "the server does not note that this agent can take tasks", "error", err)
	}
	if err := worker.TakeOver(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	if err := announce(worker.Name); err != nil {
		return err
	}
	return worker.Work(ctx)
}

// unableError says why an agent cannot take tasks, if its code is NotReady.
type unableError struct {
	reason task.Reason
	err    error
}

func (e *unableError) Error() string { return e.err.Error() }

func (e *unableError) Unwrap() error { return e.err }

// detail says what is missing, without what to do about it.
func (e *unableError) detail() string {
	if coded, found := task.AsError(e.err); found {
		return coded.Message
	}
	return e.err.Error()
}

func chooseEngine(ctx context.Context, c config.Config, log *slog.Logger) (sandbox.Engine, error) {
	engine, warning, err := enginesOf(c, log).Choose(ctx, c.Sandbox.Kind)
	if err == nil && warning != "" {
		log.WarnContext(ctx, "the sandbox is a weak one", "warning", warning)
	}
	return engine, err
}

// enginesOf says how sandbox engines are made by the configuration.
func enginesOf(c config.Config, log *slog.Logger) env.Engines {
	return env.Engines{
		Dir: filepath.Join(c.DataDir, sandboxFolder), DockerHost: c.Sandbox.ContainerEngine, Kubernetes: c.Sandbox.Kubernetes, Hosts: c.Sandbox.Network.Hosts, Log: log,
	}
}

// sandboxFolder is where sandboxes are kept, in the data directory.
const sandboxFolder = "sandbox"

// executors are what the configuration says does the work, by the type of task.
func (p program) executors(c config.Config, engine sandbox.Engine, owner string, log *slog.Logger) (map[task.Type]agent.Executor, error) {
	made := make(map[task.Type]agent.Executor)
	for kind, words := range map[task.Type]config.Command{task.Development: c.Executors.Development, task.Review: c.Executors.Review} {
		if len(words) == 0 {
			continue
		}
		if err := agent.CheckWords(words); err != nil {
			return nil, fmt.Errorf("executors.%s: %w", kind, err)
		}
		made[kind] = agent.Command{
			Words: words, Engine: engine, Owner: owner, Image: imageOf(c), Env: p.passedOn(c.Executors.Variables),
			Network: networkOf(c), Limits: sandboxLimits(c.Sandbox), Timeout: c.Executors.Timeout,
			Output: int(c.Sandbox.OutputLimit), Language: task.Language(c.Language),
		}
	}
	if len(made) == len(task.Types) {
		return made, nil
	}
	builtIn, err := p.newBuiltIn(c, engine, owner, log)
	if err != nil {
		return nil, err
	}
	for kind, executor := range map[task.Type]agent.Executor{task.Development: builtIn.development(), task.Review: builtIn.review()} {
		if made[kind] == nil {
			made[kind] = executor
		}
	}
	return made, nil
}

func imageOf(c config.Config) string {
	if c.Executors.Image != "" {
		return c.Executors.Image
	}
	return c.CommandExecutor.Environments[c.CommandExecutor.DefaultEnvironment]
}

// passedOn are the named variables as this process has them.
func (p program) passedOn(names []string) map[string]string {
	passed := make(map[string]string)
	for _, variable := range p.environ {
		name, value, _ := strings.Cut(variable, "=")
		for _, wanted := range names {
			if name == wanted {
				passed[name] = value
			}
		}
	}
	return passed
}

// networkOf says what a role may reach.
func networkOf(c config.Config) func(task.Role) sandbox.Policy {
	return func(role task.Role) sandbox.Policy {
		if own := c.Roles[string(role)].Network; own != "" {
			return sandbox.Policy(own)
		}
		return sandbox.Policy(c.Sandbox.Network.Execution)
	}
}

func sandboxLimits(c config.Sandbox) sandbox.Limits {
	return sandbox.Limits{Memory: int64(c.Memory), Processes: c.PIDs, CPUs: c.CPUs, Disk: int64(c.Disk)}
}

// ownerIn returns the name under which sandboxes of the agent with this folder
// are known, and makes it up the first time. It is not the agent's name: two
// agents can have that in common, and one must not end what the other runs.
func ownerIn(folder string) (string, error) {
	file := filepath.Join(folder, ownerFile)
	text, err := os.ReadFile(file)
	if owner := strings.TrimSpace(string(text)); err == nil && owner != "" {
		return owner, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", task.Wrap(task.DataDir, err, "the agent's folder cannot be used")
	}
	owner := "agent-" + uuid.NewString()
	return owner, writeSecret(file, owner)
}

// writeSecret writes a file that nobody else may read, whole or not at all.
func writeSecret(file, text string) error {
	draft := file + ".new"
	err := os.WriteFile(draft, []byte(text+"\n"), 0o600)
	if err == nil {
		err = os.Rename(draft, file)
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "the agent's folder cannot be written to")
	}
	return nil
}

// lockAgent keeps the folder of an agent to this process, and registers it there.
func lockAgent(dataDir string) (process *processes.Process, unlock func() error, err error) {
	return lockFor(filepath.Join(dataDir, agentFolder), "agent.lock", "another agent")
}
