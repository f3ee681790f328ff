package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// streamAlive is how often something is sent on a stream on which nothing
	// happens, so that nobody on the way takes it for dead.
	streamAlive = 15 * time.Second
	// streamBatch is how many entries are read from the database at once.
	streamBatch = 100
)

type streamInput struct {
	ID    string `path:"id"`
	After int64  `query:"after" doc:"Only entries after this position" minimum:"0"`
	Last  string `header:"Last-Event-ID" doc:"As browsers send it when they connect again; in place of after"`
}

// registerStream adds the journal of a task as server-sent events. The id of an
// event is its position, and its type the kind of the entry.
func (s *Server) registerStream(notifier *broker.Notifier) {
	register(s, access.Viewer, huma.Operation{
		OperationID: "stream-events", Method: http.MethodGet, Path: "/v1/tasks/{id}/events/stream",
		Summary: "The journal of a task as it grows, as server-sent events", Errors: []int{http.StatusNotFound},
		Responses: map[string]*huma.Response{"200": {
			Description: "Server-sent events", Content: map[string]*huma.MediaType{"text/event-stream": {}},
		}},
	}, func(ctx context.Context, input *streamInput) (*huma.StreamResponse, error) {
		after := input.After
		if input.Last != "" {
			last, err := strconv.ParseInt(input.Last, 10, 64)
			if err != nil || last < 0 {
				return nil, task.Errorf(task.Invalid, "Last-Event-ID is the position of an entry, not %q", input.Last)
			}
			after = last
		}
		id := task.ID(input.ID)
		if _, err := s.store.Task(ctx, id); err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			err := s.stream(ctx, notifier, id, after)
			if err != nil && !errors.Is(err, context.Canceled) {
				s.log.DebugContext(ctx.Context(), "a stream of events broke off", "task", id, "error", err)
			}
		}}, nil
	})
}

// stream sends entries until the caller goes away or the server stops.
func (s *Server) stream(to huma.Context, notifier *broker.Notifier, id task.ID, after int64) error {
	ctx, cancel := s.untilStop(to.Context())
	defer cancel()
	rung, stop := notifier.ListenToJournal(id)
	defer stop()
	to.SetHeader("Content-Type", "text/event-stream")
	to.SetHeader("Cache-Control", "no-store")
	to.SetHeader("X-Accel-Buffering", "no")
	to.SetStatus(http.StatusOK)
	_, w := humago.Unwrap(to)
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		return err
	}
	alive := time.NewTicker(streamAlive)
	defer alive.Stop()
	for {
		events, err := s.store.EventsAfter(ctx, id, after, streamBatch)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := writeEvent(w, e); err != nil {
				return err
			}
			after = e.Position
		}
		if err := control.Flush(); err != nil {
			return err
		}
		if len(events) > 0 {
			continue // a page may be shorter than it could be
		}
		select {
		case <-rung:
		case <-alive.C:
			if _, err := io.WriteString(w, ": alive\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// writeEvent writes one entry. JSON has no line breaks in it.
func writeEvent(w io.Writer, e task.Event) error {
	data, err := json.Marshal(wire.EventOf(e))
	if err != nil {
		return task.Wrap(task.Internal, err, "an entry of the journal cannot be sent")
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Position, e.Kind, data)
	return err
}
