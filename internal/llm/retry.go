package llm

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// RetryPolicy says how often and for how long a call is tried.
type RetryPolicy struct {
	Tries   uint          // of one call, the first included; 0 means 6
	First   time.Duration // the wait before the second try; 0 means one second
	Longest time.Duration // no wait of ours is longer; 0 means one minute
	Whole   time.Duration // after this no new try begins; 0 means ten minutes
}

func (p RetryPolicy) orDefaults() RetryPolicy {
	if p.Tries == 0 {
		p.Tries = 6
	}
	if p.First == 0 {
		p.First = time.Second
	}
	if p.Longest == 0 {
		p.Longest = time.Minute
	}
	if p.Whole == 0 {
		p.Whole = 10 * time.Minute
	}
	return p
}

// Retrying returns a model that tries a call again when its error says that this
// may go better: with growing waits, or after what the provider asks for. A
// provider that asks for a longer wait than the policy allows ends the call with
// its error.
func Retrying(model Model, policy RetryPolicy, logger *slog.Logger) Model {
	return &retrying{Model: model, policy: policy.orDefaults(), logger: logger}
}

type retrying struct {
	Model
	policy RetryPolicy
	logger *slog.Logger
}

func (r *retrying) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	seen := false
	watched := func(delta Delta) {
		seen = true
		sink.Send(delta)
	}
	return retry(ctx, r, func() (Response, error) {
		if seen {
			sink.Send(Delta{Restart: true})
			seen = false
		}
		return r.Model.Chat(ctx, request, watched)
	})
}

func (r *retrying) CountTokens(ctx context.Context, request Request) (int64, error) {
	return retry(ctx, r, func() (int64, error) { return r.Model.CountTokens(ctx, request) })
}

func retry[T any](ctx context.Context, r *retrying, call func() (T, error)) (T, error) {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval = r.policy.First
	waits.MaxInterval = r.policy.Longest
	result, err := backoff.Retry(ctx, func() (T, error) {
		result, err := call()
		return result, forBackoff(err)
	},
		backoff.WithBackOff(waits),
		backoff.WithMaxTries(r.policy.Tries),
		backoff.WithMaxElapsedTime(r.policy.Whole),
		backoff.WithNotify(func(err error, wait time.Duration) {
			r.logger.WarnContext(ctx, "retrying the model call", "wait", wait, "kind", KindOf(err), "error", plain(err))
		}))
	return result, plain(err)
}

// forBackoff says in the library's words what to do about the error.
func forBackoff(err error) error {
	if err == nil {
		return nil
	}
	var failed *Error
	switch {
	case !errors.As(err, &failed) || !failed.Kind.Retry():
		return backoff.Permanent(err)
	case failed.RetryAfter > 0:
		return errors.Join(failed, &backoff.RetryAfterError{Duration: failed.RetryAfter})
	}
	return err
}

// plain takes the library's words off again.
func plain(err error) error {
	var failed *Error
	var permanent *backoff.PermanentError
	switch {
	case errors.As(err, &failed):
		return failed
	case errors.As(err, &permanent):
		return permanent.Err
	}
	return err
}
