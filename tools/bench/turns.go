package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/turntest"
)

// turnRuns is how often the scenario is run for its time.
const turnRuns = 5

// measureTurns runs fifty turns with twenty tools against a model that answers at
// once, and looks at our own part of them.
func measureTurns(ctx context.Context, _ string) ([]row, error) {
	var rows []row
	scenario := fmt.Sprintf("%d turns, %d tools", turntest.Turns, turntest.Tools)
	for _, way := range []string{"in-process", "anthropic", "openai-chat", "openai-responses"} {
		took, allocated, err := timeTurns(ctx, way)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way, err)
		}
		rows = append(rows, row{
			fmt.Sprintf("own time and memory allocated per turn, %s, %s, median", scenario, way),
			fmt.Sprintf("%s, %d kB", took.Round(time.Microsecond), allocated/1000), "",
		})
	}
	without, sent, err := sendTurns(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows = append(rows,
		row{"share of each request that is a prefix of the one before, " + scenario, fmt.Sprintf("%.1f %%", 100*sent.OfRequest), "over 95 %"},
		row{"the same as a share of the request before", fmt.Sprintf("%.2f %%", 100*sent.OfPrevious), ""},
		row{"tokens sent without compaction (not cached), " + scenario, tokensOf(without), ""})
	for _, length := range []int64{32_000, 16_000} {
		with, _, err := sendTurns(ctx, length)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf("the same with compaction at a context of %d tokens", length), tokensOf(with), ""})
	}
	return rows, nil
}

func tokensOf(usage llm.Usage) string {
	return fmt.Sprintf("%d (%d)", usage.Input, usage.Input-usage.Cached)
}

// timeTurns is the median of our own time per turn, which is without that of the
// server, and the memory that was allocated per turn, which is with it.
func timeTurns(ctx context.Context, way string) (took time.Duration, allocated uint64, err error) {
	var times []time.Duration
	var memory []uint64
	for range turnRuns {
		s, err := turntest.New(ctx, turntest.Connections[way], 0)
		if err != nil {
			return 0, 0, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, err = s.Run(ctx)
		spent := time.Since(begun) - s.Served()
		runtime.ReadMemStats(&after)
		s.Close()
		if err != nil {
			return 0, 0, err
		}
		times = append(times, spent/turntest.Turns)
		memory = append(memory, (after.TotalAlloc-before.TotalAlloc)/turntest.Turns)
	}
	slices.Sort(times)
	slices.Sort(memory)
	return times[turnRuns/2], memory[turnRuns/2], nil
}

// sendTurns is what a run uses and sends.
func sendTurns(ctx context.Context, contextLength int64) (llm.Usage, turntest.Sent, error) {
	s, err := turntest.New(ctx, turntest.Connections["anthropic"], contextLength)
	if err != nil {
		return llm.Usage{}, turntest.Sent{}, err
	}
	defer s.Close()
	outcome, err := s.Run(ctx)
	return outcome.Usage, s.Sent(), err
}
