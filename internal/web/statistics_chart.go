package web

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/wire"
)

// A chart is drawn in units of its own, and is stretched to the width of the page: each day is dayWidth
// wide, and the whole is drawnHeight high. What is written beside it is no part of it, so that letters are
// not stretched.
const (
	dayWidth    = 10
	dayGap      = 1 // on both sides of a bar
	drawnHeight = 100
)

// chart is a picture of the numbers of days.
type chart struct {
	drawn   bool    // there is something to draw
	highest float64 // number
	width   int
	marks   []string // beside the picture, from the top to the bottom
	days    []string // below it, from the left to the right
	shapes  []chartShape
	areas   []chartArea
}

// chartShape is what is drawn in one colour.
type chartShape struct {
	tone string
	path string
	line bool
	dots string // a path of points, on a line
}

// chartArea is the place of one day, where its numbers are shown to who points at it.
type chartArea struct {
	x    int
	text string
}

func (c *chart) viewBox() string {
	return "0 0 " + strconv.Itoa(c.width) + " " + strconv.Itoa(drawnHeight)
}

func drawChart(v visit, columns []figureColumn, days []wire.StatisticsDay, lines bool) chart {
	c := chart{width: len(days) * dayWidth}
	if len(columns) == 0 {
		return c
	}
	for _, day := range days {
		top := 0.0
		for _, column := range columns {
			value, is := column.Value(day)
			c.drawn = c.drawn || is && (lines || value > 0) // a time may be none at all
			if top += max(value, 0); lines {
				c.highest = max(c.highest, value)
			}
		}
		if !lines {
			c.highest = max(c.highest, top)
		}
	}
	top := roundUp(columns[0].Unit, c.highest)
	for _, mark := range []float64{top, top / 2, 0} {
		c.marks = append(c.marks, markText(v, columns[0].Unit, mark))
	}
	for _, i := range []int{0, len(days) / 2, len(days) - 1} {
		c.days = append(c.days, strings.TrimPrefix(days[i].Day, days[i].Day[:5])) // without the year
	}
	if lines {
		c.lines(columns, days, top)
	} else {
		c.bars(columns, days, top)
	}
	for i, day := range days {
		if text := areaText(v, columns, day); text != "" {
			c.areas = append(c.areas, chartArea{i * dayWidth, text})
		}
	}
	return c
}

// bars stand on each other, one column on the next.
func (c *chart) bars(columns []figureColumn, days []wire.StatisticsDay, top float64) {
	stands := make([]float64, len(days)) // the height so far
	for _, column := range columns {
		var path strings.Builder
		for i, day := range days {
			value, _ := column.Value(day)
			if value <= 0 {
				continue
			}
			height := value / top * drawnHeight
			stands[i] += height
			path.WriteString("M" + strconv.Itoa(i*dayWidth+dayGap) + " " + coordinate(drawnHeight-stands[i]) +
				"h" + strconv.Itoa(dayWidth-2*dayGap) + "v" + coordinate(height) + "h-" + strconv.Itoa(dayWidth-2*dayGap) + "z")
		}
		c.shapes = append(c.shapes, chartShape{tone: column.tone, path: path.String()})
	}
}

// lines go from day to day. Where a day has no number there is a gap. The first column is drawn last, with
// smaller points: where two have the same number, both can be seen.
func (c *chart) lines(columns []figureColumn, days []wire.StatisticsDay, top float64) {
	for _, column := range slices.Backward(columns) {
		var path, dots strings.Builder
		before := false
		for i, day := range days {
			value, is := column.Value(day)
			if is {
				point := coordinate(float64(i*dayWidth)+dayWidth/2) + " " + coordinate(drawnHeight-value/top*drawnHeight)
				dots.WriteString("M" + point + "h0")
				if before {
					path.WriteString("L" + point)
				} else {
					path.WriteString("M" + point)
				}
			}
			before = is
		}
		c.shapes = append(c.shapes, chartShape{tone: column.tone, path: path.String(), dots: dots.String(), line: true})
	}
}

// areaText is the day with its numbers; nothing if it has none.
func areaText(v visit, columns []figureColumn, day wire.StatisticsDay) string {
	var parts []string
	for _, column := range columns {
		if value, is := column.Value(day); is && value != 0 {
			parts = append(parts, column.title+" "+numberText(v, column.Unit, value))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return day.Day + ": " + strings.Join(parts, ", ")
}

func coordinate(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// clockSteps are times that a scale ends with, in seconds.
var clockSteps = []float64{
	10, 30, 60, 2 * 60, 4 * 60, 10 * 60, 20 * 60, 30 * 60, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 12 * 3600,
	24 * 3600, 48 * 3600, 96 * 3600,
}

// leastScale is what the scale of next to nothing ends with: a number whose half is a whole one too, a
// hundred millionths, one agent.
var leastScale = map[statistics.Unit]float64{statistics.Count: 2, statistics.Money: 100, statistics.Average: 1}

// roundUp is a number that a scale ends with: whoever sees it and its half knows where they are.
func roundUp(unit statistics.Unit, highest float64) float64 {
	if unit == statistics.Seconds {
		for _, step := range clockSteps {
			if highest <= step {
				return step
			}
		}
		return roundUp(statistics.Count, highest/(24*3600)) * 24 * 3600
	}
	least := leastScale[unit]
	if highest <= least {
		return least
	}
	power := math.Pow(10, math.Floor(math.Log10(highest)))
	for _, step := range []float64{1, 2, 4, 6, 8} {
		if highest <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// markText is a number beside a scale.
func markText(v visit, unit statistics.Unit, value float64) string {
	switch {
	case value == 0:
		return "0"
	case unit == statistics.Count:
		return count(int64(value))
	case unit == statistics.Average:
		return strconv.FormatFloat(value, 'f', -1, 64)
	default:
		return numberText(v, unit, value)
	}
}
