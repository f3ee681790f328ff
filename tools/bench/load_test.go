package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// answers is a server without a network.
type answers func(*http.Request) (status int, body any)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	text, err := json.Marshal(body)
	media := "application/json"
	if status >= http.StatusBadRequest {
		media = "application/problem+json"
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
}

// TestFakeAgentThatLosesItsLease: it asks for another task, as an agent does, and no more often
// than there are leases. A request that fails is made again later.
func TestFakeAgentThatLosesItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked, waited atomic.Int64
		holds := make(chan struct{})
		refuse := func(code task.Code) (int, any) {
			problem := wire.ProblemOf(task.Errorf(code, "refused"))
			return problem.Status, problem
		}
		server := answers(func(r *http.Request) (int, any) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/tasks/request"):
				if asked.Add(1) == 1 {
					return refuse(task.DatabaseDown)
				}
				return http.StatusOK, wire.Assignment{TaskID: "t1", Lease: wire.Lease{Token: "lease", Every: 20_000}}
			case strings.HasSuffix(r.URL.Path, "/signals"):
				if waited.Add(1) == 1 {
					return refuse(task.LeaseLost)
				}
				close(holds)
				<-r.Context().Done()
			}
			return http.StatusOK, struct{}{}
		})
		working, stop := context.WithCancel(t.Context())
		defer stop()
		fakes := &fakeAgents{client: &wire.Client{Server: "http://toryo.test", HTTP: &http.Client{Transport: server}}}
		go fakes.work(working, 0)
		<-holds
		if asked.Load() != 3 || waited.Load() != 2 || fakes.lost.Load() != 1 || fakes.failed.Load() != 1 || task.CodeOf(fakes.err()) != task.DatabaseDown {
			t.Errorf("it asked %d times for a task and %d times for signals, lost %d leases, failed %d times with %v",
				asked.Load(), waited.Load(), fakes.lost.Load(), fakes.failed.Load(), fakes.err())
		}
	})
}
