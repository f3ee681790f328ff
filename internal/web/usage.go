package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// usageView is what a task used of a model, over time.
type usageView struct {
	calls    []usagePoint
	total    usageRow
	phases   map[task.Phase]*usageRow
	models   map[string]*usageRow
	scripted bool
}

type usagePoint struct {
	at     time.Time
	tokens int64
	cost   int64
}

func (u *usageView) add(entry journal.Entry) {
	used := entry.Usage
	if used == nil {
		return
	}
	if u.phases == nil {
		u.phases, u.models = make(map[task.Phase]*usageRow), make(map[string]*usageRow)
	}
	u.calls = append(u.calls, usagePoint{entry.At, used.Tokens.Input + used.Tokens.Output, used.Cost})
	u.total.add(*used)
	rowOf(u.phases, entry.Phase).add(*used)
	rowOf(u.models, used.Model).add(*used)
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
		row.name = textfmt.Shorten(name, longestLabel)
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
	columns := min(len(u.calls), chartBars)
	if columns == 0 {
		return nil
	}
	sums, most := make([]int64, columns), int64(1)
	for i, call := range u.calls {
		column := i * columns / len(u.calls)
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
	if u.total.cost == 0 || len(u.calls) == 0 {
		return ""
	}
	var points []string
	sum := int64(0)
	every := 1 + (len(u.calls)-1)/chartWidth // there is no room for more points than it is wide
	for i, call := range u.calls {
		if sum += call.cost; (i+1)%every != 0 && i+1 < len(u.calls) {
			continue
		}
		x := float64(i+1) / float64(len(u.calls)) * chartWidth
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
