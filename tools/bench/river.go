package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measureRiver has the job library River fetch as many jobs as we hand out tasks, on
// the same database with as many servers and workers. River's worker is a function
// call away from its fetch; our agents are too here. A job of River's is done when
// its worker returns, and is marked so later, many at once; a task of ours is ended
// in a transaction of its own, with an entry in its journal.
func measureRiver(ctx context.Context, folder string) ([]row, error) {
	if os.Getenv("TORYO_TEST_POSTGRES") == "" {
		return nil, nil
	}
	program := filepath.Join(folder, "river")
	build := exec.CommandContext(ctx, "go", "-C", "tools/river", "build", "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the measurement of River: %w: %s", err, said)
	}
	var rows []row
	for cooldown, name := range []string{"as it comes", "told to fetch without a pause"} {
		var said, trouble bytes.Buffer
		run := exec.CommandContext(ctx, program, fmt.Sprint(benchServers), fmt.Sprint(benchAgents), fmt.Sprint(handedOut), fmt.Sprint(oneByOne), fmt.Sprint(cooldown))
		run.Stdout, run.Stderr = &said, &trouble
		if err := run.Run(); err != nil {
			return nil, fmt.Errorf("measure River: %w: %s", err, trouble.String())
		}
		var measured struct {
			PerSecond float64 `json:"per_second"`
			P50       float64 `json:"p50_ms"`
			P99       float64 `json:"p99_ms"`
		}
		if err := json.Unmarshal(said.Bytes(), &measured); err != nil {
			return nil, err
		}
		rows = append(rows,
			row{"River " + name + ": jobs fetched and worked on", fmt.Sprintf("%.0f/s", measured.PerSecond), ""},
			row{"River " + name + ": from insertion to worker, p50, p99", fmt.Sprintf("%.1f ms, %.1f ms", measured.P50, measured.P99), ""},
		)
	}
	return rows, nil
}
