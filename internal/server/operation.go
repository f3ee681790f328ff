package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// bearer names the security scheme in the OpenAPI document.
const bearer = "bearer"

// register adds an operation to the API. Only a token that includes the role
// gets through to the handler. What people change by it is in the audit log; what
// agents report is in the journals.
func register[Input, Output any](s *Server, role access.Role, operation huma.Operation, handler func(context.Context, *Input) (*Output, error)) {
	operation.Security = []map[string][]string{{bearer: {}}}
	operation.Middlewares = append(operation.Middlewares, s.demand(role))
	operation.MaxBodyBytes = maxBody
	operation.BodyReadTimeout = bodyDeadlineIsOurs
	operation.Errors = append(operation.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	noted := operation.Method != http.MethodGet && role != access.Agent
	huma.Register(s.api, operation, func(ctx context.Context, input *Input) (output *Output, err error) {
		do := func() error {
			output, err = handler(ctx, input)
			return err
		}
		if noted {
			made := callOf(ctx)
			err = s.audit.Do(ctx, actorOf(made), "api."+operation.OperationID, made.subject, do)
		} else {
			err = do()
		}
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return output, nil
	})
}

type callKey struct{}

// calling is who makes a request, and what it is about.
type calling struct {
	token   store.Token
	person  access.Person // for whom the token acts
	subject string        // for the audit log
}

func callOf(ctx context.Context) calling {
	made, _ := ctx.Value(callKey{}).(calling)
	return made
}

// caller is the token of the request, which the middleware has checked.
func caller(ctx context.Context) store.Token { return callOf(ctx).token }

// person is who makes the request: the account that the token acts for, or else the name
// of the token.
func person(ctx context.Context) string { return callOf(ctx).person.Login }

// account is the login of the person who makes the request; empty if it is nobody with an account.
func account(ctx context.Context) string {
	if who := callOf(ctx).person; who.Account {
		return who.Login
	}
	return ""
}

// personOf finds out who makes a request. With the token that the server has made for commands
// on its machine comes the name of the machine's user who runs one.
func (s *Server) personOf(ctx huma.Context, token store.Token) (access.Person, error) {
	people := access.People{Store: s.store}
	if name := ctx.Header(wire.MachineUserHeader); token.ID == access.OwnTokenID && name != "" {
		here, err := people.Here(ctx.Context(), name)
		if err == nil && here.Account {
			return here, nil
		}
		if err != nil && task.CodeOf(err) != task.Conflict { // else it is nobody who is known
			return access.Person{}, err
		}
	}
	return people.OfToken(ctx.Context(), token)
}

// actorOf is who makes a request, for the audit log.
func actorOf(made calling) string {
	switch {
	case made.token.ID == access.OwnTokenID && made.person.Account:
		return made.person.Login + " (command line)"
	case made.token.ID == access.OwnTokenID:
		return "the command line"
	case made.person.Account:
		return made.person.Login + " (token " + made.token.Name + ")"
	default:
		return "token " + made.token.Name
	}
}

// subjectOf is what a request is about: its path, and as whom it is made.
func subjectOf(ctx huma.Context) string {
	address := ctx.URL()
	if as := ctx.Header("X-Toryo-As"); as != "" {
		return address.Path + " as=" + as
	}
	return address.Path
}

// demand lets only those through whose token includes the role.
func (s *Server) demand(role access.Role) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		token, err := access.CheckToken(ctx.Context(), s.tokens, bearerToken(ctx.Header("Authorization")))
		if err == nil && !access.Role(token.Role).Includes(role) {
			err = task.Errorf(task.Forbidden, "a token with the role %s does not allow this", token.Role).
				WithHint("use a token with the role %s", role)
		}
		var who access.Person
		if err == nil {
			who, err = s.personOf(ctx, token)
		}
		if err != nil {
			s.refuse(ctx, err)
			return
		}
		if access.Role(token.Role) == access.Agent {
			s.seen.note(token.ID)
		}
		next(huma.WithValue(ctx, callKey{}, calling{token, who, subjectOf(ctx)}))
	}
}

func bearerToken(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (s *Server) refuse(ctx huma.Context, err error) {
	answer := s.problem(ctx.Context(), err)
	if answer.Status == http.StatusUnauthorized {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="toryo"`)
	}
	ctx.SetHeader("Content-Type", answer.ContentType(""))
	ctx.SetStatus(answer.Status)
	if err := answer.write(ctx.BodyWriter()); err != nil {
		s.log.DebugContext(ctx.Context(), "client disconnected", "error", err)
	}
}
