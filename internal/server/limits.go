package server

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/server/limit"
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
)

// limits are how often callers are answered.
type limits struct {
	tokens, addresses, signIns *limit.Rate
	now                        func() time.Time
}

func newLimits(l Limits, now func() time.Time) limits {
	return limits{
		tokens:    limit.NewRate(l.PerToken, int(math.Ceil(burst*l.PerToken))),
		addresses: limit.NewRate(l.PerAddress, int(math.Ceil(burst*l.PerAddress))),
		signIns:   limit.NewRate(signInsPerMinute/60.0, signInsPerMinute),
		now:       now,
	}
}

// limit lets a request through if its address and its token allow it.
func (s *Server) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.limits.now()
		allowed := s.limits.addresses.Allow(access.Network(r.RemoteAddr), now)
		if credential := r.Header.Get("Authorization"); allowed && credential != "" {
			// Hashed, so that no token stays in memory.
			allowed = s.limits.tokens.Allow(string(access.Hash(credential)), now)
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
	if !s.limits.signIns.Allow(access.Network(ctx.RemoteAddr()), s.limits.now()) {
		ctx.SetHeader("Retry-After", strconv.Itoa(60/signInsPerMinute))
		s.refuse(ctx, task.Errorf(task.TooMany, "there were too many attempts").WithHint("wait a minute"))
		return
	}
	next(ctx)
}
