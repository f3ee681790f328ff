package drill

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// summary is what happened, in lines.
func (r *Result) summary() []string {
	counts := map[kind]int{}
	for _, f := range r.tally.happened {
		counts[f.kind]++
	}
	var faults []string
	for _, c := range chances {
		if count := counts[c.kind]; count > 0 {
			faults = append(faults, fmt.Sprintf("%d × %s", count, c.kind))
		}
	}
	sum := func(of func(*lineFaults) *atomic.Int64) (all int64) {
		for _, l := range r.lines {
			all += of(&l.faults).Load()
		}
		return all
	}
	f := r.found
	return []string{
		fmt.Sprintf("took %s; broken: %s; %d faults were left out because the same thing was already broken", r.took.Round(time.Second), strings.Join(faults, ", "), r.tally.skipped),
		fmt.Sprintf("requests of agents: %d; %d refused, %d answers lost, %d delayed, %d overtaken, %d sent twice, %d once more later",
			sum(func(l *lineFaults) *atomic.Int64 { return &l.requests }), sum(func(l *lineFaults) *atomic.Int64 { return &l.refused }),
			sum(func(l *lineFaults) *atomic.Int64 { return &l.lost }), sum(func(l *lineFaults) *atomic.Int64 { return &l.delayed }),
			sum(func(l *lineFaults) *atomic.Int64 { return &l.overtaken }), sum(func(l *lineFaults) *atomic.Int64 { return &l.doubled }),
			sum(func(l *lineFaults) *atomic.Int64 { return &l.repeated })),
		fmt.Sprintf("starts that failed, on a full disk or without the database, and were tried again: %d", r.failed),
		fmt.Sprintf("tasks: %d, %d done; %d runs, %d of them lost, %d handed back; %d pull requests; %d journal entries",
			len(f.tasks), f.inState(task.Done), f.runs(), f.moved(task.Lost), f.moved(task.Returned), len(f.forge.Pulls), f.entries()),
	}
}

// WriteHTML writes the report of the drill: one file, which needs nothing else.
func (r *Result) WriteHTML(to io.Writer) error {
	r.usage.mu.Lock()
	defer r.usage.mu.Unlock()
	var plots []drawing
	for _, title := range r.usage.titles {
		if of := r.usage.plots[title]; len(of.Series) > 0 {
			plots = append(plots, draw(*of))
		}
	}
	return page(r, plots, r.faults()).Render(context.Background(), to)
}

// faultLine is a fault as texts.
type faultLine struct{ at, kind, target, lasts string }

// faults are those that happened, as lines of a table.
func (r *Result) faults() (lines []faultLine) {
	happened := slices.Clone(r.tally.happened)
	slices.SortFunc(happened, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	for _, f := range happened {
		target := ""
		switch {
		case strings.Contains(string(f.kind), "agent"):
			target = fmt.Sprint("agent", f.target)
		case strings.Contains(string(f.kind), "server"):
			target = fmt.Sprint("server", f.target)
		}
		line := faultLine{at: f.at.Round(time.Millisecond).String(), kind: string(f.kind), target: target}
		if f.lasts > 0 {
			line.lasts = f.lasts.Round(time.Millisecond).String()
		}
		if f.kind == databaseClockSet {
			line.lasts = f.clock.Round(time.Millisecond).String()
		}
		lines = append(lines, line)
	}
	return lines
}

// setting is what the installation was, in a sentence or two.
func (r *Result) setting() string {
	d, database, disks := r.drill, "SQLite", "No disk was full: only root can mount file systems for that."
	if d.Database != "" {
		database = "PostgreSQL"
	}
	if d.SmallDisks {
		disks = "Each process had a file system of its own."
	}
	return fmt.Sprintf("%d tasks; servers: %d on %s; agents: %d with %d tasks at a time, sandbox %s; broken for %s, every %s on average. %s",
		d.Tasks, d.Servers, database, d.Agents, d.Parallel, d.Sandbox, d.Lasts, d.Every, disks)
}

// drawing is a plot as lines in a picture of a fixed size.
type drawing struct {
	Title, Unit string
	Top         string // what is at the upper edge
	End         string // what is at the right edge
	Lines       []drawnLine
}

func (d drawing) heading() string {
	if d.Unit == "" {
		return d.Title
	}
	return d.Title + " (" + d.Unit + ")"
}

type drawnLine struct {
	Name, Color, Points string
	First, Last, Most   string
}

// The size of a picture.
const (
	width, height = 900, 240
)

// colors are those that people with any eyesight tell apart best; see the palette of Okabe
// and Ito.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999", "#7f3c8d", "#8c6d31"}

// draw makes lines of numbers.
func draw(p plot) drawing {
	var top float64
	var end time.Duration
	for _, s := range p.Series {
		for _, at := range s.Points {
			top, end = max(top, at.Value), max(end, at.At)
		}
	}
	made := drawing{Title: p.Title, Unit: p.Unit, Top: number(top), End: end.Round(time.Second).String()}
	for i, s := range p.Series {
		line := drawnLine{Name: s.Name, Color: colors[i%len(colors)]}
		var points strings.Builder
		var most float64
		for _, at := range s.Points {
			most = max(most, at.Value)
			fmt.Fprintf(&points, "%.1f,%.1f ", width*float64(at.At)/float64(max(end, 1)), height-height*at.Value/max(top, 1))
		}
		line.Points, line.First, line.Last, line.Most = points.String(), number(s.Points[0].Value), number(s.Points[len(s.Points)-1].Value), number(most)
		made.Lines = append(made.Lines, line)
	}
	return made
}

func number(value float64) string {
	if value < 10 && value != float64(int64(value)) {
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}
