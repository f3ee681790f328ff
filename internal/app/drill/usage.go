package drill

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// usage is what the processes have used over time.
type usage struct {
	site  *site
	begun time.Time
	http  *http.Client

	// used is the processor time of each process when it was last read, and when that was.
	used map[int64]processorTime

	mu     sync.Mutex
	plots  map[string]*plot
	titles []string // of the plots, in their order
}

// plot is one kind of number over time.
type plot struct {
	Title, Unit string
	Series      []*series
}

// series is the number of one process, or of one folder.
type series struct {
	Name   string
	Points []point
}

type point struct {
	At    time.Duration
	Value float64
}

// The plots.
const (
	plotTasks       = "Tasks"
	plotProcessor   = "Processor"
	plotMemory      = "Memory"
	plotGoroutines  = "Goroutines of servers"
	plotThreads     = "Threads of agents"
	plotDescriptors = "Open file descriptors"
	plotDisk        = "Disk"
)

const (
	measureEvery = 5 * time.Second
	// foldersEvery is how many measurements there are for one of the folders, and tellEvery for
	// one line of progress.
	foldersEvery   = 6
	tellEvery      = 12
	measureWithin  = 3 * time.Second
	largestMetrics = 4 << 20
	mebibyte       = 1 << 20
)

func newUsage(s *site, begun time.Time) *usage {
	u := &usage{
		site: s, begun: begun, http: &http.Client{Timeout: measureWithin}, plots: map[string]*plot{}, used: map[int64]processorTime{},
		titles: []string{plotTasks, plotProcessor, plotMemory, plotGoroutines, plotThreads, plotDescriptors, plotDisk},
	}
	for _, title := range u.titles {
		u.plots[title] = &plot{Title: title}
	}
	u.plots[plotProcessor].Unit = "cores, with what the process has started"
	u.plots[plotMemory].Unit, u.plots[plotDisk].Unit = "MiB", "MiB"
	return u
}

// start measures until stop is called, which may be done again.
func (u *usage) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			u.measure(ctx, i%foldersEvery == 0)
			if lifecycle.Sleep(ctx, measureEvery) != nil {
				return
			}
			if i%tellEvery == tellEvery-1 {
				u.tell()
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// tell tells people how far it is.
func (u *usage) tell() {
	s := u.site
	last := func(name string) float64 {
		u.mu.Lock()
		defer u.mu.Unlock()
		points := u.seriesOf(plotTasks, name).Points
		if len(points) == 0 {
			return 0
		}
		return points[len(points)-1].Value
	}
	s.drill.printf("%s: %d of %d tasks given, %.0f wait, %.0f run; %d faults",
		time.Since(u.begun).Round(time.Second), s.given.Load(), s.drill.Tasks, last("waiting"), last("running"), s.tally.count())
}

func (u *usage) measure(ctx context.Context, folders bool) {
	for _, p := range slices.Concat(u.site.servers, u.site.agents) {
		u.measureProcess(p)
	}
	u.add(plotTasks, "given", float64(u.site.given.Load()))
	for i, address := range u.site.addresses {
		numbers := readMetrics(ctx, u.http, address.String())
		if value, is := numbers["go_goroutines"]; is {
			u.add(plotGoroutines, u.site.servers[i].name, value)
		}
		if i == len(u.site.addresses)-1 && len(numbers) > 0 {
			u.add(plotTasks, "waiting", numbers[`toryo_tasks{state="queued"}`]+numbers[`toryo_tasks{state="paused"}`])
			u.add(plotTasks, "running", numbers[`toryo_tasks{state="running"}`])
		}
	}
	if !folders {
		return
	}
	for _, name := range u.site.folders() {
		u.add(plotDisk, name, float64(sizeOf(filepath.Join(u.site.drill.Dir, name)))/mebibyte)
	}
	if u.site.drill.DatabaseSize != nil {
		if size, err := u.site.drill.DatabaseSize(ctx); err == nil { // it may be restarting
			u.add(plotDisk, "database", float64(size)/mebibyte)
		}
	}
}

// measureProcess reads what the kernel knows of a process. On systems without /proc that is
// nothing.
func (u *usage) measureProcess(p *process) {
	pid := p.pid.Load()
	if pid == 0 {
		return
	}
	dir := fmt.Sprintf("/proc/%d", pid)
	u.measureProcessor(p.name, pid, dir)
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		number, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			u.add(plotMemory, p.name, number/1024)
		case "Threads:":
			if strings.HasPrefix(p.name, "agent") {
				u.add(plotThreads, p.name, number)
			}
		}
	}
	if open, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		u.add(plotDescriptors, p.name, float64(len(open)))
	}
}

