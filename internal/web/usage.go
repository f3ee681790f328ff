package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// usageView is what a task used of a model, over time.
type usageView struct {
	points   []usagePoint
	each     int // how many calls a point is of
	inLast   int // and how many the last one is of so far
	total    usageRow
	phases   map[task.Phase]*usageRow
	models   map[string]*usageRow
	scripted bool
}

type usagePoint struct {
	tokens int64
	cost   int64
}

const (
	// mostPoints is how many points are kept of a chart: twice as many as it is wide. It is even.
	mostPoints = 2 * chartWidth
	// mostModels is how many models are told apart: an agent names them.
	mostModels = 200
)

// addPoint adds a call to the points. When there are too many, each is of twice as many calls.
func (u *usageView) addPoint(call usagePoint) {
	if u.each == 0 {
		u.each = 1
	}
	if last := len(u.points) - 1; last >= 0 && u.inLast < u.each {
		u.points[last].tokens += call.tokens
		u.points[last].cost += call.cost
		u.inLast++
		return
	}
	if len(u.points) == mostPoints {
		for i := range mostPoints / 2 {
			one, next := u.points[2*i], u.points[2*i+1]
			u.points[i] = usagePoint{one.tokens + next.tokens, one.cost + next.cost}
		}
		u.points, u.each = u.points[:mostPoints/2], 2*u.each
	}
	u.points, u.inLast = append(u.points, call), 1
}

func (u *usageView) add(entry journal.Entry) {
	used := entry.Usage
	if used == nil {
		return
	}
	if u.phases == nil {
		u.phases, u.models = make(map[task.Phase]*usageRow), make(map[string]*usageRow)
	}
	u.addPoint(usagePoint{used.Tokens.Input + used.Tokens.Output, used.Cost})
	u.total.add(*used)
	phase, model := entry.Phase, oneLabel(used.Model)
	if !slices.Contains(task.Phases, phase) {
		phase = ""
	}
	if u.models[model] == nil && len(u.models) >= mostModels {
		model = "…"
	}
	rowOf(u.phases, phase).add(*used)
	rowOf(u.models, model).add(*used)
	u.scripted = u.scripted || used.Scripted
}

func rowOf[K comparable](rows map[K]*usageRow, key K) *usageRow {
	if rows[key] == nil {
		rows[key] = new(usageRow)
	}
	return rows[key]
}

// phaseRows are what each phase used, in their order.
func (u *usageView) phaseRows(v visit) (rows []usageRow) {
	for _, phase := range append(slices.Clone(task.Phases), "") {
		if row := u.phases[phase]; row != nil {
			row.name = v.t("cost.elsewhere")
			if phase != "" {
				row.name = v.t("phase." + string(phase))
			}
			rows = append(rows, *row)
		}
	}
	return rows
}

// modelRows are what was used of each model, the dearest first.
func (u *usageView) modelRows(v visit) (rows []usageRow) {
	const most = 50 // an agent names them
	for name, row := range u.models {
		row.name = name
		if name == "summary" { // journals of earlier versions do not name the model
			row.name = v.t("cost.summary")
		}
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(b.input+b.output, a.input+a.output), cmp.Compare(a.name, b.name))
	})
	return rows[:min(len(rows), most)]
}

// The chart, in its own units.
const (
	chartWidth  = 600
	chartHeight = 120
	chartBars   = 60
)

type bar struct{ x, y, width, height float64 }

// bars are the tokens of the calls, in as many columns as fit.
func (u *usageView) bars() []bar {
	columns := min(len(u.points), chartBars)
	if columns == 0 {
		return nil
	}
	sums, most := make([]int64, columns), int64(1)
	for i, call := range u.points {
		column := i * columns / len(u.points)
		sums[column] += call.tokens
		most = max(most, sums[column])
	}
	width := float64(chartWidth) / float64(columns)
	all := make([]bar, columns)
	for i, sum := range sums {
		height := float64(sum) / float64(most) * (chartHeight - 4)
		all[i] = bar{float64(i) * width, chartHeight - height, max(1, width-2), height}
	}
	return all
}

// costLine is how the cost grows, as the points of a line.
func (u *usageView) costLine() string {
	if u.total.cost == 0 || len(u.points) == 0 {
		return ""
	}
	var points []string
	sum := int64(0)
	every := 1 + (len(u.points)-1)/chartWidth // there is no room for more points than it is wide
	for i, call := range u.points {
		if sum += call.cost; (i+1)%every != 0 && i+1 < len(u.points) {
			continue
		}
		x := float64(i+1) / float64(len(u.points)) * chartWidth
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, chartHeight-float64(sum)/float64(u.total.cost)*(chartHeight-4)))
	}
	return "0," + fmt.Sprint(chartHeight) + " " + strings.Join(points, " ")
}

// money is an amount in the currency of the prices.
func money(millionths int64) string {
	if millionths%10_000 == 0 || millionths >= 1_000_000 {
		return fmt.Sprintf("%.2f", float64(millionths)/1e6)
	}
	return fmt.Sprintf("%.4f", float64(millionths)/1e6)
}

// count is a number of tokens and the like, rounded so that people can read it.
func count(n int64) string { return textfmt.Count(n) }

func decimal(f float64) string { return fmt.Sprintf("%.1f", f) }
