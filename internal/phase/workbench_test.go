package phase_test

import (
	"runtime"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// BenchmarkRun is a whole run with 21 turns of execution and a model that answers
// at once: what a turn costs besides the model and the commands, how large the
// first request is, and how much of each request is a prefix of the next.
func BenchmarkRun(b *testing.B) {
	scenario, err := phasetest.Load("testdata/long/turns.txtar")
	if err != nil {
		b.Fatal(err)
	}
	engine := phasetest.Engine(b)
	for b.Loop() {
		b.StopTimer()
		world := phasetest.New(b, engine, scenario)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		if _, err := world.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		world.Check()
		requests := world.Requests(task.Execution)
		b.ReportMetric(float64(world.PhaseDuration(task.Execution).Microseconds())/float64(len(requests)), "us/turn")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1024/float64(len(requests)), "KiB/turn")
		b.ReportMetric(float64(after.Sys)/(1<<20), "MiB-of-process")
		b.ReportMetric(float64(len(requests)), "turns")
		b.ReportMetric(float64(world.Requests(task.PrePlanning)[0].Size()), "B-first-request")
		b.ReportMetric(100*phasetest.StableShare(requests), "%-stable")
	}
}
