package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	statisticsInput struct {
		Days       int    `query:"days" default:"30" doc:"Of how many days, today among them: 7, 30 or 90"`
		Repository string `query:"repository" doc:"Only this repository, with or without its forge" example:"github:owner/name" maxLength:"2000"`
	}
	statisticsOutput struct{ Body wire.Statistics }
)

func (s *Server) registerStatistics() {
	register(s, access.Viewer, huma.Operation{
		OperationID: "statistics", Method: http.MethodGet, Path: "/v1/statistics", Summary: "How many runs, how quickly, how well, at what cost",
		Description: "By days in UTC. docs/statistics.md says what each number means. A repository without runs has zeros.",
		Errors:      []int{http.StatusUnprocessableEntity},
	}, s.statistics)
}

func (s *Server) statistics(ctx context.Context, input *statisticsInput) (*statisticsOutput, error) {
	found, err := statistics.Read(ctx, s.store, statistics.Wish{Days: input.Days, Repository: input.Repository}, s.now())
	if err != nil {
		return nil, err
	}
	return &statisticsOutput{found}, nil
}
