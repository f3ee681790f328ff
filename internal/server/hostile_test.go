package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// ask sends a request as it is and returns the code of the problem, "" if there
// is none.
func (w *workshop) ask(t *testing.T, method, path, token string, body io.Reader) task.Code {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.web.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := w.web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var problem wire.Problem
	if answer.StatusCode >= 400 {
		if answer.Header.Get("Content-Type") != wire.ProblemType {
			t.Errorf("%s %s answers %q", method, path, answer.Header.Get("Content-Type"))
		}
		if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
	}
	return task.Code(problem.Code)
}

// hold claims a task under a token of the test's own.
func (w *workshop) hold(t *testing.T, id task.ID) string {
	t.Helper()
	is, err := w.store.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	token := access.NewLeaseToken(id, is.Generation)
	held, err := w.store.Claim(t.Context(), []store.Claim{{
		Task: id, Generation: is.Generation, Agent: "a1", TokenHash: access.Hash(token), ExpiresAt: w.now().Add(time.Minute),
	}}, nil)
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}
	return token
}

var runRequests = []struct{ method, path, body string }{
	{http.MethodPost, "heartbeat", `{}`},
	{http.MethodPost, "events", `{"entries":[]}`},
	{http.MethodGet, "journal", ``},
	{http.MethodGet, "signals", ``},
	{http.MethodPost, "progress", `{"text":"x"}`},
	{http.MethodPost, "comments", `{"name":"n","text":"x"}`},
	{http.MethodPost, "pull", `{"branch":"b","commit":"c","base":"main","title":"t","body":""}`},
	{http.MethodPost, "result", `{"outcome":"done"}`},
	{http.MethodPost, "spend", `{"tokens":1,"money":0}`},
	{http.MethodPut, "spend", `{"reservation":"r","tokens":1,"money":0}`},
}

// Nothing about a run is open to anyone but whoever holds its lease.
func TestOnlyTheHolderIsHeard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		mine, other, over := w.issue(t, "mine"), w.issue(t, "another's"), w.issue(t, "over")
		w.hold(t, mine.ID)
		others, replayed := w.hold(t, other.ID), w.hold(t, over.ID)
		if _, err := database.Move(t.Context(), store.Change{Task: over.ID, Trigger: task.Lost, Reason: task.ReasonLeaseExpired}); err != nil {
			t.Fatal(err)
		}
		for _, r := range runRequests {
			for _, c := range []struct {
				who, token string
				of         task.ID
				want       task.Code
			}{
				{"nobody", "", mine.ID, task.Unauthorized},
				{"an agent with its own token", w.token(t, access.Agent), mine.ID, task.LeaseLost},
				{"an administrator", w.token(t, access.Admin), mine.ID, task.LeaseLost},
				{"the holder of another task", others, mine.ID, task.Forbidden},
				{"someone who guesses", access.NewLeaseToken(mine.ID, mine.Generation), mine.ID, task.LeaseLost},
				{"someone who guesses the generation", access.NewLeaseToken(mine.ID, 99), mine.ID, task.LeaseLost},
				{"who held it before", replayed, over.ID, task.LeaseLost},
				{"a lease of nothing", access.NewLeaseToken("nothing", 1), "nothing", task.LeaseLost},
			} {
				code := w.ask(t, r.method, "/v1/tasks/"+string(c.of)+"/"+r.path, c.token, strings.NewReader(r.body))
				if code != c.want {
					t.Errorf("%s %s as %s: %q, want %q", r.method, r.path, c.who, code, c.want)
				}
			}
		}
		for _, id := range []task.ID{mine.ID, other.ID} {
			w.wantState(t, id, task.Running, task.ReasonClaimed)
		}
	})
}

