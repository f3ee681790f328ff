package tally_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/tally"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// results has attempts by letters: r is resolved, u is not, e is an error; a task to a word.
func results(model string, words ...string) eval.Results {
	made := eval.Results{Set: "set", SetHash: "x", Models: []string{model}}
	for i, word := range words {
		id := fmt.Sprintf("t%d", i)
		made.Tasks = append(made.Tasks, id)
		for n, letter := range word {
			status := map[rune]eval.Status{'r': eval.Resolved, 'u': eval.Unresolved, 'e': eval.Failed}[letter]
			made.Attempts = append(made.Attempts, eval.Attempt{Task: id, Model: model, Number: n + 1, Status: status, Patch: "x", Seconds: 10,
				Worked: eval.Worked{Outcome: string(task.Done), Cost: llm.Unit, Usage: llm.Usage{Input: 10, Cached: 4, Output: 1}, Flags: []string{eval.FlagTests}}})
		}
	}
	return made
}

func near(a, b float64) bool { return math.Abs(a-b) < 0.0005 }

// Tasks are what is counted, and errors are apart. The numbers were worked out by hand.
func TestOf(t *testing.T) {
	t.Parallel()
	m := tally.Of(results("m", "rr", "ru", "uu", "er", "e"))[0]
	if m.Tasks != 4 || m.Attempts != 7 || m.Errors != 2 || m.Resolved != 4 || m.Ever != 3 || m.Delivered != 7 || m.Wrong != 3 || m.Cost != 9*llm.Unit || m.Usage.Cached != 36 || m.Seconds != 90 || m.Flags[eval.FlagTests] != 7 {
		t.Errorf("the counts: %+v", m)
	}
	// The means of the tasks are 1, 0.5, 0 and 1: mean 0.625, deviation 0.4787, error 0.2394.
	if !near(m.Rate, 0.625) || !near(m.StandardError, 0.2394) {
		t.Errorf("%f ± %f", m.Rate, m.StandardError)
	}
	all := tally.Of(results("m", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r"))[0]
	if all.Rate != 1 || all.StandardError != 0 || !near(all.Low, 0.7225) || all.High != 1 { // Wilson, 10 of 10
		t.Errorf("all: %+v", all)
	}
	if none := tally.Of(results("m", "e"))[0]; none.Tasks != 0 || none.Rate != 0 || math.IsNaN(none.StandardError) {
		t.Errorf("nothing but errors: %+v", none)
	}
}

func repeated(word string, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = word
	}
	return words
}

func TestCompare(t *testing.T) {
	t.Parallel()
	join := func(parts ...[]string) (all []string) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	for name, one := range map[string]struct {
		a, b []string
		p    float64
		test string
		real bool
		says string
	}{
		// Of ten tasks that differ all are on one side: 2 · 2⁻¹⁰.
		"better": {repeated("u", 12), join(repeated("r", 10), repeated("u", 2)), 0.001953, "McNemar", true, "b is better than a"},
		"worse":  {join(repeated("r", 10), repeated("u", 2)), repeated("u", 12), 0.001953, "McNemar", true, "a is better than b"},
		"same":   {repeated("r", 5), repeated("r", 5), 1, "McNemar", false, "No difference is shown"},
		// 5 against 1: 2 · (1 + 6) / 64.
		"few": {join(repeated("u", 5), []string{"r"}), join(repeated("r", 5), []string{"u"}), 0.21875, "McNemar", false, "may be chance"},
		// Six tasks in which b is better by a half: only all signs alike are as extreme, 2 of 64.
		"means":  {repeated("uu", 6), repeated("ru", 6), 0.03125, "permutation", true, "b is better than a"},
		"errors": {[]string{"r", "e", "u"}, []string{"r", "r", "e"}, 1, "McNemar", false, "1 tasks"},
	} {
		made, err := tally.Compare(results("a", one.a...), results("b", one.b...), "a", "b")
		if err != nil || !near(made.P, one.p) || !strings.Contains(made.Test, one.test) || made.Real() != one.real || !strings.Contains(made.Sentence(), one.says) {
			t.Errorf("%s: %+v, %v, %s", name, made, err, made.Sentence())
		}
		if made.Low > made.Difference || made.High < made.Difference {
			t.Errorf("%s: the interval %f to %f is not around %f", name, made.Low, made.High, made.Difference)
		}
	}
	// With many tasks signs are drawn. Alike they are, and different they are.
	half := join(repeated("ru", 30), repeated("uu", 30))
	if made, err := tally.Compare(results("a", half...), results("b", join(repeated("uu", 30), repeated("ru", 30))...), "a", "b"); err != nil || made.P < 0.9 {
		t.Errorf("alike: %+v, %v", made, err)
	}
	if made, err := tally.Compare(results("a", half...), results("b", repeated("rr", 60)...), "a", "b"); err != nil || made.P > 0.001 || made.Low < 0.5 {
		t.Errorf("different: %+v, %v", made, err)
	}
	other := results("b", "r")
	other.Attempts[0].Basis = "another image"
	if made, err := tally.Compare(results("a", "r"), other, "a", "b"); err != nil || made.Differing != 1 {
		t.Errorf("another environment: %+v, %v", made, err)
	}
	other.SetHash = "y"
	if _, err := tally.Compare(results("a", "r"), other, "a", "b"); task.CodeOf(err) != task.Invalid {
		t.Errorf("other sets: %v", err)
	}
	if _, err := tally.Compare(results("a", "e"), results("b", "r"), "a", "b"); task.CodeOf(err) != task.Invalid {
		t.Errorf("nothing in common: %v", err)
	}
}
