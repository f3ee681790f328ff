package server

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/time/rate"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// Limits say how many requests are answered. Zero means any number.
type Limits struct {
	PerToken   float64 // in a second, with one token
	PerAddress float64 // in a second, from one address
}

const (
	// burst is for how many seconds' worth of requests may come at once.
	burst = 4
	// signInsPerMinute is how often one address may try to enrol or sign in.
	signInsPerMinute = 10
	// allowances is how many callers are remembered; when there are more, those
	// who have been quiet are forgotten.
	allowances = 20_000
	quiet      = time.Minute
)

// allowance counts the requests of callers, by what tells them apart.
type allowance struct {
	every rate.Limit // 0: any number
	burst int

	mutex   sync.Mutex
	callers map[string]*counted
}

type counted struct {
	limiter *rate.Limiter
	last    time.Time
}

func newAllowance(perSecond float64, most int) *allowance {
	return &allowance{every: rate.Limit(perSecond), burst: max(most, 1), callers: make(map[string]*counted)}
}

// take reports whether the caller may make one more request now.
func (a *allowance) take(name string, now time.Time) bool {
	if a.every <= 0 {
		return true
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found := a.callers[name]
	if found == nil {
		a.forget(now)
		found = &counted{limiter: rate.NewLimiter(a.every, a.burst)}
		a.callers[name] = found
	}
	found.last = now
	return found.limiter.AllowN(now, 1)
}

// forget makes room for one more. When everyone is busy it forgets all: then
// some are given more than they should, which is better than running out of
// memory.
func (a *allowance) forget(now time.Time) {
	if len(a.callers) < allowances {
		return
	}
	for name, one := range a.callers {
		if now.Sub(one.last) > quiet {
			delete(a.callers, name)
		}
	}
	if len(a.callers) >= allowances {
		clear(a.callers)
	}
}

// limits are the allowances of a server.
type limits struct {
	tokens, addresses, signIns *allowance
	now                        func() time.Time
}

func newLimits(l Limits, now func() time.Time) limits {
	return limits{
		tokens:    newAllowance(l.PerToken, int(math.Ceil(burst*l.PerToken))),
		addresses: newAllowance(l.PerAddress, int(math.Ceil(burst*l.PerAddress))),
		signIns:   newAllowance(signInsPerMinute/60.0, signInsPerMinute),
		now:       now,
	}
}

// limit lets a request through if its address and its token allow it.
func (s *Server) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.limits.now()
		allowed := s.limits.addresses.take(access.Network(r.RemoteAddr), now)
		if credential := r.Header.Get("Authorization"); allowed && credential != "" {
			// Hashed, so that no token stays in memory.
			allowed = s.limits.tokens.take(string(access.Hash(credential)), now)
		}
		if !allowed {
			w.Header().Set("Retry-After", "1")
			s.writeProblem(w, r, task.Errorf(task.TooMany, "there were too many requests").WithHint("wait a second"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tightly is for operations where someone shows a secret that could be guessed.
func (s *Server) tightly(ctx huma.Context, next func(huma.Context)) {
	if !s.limits.signIns.take(access.Network(ctx.RemoteAddr()), s.limits.now()) {
		ctx.SetHeader("Retry-After", strconv.Itoa(60/signInsPerMinute))
		s.refuse(ctx, task.Errorf(task.TooMany, "there were too many attempts").WithHint("wait a minute"))
		return
	}
	next(ctx)
}
