package site

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// agentToken is where an enrolled agent keeps its token, in the data directory.
func agentToken(dataDir string) string { return filepath.Join(dataDir, AgentFolder, "token") }

// LookAtForges is how toryo doctor looks at forges. Nothing is cached, counted or written.
func LookAtForges(c config.Config) doctor.ForgeAccess {
	return doctor.ForgeAccess{
		Connect: func(name task.Forge) (forge.Reader, forge.Setup, error) {
			connected, err := OpenForge(c, name)
			if err != nil {
				return nil, nil, err
			}
			setup, _ := connected.(forge.Setup) // an adapter may have none
			return connected, setup, nil
		},
		Scope: scopeOf(c), Events: webhookEventsOf(c), Received: lookAtDeliveries(c), URL: PublicURL(c, c.Server.Addr),
	}
}

// lookAtDeliveries reads what servers have received of the webhooks of a forge.
func lookAtDeliveries(c config.Config) func(context.Context, task.Forge) (doctor.Received, error) {
	return func(ctx context.Context, of task.Forge) (received doctor.Received, err error) {
		err = lookInto(ctx, c, func(database store.Store) error {
			known, err := database.ListWebhookEvents(ctx)
			if err != nil {
				return err
			}
			received.Counted = items.ReportWebhooks(known, webhookEventsOf(c), agesOf(c.Polling), time.Now())
			received.Last, err = database.ListReceived(ctx, of)
			return err
		})
		return received, err
	}
}

// LookForSandbox chooses a sandbox as an agent does, without starting one.
func LookForSandbox(c config.Config) doctor.Choose {
	return func(ctx context.Context) (string, error) {
		engine, _, err := EnginesOf(c, slog.New(slog.DiscardHandler)).Choose(ctx, c.Sandbox.Kind)
		if err != nil {
			return "", err
		}
		return engine.Name(), nil
	}
}

// LookAtServer is how toryo doctor looks at the server of the agent on this machine.
func LookAtServer(c config.Config) doctor.AgentAccess {
	look := doctor.AgentAccess{Server: c.Agent.Server, TokenFile: agentToken(c.DataDir)}
	client, err := AgentClient(c.Agent.CAFile)
	if err != nil {
		look.Problem = err
		return look
	}
	token := c.Agent.Token.Reveal()
	variable := config.Variable("agent.token")
	switch {
	case token != "" && c.Agent.TokenFile != "":
		look.Configured = "agent.token_file (" + c.Agent.TokenFile + "; if " + variable + " is set, that)"
	case token != "":
		look.Configured = "agent.token or " + variable
	default:
		text, err := os.ReadFile(look.TokenFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			look.Problem = task.Wrap(task.DataDir, err, "the agent's token cannot be read").WithHint("run toryo doctor as the user that runs the agent")
			return look
		}
		token = strings.TrimSpace(string(text))
	}
	look.HasToken = token != ""
	server := &wire.Client{Server: c.Agent.Server, Token: token, HTTP: client}
	look.Me = server.Me
	return look
}

// HasAgentToken reports whether an agent has enrolled that keeps its things in the data directory.
func HasAgentToken(c config.Config) (file string, found bool) {
	file = agentToken(c.DataDir)
	_, err := os.Stat(file)
	return file, err == nil
}

// OnlyAgent reports whether this machine is one of an agent alone: it is told where its server is,
// and has nothing of a server itself.
func OnlyAgent(c config.Config) bool {
	if c.Agent.Server == "" || len(c.ConfiguredForges()) > 0 || c.Database.Driver == "postgres" {
		return false
	}
	_, err := os.Stat(filepath.Join(c.DataDir, DatabaseFile))
	return errors.Is(err, fs.ErrNotExist)
}

// UsesModel reports whether some task is done with a model that is configured here.
func UsesModel(c config.Config) bool { return !onlyPrograms(c) }
