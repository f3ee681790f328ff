package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

func clientOf(t *testing.T, handler http.HandlerFunc) *wire.Client {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return &wire.Client{Server: web.URL + "/", Token: "toryo_secret", HTTP: web.Client()}
}

func TestClientSendsItsToken(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer toryo_secret" || r.URL.Path != "/v1/me" {
			t.Errorf("asked for %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		_, _ = fmt.Fprint(w, `{"name":"n","role":"agent","version":"v1"}`)
	})
	me, err := client.Me(t.Context())
	if err != nil || me != (wire.Me{Name: "n", Role: "agent", Version: "v1"}) {
		t.Errorf("got %+v, %v", me, err)
	}
}

// A server, or something else at its address, can answer anything.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		media  string
		body   string
		want   task.Code
	}{
		"problem":               {409, wire.ProblemType, `{"code":"stale_generation","status":409,"detail":"over"}`, task.StaleGeneration},
		"problem with charset":  {404, wire.ProblemType + "; charset=utf-8", `{"code":"not_found","status":404}`, task.NotFound},
		"its disk is full":      {500, wire.ProblemType, `{"code":"data_dir","status":500}`, task.Unavailable},
		"half a problem":        {409, wire.ProblemType, `{"code":"stale`, task.Unavailable},
		"another server's page": {502, "text/html", "<h1>Bad Gateway</h1>", task.Unavailable},
		"no type at all":        {500, "", "", task.Unavailable},
		"not JSON":              {200, "application/json", "<html>", task.Unavailable},
		"nothing":               {200, "application/json", "", task.Unavailable},
		"a list":                {200, "application/json", "[]", task.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.media}
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			})
			if _, err := client.Me(t.Context()); task.CodeOf(err) != c.want {
				t.Errorf("got %v with code %s, want %s", err, task.CodeOf(err), c.want)
			}
		})
	}
}

func TestCutAnswer(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = fmt.Fprint(w, `{"name":`)
		panic(http.ErrAbortHandler)
	})
	if _, err := client.Me(t.Context()); task.CodeOf(err) != task.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	chunk := []byte(strings.Repeat(" ", 1<<20))
	client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if _, err := client.Me(t.Context()); task.CodeOf(err) != task.TooLarge {
		t.Errorf("got %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	client := &wire.Client{Server: gone.URL, HTTP: new(http.Client)}
	_, err := client.Me(t.Context())
	if coded, _ := task.AsError(err); task.CodeOf(err) != task.Unavailable || !strings.Contains(coded.Hint, gone.URL) {
		t.Errorf("got %v", err)
	}
	client.Server = "http://bad host"
	if _, err := client.Me(t.Context()); task.CodeOf(err) != task.Usage {
		t.Errorf("a bad address gives %v", err)
	}
}

func TestCancelledCallIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := clientOf(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := client.Me(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What the server decided is what the client gets, but never the cause.
func TestProblemsTravel(t *testing.T) {
	t.Parallel()
	decided := task.Wrap(task.NotFound, errors.New("inner secret"), "there is no task x").WithHint("look at toryo tasks list")
	problem := wire.ProblemOf(fmt.Errorf("handler: %w", decided))
	back, _ := task.AsError(problem.Err())
	if back.Code != task.NotFound || back.Message != decided.Message || back.Hint != decided.Hint || back.Err != nil {
		t.Errorf("came back as %+v", back)
	}
	if hidden := wire.ProblemOf(errors.New("inner secret")); hidden.Status != 500 || strings.Contains(fmt.Sprint(hidden), "secret") {
		t.Errorf("a fault of ours travels as %+v", hidden)
	}
	illegal := wire.ProblemOf(&task.IllegalMoveError{From: task.Done, Trigger: task.Resumed})
	if illegal.Status != 409 || !strings.Contains(illegal.Detail, "done") {
		t.Errorf("an illegal move travels as %+v", illegal)
	}
}
