package forgetest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fault answers one request in place of the forge, to which forward leads.
type Fault = func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// Proxy is between the adapter and its forge and makes requests fail.
type Proxy interface {
	// Next plans a fault for the next request with the method whose path contains
	// the part.
	Next(method, part string, fault Fault)
	// Left returns how many planned faults have not happened.
	Left() int
}

// Faults are the failures that a proxy can make.
type Faults struct {
	Answer    func(status int, header map[string]string, body string) Fault
	FailAfter func(status int) Fault
	CutBefore Fault // the forge does not see the request
	CutAfter  Fault // the forge does it, the answer is lost
	CutWithin Fault // half of the answer is lost
	HalfJSON  Fault // half of the answer is given as all
	Hang      Fault
}

// Paths are parts of the paths of an adapter's requests.
type Paths struct {
	Item     string // of reading an issue
	Comments string // of reading and writing comments
	Pulls    string // of opening a pull request
}

// RunFaults tests what an adapter that uses HTTP does when requests fail. The
// fixture's forge has to go through the proxy, and the proxy must be used by
// nothing else; the tests run one after the other.
func RunFaults(t *testing.T, fixture Fixture, proxy Proxy, faults Faults, paths Paths) {
	name := fixture.Repository(t)
	author := fixture.Person(t, name, forge.WriteAccess)
	bad := &faultSuite{fixture, proxy, faults, paths, name, author}
	t.Run("Reading", bad.reading)
	t.Run("Writing", bad.writing)
	t.Run("LostComment", bad.lostComment)
	t.Run("LostPull", bad.lostPull)
	t.Run("LostReview", bad.lostReview)
	t.Run("Hanging", bad.hanging)
	t.Run("TooLarge", bad.tooLarge)
	if left := proxy.Left(); left != 0 {
		t.Errorf("%d faults did not happen: the paths do not fit the adapter's requests", left)
	}
}

type faultSuite struct {
	Fixture
	proxy      Proxy
	faults     Faults
	paths      Paths
	repository string
	author     string
}

type faultCase struct {
	name      string
	fault     Fault
	code      task.Code
	wait      time.Duration
	sentAgain bool // whether the HTTP client may send it again
}