// An agent whose token was revoked is told so whatever it says about what it held,
// and the task goes to another.
func TestRevokedAgentIsNotHeard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "mine")
		lease := w.hold(t, made.ID) // as a1
		token, err := database.AddToken(t.Context(), store.Token{Name: "a1", Role: string(access.Agent), Hash: []byte("h")})
		if err != nil {
			t.Fatal(err)
		}
		if code := w.ask(t, http.MethodPost, "/v1/tasks/"+string(made.ID)+"/heartbeat", lease, strings.NewReader(`{}`)); code != "" {
			t.Fatalf("a heartbeat is answered with %q", code)
		}
		if err := database.RevokeToken(t.Context(), token.ID, w.now()); err != nil {
			t.Fatal(err)
		}
		for _, r := range runRequests {
			if code := w.ask(t, r.method, "/v1/tasks/"+string(made.ID)+"/"+r.path, lease, strings.NewReader(r.body)); code != task.LeaseLost {
				t.Errorf("%s %s: %q", r.method, r.path, code)
			}
		}
		expiry := &broker.Expiry{
			Leases: database, Tasks: database, MaxAttempts: 3, Labels: func(task.Forge) task.LabelNames { return task.DefaultLabelNames() },
			Now: w.now, OutboxChanged: func() {}, Log: slog.New(slog.DiscardHandler),
		}
		if err := expiry.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Queued, task.ReasonLeaseExpired)
		w.hold(t, made.ID)
	})
}

// Everyone is answered as often as agreed, and no more: by token, by address, and
// where secrets could be guessed.
func TestTooOften(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLimits(Limits{PerToken: 2, PerAddress: 5}, func() time.Time { return now })
	takes := func(a *limit.Rate, name string) (count int) {
		for range 1000 {
			if a.Allow(name, now) {
				count++
			}
		}
		return count
	}
	for _, c := range []struct {
		what string
		of   *limit.Rate
		want int
	}{{"one token", l.tokens, 2 * burst}, {"one address", l.addresses, 5 * burst}, {"secrets", l.signIns, signInsPerMinute}} {
		if got := takes(c.of, "a"); got != c.want {
			t.Errorf("%s: %d requests at once are answered, want %d", c.what, got, c.want)
		}
		if got := takes(c.of, "b"); got != c.want {
			t.Errorf("%s: another has %d, want %d", c.what, got, c.want)
		}
	}
	now = now.Add(time.Second)
	if got := takes(l.tokens, "a"); got != 2 {
		t.Errorf("a second later %d more are answered, want 2", got)
	}
	if unlimited := newLimits(Limits{}, time.Now); takes(unlimited.tokens, "a") != 1000 {
		t.Error("without a limit there is one")
	}
	for remote, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7", "[2001:db8::1]:1": "2001:db8::/64", "[2001:db8::ffff:2]:9": "2001:db8::/64", "[::ffff:192.0.2.7]:1": "192.0.2.7",
		"[fe80::1%eth0]:1": "fe80::/64", "nonsense": "nonsense",
	} {
		if got := access.Network(remote); got != want {
			t.Errorf("%s counts as %s, want %s", remote, got, want)
		}
	}
}

// Over HTTP, whoever asks too often is told when to come back, and others are not
// in the way of it.
func TestTooOftenOverHTTP(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{limits: Limits{PerToken: 0.001}})
	token := w.token(t, access.Viewer)
	refused := 0
	for range 20 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.web.URL+"/v1/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := w.web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		switch {
		case answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "":
			refused++
		case answer.StatusCode != http.StatusOK:
			t.Errorf("answered with %s", answer.Status)
		}
	}
	if refused != 19 {
		t.Errorf("%d of 20 requests are refused, want 19", refused)
	}
	if code := w.ask(t, http.MethodGet, "/v1/tasks", w.token(t, access.Viewer), nil); code != "" {
		t.Errorf("another is told %q", code)
	}
}

