package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fallback is two models, of which the second answers while the first is down or out of
// quota. Each has its own layers (see [Wrap]): a call is paid for at the prices of the model
// that gets it, with that model's key.
type Fallback struct {
	First  Model
	Probe  Model // First without retries: it is asked when its pause is over
	Second Model
	// Server names the first model together with its server. All that have the same Outages
	// and Server know of an outage.
	Server  string
	Outages *Outages
	Now     func() time.Time
	Logger  *slog.Logger
}

// Standin says that another model answered than the one that was asked.
type Standin struct {
	Instead string    `json:"instead"` // provider and name of the model that was asked
	Model   string    `json:"model"`   // provider and name of the one that answered
	Reason  string    `json:"reason"`  // why the first could not be used when that began
	Since   time.Time `json:"since"`
}

// Text says it for people.
func (s Standin) Text(in task.Language) string {
	return messages.Text(in, "run.fallback", s.Model, s.Instead, s.SinceText(), s.Reason)
}

// SinceText is the time for people; an outage has only one.
func (s Standin) SinceText() string { return s.Since.UTC().Format("2006-01-02 15:04 UTC") }

// The pause after which a model that is out is asked again. It doubles each time.
const (
	firstPause   = 5 * time.Minute
	longestPause = time.Hour
)

// takesOver are the kinds of error of the first model for which the second is asked, once the
// retries are used up. A refused key or request is not among them: it is a mistake of the
// configuration or of this program, which people have to see.
var takesOver = map[Kind]bool{
	RateLimited: true, Overloaded: true, ServerFault: true, CutStream: true, TimedOut: true, Unreachable: true, QuotaUsedUp: true,
}

// TakesOver reports whether a fallback is asked after this kind of error.
func (k Kind) TakesOver() bool { return takesOver[k] }

// WithFallback returns a model that asks the second model while the first is out. The first is
// asked again after five minutes, then after ten, and so on up to an hour; one call at a time
// finds out whether it is back, without retries, and the others do not wait for that.
func WithFallback(f Fallback) Model {
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	if f.Now == nil {
		f.Now = time.Now
	}
	return &fallback{f}
}

type fallback struct{ Fallback }

// Info implements [Model]: it is about the model that the next call goes to.
func (f *fallback) Info() Info {
	if f.Outages.isOut(f.Server, f.Now()) {
		return f.Second.Info()
	}
	return f.First.Info()
}

// CountTokens implements [Model].
func (f *fallback) CountTokens(ctx context.Context, request Request) (int64, error) {
	if f.Outages.noted(f.Server) { // it is the next call that finds out whether the model is back
		return f.Second.CountTokens(ctx, f.forSecond(request))
	}
	count, err := f.First.CountTokens(ctx, request)
	failed, _ := errors.AsType[*Error](err)
	if ctx.Err() != nil || failed == nil || failed.Status != 0 || failed.Kind != Unreachable && failed.Kind != TimedOut {
		return count, err // a server that answers may still refuse to count
	}
	f.note(ctx, mayAsk, err)
	return f.Second.CountTokens(ctx, f.forSecond(request))
}

// forSecond is the request without the images in it if the second model takes none: they were put
// in for the first.
func (f *fallback) forSecond(request Request) Request {
	if f.Second.Info().Images {
		return request
	}
	request, _ = imaged{}.filled(request, false)
	return request
}

// Chat implements [Model].
func (f *fallback) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	asked := f.First
	admitted, standin := f.Outages.admit(f.Server, f.Now())
	switch admitted {
	case mayNotAsk:
		return f.second(ctx, request, sink, standin)
	case mayProbe:
		asked = f.Probe
	}
	shown := false
	response, err := asked.Chat(ctx, request, func(delta Delta) {
		shown = !delta.Restart
		sink.Send(delta)
	})
	standin = f.note(ctx, admitted, err)
	if !KindOf(err).TakesOver() || ctx.Err() != nil {
		return response, err
	}
	if shown {
		sink.Send(Delta{Restart: true})
	}
	return f.second(ctx, request, sink, standin)
}

