package agent

import (
	"context"
	"log/slog"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// agentRole is the role that the server gives to tokens of agents.
const agentRole = "agent"

// Agent works for one server.
type Agent struct {
	Client *wire.Client
	Log    *slog.Logger
}

// CheckIn makes sure that the server answers and knows this agent as one.
func (a *Agent) CheckIn(ctx context.Context) (wire.Me, error) {
	me, err := a.Client.Me(ctx)
	if err != nil {
		return wire.Me{}, err
	}
	if me.Role != agentRole {
		return wire.Me{}, task.Errorf(task.Forbidden, "the token is one of a %s, not of an agent", me.Role).
			WithMend("make one with toryo token create --role agent")
	}
	a.Log.InfoContext(ctx, "checked in", "server", a.Client.Server, "name", me.Name, "server_version", me.Version)
	return me, nil
}
