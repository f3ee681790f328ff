package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/notify/quiet"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// office is a server with needs, and a service that receives its messages.
type office struct {
	t     *testing.T
	store store.Store
	web   *httptest.Server
	log   *strings.Builder

	mutex    sync.Mutex
	now      time.Time
	needs    []task.Need
	cut      bool             // there are more failures
	answer   http.HandlerFunc // nil means that messages are taken
	received []format.Message
	requests int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	must(t, err)
	t.Cleanup(func() { must(t, database.Close()) })
	o := &office{t: t, store: database, now: noon, log: new(strings.Builder)}
	o.web = httptest.NewServer(http.HandlerFunc(o.receive))
	t.Cleanup(o.web.Close)
	return o
}

func (o *office) receive(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.requests++
	if o.answer != nil {
		o.answer(w, r)
		return
	}
	var message format.Message
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &message) != nil {
		o.t.Errorf("received %s, %v", body, err)
	}
	o.received = append(o.received, message)
}

func (o *office) set(needs ...task.Need) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.needs = needs
}

func (o *office) at(now time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.now = now
}

func (o *office) target() Target {
	return Target{Name: "team", URL: redact.Secret(o.web.URL + "/hooks/s3cret"), Format: format.JSON, Language: task.English, Kinds: task.NeedKinds}
}

// server is one of several on the same database.
func (o *office) server(set ...func(*Options)) *Deliverer {
	now := func() time.Time {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		return o.now
	}
	options := Options{
		Targets: []Target{o.target()}, Store: o.store, Send: NewSender(now).Send, Pages: "https://toryo.example.com", Now: now,
		Log: slog.New(slog.NewTextHandler(o.log, nil)),
		Needs: func(context.Context) ([]task.Need, bool, error) {
			o.mutex.Lock()
			defer o.mutex.Unlock()
			return o.needs, !o.cut, nil
		},
	}
	for _, change := range set {
		change(&options)
	}
	return NewDeliverer(options)
}

// told is what was received, message by message: the keys of the needs.
func (o *office) told() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var all []string
	for _, message := range o.received {
		var keys []string
		for _, need := range message.Needs {
			keys = append(keys, need.Key)
		}
		all = append(all, strings.Join(keys, " "))
	}
	return strings.Join(all, ", ")
}

func (o *office) want(told string) {
	o.t.Helper()
	if got := o.told(); got != told {
		o.t.Errorf("told %q, want %q", got, told)
	}
}

func question(number int64) task.Need {
	return task.Need{
		Key: fmt.Sprint("answer/", number), Kind: task.NeedAnswer, Reason: task.ReasonAwaitingAnswer, Since: noon, Detail: "Which oil?",
		Task: &task.Task{ID: task.ID(fmt.Sprint("t", number)), Title: "Fix the gate", Key: task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}},
	}
}

// A target is told of each need once: however often it is looked at, by whom, and after a
// restart.
func TestEachNeedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.set(question(1))
	server := o.server()
	for range 3 {
		must(t, server.Deliver(t.Context()))
	}
	o.want("answer/1")
	o.set(question(1), question(2))
	must(t, o.server().Deliver(t.Context())) // after a restart
	o.want("answer/1, answer/2")

	o.set(question(1), question(2), question(3))
	var together sync.WaitGroup
	for range 6 {
		another := o.server()
		together.Go(func() {
			if err := another.Deliver(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	o.want("answer/1, answer/2, answer/3")
	first := o.received[0]
	if first.Needs[0].URL != "https://toryo.example.com/tasks/t1" || first.Needs[0].Item != "board:team/app#1" || !strings.Contains(first.Needs[0].What, "Fix the gate") || first.Needs[0].Detail != "Which oil?" {
		t.Errorf("told %+v", first)
	}
}

// What is over is not told of, and forgotten after a while; what comes back soon is not told of
// again.
func TestNeedsThatAreOver(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := o.server()
	o.set(question(1))
	must(t, server.Deliver(t.Context()))
	o.set()
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(keptOver / 2))
	o.set(question(1))
	must(t, server.Deliver(t.Context()))
	o.want("answer/1")
	o.set()
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(2 * keptOver))
	must(t, server.Deliver(t.Context()))
	if known, err := o.store.ListNotifications(t.Context(), "team"); err != nil || len(known) != 0 {
		t.Errorf("%+v is remembered, %v", known, err)
	}
	o.set(question(1))
	must(t, server.Deliver(t.Context()))
	o.want("answer/1, answer/1")
}

// In quiet hours nobody is told; after them there is one message with what still waits.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	hours, err := quiet.Parse([]string{"21:00-08:00"}, "Asia/Tokyo") // from noon UTC on
	must(t, err)
	server := o.server(func(options *Options) { options.Quiet = hours })
	o.set(question(1), question(2))
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(time.Hour))
	o.set(question(2), question(3))
	must(t, server.Deliver(t.Context()))
	o.want("")
	o.at(noon.Add(11 * time.Hour))
	must(t, server.Deliver(t.Context()))
	o.want("answer/2 answer/3")
	must(t, server.Deliver(t.Context()))
	o.want("answer/2 answer/3")
}

