package site

import (
	"cmp"
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
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// AgentFolder is where an agent keeps its things, in the data directory.
	AgentFolder = "agent"
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

// AgentSettings is what an agent needs besides the configuration.
type AgentSettings struct {
	Server string
	Token  string
	Name   string // empty: that of the token
	HTTP   *http.Client
	CAFile string
	engine sandbox.Engine // nil: the one that the configuration names
	// outages are those that the server in this process knows of; nil: there is none.
	outages *llm.Outages
	Log     *slog.Logger
	// PauseFile pauses the agent's tasks while it is there; empty: there is none, or the
	// server in this process follows it.
	PauseFile string
	// Process is the one that the agent is, by its folder.
	Process *processes.Process
}

// AgentClient connects to a server, and trusts the certificates in the file too.
func AgentClient(caFile string) (*http.Client, error) {
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
			return nil, task.Wrap(task.BadConfig, err, "the certificates cannot be read").WithHint("check agent.ca_file")
		}
		if !roots.AppendCertsFromPEM(text) {
			return nil, task.Errorf(task.BadConfig, "%s has no certificate in PEM", caFile).WithHint("check agent.ca_file")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}, nil
}

// NewAgent makes the agent that the configuration describes. Its data directory
// is its own.
func NewAgent(ctx context.Context, p Program, c config.Config, s AgentSettings) (*agent.Agent, error) {
	folder := filepath.Join(c.DataDir, AgentFolder)
	if err := MakeDataDir(folder); err != nil {
		return nil, err
	}
	owner, err := ownerIn(folder)
	if err != nil {
		return nil, err
	}
	engine := s.engine
	if engine == nil {
		if engine, err = chooseEngine(ctx, c, s.Log); err != nil {
			return nil, &agent.UnableError{Reason: task.ReasonNoSandbox, Err: err}
		}
	}
	executors, err := executors(p, c, engine, owner, s)
	if err != nil {
		return nil, &agent.UnableError{Reason: task.ReasonNoModel, Err: err}
	}
	if p.Around != nil {
		for kind, executor := range executors {
			executors[kind] = p.Around(executor)
		}
	}
	spaces := agent.Workspaces{Dir: filepath.Join(folder, "workspaces"), Server: s.Server, CAFile: s.CAFile, Language: task.Language(c.Language), Log: s.Log}
	if err := errors.Join(spaces.Sweep(), sweepChecks(folder)); err != nil {
		return nil, err
	}
	files, err := contexts.Open(c.ContextsPath(), contexts.Options{Redactor: c.Redactor(), Log: s.Log, Now: p.Now})
	if err != nil {
		return nil, err
	}
	// What was left for longer than a pause may last is not coming back.
	if _, err := files.Sweep(p.Now().AddDate(0, 0, -c.PauseResume.PausedTaskExpiryDays)); err != nil {
		s.Log.ErrorContext(ctx, "failed to move the context files of earlier runs; retrying", "error", err)
	}
	earlier, err := s.Process.Ended(ctx, s.Log)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the agent's folder cannot be used")
	}
	return &agent.Agent{
		Process: s.Process.ID(), Earlier: earlier, Forget: s.Process.Forget,
		Client: &wire.Client{Server: s.Server, Token: s.Token, HTTP: s.HTTP}, Name: s.Name, Parallel: c.Agent.Parallel,
		PauseFile: s.PauseFile, Check: newCheckup(c, engine, owner, []string{folder, c.ContextsPath()}, s.Log).check,
		Executors: executors, Prepare: spaces.Prepare, Contexts: files, Sandboxes: engine, Owner: owner, Log: s.Log,
		Language: task.Language(c.Language), Redactor: c.Redactor(),
		KeepContexts: config.Days(c.Retention.Contexts), KeepSnapshots: config.Days(c.Retention.Snapshots),
	}, nil
}

// Work checks in and works until the context ends.
func Work(ctx context.Context, worker *agent.Agent, announce func(name string) error) error {
	me, err := worker.CheckIn(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if worker.Name == "" {
		worker.Name = me.Name
	}
	// First, so that they do not wait for the check.
	if err := worker.FreeEarlierTasks(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	worker.Examine(ctx)
	if err := announce(worker.Name); err != nil {
		return err
	}
	return worker.Work(ctx)
}

func chooseEngine(ctx context.Context, c config.Config, log *slog.Logger) (sandbox.Engine, error) {
	engine, warning, err := EnginesOf(c, log).Choose(ctx, c.Sandbox.Kind)
	if err == nil && warning != "" {
		log.WarnContext(ctx, "the sandbox is weak", "warning", warning)
	}
	return engine, err
}

// EnginesOf says how sandbox engines are made by the configuration.
func EnginesOf(c config.Config, log *slog.Logger) env.Engines {
	return env.Engines{
		Dir: filepath.Join(c.DataDir, sandboxFolder), DockerHost: c.Sandbox.ContainerEngine, Kubernetes: c.Sandbox.Kubernetes, Hosts: c.Sandbox.Network.Hosts, Log: log,
	}
}

// sandboxFolder is where sandboxes are kept, in the data directory.
const sandboxFolder = "sandbox"

// executors are what the configuration says does the work, by the type of task.
func executors(p Program, c config.Config, engine sandbox.Engine, owner string, s AgentSettings) (map[task.Type]agent.Executor, error) {
	made := make(map[task.Type]agent.Executor)
	for kind, words := range map[task.Type]config.Command{task.Development: c.Executors.Development, task.Review: c.Executors.Review} {
		if len(words) == 0 {
			continue
		}
		if err := agent.CheckCommand(words); err != nil {
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
	builtIn, err := NewBuiltIn(p, c, engine, owner, cmp.Or(s.outages, new(llm.Outages)), s.Log)
	if err != nil {
		return nil, err
	}
	for kind, executor := range map[task.Type]agent.Executor{task.Development: builtIn.Development(), task.Review: builtIn.review()} {
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
	return owner, WriteSecret(file, owner)
}

// WriteSecret writes a file that nobody else may read, whole or not at all.
func WriteSecret(file, text string) error {
	draft := file + ".new"
	err := os.WriteFile(draft, []byte(text+"\n"), 0o600)
	if err == nil {
		err = os.Rename(draft, file)
	}
	return folderError(err)
}

// TrySecret reports whether WriteSecret could write such a file, for what cannot be had
// again: it writes as much into a file beside it, which it removes.
func TrySecret(file string) error {
	draft := file + ".new"
	err := os.WriteFile(draft, make([]byte, secretSize), 0o600)
	if err == nil {
		err = os.Remove(draft)
	}
	return folderError(err)
}

// secretSize is at least as long as any secret that is written.
const secretSize = 4 << 10

func folderError(err error) error {
	if err == nil {
		return nil
	}
	return task.Wrap(task.DataDir, err, "the agent's folder cannot be written to")
}

// LockAgent keeps the folder of an agent to this process, and registers it there. It refuses a data
// directory into which a backup was restored in part.
func LockAgent(dataDir string) (process *processes.Process, unlock func() error, err error) {
	process, unlock, err = lockFor(filepath.Join(dataDir, AgentFolder), agentLock, "another agent")
	if err != nil {
		return nil, nil, err
	}
	if err := requireRestored(dataDir); err != nil { // a restore holds the lock too
		return nil, nil, errors.Join(err, unlock())
	}
	return process, unlock, nil
}
