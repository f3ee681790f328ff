package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// AgentAccess is how the agent of this machine reaches its server.
type AgentAccess struct {
	Server string
	// HasToken says that there is a token, and TokenFile where the agent keeps the one that it
	// got when it enrolled.
	HasToken  bool
	TokenFile string
	// Configured is the setting that gives another token, which is used in place of that; "" if
	// none does.
	Configured string
	// Problem is why the token or the certificates cannot be read, if that is so.
	Problem error
	// Me asks the server whose the token is.
	Me func(context.Context) (wire.Me, error)
}

// AgentServer looks whether the server of an agent answers, and whether it accepts the agent's
// token.
func AgentServer(a AgentAccess) Survey {
	return func(ctx context.Context) []Finding {
		if a.Problem != nil {
			found, hint := explained(a.Problem, "see agent in toryo.yaml")
			return []Finding{{Name: "server", Status: Missing, Found: found, Hint: hint}}
		}
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		me, err := a.Me(ctx)
		if code := task.CodeOf(err); err != nil && code != task.Unauthorized && code != task.Forbidden {
			return []Finding{a.silent(err)}
		}
		server := Finding{Name: "server", Status: OK, Found: "answers at " + a.Server}
		if me.Version != "" {
			server.Found += ", version " + me.Version
		}
		return []Finding{server, a.token(me, err)}
	}
}

// silent says why the server does not answer as it should.
func (a AgentAccess) silent(err error) Finding {
	finding := Finding{Name: "server", Status: Missing}
	if request, is := errors.AsType[*url.Error](err); !is || request.Op == "parse" { // something answered, or it is no address
		found, hint := explained(err, "check agent.server")
		finding.Found, finding.Hint = a.Server+": "+found, hint
		return finding
	}
	why, _ := reach.Target{
		Setting: "agent.server", Authority: "put the certificate of that authority into a file, and name it with agent.ca_file or --ca-file",
	}.Explain(err)
	finding.Found, finding.Hint = fmt.Sprintf("the server does not answer at %s: %s", a.Server, why.Found), why.Hint
	return finding
}

// token says whether the agent can work with its token.
func (a AgentAccess) token(me wire.Me, err error) Finding {
	finding := Finding{Name: "token", Status: Missing}
	enrol := "make a one-time token with toryo agent token create where the server is, put it into a file, and start the agent with it:"
	switch {
	case !a.HasToken:
		finding.Found, finding.Hint = "none: this agent has not enrolled yet", enrol
	case err != nil:
		finding.Found = "the server does not accept it: it was revoked, or is of another server"
		finding.Hint = a.without() + enrol
	case access.Role(me.Role) != access.Agent:
		finding.Found = fmt.Sprintf("it is a token with the role %s, and an agent needs one with the role %s", me.Role, access.Agent)
		finding.Hint = a.without() + enrol
	default:
		return Finding{Name: "token", Status: OK, Found: "the server knows the agent as " + me.Name}
	}
	finding.Command = "toryo agent --server " + a.Server + " --enrol-file FILE"
	return finding
}

// without is how to get rid of the token, where it comes from.
func (a AgentAccess) without() string {
	if a.Configured == "" {
		return "remove " + a.TokenFile + "; then "
	}
	return "remove " + a.Configured + ", which is used in place of the token that the agent keeps in " + a.TokenFile + "; if it keeps none, "
}

// Unnamed says that there is an agent's token, but no server to show it to.
func Unnamed(tokenFile string) Finding {
	return Finding{
		Name: "server", Status: Warning, Found: "there is the token of an agent in " + tokenFile + ", but no server is named",
		Hint: "set agent.server in toryo.yaml, or name the server to have it checked:", Command: "toryo doctor --server URL",
	}
}

// NeededBy makes what Toryo works without one that an agent on this machine needs: the model.
func NeededBy(agent bool, finding Finding) Finding {
	if agent {
		finding.Command = "" // toryo init sets up a server
	}
	if agent && finding.Status == Warning {
		finding.Status = Missing
		finding.Found += "; without it the agent on this machine does not accept tasks"
	}
	return finding
}
