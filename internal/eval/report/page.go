package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/tally"
	"github.com/toryo-dev/toryo/internal/llm"
)

// view is the page as texts and places.
type view struct {
	results eval.Results
	models  []tally.Model
	grid    []gridRow
}

// gridRow is a task with the share of attempts that resolved it, by model.
type gridRow struct {
	id    string
	cells []cell
}

// cell is the result of a model at a task.
type cell struct {
	text, class string
}

func pageOf(results eval.Results, models []tally.Model) templ.Component {
	v := view{results: results, models: models}
	rates := make([]map[string]float64, len(models))
	for i, m := range models {
		rates[i] = tally.Rates(results, m.Name)
	}
	for _, id := range results.Tasks {
		row := gridRow{id: id}
		for i := range models {
			row.cells = append(row.cells, cellOf(rates[i], id))
		}
		v.grid = append(v.grid, row)
	}
	return page(v)
}

func cellOf(rates map[string]float64, id string) cell {
	share, known := rates[id]
	switch {
	case !known:
		return cell{"–", "none"}
	case share == 0:
		return cell{"0 %", "no"}
	case share == 1:
		return cell{"100 %", "yes"}
	}
	return cell{fmt.Sprintf("%.0f %%", 100*share), "some"}
}

// The size of plots, in units of the picture.
const (
	plotWidth  = 640
	plotHeight = 240
	barHeight  = 26
)

// x is where a share of 0 to 1 is.
func x(share float64) string { return fmt.Sprintf("%.1f", share*plotWidth) }

// barsHeight is the height of the plot with a bar for each model.
func (v view) barsHeight() int { return barHeight*len(v.models) + barHeight }

// place is a point of the plot of costs.
type place struct {
	name, x, y string
}

// places are the models by what an attempt costs and what they resolve.
func (v view) places() (places []place, most string) {
	highest := llm.Money(1)
	cost := func(m tally.Model) llm.Money { return m.Cost / llm.Money(max(m.Attempts+m.Errors, 1)) }
	for _, m := range v.models {
		highest = max(highest, cost(m))
	}
	for _, m := range v.models {
		share := float64(cost(m)) / float64(highest)
		places = append(places, place{m.Name, x(share * 0.9), fmt.Sprintf("%.1f", plotHeight*(1-m.Rate))})
	}
	return places, llm.Money(math.Round(float64(highest) / 0.9)).String()
}

// hasCosts reports whether anything was paid for.
func (v view) hasCosts() bool {
	return slices.ContainsFunc(v.models, func(m tally.Model) bool { return m.Cost > 0 })
}

// environments are the environments in which the tasks were scored, each once.
func (v view) environments() []eval.Environment {
	var all []eval.Environment
	for _, check := range v.results.Checks {
		one := check.NoChange.Environment
		one.Snapshot = ""
		if one.Sandbox != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func (v view) leftOut() []eval.Check {
	return slices.DeleteFunc(slices.Clone(v.results.Checks), func(c eval.Check) bool { return c.Usable })
}
