package main

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm/script"
)

// What go test prints of benchmarks becomes rows of the table, and nothing else does.
func TestRowsOfGo(t *testing.T) {
	t.Parallel()
	got := rowsOfGo("goos: linux\nBenchmarkPages/the_overview-2 \t 3\t 1200 ns/op\t 81.5 kB\nPASS\nok  \tpackage\t1.2s\nBenchmarkBroken\n")
	if want := []row{{"Pages/the overview", "1200 ns/op; 81.5 kB", ""}}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestTableIsReadAgain(t *testing.T) {
	t.Parallel()
	rows := []row{{"pods: start, median", "1.2 s", ""}, {"a second", "3", "under 4"}}
	if got := readTable("starting\n" + table(rows) + "done\n"); !slices.Equal(got, rows) {
		t.Errorf("got %q", got)
	}
}

// Without names all measures are made that are not long; long names the others.
func TestChosen(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		set    set
		wanted []string
		want   bool
	}{
		{0, nil, true}, {noProgram, nil, true}, {long, nil, false},
		{0, []string{"this"}, true}, {0, []string{"other"}, false}, {long, []string{"this"}, true},
		{noProgram | long, []string{"long"}, true}, {0, []string{"long"}, false},
	} {
		if got := chosen("this", is.set, is.wanted); got != is.want {
			t.Errorf("%+v: %v", is, got)
		}
	}
}

// The scripts of the runs on small projects can be played.
func TestRulesOfSmallProjects(t *testing.T) {
	t.Parallel()
	for _, project := range smallProjects {
		rules, err := project.rules("OK")
		if err == nil {
			_, err = script.Parse(project.environment, []byte(rules))
		}
		if err != nil {
			t.Errorf("%s: %v", project.environment, err)
		}
	}
}
