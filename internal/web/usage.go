package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/journal"
)

// usageView is what a task used of a model, over time.
type usageView struct {
	calls    []usagePoint
	tokens   int64
	cost     int64 // millionths
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
	point := usagePoint{entry.At, used.Tokens.Input + used.Tokens.Output, used.Cost}
	u.calls = append(u.calls, point)
	u.tokens += point.tokens
	u.cost += point.cost
	u.scripted = u.scripted || used.Scripted
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
	if u.cost == 0 || len(u.calls) == 0 {
		return ""
	}
	var points []string
	sum := int64(0)
	for i, call := range u.calls {
		sum += call.cost
		x := float64(i+1) / float64(len(u.calls)) * chartWidth
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, chartHeight-float64(sum)/float64(u.cost)*(chartHeight-4)))
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

// count is a number that people can read.
func count(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	default:
		return fmt.Sprint(n)
	}
}

func decimal(f float64) string { return fmt.Sprintf("%.1f", f) }
