package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxHeld is how much of an answer is held in memory, to see whether it comes
// whole. The rest of a larger one is passed on as it comes, and is not kept.
const maxHeld = 8 << 20

// read does a GET, with what is kept of an earlier answer to it, and again if it
// fails for now.
func (t *Transport) read(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	key := t.cacheKey(request)
	kept, found := t.kept(ctx, key)
	conditional := request
	if found {
		conditional = kept.condition(request)
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = t.options.LongestWait
	for try := 1; ; try++ {
		answer, whole, err := t.readOnce(conditional)
		if found && err == nil && answer.StatusCode == http.StatusNotModified {
			return kept.response(request, answer), nil
		}
		pause, again := pauseAfter(t.options.Clock.Now(), answer, err, pauses)
		if again && ctx.Err() != nil {
			discard(answer)
			return nil, ctx.Err()
		}
		if again && try < t.options.Tries && t.hasTime(ctx, pause) {
			discard(answer)
			if err := t.wait(ctx, pause); err != nil {
				return nil, err
			}
			t.counter.repeats.Add(1)
			continue
		}
		if err == nil && whole != nil {
			t.keep(ctx, key, answer, whole)
		}
		return answer, err
	}
}

// discard closes an answer that nobody will read: one that is too large to be held
// still has its connection. There is none after a request that failed.
func discard(answer *http.Response) {
	if answer != nil {
		_ = answer.Body.Close()
	}
}

// readOnce does a GET and reads the answer, so that one that breaks off is a
// failure here. Whole is the body, or nil if it is too large to be held.
func (t *Transport) readOnce(request *http.Request) (answer *http.Response, whole []byte, err error) {
	answer, err = t.ask(request, false)
	if err != nil {
		return nil, nil, err
	}
	held, err := io.ReadAll(io.LimitReader(answer.Body, maxHeld+1))
	if err != nil {
		_ = answer.Body.Close()
		t.counter.failed.Add(1)
		return nil, nil, err
	}
	if len(held) > maxHeld {
		answer.Body = rejoined{io.MultiReader(bytes.NewReader(held), answer.Body), answer.Body}
		return answer, nil, nil
	}
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(held))
	if held == nil {
		held = []byte{}
	}
	return answer, held, nil
}

// pauseAfter says whether a GET may be asked again after this outcome, and when.
func pauseAfter(now time.Time, answer *http.Response, err error, pauses backoff.BackOff) (time.Duration, bool) {
	pause := pauses.NextBackOff()
	if err != nil {
		return pause, task.CodeOf(forge.Call{What: "read"}.Failure(nil, err)) == task.Unavailable
	}
	if limited(answer) {
		wait := retryAfter(now, answer.Header)
		if left, known := quotaOf(now, answer.Header); wait == 0 && known && left.remaining == 0 {
			wait = left.reset.Sub(now)
		}
		// The random part keeps many from coming back in the same moment.
		return wait + pause, true
	}
	switch answer.StatusCode {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return pause, true
	}
	return 0, false
}

// hasTime reports whether the pause is one that the request can bear. Contexts go
// by the real time, whatever our clock says.
func (t *Transport) hasTime(ctx context.Context, pause time.Duration) bool {
	if pause > t.options.LongestWait {
		return false
	}
	deadline, ends := ctx.Deadline()
	return !ends || pause < time.Until(deadline)
}
