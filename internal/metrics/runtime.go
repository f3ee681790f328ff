package metrics

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// fromRuntime is what Prometheus' own library shows of Go's runtime, under its names,
// because dashboards ask for them. The value is the sum of what Go's runtime/metrics
// has under the names in of.
var fromRuntime = []struct {
	kind, name, help string
	of               []string
}{
	{gauge, "go_goroutines", "Goroutines that exist.", []string{"/sched/goroutines:goroutines"}},
	{gauge, "go_threads", "Threads of the system that exist.", []string{"/sched/threads/total:threads"}},
	{gauge, "go_sched_gomaxprocs_threads", "How many threads may run Go code at once.", []string{"/sched/gomaxprocs:threads"}},
	{gauge, "go_gc_gogc_percent", "GOGC, in percent.", []string{"/gc/gogc:percent"}},
	{gauge, "go_gc_gomemlimit_bytes", "GOMEMLIMIT, in bytes.", []string{"/gc/gomemlimit:bytes"}},
	{gauge, "go_memstats_sys_bytes", "Memory from the system.", []string{"/memory/classes/total:bytes"}},
	{gauge, "go_memstats_alloc_bytes", "Memory of objects on the heap.", []string{"/memory/classes/heap/objects:bytes"}},
	{gauge, "go_memstats_heap_alloc_bytes", "Memory of objects on the heap.", []string{"/memory/classes/heap/objects:bytes"}},
	{gauge, "go_memstats_heap_inuse_bytes", "Memory of spans of the heap that hold objects.", []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"}},
	{gauge, "go_memstats_heap_idle_bytes", "Memory of spans of the heap that hold nothing.", []string{"/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"}},
	{gauge, "go_memstats_heap_released_bytes", "Memory of the heap that the system has back.", []string{"/memory/classes/heap/released:bytes"}},
	{gauge, "go_memstats_heap_sys_bytes", "Memory of the heap.", []string{
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes",
	}},
	{gauge, "go_memstats_heap_objects", "Objects on the heap.", []string{"/gc/heap/objects:objects"}},
	{gauge, "go_memstats_next_gc_bytes", "Size of the heap at which the next collection ends.", []string{"/gc/heap/goal:bytes"}},
	{gauge, "go_memstats_stack_inuse_bytes", "Memory of goroutines' stacks.", []string{"/memory/classes/heap/stacks:bytes"}},
	{gauge, "go_memstats_stack_sys_bytes", "Memory of all stacks.", []string{"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"}},
	{gauge, "go_memstats_mspan_inuse_bytes", "Memory of span structures in use.", []string{"/memory/classes/metadata/mspan/inuse:bytes"}},
	{gauge, "go_memstats_mspan_sys_bytes", "Memory of span structures.", []string{"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"}},
	{gauge, "go_memstats_mcache_inuse_bytes", "Memory of cache structures in use.", []string{"/memory/classes/metadata/mcache/inuse:bytes"}},
	{gauge, "go_memstats_mcache_sys_bytes", "Memory of cache structures.", []string{"/memory/classes/metadata/mcache/inuse:bytes", "/memory/classes/metadata/mcache/free:bytes"}},
	{gauge, "go_memstats_buck_hash_sys_bytes", "Memory of profiles.", []string{"/memory/classes/profiling/buckets:bytes"}},
	{gauge, "go_memstats_gc_sys_bytes", "Memory of the collector's own data.", []string{"/memory/classes/metadata/other:bytes"}},
	{gauge, "go_memstats_other_sys_bytes", "Memory of the rest of the runtime.", []string{"/memory/classes/other:bytes"}},
	{counter, "go_memstats_alloc_bytes_total", "Bytes that were allocated on the heap so far.", []string{"/gc/heap/allocs:bytes"}},
	{counter, "go_memstats_mallocs_total", "Objects that were allocated on the heap so far.", []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
	{counter, "go_memstats_frees_total", "Objects that were freed on the heap so far.", []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
}

// AddRuntime adds what Go's runtime says about this process.
func (r *Registry) AddRuntime() {
	for _, row := range fromRuntime {
		r.addFunc(row.kind, row.name, row.help, func() float64 { return runtimeSum(row.of) }, nil)
	}
	r.Gauge("go_info", "Always 1; the version of Go is in the label.", func() float64 { return 1 }, Label{"version", runtime.Version()})
	r.Gauge("go_memstats_last_gc_time_seconds", "When the last collection ended, in seconds since 1970; 0 if there was none.", func() float64 {
		var stats debug.GCStats
		debug.ReadGCStats(&stats)
		if stats.LastGC.Unix() <= 0 {
			return 0
		}
		return float64(stats.LastGC.UnixNano()) / float64(time.Second)
	})
	r.add(summary, "go_gc_duration_seconds", "How long collections stopped the program.", series{write: writePauses})
}

// runtimeSum adds up metrics of the runtime; one that this version of Go does not have
// counts nothing.
func runtimeSum(names []string) float64 {
	samples := make([]runtimemetrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	runtimemetrics.Read(samples)
	var sum float64
	for _, sample := range samples {
		if sample.Value.Kind() == runtimemetrics.KindUint64 {
			sum += float64(sample.Value.Uint64())
		}
	}
	return sum
}

func writePauses(p *page) {
	const name = "go_gc_duration_seconds"
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	for i, pause := range stats.PauseQuantiles {
		p.sample(name, `quantile="`+number(float64(i)/4)+`"`, pause.Seconds())
	}
	p.sample(name+"_sum", "", stats.PauseTotal.Seconds())
	p.sample(name+"_count", "", float64(stats.NumGC))
}
