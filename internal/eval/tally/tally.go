// Package tally has the numbers of an evaluation: how much each model resolves, how sure that
// is, what it costs, and whether the difference between two is real.
package tally

import (
	"math"
	"slices"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Model is what the attempts of one model came to. Errors are in nothing but Errors and what
// was spent.
type Model struct {
	Name     string `json:"model"`
	Tasks    int    `json:"tasks"`    // with attempts that count
	Attempts int    `json:"attempts"` // that count
	Errors   int    `json:"errors"`
	// Rate is the mean over tasks of the share of attempts that resolved the task, and
	// StandardError that of the mean. Attempts at one task are not independent, so tasks are
	// what is counted.
	Rate          float64 `json:"rate"`
	StandardError float64 `json:"standard_error"`
	Low           float64 `json:"low"` // of the interval of 95 %
	High          float64 `json:"high"`
	Resolved      int     `json:"resolved_attempts"`
	Ever          int     `json:"resolved_tasks"` // in one attempt at least
	Empty         int     `json:"empty_patches"`
	// Delivered are the attempts in which the program itself said that the work is done, and
	// Wrong those of them that are not resolved.
	Delivered    int            `json:"delivered"`
	Wrong        int            `json:"delivered_unresolved"`
	Usage        llm.Usage      `json:"usage"`
	Cost         llm.Money      `json:"cost"`
	Seconds      float64        `json:"seconds"`
	ScoreSeconds float64        `json:"score_seconds"`
	Flags        map[string]int `json:"flags,omitempty"`
}

// Of counts the attempts of each model.
func Of(results eval.Results) []Model {
	models := make([]Model, 0, len(results.Models))
	for _, name := range results.Models {
		made := Model{Name: name, Flags: map[string]int{}}
		for _, attempt := range results.Attempts {
			if attempt.Model == name {
				made.add(attempt)
			}
		}
		rates := Rates(results, name)
		made.Tasks = len(rates)
		values := make([]float64, 0, len(rates))
		for _, rate := range rates {
			values = append(values, rate)
			if rate > 0 {
				made.Ever++
			}
		}
		made.Rate, made.StandardError = mean(values)
		made.Low, made.High = wilson(made.Rate, len(values))
		models = append(models, made)
	}
	return models
}

func (m *Model) add(attempt eval.Attempt) {
	m.Cost += attempt.Cost
	m.Usage = m.Usage.Add(attempt.Usage)
	m.Seconds += attempt.Seconds
	m.ScoreSeconds += attempt.Score.Seconds
	if attempt.Status == eval.Failed {
		m.Errors++
		return
	}
	m.Attempts++
	delivered, resolved := attempt.Outcome == string(task.Done), attempt.Status == eval.Resolved
	for condition, count := range map[*int]bool{&m.Resolved: resolved, &m.Empty: attempt.Patch == "", &m.Delivered: delivered, &m.Wrong: delivered && !resolved} {
		if count {
			*condition++
		}
	}
	for _, flag := range attempt.Flags {
		m.Flags[flag]++
	}
}

// Rates are the shares of attempts by a model that resolved a task, by task. Tasks of which
// all attempts ended in errors are not there.
func Rates(results eval.Results, model string) map[string]float64 {
	counts, resolved := map[string]int{}, map[string]int{}
	for _, attempt := range results.Attempts {
		if attempt.Model != model || attempt.Status == eval.Failed {
			continue
		}
		counts[attempt.Task]++
		if attempt.Status == eval.Resolved {
			resolved[attempt.Task]++
		}
	}
	rates := map[string]float64{}
	for id, count := range counts {
		rates[id] = float64(resolved[id]) / float64(count)
	}
	return rates
}

// mean is the mean of values and its standard error, which is 0 for less than two.
func mean(values []float64) (average, standardError float64) {
	if len(values) == 0 {
		return 0, 0
	}
	slices.Sort(values) // so that the same numbers give the same sum
	for _, value := range values {
		average += value
	}
	n := float64(len(values))
	average /= n
	if n < 2 {
		return average, 0
	}
	squares := 0.0
	for _, value := range values {
		squares += (value - average) * (value - average)
	}
	return average, math.Sqrt(squares / (n * (n - 1)))
}

// z is the quantile of the normal distribution for an interval of 95 %.
const z = 1.959963984540054

// wilson is the interval of 95 % of a rate over so many tasks. It stays right where the rate is
// 0 or 1, when there is no deviation to go by.
func wilson(rate float64, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	count := float64(n)
	middle := (rate + z*z/(2*count)) / (1 + z*z/count)
	half := z / (1 + z*z/count) * math.Sqrt(rate*(1-rate)/count+z*z/(4*count*count))
	return max(0, middle-half), min(1, middle+half)
}
