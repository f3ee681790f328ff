package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Kind is what went wrong with a call to a model.
type Kind string

// The kinds of error.
const (
	RateLimited     Kind = "rate_limited"     // too many calls; later is better
	Overloaded      Kind = "overloaded"       // the provider is busy
	ServerFault     Kind = "server_fault"     // the provider failed
	CutStream       Kind = "cut_stream"       // the answer broke off
	TimedOut        Kind = "timed_out"        // the provider was silent for too long
	Unreachable     Kind = "unreachable"      // no connection
	Unauthorized    Kind = "unauthorized"     // the key is wrong or may not do this
	BadRequest      Kind = "bad_request"      // the provider does not accept the request
	UnknownModel    Kind = "unknown_model"    // there is no such model or address
	TooLong         Kind = "too_long"         // the conversation does not fit
	Refused         Kind = "refused"          // the model or a filter declined to answer
	QuotaUsedUp     Kind = "quota_used_up"    // the account has no money left
	BudgetExhausted Kind = "budget_exhausted" // our own limit
	CannotCount     Kind = "cannot_count"     // the provider does not count tokens
	BadAnswer       Kind = "bad_answer"       // the answer is not what the wire format says
)

type kindInfo struct {
	retry bool
	code  task.Code
	words string
	hint  string
}

var kinds = map[Kind]kindInfo{
	RateLimited:     {true, task.Unavailable, "allows no more calls for now", "try again later"},
	Overloaded:      {true, task.Unavailable, "is overloaded", "try again later"},
	ServerFault:     {true, task.Unavailable, "failed", "try again later"},
	CutStream:       {true, task.Unavailable, "broke off its answer", "try again later"},
	TimedOut:        {true, task.Unavailable, "did not answer in time", "try again later"},
	Unreachable:     {true, task.Unavailable, "cannot be reached", "check llm.base_url and the network"},
	BadAnswer:       {true, task.Unavailable, "gave an answer that cannot be read", "check that llm.base_url speaks the provider's protocol"},
	Unauthorized:    {false, task.ProviderError, "does not accept the key", "check the key; toryo config check --print says where it comes from"},
	BadRequest:      {false, task.ProviderError, "does not accept the request", "see whether llm.api, llm.max_tokens, llm.temperature, llm.reasoning and llm.function_calling fit the model"},
	UnknownModel:    {false, task.ProviderError, "does not know the model or the address", "check llm.model and llm.base_url"},
	TooLong:         {false, task.TooLarge, "finds the conversation too long", "lower context_storage.compression_threshold or check llm.context_length"},
	Refused:         {false, task.ProviderError, "refused to answer", "put the request in other words or use another model"},
	QuotaUsedUp:     {false, task.Unavailable, "says that the account's credit is used up", "add credit to the account"},
	BudgetExhausted: {false, task.OverBudget, "was not called: the budget is used up", "raise the budget"},
	CannotCount:     {false, task.Unsupported, "does not count tokens", ""},
}

// Retry reports whether another try may go better.
func (k Kind) Retry() bool { return kinds[k].retry }

// Error is a call that failed.
type Error struct {
	Kind       Kind
	Provider   string
	Model      string        // set by [Wrap]; may be empty
	NoKey      bool          // no key was sent, because none is configured; set by [Wrap]
	Status     int           // of the HTTP answer, 0 when there was none
	Detail     string        // the provider's own words, in one line
	RetryAfter time.Duration // what the provider asks for, 0 when it says nothing
	Usage      Usage         // what was used all the same, as far as it is known
	Hint       string        // what to do, where that is known better than by the kind
	Err        error
}

// NewError makes an error of a kind.
func NewError(kind Kind, provider string, err error) *Error {
	return &Error{Kind: kind, Provider: provider, Err: err}
}

// Error says plainly what happened and what to do.
func (e *Error) Error() string { return e.coded().Error() }

// Unwrap gives the error with its code of package task, and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.coded()}
	}
	return []error{e.coded(), e.Err}
}

func (e *Error) coded() *task.Error {
	info := kinds[e.Kind]
	if e.Kind == Unauthorized && e.NoKey {
		info.code, info.words, info.hint = task.BadConfig, "wants a key, and none is set", "set TORYO_LLM_API_KEY, or llm.api_key_file in toryo.yaml"
	}
	if e.Hint != "" {
		info.hint = e.Hint
	}
	text := e.brief(info.words)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return &task.Error{Code: info.code, Message: text, Hint: info.hint}
}