// A journal is kept in order, whatever comes.
func TestReportsOutOfOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, _ := w.claim(t, made.ID)
		note := func(sequence int64) wire.Entry {
			return entry(sequence, task.NoteTaken, fmt.Sprintf(`{"text":"%d"}`, sequence))
		}
		for _, c := range []struct {
			what    string
			entries []wire.Entry
			acks    int64
			want    task.Code
		}{
			{"a gap at the start", []wire.Entry{note(2)}, 0, task.Conflict},
			{"the first", []wire.Entry{note(1), note(2)}, 2, ""},
			{"the same again", []wire.Entry{note(1), note(2)}, 2, ""},
			{"overlapping", []wire.Entry{note(2), note(3)}, 3, ""},
			{"backwards", []wire.Entry{note(5), note(4)}, 0, task.Invalid},
			{"with a gap inside", []wire.Entry{note(4), note(6)}, 0, task.Invalid},
			{"twice in one", []wire.Entry{note(4), note(4)}, 0, task.Invalid},
			{"a move of the task", []wire.Entry{entry(4, task.StateChanged, `{"trigger":"finished"}`)}, 0, task.Invalid},
			{"a kind that is not", []wire.Entry{entry(4, "gossip", `{}`)}, 0, task.Invalid},
			{"a phase that is not", []wire.Entry{entry(4, task.PhaseChanged, `{"phase":"lunch"}`)}, 0, task.Invalid},
			{"number zero", []wire.Entry{note(0)}, 0, task.Invalid},
			{"nothing", nil, 3, ""},
		} {
			reported, err := held.Report(t.Context(), c.entries)
			if task.CodeOf(err) != c.want || reported.Acknowledged != c.acks {
				t.Errorf("%s: acknowledged %d, %v; want %d, %q", c.what, reported.Acknowledged, err, c.acks, c.want)
			}
		}
		journal, err := held.Journal(t.Context(), 3, 100) // after what the server wrote
		if err != nil || len(journal.Events) != 3 {
			t.Fatalf("the journal is %+v, %v", journal, err)
		}
		for i, event := range journal.Events {
			if string(event.Data) != fmt.Sprintf(`{"text":"%d"}`, i+1) || event.Position != int64(i+4) {
				t.Errorf("entry %d is %+v", i+1, event)
			}
		}
	})
}

// endless is a body without end. It may still be read when the answer is there.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	if e.sent.Add(int64(len(p))) > 1<<30 {
		return 0, io.EOF
	}
	return len(p), nil
}

// A gigabyte is not read, and entries that are too large or too many are refused.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	token := w.hold(t, made.ID)
	body := &endless{}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.web.URL+"/v1/tasks/"+string(made.ID)+"/events", io.MultiReader(strings.NewReader(`{"entries":[{"data":"`), body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := w.web.Client().Do(request)
	if err == nil { // or the connection is cut
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a gigabyte is answered with %s", answer.Status)
		}
	}
	if sent := body.sent.Load(); sent > 100<<20 {
		t.Errorf("%d MB were read", sent>>20)
	}
	client := &wire.Client{Server: w.web.URL, HTTP: w.web.Client()}
	held := client.Run(&wire.Assignment{TaskID: string(made.ID), Lease: wire.Lease{Token: token}})
	large := entry(1, task.NoteTaken, `"`+strings.Repeat("x", 5<<20)+`"`)
	if _, err := held.Report(t.Context(), []wire.Entry{large}); task.CodeOf(err) != task.TooLarge {
		t.Errorf("an entry of 5 MB: %v", err)
	}
	var many []wire.Entry
	for i := range 1001 {
		many = append(many, entry(int64(i+1), task.NoteTaken, `{}`))
	}
	if _, err := held.Report(t.Context(), many); task.CodeOf(err) != task.TooLarge {
		t.Errorf("1001 entries: %v", err)
	}
	if err := held.Progress(t.Context(), strings.Repeat("x", 200_001)); task.CodeOf(err) != task.TooLarge {
		t.Errorf("a progress comment of 200001 bytes: %v", err)
	}
	if _, err := held.Report(t.Context(), many[:1]); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// Someone who asks for a large journal and never reads it does not hold the server