// A service that fails is tried again, later each time, and after as long as it asks for.
func TestRetries(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := o.server()
	o.set(question(1))
	after := ""
	o.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "closed\nfor /hooks/s3cret") // the test counts requests
	}
	due := noon
	for i, pause := range []time.Duration{30 * time.Second, time.Minute, 10 * time.Minute, 4 * time.Minute} {
		after = ""
		if i == 2 {
			after = "600"
		}
		o.at(due)
		must(t, server.Deliver(t.Context()))
		must(t, o.server().Deliver(t.Context())) // a restart is no reason to try sooner
		if o.requests != i+1 {
			t.Fatalf("after %s there are %d requests, want %d", due, o.requests, i+1)
		}
		due = due.Add(pause)
		o.at(due.Add(-time.Second))
		must(t, server.Deliver(t.Context()))
		if o.requests != i+1 {
			t.Fatalf("the attempt after number %d came too soon", i+1)
		}
	}
	if problem, err := Problem(t.Context(), o.store, "team"); err != nil || !strings.Contains(problem, "HTTP 503") {
		t.Errorf("the pages say %q, %v", problem, err)
	}
	o.set(question(1), question(2)) // what is new waits with the rest
	must(t, server.Deliver(t.Context()))
	if o.requests != 4 {
		t.Errorf("a new need led to a request to a service that wants to be left alone")
	}
	known, err := o.store.ListNotifications(t.Context(), "team")
	must(t, err)
	if !strings.Contains(known[0].Problem, "HTTP 503: closed") || strings.ContainsAny(known[0].Problem, "\n") || strings.Contains(known[0].Problem, "s3cret") {
		t.Errorf("what is wrong is %q", known[0].Problem)
	}
	o.answer = nil
	o.at(due)
	must(t, server.Deliver(t.Context()))
	must(t, server.Deliver(t.Context()))
	o.want("answer/1 answer/2")
	if problem, err := Problem(t.Context(), o.store, "team"); err != nil || problem != "" {
		t.Errorf("the pages still say %q, %v", problem, err)
	}
	o.set(task.Need{Key: "server/notifications", Kind: task.NeedServer, Subject: FaultName})
	must(t, server.Deliver(t.Context()))
	o.want("answer/1 answer/2")
	if pauseAfter(1000, io.EOF) != longestPause {
		t.Error("the pause grows without an end")
	}
}

// A target is told of the kinds that it wants, and one that fails does not keep others
// waiting.
func TestTargetsApart(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.set(question(1), task.Need{Key: "pause/x", Kind: task.NeedPause, Reason: task.ReasonAllPaused, Subject: "alice"})
	only := o.target()
	only.Kinds = []task.NeedKind{task.NeedPause}
	broken := o.target()
	broken.Name, broken.URL = "broken", "http://127.0.0.1:1/s3cret"
	server := o.server(func(options *Options) { options.Targets = []Target{broken, only} })
	must(t, server.Deliver(t.Context()))
	o.want("pause/x")
	known, err := o.store.ListNotifications(t.Context(), "broken")
	must(t, err)
	if len(known) != 2 || known[0].Problem == "" || strings.Contains(known[0].Problem+o.log.String(), "s3cret") {
		t.Errorf("remembered %+v, logged %s", known, o.log)
	}
}

// A failure of many tasks at once is one message that says how many there are.
func TestManyNeeds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var needs []task.Need
	for i := range int64(300) {
		needs = append(needs, question(i))
	}
	o.set(needs...)
	must(t, o.server().Deliver(t.Context()))
	if len(o.received) != 1 || o.received[0].Count != 300 || len(o.received[0].Needs) != mostNeeds {
		t.Errorf("%d messages", len(o.received))
	}
}

// A text that a service refuses keeps nobody from being told: it is left out.
func TestRefusedText(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		o := newOffice(t)
		bad := question(1)
		bad.Task.Title = "unspeakable"
		o.answer = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(body), "unspeakable") || strings.Contains(string(body), "Which oil?") {
				w.WriteHeader(status)
				return
			}
			var message format.Message
			must(t, json.Unmarshal(body, &message))
			o.received = append(o.received, message)
		}
		server := o.server()
		o.set(bad, task.Need{Key: "pause/operator/1", Kind: task.NeedPause, Reason: task.ReasonAllPaused, Subject: "operator", By: "unspeakable"})
		must(t, server.Deliver(t.Context()))
		must(t, server.Deliver(t.Context()))
		o.want("answer/1 pause/operator/1")
		if told := o.received[0].Needs[0]; told.URL != "https://toryo.example.com/tasks/t1" || !strings.Contains(told.What, "board:team/app#1") || !strings.Contains(told.Detail, "left out") {
			t.Errorf("told %+v", told)
		}
	}
	o := newOffice(t)
	o.set(question(1))
	o.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	must(t, o.server().Deliver(t.Context()))
	if o.requests != 1 {
		t.Errorf("a service that has enough got %d requests", o.requests)
	}
}

// A message that is sent again has the id that it had, and another message another.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var ids []string
	o.answer = func(w http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("Webhook-Id"))
		w.WriteHeader(http.StatusGatewayTimeout)
	}
	server := o.server(func(options *Options) { options.Targets[0].Secret = "known to both" })
	now := noon
	for range 3 {
		o.at(now)
		o.set(question(1), question(2))
		must(t, server.Deliver(t.Context()))
		now = now.Add(10 * time.Minute)
	}
	o.at(now)
	o.set(question(1), question(2), question(3))
	must(t, server.Deliver(t.Context()))
	if len(ids) != 4 || ids[0] == "" || ids[0] != ids[1] || ids[0] != ids[2] || ids[0] == ids[3] {
		t.Errorf("the ids are %q", ids)
	}
}

// Nothing is listed while nothing happens.
func TestNothingHappens(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	listed, happened := 0, int64(7)
	server := o.server(func(options *Options) {
		needs := options.Needs
		options.Needs = func(ctx context.Context) ([]task.Need, bool, error) {
			listed++
			return needs(ctx)
		}
		options.Happened = func() int64 { return happened }
	})
	for range 3 {
		must(t, server.Deliver(t.Context()))
	}
	happened++
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(lookAnyway))
	must(t, server.Deliver(t.Context()))
	if listed != 3 {
		t.Errorf("it was listed %d times", listed)
	}
}
