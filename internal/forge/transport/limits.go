package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// longestPause is the longest that a forge can make us pause: no forge has
// windows longer than an hour, and a wrong clock must not stop us for days.
const longestPause = time.Hour

// secondaryPause is how long to wait when a secondary limit is reached and the
// forge does not say how long. GitHub asks for a minute at least.
const secondaryPause = time.Minute

// gate knows until when the forge does not want to be asked.
type gate struct {
	mu     sync.Mutex
	closed time.Time // for everything, until then
	quotas map[string]quota
}

// quota is what is left of one of the forge's quotas.
type quota struct {
	remaining int
	reset     time.Time
}

// wait returns how long to wait before a request to the resource, if so much of
// the quota is to be left over.
func (g *gate) wait(now time.Time, resource string, reserve int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.closed.Sub(now)
	if quota, known := g.quotas[resource]; known && quota.remaining <= reserve {
		wait = max(wait, quota.reset.Sub(now))
	}
	return max(0, wait)
}

// learn reads the headers of an answer. It returns how long the forge wants us to
// wait, if the answer is a refusal for that reason.
func (g *gate) learn(now time.Time, resource string, answer *http.Response) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, known := quotaOf(now, answer.Header)
	if known {
		if g.quotas == nil {
			g.quotas = map[string]quota{}
		}
		g.quotas[resource] = left
	}
	if !limited(answer) {
		return 0
	}
	if wait := retryAfter(now, answer.Header); wait > 0 {
		if until := now.Add(wait); until.After(g.closed) {
			g.closed = until
		}
		return wait
	}
	if known && left.remaining == 0 {
		return left.reset.Sub(now)
	}
	return 0
}

// limited reports whether the forge refused because of too many requests, or
// asked for a pause in which it is being worked on.
func limited(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-Ratelimit-Remaining") == "0"
	case http.StatusServiceUnavailable:
		return answer.Header.Get("Retry-After") != ""
	}
	return false
}

// quotaOf reads GitHub's X-RateLimit-* and GitLab's RateLimit-* headers.
func quotaOf(now time.Time, header http.Header) (quota, bool) {
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		remaining, err := strconv.Atoi(header.Get(prefix + "Remaining"))
		if err != nil || remaining < 0 {
			continue
		}
		reset, err := strconv.ParseInt(header.Get(prefix+"Reset"), 10, 64)
		if err != nil {
			continue
		}
		return quota{remaining, now.Add(untilReset(now, reset, header))}, true
	}
	return quota{}, false
}

// untilReset reads a moment in Unix time, by the forge's own clock if it told it,
// or a number of seconds.
func untilReset(now time.Time, reset int64, header http.Header) time.Duration {
	const earliestMoment = 1_000_000_000 // 2001
	if reset < earliestMoment {
		return clamp(time.Duration(min(max(reset, 0), int64(longestPause/time.Second))) * time.Second)
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return clamp(time.Unix(reset, 0).Sub(now))
}

// retryAfter reads Retry-After, in seconds or as a date.
func retryAfter(now time.Time, header http.Header) time.Duration {
	after := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(after, 10, 64); err == nil {
		return clamp(time.Duration(min(max(seconds, 0), int64(longestPause/time.Second))) * time.Second)
	}
	if date, err := http.ParseTime(after); err == nil {
		return clamp(date.Sub(now))
	}
	return 0
}

func clamp(d time.Duration) time.Duration { return max(0, min(d, longestPause)) }

// markSecondaryLimit gives an answer that refuses because of a secondary limit,
// but does not say for how long, the Retry-After that it lacks. Such an answer
// can only be told by its text.
func markSecondaryLimit(answer *http.Response) {
	refused := answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusTooManyRequests
	header := answer.Header
	if !refused || header.Get("Retry-After") != "" || header.Get("X-Ratelimit-Remaining") == "0" {
		return
	}
	const enough = 16 << 10
	start, err := io.ReadAll(io.LimitReader(answer.Body, enough))
	answer.Body = rejoined{io.MultiReader(bytes.NewReader(start), answer.Body), answer.Body}
	if err != nil {
		return // whoever reads the body meets the error again
	}
	text := strings.ToLower(string(start))
	if strings.Contains(text, "secondary rate limit") || strings.Contains(text, "abuse detection") {
		header.Set("Retry-After", strconv.Itoa(int(secondaryPause/time.Second)))
	}
}

// rejoined is a body of which the start was read.
type rejoined struct {
	io.Reader
	io.Closer
}

// resourceOf tells which of GitHub's quotas a request draws from. On other forges
// there is one only, and the names do no harm.
func resourceOf(request *http.Request) string {
	switch path := request.URL.Path; {
	case strings.HasSuffix(path, "/graphql"):
		return "graphql"
	case strings.Contains(path, "/search/"):
		return "search"
	default:
		return "core"
	}
}

// isQuery reports whether a request only reads though it is a POST: a GraphQL
// query.
func isQuery(request *http.Request) bool {
	if resourceOf(request) != "graphql" || request.GetBody == nil {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	var sent struct {
		Query string `json:"query"`
	}
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&sent); err != nil {
		return false
	}
	return !strings.Contains(sent.Query, "mutation")
}
