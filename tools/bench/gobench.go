package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// goBenchmarks has a measure made by benchmarks of a package, each of which becomes a row.
func goBenchmarks(folder, pattern string, more ...string) func(context.Context, string) ([]row, error) {
	return func(ctx context.Context, _ string) ([]row, error) {
		command := exec.CommandContext(ctx, "go", append([]string{"test", "-trimpath", "-run", "^$", "-bench", pattern}, append(more, folder)...)...)
		output, err := command.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, output)
		}
		rows := rowsOfGo(string(output))
		if len(rows) == 0 {
			return nil, fmt.Errorf("no benchmark of %s is called %s: %s", folder, pattern, output)
		}
		return rows, nil
	}
}

// rowsOfGo reads what go test prints of benchmarks: the name, how often it was done, and pairs of a
// number and its unit.
func rowsOfGo(output string) (rows []row) {
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if at := strings.LastIndexByte(name, '-'); at > 0 && strings.Trim(name[at+1:], "0123456789") == "" {
			name = name[:at] // the number of processors
		}
		var values []string
		for i := 2; i+1 < len(words); i += 2 {
			values = append(values, words[i]+" "+words[i+1])
		}
		rows = append(rows, row{strings.ReplaceAll(name, "_", " "), strings.Join(values, "; "), ""})
	}
	return rows
}