// note keeps how the first model answered a call that was admitted in this way. It returns since
// when the model is out, and why.
func (f *fallback) note(ctx context.Context, admitted admission, err error) Standin {
	kind := KindOf(err)
	switch {
	case kind.TakesOver() && ctx.Err() == nil:
		standin, pause, changed := f.Outages.fail(f.Server, briefly(err), admitted, f.Now())
		if changed {
			f.Logger.WarnContext(ctx, "the model is out; the fallback answers", "model", nameOf(f.First), "fallback", nameOf(f.Second),
				"kind", kind, "error", err, "asked_again_in", pause)
		}
		return standin
	case err == nil || ctx.Err() == nil && kind != "" && kind != BudgetExhausted && kind != CannotCount:
		if f.Outages.clear(f.Server) { // it answered, if only to refuse
			f.Logger.InfoContext(ctx, "the model answers again", "model", nameOf(f.First))
		}
	case admitted == mayProbe: // it was not asked, or the answer was not waited for
		f.Outages.release(f.Server)
	}
	return Standin{}
}

// second asks the second model.
func (f *fallback) second(ctx context.Context, request Request, sink Sink, standin Standin) (Response, error) {
	info := f.Second.Info()
	standin.Instead, standin.Model = nameOf(f.First), nameOf(f.Second)
	if request.MaxTokens > info.MaxTokens && info.MaxTokens > 0 {
		request.MaxTokens = info.MaxTokens
	}
	if room := info.ContextLength - cmp.Or(request.MaxTokens, info.MaxTokens); info.ContextLength > 0 && request.InputTokens > room {
		return Response{}, &Error{
			Kind: TooLong, Provider: info.Provider, Model: info.Model,
			Detail: fmt.Sprintf("the conversation has about %d tokens, and the fallback %s takes %d beside its answer; it was asked because %s",
				request.InputTokens, info.Model, room, standin.Reason),
		}
	}
	response, err := f.Second.Chat(ctx, f.forSecond(request), sink)
	if failed, ok := errors.AsType[*Error](err); ok {
		told := *failed
		told.Detail = strings.TrimPrefix(told.Detail+"; ", "; ") + "it was asked as the fallback because " + standin.Reason
		return response, &told
	}
	response.Standin = &standin
	return response, err
}

// briefly is an error of a model without the provider's own words: the reason of an outage is
// shown where others read it.
func briefly(err error) string {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.brief(kinds[failed.Kind].words)
	}
	return ""
}

func nameOf(model Model) string {
	info := model.Info()
	return strings.TrimSpace(info.Provider + " " + info.Model)
}

// Outages knows which models are out. The zero value is ready; it is for use by several
// goroutines.
type Outages struct {
	mu       sync.Mutex
	byServer map[string]*outage
	switches int64
}

// Switches is how often a fallback has taken over from a model.
func (o *Outages) Switches() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.switches
}

type outage struct {
	since, until time.Time
	pause        time.Duration
	reason       string
	probed       bool // a call finds out whether the model is back
}

type admission int

const (
	mayAsk admission = iota
	mayProbe
	mayNotAsk
)

// admit says whether a call may go to the model, and if not, since when it is out. One that may
// probe has to be followed by fail, clear or release.
func (o *Outages) admit(server string, now time.Time) (admission, Standin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.byServer[server]
	switch {
	case out == nil:
		return mayAsk, Standin{}
	case out.probed || now.Before(out.until):
		return mayNotAsk, out.standin()
	}
	out.probed = true
	return mayProbe, Standin{}
}

// noted says whether the model is out, or was when it was last asked.
func (o *Outages) noted(server string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byServer[server] != nil
}

// isOut says whether the next call goes to the fallback.
func (o *Outages) isOut(server string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.byServer[server]
	return out != nil && (out.probed || now.Before(out.until))
}

// fail notes that the model is out. Of calls that fail at the same time the first counts, and
// while the model is out only the one that finds out whether it is back.
func (o *Outages) fail(server, reason string, admitted admission, now time.Time) (standin Standin, pause time.Duration, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.byServer[server]
	switch {
	case out == nil:
		if o.byServer == nil {
			o.byServer = map[string]*outage{}
		}
		out = &outage{since: now, pause: firstPause, reason: reason}
		o.byServer[server] = out
		o.switches++
	case admitted != mayProbe:
		return out.standin(), out.pause, false
	default:
		out.pause = min(2*out.pause, longestPause)
	}
	out.until, out.probed = now.Add(out.pause), false
	return out.standin(), out.pause, true
}

// clear notes that the model answers, and reports whether it was out.
func (o *Outages) clear(server string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, was := o.byServer[server]
	delete(o.byServer, server)
	return was
}

func (o *Outages) release(server string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if out := o.byServer[server]; out != nil {
		out.probed = false
	}
}

// standin says since when the model is out, and why.
func (o *outage) standin() Standin { return Standin{Reason: o.reason, Since: o.since} }
