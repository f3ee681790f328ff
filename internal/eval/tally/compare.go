package tally

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/task"
)

// Comparison is the difference between two models on the tasks that both have tried.
type Comparison struct {
	A, B         string  // names, for people
	Tasks        int     // that both have tried
	RateA, RateB float64 // on these
	Difference   float64 // of B from A
	Low, High    float64 // interval of 95 % of the difference, by bootstrap over tasks
	OnlyA, OnlyB int     // tasks on which one is better
	P            float64 // how likely such a difference, or a larger one, is by chance
	Test         string  // how P was found
	Differing    int     // tasks that were scored in different environments, or with different tests
}

// significant is the level below which a difference counts as real.
const significant = 0.05

// Compare compares two models, task by task. It fails with Invalid if they have no tasks in
// common or if the sets differ.
func Compare(a, b eval.Results, modelA, modelB string) (Comparison, error) {
	if a.SetHash != b.SetHash {
		return Comparison{}, task.Errorf(task.Invalid, "the two are of different task sets: %s and %s", a.Set, b.Set)
	}
	ratesA, ratesB := Rates(a, modelA), Rates(b, modelB)
	var differences []float64
	made := Comparison{A: modelA, B: modelB}
	basisA, basisB := bases(a, modelA), bases(b, modelB)
	single := true // each is 0 or 1
	for _, id := range a.Tasks {
		rateA, inA := ratesA[id]
		rateB, inB := ratesB[id]
		if !inA || !inB {
			continue
		}
		made.RateA, made.RateB = made.RateA+rateA, made.RateB+rateB
		differences = append(differences, rateB-rateA)
		if basisA[id] != basisB[id] {
			made.Differing++
		}
		single = single && math.Abs(rateA-0.5) == 0.5 && math.Abs(rateB-0.5) == 0.5
		switch {
		case rateB > rateA:
			made.OnlyB++
		case rateB < rateA:
			made.OnlyA++
		}
	}
	if made.Tasks = len(differences); made.Tasks == 0 {
		return Comparison{}, task.Errorf(task.Invalid, "%s and %s have tried no task in common", modelA, modelB)
	}
	n := float64(made.Tasks)
	made.RateA, made.RateB = made.RateA/n, made.RateB/n
	made.Difference = made.RateB - made.RateA
	made.Low, made.High = bootstrap(differences)
	if single {
		made.P, made.Test = mcNemar(made.OnlyA, made.OnlyB), "exact McNemar test"
	} else {
		made.P, made.Test = permutation(differences), "permutation test of the tasks' means"
	}
	return made, nil
}

// bases are what the attempts of a model were held against, by task.
func bases(results eval.Results, model string) map[string]string {
	all := map[string]string{}
	for _, attempt := range results.Attempts {
		if attempt.Model == model && attempt.Status != eval.Failed {
			all[attempt.Task] = attempt.Basis
		}
	}
	return all
}

// Real reports whether the difference is more than chance explains.
func (c Comparison) Real() bool { return c.P < significant }

// Sentence says it in words.
func (c Comparison) Sentence() string {
	numbers := fmt.Sprintf("%+.1f percentage points, 95 %% interval %+.1f to %+.1f, %d tasks, p = %s, %s", 100*c.Difference, 100*c.Low, 100*c.High, c.Tasks, probability(c.P), c.Test)
	rates := fmt.Sprintf("%s resolves %.1f %%, %s %.1f %%", c.A, 100*c.RateA, c.B, 100*c.RateB)
	switch {
	case !c.Real():
		return fmt.Sprintf("No difference is shown: %s (%s). What is seen may be chance.", rates, numbers)
	case c.Difference > 0:
		return fmt.Sprintf("%s is better than %s: %s (%s). The difference is more than chance explains.", c.B, c.A, rates, numbers)
	}
	return fmt.Sprintf("%s is better than %s: %s (%s). The difference is more than chance explains.", c.A, c.B, rates, numbers)
}

func probability(p float64) string {
	const least = 0.0001
	if p < least {
		return "< 0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// mcNemar is the exact two-sided test on the tasks that only one of two has resolved: by
// chance each is as likely to be on either side.
func mcNemar(onlyA, onlyB int) float64 {
	n, k := onlyA+onlyB, min(onlyA, onlyB)
	sum := 0.0
	for i := range k + 1 {
		sum += math.Exp(logBinomial(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}

func logBinomial(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

const (
	exactUpTo = 16 // tasks that differ, for which all signs are tried
	rounds    = 20_000
)

// permutation is the two-sided test in which each task's difference could as well have had the
// other sign.
func permutation(differences []float64) float64 {
	differing := slices.DeleteFunc(slices.Clone(differences), func(d float64) bool { return d == 0 })
	seen := 0.0
	for _, d := range differing {
		seen += d
	}
	const rounding = 1e-9
	extreme := func(sign func(int) bool) bool {
		sum := 0.0
		for i, d := range differing {
			if sign(i) {
				sum += d
			} else {
				sum -= d
			}
		}
		return math.Abs(sum) >= math.Abs(seen)-rounding
	}
	count := 0
	if len(differing) <= exactUpTo {
		total := 1 << len(differing)
		for signs := range total {
			if extreme(func(i int) bool { return signs>>i&1 == 1 }) {
				count++
			}
		}
		return float64(count) / float64(total)
	}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // it is to be the same each time
	for range rounds {
		if extreme(func(int) bool { return random.IntN(2) == 1 }) {
			count++
		}
	}
	return float64(count+1) / float64(rounds+1)
}

// bootstrap is the interval of 95 % of the mean of the differences.
func bootstrap(differences []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // it is to be the same each time
	means := make([]float64, rounds)
	for i := range means {
		for range differences {
			means[i] += differences[random.IntN(len(differences))]
		}
		means[i] /= float64(len(differences))
	}
	slices.Sort(means)
	const tail = 0.025
	return means[int(tail*rounds)], means[rounds-1-int(tail*rounds)]
}