func (b *faultSuite) answers() []faultCase {
	type header = map[string]string
	const json = `{"message":"no"}`
	answer := b.faults.Answer
	return []faultCase{
		{"401", answer(401, nil, json), task.Unauthorized, 0, false},
		{"403", answer(403, nil, json), task.Forbidden, 0, false},
		{"403 with a limit", answer(403, header{"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "5000", "Retry-After": "7"}, json), task.Unavailable, 7 * time.Second, false},
		{"429", answer(429, header{"Retry-After": "9"}, json), task.Unavailable, 9 * time.Second, false},
		{"404", answer(404, nil, json), task.NotFound, 0, false},
		{"410", answer(410, nil, json), task.NotFound, 0, false},
		{"409", answer(409, nil, json), task.Conflict, 0, false},
		{"422", answer(422, nil, json), task.Invalid, 0, false},
		{"500", answer(500, nil, json), task.Unavailable, 0, false},
		{"502 with a page", answer(502, nil, "<html>Bad gateway"), task.Unavailable, 0, false},
		{"503 with a time", answer(503, header{"Retry-After": "11"}, ""), task.Unavailable, 11 * time.Second, false},
		{"a page instead of an answer", answer(200, header{"Content-Type": "text/html"}, "<html>Welcome"), task.Unavailable, 0, false},
		{"cut before", b.faults.CutBefore, task.Unavailable, 0, true},
		{"cut within", b.faults.CutWithin, task.Unavailable, 0, false},
		{"half of the answer", b.faults.HalfJSON, task.Unavailable, 0, false},
	}
}

func (b *faultSuite) reading(t *testing.T) {
	key := b.Issue(t, b.repository, b.author, "To be read", "Its text")
	b.Comment(t, key, b.author, "A comment")
	for _, bad := range b.answers() {
		b.proxy.Next(http.MethodGet, b.paths.Item, bad.fault)
		item, err := b.Forge().Item(t.Context(), key)
		b.check(t, bad.name+": Item", bad, false, err, item.Key == key)
		b.proxy.Next(http.MethodGet, b.paths.Comments, bad.fault)
		comments, err := b.Forge().Comments(t.Context(), key)
		b.check(t, bad.name+": Comments", bad, false, err, len(comments) == 1)
	}
	// After all of it the forge is read as if nothing had been.
	if item, err := b.Forge().Item(t.Context(), key); err != nil || item.Body != "Its text" {
		t.Errorf("afterwards: %+v, %v", item, err)
	}
}

func (b *faultSuite) writing(t *testing.T) {
	key := b.Issue(t, b.repository, b.author, "To be written on", "")
	for _, bad := range b.answers() {
		b.proxy.Next(http.MethodPost, b.paths.Comments, bad.fault)
		_, err := b.Forge().CreateComment(t.Context(), key, forge.Post{Text: plain(bad.name)})
		b.check(t, bad.name+": CreateComment", bad, true, err, false)
	}
}

// check looks at the error of a call. Go's HTTP client sends what changes nothing
// a second time by itself when a connection that it had used before is cut: then
// the call is right with a whole answer and no error.
func (b *faultSuite) check(t *testing.T, name string, bad faultCase, write bool, err error, whole bool) {
	t.Helper()
	if err == nil && !write && whole && bad.sentAgain {
		return
	}
	if got := task.CodeOf(err); got != bad.code {
		t.Errorf("%s: %v has the code %q, want %q", name, err, got, bad.code)
	}
	if got := forge.RetryAfter(err); got != bad.wait {
		t.Errorf("%s: wait %s, want %s", name, got, bad.wait)
	}
	if err != nil && (len(err.Error()) > 2000 || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%s: the error is %d bytes long or has several lines", name, len(err.Error()))
	}
}

// lostComment loses the answer to a write in every way that there is. Repeated,
// the comment is there once.
func (b *faultSuite) lostComment(t *testing.T) {
	key := b.Issue(t, b.repository, b.author, "To be commented on", "")
	lost := map[string]Fault{
		"cut before": b.faults.CutBefore, "cut after": b.faults.CutAfter, "cut within": b.faults.CutWithin,
		"half of the answer": b.faults.HalfJSON, "500 after": b.faults.FailAfter(500), "504 after": b.faults.FailAfter(504),
	}
	for name, fault := range lost {
		post := forge.Post{Text: plain(name), Marker: forge.MarkerOf(name)}
		b.proxy.Next(http.MethodPost, b.paths.Comments, fault)
		_, err := b.Forge().CreateComment(t.Context(), key, post)
		wantCode(t, err, task.Unavailable)
		post.Repeat = true
		for range 2 {
			if _, err := b.Forge().CreateComment(t.Context(), key, post); err != nil {
				t.Errorf("%s, repeated: %v", name, err)
			}
		}
	}
	comments := must[[]task.Comment](t)(b.Forge().Comments(t.Context(), key))
	times := map[string]int{}
	for _, comment := range comments {
		times[forge.StripMarker(comment.Body)]++
	}
	for name := range lost {
		if times[name] != 1 {
			t.Errorf("%s: the comment is there %d times", name, times[name])
		}
	}
}

func (b *faultSuite) lostPull(t *testing.T) {
	for name, fault := range map[string]Fault{"cut-after": b.faults.CutAfter, "half": b.faults.HalfJSON, "cut-before": b.faults.CutBefore} {
		b.Commit(t, b.repository, name, map[string]string{name: "x\n"})
		post := forge.PullPost{Title: title(name), Head: name, Base: "main"}
		b.proxy.Next(http.MethodPost, b.paths.Pulls, fault)
		_, _, err := b.Forge().OpenPull(t.Context(), b.repository, post)
		wantCode(t, err, task.Unavailable)
		first, _, err := b.Forge().OpenPull(t.Context(), b.repository, post)
		if err != nil {
			t.Errorf("%s, repeated: %v", name, err)
		}
		second, opened, err := b.Forge().OpenPull(t.Context(), b.repository, post)
		if err != nil || opened || second.Key != first.Key {
			t.Errorf("%s: opened %s, then %s (%v, %v)", name, first.Key, second.Key, opened, err)
		}
	}
}

func (b *faultSuite) lostReview(t *testing.T) {
	b.Commit(t, b.repository, "reviewed", map[string]string{"reviewed": "x\n"})
	key := b.Pull(t, b.repository, b.author, "reviewed", "main", "To be reviewed", "")
	post := forge.ReviewPost{
		Verdict: forge.Remark, Text: plain("Once."), Marker: forge.MarkerOf("lost review"),
		Comments: []forge.LineComment{{Anchor: forge.Anchor{Path: "reviewed", Side: forge.NewSide, Line: 1}, Text: plain("Here.")}},
	}
	// Whatever requests the adapter makes, the answer to the last one is lost
	// first, so that nothing of the review is missing on the forge.
	b.proxy.Next(http.MethodPost, b.paths.Pulls, b.faults.CutAfter)
	_, err := b.Forge().SubmitReview(t.Context(), key, post)
	wantCode(t, err, task.Unavailable)
	post.Repeat = true
	for range 2 {
		must[forge.Review](t)(b.Forge().SubmitReview(t.Context(), key, post))
	}
	threads := must[[]forge.ReviewThread](t)(b.Forge().ReviewThreads(t.Context(), key))
	if got := len(forge.ReviewComments(threads)); got != 1 {
		t.Errorf("the comment on the line is there %d times", got)
	}
	reviews := must[[]forge.Review](t)(b.Forge().Reviews(t.Context(), key))
	if len(reviews) != 1 {
		t.Errorf("the review is there %d times", len(reviews))
	}
}

func (b *faultSuite) hanging(t *testing.T) {
	key := b.Issue(t, b.repository, b.author, "To be waited for", "")
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan struct{})
	b.proxy.Next(http.MethodGet, b.paths.Item, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		close(arrived)
		b.faults.Hang(w, r, forward)
	})
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := b.Forge().Item(ctx, key); err == nil || ctx.Err() == nil {
		t.Errorf("a forge that hangs: %v", err)
	}
}

func (b *faultSuite) tooLarge(t *testing.T) {
	key := b.Issue(t, b.repository, b.author, "To be flooded", "")
	b.proxy.Next(http.MethodGet, b.paths.Item, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range forge.MaxResponse>>20 + 2 {
			if _, err := w.Write(chunk); err != nil {
				return // the adapter has had enough
			}
		}
	})
	_, err := b.Forge().Item(t.Context(), key)
	wantCode(t, err, task.TooLarge)
}