// processorTime is what a process has used of processors.
type processorTime struct {
	seconds float64
	at      time.Time
}

// ticks is how many there are in a second of what /proc tells, on every system that Go knows.
const ticks = 100

// measureProcessor adds how many processors a process has used since the last time, together
// with the processes that it started and that have ended.
func (u *usage) measureProcessor(name string, pid int64, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return
	}
	// The name of the program stands in parentheses and may have spaces in it. After it come the
	// state and then numbers: the 12th to 15th are the times.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return
	}
	now := processorTime{at: time.Now()}
	for _, field := range fields[11:15] {
		number, _ := strconv.ParseFloat(field, 64)
		now.seconds += number / ticks
	}
	if before, is := u.used[pid]; is {
		u.add(plotProcessor, name, (now.seconds-before.seconds)/now.at.Sub(before.at).Seconds())
	}
	u.used[pid] = now
}

// readMetrics reads the metrics of a server, without their text. There are none if it does not
// answer.
func readMetrics(ctx context.Context, through *http.Client, server string) map[string]float64 {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/metrics", nil)
	if err != nil {
		return nil
	}
	answer, err := through.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	numbers := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(answer.Body, largestMetrics))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			numbers[name] = number
		}
	}
	return numbers
}

// sizeOf is how many bytes a folder has. What goes while we look is not counted.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}

func (u *usage) add(title, name string, value float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.seriesOf(title, name)
	of.Points = append(of.Points, point{At: time.Since(u.begun), Value: value})
}

// seriesOf is the series of a plot with a name. The mutex is held.
func (u *usage) seriesOf(title, name string) *series {
	in := u.plots[title]
	for _, one := range in.Series {
		if one.Name == name {
			return one
		}
	}
	made := &series{Name: name}
	in.Series = append(in.Series, made)
	return made
}

// mayGrow is by how much a number may be higher in the last quarter of the drill than in the
// second: by half, and by this in any case.
var mayGrow = map[string]float64{plotMemory: 48, plotGoroutines: 60, plotThreads: 20, plotDescriptors: 40, plotDisk: 64}

// longEnough is how long a drill lasts at least of which can be said whether something grows.
const longEnough = 10 * time.Minute

// growth says what has not levelled off, of the processes that live through the whole drill and
// of the folders of agents. What servers keep grows with the number of tasks.
func (u *usage) growth(d Drill) (wrong []string) {
	if d.Lasts < longEnough {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for title, slack := range mayGrow {
		for _, one := range u.plots[title].Series {
			watched := one.Name == fmt.Sprint("agent", d.killedAgents()) || one.Name == fmt.Sprint("server", d.killedServers())
			if title == plotDisk {
				watched = strings.HasPrefix(one.Name, "agent")
			}
			early, late := one.median(d.Lasts/4, d.Lasts/2), one.median(d.Lasts*3/4, d.Lasts)
			if watched && late > early*3/2 && late > early+slack {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %.0f in the second quarter, %.0f in the last %s", title, one.Name, early, late, u.plots[title].Unit))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// median is the one of what was measured in a part of the time, 0 if nothing was.
func (s *series) median(from, to time.Duration) float64 {
	var values []float64
	for _, p := range s.Points {
		if p.At >= from && p.At < to {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
