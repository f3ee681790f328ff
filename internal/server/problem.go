package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// problem is an error on its way to the caller.
type problem struct{ wire.Problem }

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) ContentType(string) string { return wire.ProblemType }

func (p *problem) write(to io.Writer) error { return json.NewEncoder(to).Encode(p.Problem) }

// problem turns an error into what the caller may see of it. Faults of ours are
// logged here, with their causes, and nowhere else.
func (s *Server) problem(ctx context.Context, err error) *problem {
	answer := &problem{wire.ProblemOf(err)}
	if answer.Status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		s.log.ErrorContext(ctx, "request failed", "code", answer.Code, "error", err)
	}
	return answer
}

// The library that reads requests makes its own errors, for example about a
// field of the wrong type. It takes the way to make them from a variable, so
// that this is the one place where a variable of another package is set.
func init() { //nolint:gochecknoinits // said above
	huma.NewError = func(status int, message string, causes ...error) huma.StatusError {
		if slices.ContainsFunc(causes, tooLong) {
			status = http.StatusRequestEntityTooLarge
		}
		return &problem{wire.Problem{
			Title:  http.StatusText(status),
			Status: status,
			Detail: detail(status, message, causes),
			Code:   string(codeOf(status)),
		}}
	}
}

// tooLong says whether the cause is a field that has more than it may.
func tooLong(cause error) bool {
	var wrong *huma.ErrorDetail
	is := func(message string) bool {
		start, _, _ := strings.Cut(message, "%")
		return strings.HasPrefix(wrong.Message, start)
	}
	return errors.As(cause, &wrong) && (is(validation.MsgExpectedMaxLength) || is(validation.MsgExpectedMaxItems))
}

// detail names what is wrong with a request, but nothing about a fault of ours.
func detail(status int, message string, causes []error) string {
	if status >= http.StatusInternalServerError {
		return ""
	}
	parts := []string{message}
	for _, cause := range causes {
		parts = append(parts, cause.Error())
	}
	whole := strings.Join(parts, "; ") // it quotes what was sent
	if len(whole) > maxDetail {
		whole = strings.ToValidUTF8(whole[:maxDetail], "") + "…"
	}
	return whole
}

const maxDetail = 1000

func codeOf(status int) task.Code {
	switch status {
	case http.StatusNotFound:
		return task.NotFound
	case http.StatusTooManyRequests:
		return task.TooMany
	case http.StatusRequestEntityTooLarge:
		return task.TooLarge
	case http.StatusRequestTimeout: // the body came too slowly, and may come quicker
		return task.Unavailable
	case http.StatusInternalServerError:
		return task.Internal
	default:
		return task.Invalid
	}
}

// otherPath answers what nothing is registered for. Programs are told so in their
// way, and people get pages.
func (s *Server) otherPath(w http.ResponseWriter, r *http.Request) {
	forPrograms := func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) }
	if s.webhooks != nil && (senderOf(r.Header) != "" || forPrograms("/webhook")) { // the address in the webhook is wrong
		s.webhooks.refuse(w, r)
		return
	}
	if s.pages == nil || slices.ContainsFunc([]string{"/v1/", "/api/", "/webhooks/", "/git/"}, forPrograms) {
		s.unknownPath(w, r)
		return
	}
	s.pages.ServeHTTP(w, r)
}

func (s *Server) unknownPath(w http.ResponseWriter, r *http.Request) {
	s.writeProblem(w, r, task.Errorf(task.NotFound, "there is nothing at %s", r.URL.Path))
}

// writeProblem answers where the API's library is not in between.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	answer := s.problem(r.Context(), err)
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(answer.Status)
	if err := answer.write(w); err != nil {
		s.log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}