// up, and is given up in the end.
func TestCallerWhoNeverReads(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{patience: 2 * time.Second})
	made := w.issue(t, "Fix the gate")
	token := w.hold(t, made.ID)
	client := &wire.Client{Server: w.web.URL, HTTP: w.web.Client()}
	held := client.Run(&wire.Assignment{TaskID: string(made.ID), Lease: wire.Lease{Token: token}})
	for i := range 8 {
		if _, err := held.Report(t.Context(), []wire.Entry{entry(int64(i+1), task.NoteTaken, `"`+strings.Repeat("x", 3<<20)+`"`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := held.Renew(t.Context()); err != nil { // a busy machine takes seconds for each
			t.Fatal(err)
		}
	}
	address, err := url.Parse(w.web.URL)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := fmt.Fprintf(connection, "GET /v1/tasks/%s/journal HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", made.ID, token); err != nil {
		t.Fatal(err)
	}
	for given := false; !given; { // others are served until it is given up
		if _, err := held.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		given = strings.Contains(w.logged.String(), "/journal status=200")
	}
	// The answer breaks off: we read what fitted into the buffers, and no more.
	buffer := make([]byte, 1<<20)
	for total := 0; ; {
		n, err := connection.Read(buffer)
		if total += n; err != nil {
			if total >= 8*3<<20 {
				t.Errorf("all %d bytes were sent to someone who does not read", total)
			}
			return
		}
	}
}

// The journal of a task is followed as it grows, and again from where it was.
func TestFollowingAJournal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, _ := w.claim(t, made.ID)
		viewer := w.client(w.token(t, access.Viewer))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := make(chan wire.Event, 10)
		ended := make(chan int64, 1)
		go func() {
			last, err := viewer.Follow(ctx, made.ID, 1, func(e wire.Event) error { seen <- e; return nil })
			if err == nil {
				t.Error("following ends without an error")
			}
			ended <- last
		}()
		if e := <-seen; e.Position != 2 || e.Kind != string(task.StateChanged) {
			t.Errorf("first comes %+v", e)
		}
		if e := <-seen; e.Position != 3 || e.Kind != string(task.Requested) {
			t.Errorf("second comes %+v", e)
		}
		if _, err := held.Report(t.Context(), []wire.Entry{entry(1, task.NoteTaken, `{"text":"a\nb"}`)}); err != nil {
			t.Fatal(err)
		}
		if e := <-seen; e.Position != 4 || string(e.Data) != `{"text":"a\nb"}` {
			t.Errorf("then comes %+v", e)
		}
		cancel()
		if last := <-ended; last != 4 {
			t.Errorf("it would go on after %d", last)
		}
		for token, want := range map[string]task.Code{w.token(t, access.Agent): task.Forbidden, "": task.Unauthorized} {
			if code := w.ask(t, http.MethodGet, "/v1/tasks/"+string(made.ID)+"/events/stream", token, nil); code != want {
				t.Errorf("%q follows: %q", token, code)
			}
		}
		if _, err := viewer.Follow(t.Context(), "nothing", 0, nil); task.CodeOf(err) != task.NotFound {
			t.Errorf("a task that is not there: %v", err)
		}
	})
}

// Server-sent events are as browsers want them.
func TestStreamAsBrowsersReadIt(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.web.URL+"/v1/tasks/"+string(made.ID)+"/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.token(t, access.Viewer))
	answer, err := w.web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("it is %q", got)
	}
	lines := bufio.NewScanner(answer.Body)
	var read []string
	for len(read) < 4 && lines.Scan() {
		read = append(read, lines.Text())
	}
	if read[0] != "id: 1" || read[1] != "event: state" || !strings.HasPrefix(read[2], `data: {"position":1`) || read[3] != "" {
		t.Errorf("it begins with %q", read)
	}
}

// What an agent spends is its own task's, within the budget.
func TestSpending(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	one, two := w.issue(t, "one"), w.issue(t, "two")
	heldOne, _ := w.claim(t, one.ID)
	heldTwo, _ := w.claim(t, two.ID)
	reserved, err := heldOne.Reserve(t.Context(), wire.Spend{Tokens: 900})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := heldOne.Reserve(t.Context(), wire.Spend{Tokens: 200}); task.CodeOf(err) != task.OverBudget {
		t.Errorf("over the budget: %v", err)
	}
	if err := heldTwo.Settle(t.Context(), wire.Settlement{Reservation: reserved.ID}); task.CodeOf(err) != task.NotFound {
		t.Errorf("settling another's call: %v", err)
	}
	if err := heldOne.Settle(t.Context(), wire.Settlement{Reservation: reserved.ID, Tokens: 100}); err != nil {
		t.Fatal(err)
	}
	if _, err := heldOne.Reserve(t.Context(), wire.Spend{Tokens: 900}); err != nil {
		t.Errorf("what was not used is free again: %v", err)
	}
	if code := w.ask(t, http.MethodPost, "/v1/tasks/"+string(one.ID)+"/spend", "", bytes.NewReader([]byte(`{"tokens":-1,"money":0}`))); code != task.Unauthorized {
		t.Errorf("without a token: %q", code)
	}
}
