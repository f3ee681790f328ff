package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/wire"
)

type meOutput struct{ Body wire.Me }

func (s *Server) registerMe() {
	register(s, access.Anyone, huma.Operation{
		OperationID: "me",
		Method:      http.MethodGet,
		Path:        "/v1/me",
		Summary:     "Who the token belongs to",
	}, func(ctx context.Context, _ *struct{}) (*meOutput, error) {
		token := caller(ctx)
		me := wire.Me{Name: token.Name, Role: token.Role, Version: s.version}
		if person := callOf(ctx).person; person.Account {
			me.Person = person.Login
		}
		return &meOutput{me}, nil
	})
}
