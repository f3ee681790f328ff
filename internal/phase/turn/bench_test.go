package turn_test

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/phase/turntest"
)

// prepared is the measured scenario before it has begun.
func prepared(tb testing.TB, way string, contextLength int64) *turntest.Scenario {
	tb.Helper()
	s, err := turntest.New(tb.Context(), turntest.Connections[way], contextLength)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func run(tb testing.TB, s *turntest.Scenario) turn.Outcome {
	tb.Helper()
	outcome, err := s.Run(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return outcome
}

// TestPrefixIsStable measures on the wire, in every format, that what was sent
// before is sent again byte for byte.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	for way := range turntest.Connections {
		if way == "in-process" {
			continue
		}
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := prepared(t, way, 0)
			run(t, s)
			if sent := s.Sent(); sent.OfRequest < 0.95 || sent.OfPrevious < 0.999 {
				t.Errorf("%.4f of each request is a prefix of the one before, which is %.4f of that; want 0.95 and 0.999", sent.OfRequest, sent.OfPrevious)
			}
		})
	}
}

func TestCompactionSavesTokens(t *testing.T) {
	t.Parallel()
	saved, whole := run(t, prepared(t, "anthropic", 16_000)).Usage, run(t, prepared(t, "anthropic", 0)).Usage
	if saved.Input >= whole.Input*6/10 {
		t.Errorf("%d tokens sent with compaction and %d without", saved.Input, whole.Input)
	}
}

// TestCompactionSendsLittleAgain bounds what a cache has not seen: after a compaction that is
// what the compaction has left behind the head, and no more. At the prices of caches, where a
// token that is known costs a tenth and one that is new a quarter more, compaction saves.
func TestCompactionSendsLittleAgain(t *testing.T) {
	t.Parallel()
	whole := run(t, prepared(t, "anthropic", 0)).Usage
	price := func(usage llm.Usage) int64 { return (usage.Input-usage.Cached)*125 + usage.Cached*10 }
	for length, most := range map[int64]int64{32_000: 120, 16_000: 130} { // percent
		saved := run(t, prepared(t, "anthropic", length)).Usage
		if fresh, before := saved.Input-saved.Cached, whole.Input-whole.Cached; fresh*100 > before*most {
			t.Errorf("at a context of %d tokens %d are sent that are not cached, and %d without compaction; want at most %d %%", length, fresh, before, most)
		}
		if price(saved) >= price(whole) {
			t.Errorf("at a context of %d tokens %+v costs no less than %+v", length, saved, whole)
		}
	}
}

// BenchmarkTurn is the time and memory of a turn with a model that answers at
// once: fifty turns, twenty tools. Our own time is without that of the server,
// which stands in for the model; memory is with it.
func BenchmarkTurn(b *testing.B) {
	for way := range turntest.Connections {
		b.Run(way, func(b *testing.B) {
			b.ReportAllocs()
			var served time.Duration
			for b.Loop() {
				b.StopTimer()
				s := prepared(b, way, 0)
				b.StartTimer()
				run(b, s)
				served += s.Served()
			}
			turns := float64(b.N * turntest.Turns)
			b.ReportMetric(float64(b.Elapsed().Microseconds())/turns, "µs/turn")
			b.ReportMetric(float64((b.Elapsed()-served).Microseconds())/turns, "own-µs/turn")
		})
	}
}

// BenchmarkPrefixShare is the share of stable bytes over fifty turns.
func BenchmarkPrefixShare(b *testing.B) {
	var sent turntest.Sent
	for b.Loop() {
		s := prepared(b, "anthropic", 0)
		run(b, s)
		sent = s.Sent()
	}
	b.ReportMetric(sent.OfRequest, "share-of-request")
	b.ReportMetric(sent.OfPrevious, "share-of-previous")
	b.ReportMetric(float64(sent.First), "first-request-bytes")
	b.ReportMetric(float64(sent.All)/1000, "kB-sent")
}

// BenchmarkTokensSent is what fifty turns send, with and without compaction.
func BenchmarkTokensSent(b *testing.B) {
	for name, length := range map[string]int64{"without": 0, "context-16k": 16_000, "context-32k": 32_000} {
		b.Run(name, func(b *testing.B) {
			var usage llm.Usage
			for b.Loop() {
				usage = run(b, prepared(b, "anthropic", length)).Usage
			}
			b.ReportMetric(float64(usage.Input), "tokens-sent")
			b.ReportMetric(float64(usage.Input-usage.Cached), "tokens-not-cached")
		})
	}
}