// brief says what happened without the provider's own words, which may name accounts and
// servers.
func (e *Error) brief(words string) string {
	text := "the model provider " + e.Provider + " " + words
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	return text
}

// KindOf returns the kind of the first [*Error] in the chain, or "".
func KindOf(err error) Kind {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Kind
	}
	return ""
}

// WithUsage records in an [*Error], if it is one, what the call has cost all the
// same.
func WithUsage(err error, usage Usage) error {
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.Usage = usage
	}
	return err
}

const longestDetail = 500

// StatusError makes the error for an HTTP answer that is not a success. Detail is
// what the provider says, type the provider's name for it.
func StatusError(provider string, status int, header http.Header, errorType, detail string, err error) *Error {
	return &Error{
		Kind:       kindOfStatus(status, errorType, detail),
		Provider:   provider,
		Status:     status,
		Detail:     textfmt.Shorten(textfmt.OneLine(detail), longestDetail),
		RetryAfter: retryAfter(header, time.Now()),
		Err:        err,
	}
}

// kindsByName are what providers call their errors, or say in them, whatever the
// status. The order matters: the first that is found decides.
var kindsByName = []struct {
	kind  Kind
	names []string
}{
	// One provider says this with the status 400.
	{Unauthorized, []string{"api_key_invalid", "api key not valid"}},
	{QuotaUsedUp, []string{"insufficient_quota", "billing_error", "credit balance is too low"}},
	{TooLong, []string{"context_length_exceeded", "prompt is too long", "maximum context length", "exceeds the maximum number of tokens", "request_too_large"}},
	{Refused, []string{"content_filter", "content_policy_violation"}},
	{Overloaded, []string{"overloaded_error"}},
	{RateLimited, []string{"rate_limit_error", "rate_limit_exceeded"}},
}

var kindsByStatus = map[int]Kind{
	http.StatusUnauthorized:          Unauthorized,
	http.StatusPaymentRequired:       QuotaUsedUp,
	http.StatusForbidden:             Unauthorized,
	http.StatusNotFound:              UnknownModel,
	http.StatusRequestTimeout:        TimedOut,
	http.StatusConflict:              ServerFault,
	http.StatusRequestEntityTooLarge: TooLong,
	http.StatusFailedDependency:      ServerFault, // the model behind the provider's server failed
	http.StatusTooManyRequests:       RateLimited,
	http.StatusServiceUnavailable:    Overloaded,
	http.StatusGatewayTimeout:        TimedOut,
	529:                              Overloaded,
}

func kindOfStatus(status int, errorType, detail string) Kind {
	about := strings.ToLower(errorType + " " + detail)
	for _, named := range kindsByName {
		if contains(about, named.names...) {
			return named.kind
		}
	}
	if kind, known := kindsByStatus[status]; known {
		return kind
	}
	if status >= 500 || status >= 200 && status < 300 {
		return ServerFault // also an error inside a stream that had begun well
	}
	return BadRequest
}

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// retryAfter reads the headers by which providers say how long to wait.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if text := header.Get("Retry-After-Ms"); text != "" {
		if ms, err := strconv.ParseFloat(text, 64); err == nil && ms > 0 {
			return time.Duration(ms * float64(time.Millisecond))
		}
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// ConnectionError makes the error for a call that had no HTTP answer, or whose
// answer broke off (begun) or cannot be read. A context that has ended wins over everything else:
// its error is returned as it is.
func ConnectionError(ctx context.Context, provider string, begun bool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if unreadable, ok := errors.AsType[*UnreadableError](err); ok {
		return &Error{Kind: BadAnswer, Provider: provider, Detail: unreadable.Error(), Err: err}
	}
	var timeout net.Error
	switch {
	case errors.Is(err, errSilent), errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Kind: TimedOut, Provider: provider, Detail: textfmt.Shorten(textfmt.OneLine(err.Error()), longestDetail), Err: err}
	case begun || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return &Error{Kind: CutStream, Provider: provider, Detail: textfmt.Shorten(textfmt.OneLine(err.Error()), longestDetail), Err: err}
	}
	return &Error{Kind: Unreachable, Provider: provider, Detail: textfmt.Shorten(textfmt.OneLine(err.Error()), longestDetail), Err: err}
}
