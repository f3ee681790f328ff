package metrics_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func read(t *testing.T, registry *metrics.Registry) (string, map[string]float64) {
	t.Helper()
	answer := httptest.NewRecorder()
	registry.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := answer.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("the content type is %s", got)
	}
	return answer.Body.String(), testkit.ParseMetrics(t, answer.Body.String())
}

// The text is what the documentation of the format shows, with the families in order of
// their names and the labels escaped.
func TestTextFormat(t *testing.T) {
	t.Parallel()
	var registry metrics.Registry
	seconds := registry.Histogram("wait_seconds", "How long\nit \\ took.", []float64{0.1, 2.5}, "route", "status")
	for _, value := range []float64{0.05, 0.1, 1, 30} {
		seconds.Observe(value, "GET /{id}", "200")
	}
	seconds.Observe(2.5, "a \"b\" \\ \n c\xff}", "404")
	requests := 3.0
	registry.Counter("requests_total", "Requests.", func() float64 { return requests }, metrics.Label{Name: "forge", Value: "github"})
	registry.Counter("requests_total", "Requests.", func() float64 { return math.Inf(1) }, metrics.Label{Name: "forge", Value: "gitea"})
	registry.Gauge("level", "A level.", func() float64 { return -1.5e-9 })
	requests++
	text, _ := read(t, &registry)
	want := `# HELP level A level.
# TYPE level gauge
level -1.5e-09
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{forge="github"} 4
requests_total{forge="gitea"} +Inf
# HELP wait_seconds How long\nit \\ took.
# TYPE wait_seconds histogram
wait_seconds_bucket{route="GET /{id}",status="200",le="0.1"} 2
wait_seconds_bucket{route="GET /{id}",status="200",le="2.5"} 3
wait_seconds_bucket{route="GET /{id}",status="200",le="+Inf"} 4
wait_seconds_sum{route="GET /{id}",status="200"} 31.15
wait_seconds_count{route="GET /{id}",status="200"} 4
wait_seconds_bucket{route="a \"b\" \\ \n c�}",status="404",le="0.1"} 0
wait_seconds_bucket{route="a \"b\" \\ \n c�}",status="404",le="2.5"} 1
wait_seconds_bucket{route="a \"b\" \\ \n c�}",status="404",le="+Inf"} 1
wait_seconds_sum{route="a \"b\" \\ \n c�}",status="404"} 2.5
wait_seconds_count{route="a \"b\" \\ \n c�}",status="404"} 1
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// However many values a label has, a histogram stays within bounds, and no value that
// was observed is lost.
func TestHistogramIsBounded(t *testing.T) {
	t.Parallel()
	var registry metrics.Registry
	seconds := registry.Histogram("wait_seconds", "How long it took.", []float64{1}, "route", "status")
	const all = 10_000
	for i := range all {
		seconds.Observe(1, fmt.Sprint("/", i), "200")
	}
	seconds.Observe(1, "/0", "200")
	_, values := read(t, &registry)
	var series, count float64
	for name, value := range values {
		if strings.HasPrefix(name, "wait_seconds_count") {
			series++
			count += value
		}
	}
	if series != 2001 || count != all+1 {
		t.Errorf("%v observations are in %v series", count, series)
	}
	if got := values[`wait_seconds_count{route="/0",status="200"}`]; got != 2 {
		t.Errorf("the first series has %v observations", got)
	}
	if got := values[`wait_seconds_count{route="other",status="other"}`]; got != all-2000 {
		t.Errorf("the rest has %v observations", got)
	}
}

func TestManyObserveAtOnce(t *testing.T) {
	t.Parallel()
	var registry metrics.Registry
	seconds := registry.Histogram("wait_seconds", "How long it took.", []float64{1}, "status")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				seconds.Observe(float64(i), fmt.Sprint(200+i%3))
				_ = registry.String()
			}
		})
	}
	all.Wait()
	_, values := read(t, &registry)
	if got := values[`wait_seconds_count{status="200"}`]; got != 8*34 {
		t.Errorf("there are %v observations", got)
	}
}

func TestWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	zero := func() float64 { return 0 }
	for name, add := range map[string]func(*metrics.Registry){
		"the same labels":  func(r *metrics.Registry) { r.Gauge("level", "A level.", zero, metrics.Label{Name: "of", Value: "a"}) },
		"another kind":     func(r *metrics.Registry) { r.Counter("level", "A level.", zero) },
		"another help":     func(r *metrics.Registry) { r.Gauge("level", "The level.", zero) },
		"a histogram":      func(r *metrics.Registry) { r.Histogram("level", "A level.", nil) },
		"bounds that fall": func(r *metrics.Registry) { r.Histogram("wait", "A wait.", []float64{2, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var registry metrics.Registry
			registry.Gauge("level", "A level.", zero, metrics.Label{Name: "of", Value: "a"})
			defer func() {
				if recover() == nil {
					t.Error("it was added")
				}
			}()
			add(&registry)
		})
	}
}

// What dashboards for Go programs ask for is there, and true.
func TestRuntimeAndProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		testkit.LeaveOut(t, "a system with /proc")
	}
	var registry metrics.Registry
	registry.AddRuntime()
	registry.AddProcess()
	text, values := read(t, &registry)
	resident := float64(testkit.ProcessMemory(t, os.Getpid(), "VmRSS"))
	now := float64(time.Now().Unix())
	for name, between := range map[string][2]float64{
		"go_goroutines":                    {1, 1000},
		"go_threads":                       {1, 1000},
		"go_memstats_alloc_bytes":          {10_000, 1 << 30},
		"go_memstats_alloc_bytes_total":    {10_000, 1 << 40},
		"go_memstats_heap_inuse_bytes":     {10_000, 1 << 30},
		"go_memstats_sys_bytes":            {1 << 20, 1 << 32},
		"go_memstats_mallocs_total":        {100, 1 << 40},
		"go_gc_gogc_percent":               {1, 1000},
		"go_sched_gomaxprocs_threads":      {1, 1024},
		"go_gc_duration_seconds_count":     {0, 1 << 20},
		"process_cpu_seconds_total":        {0, 3600},
		"process_resident_memory_bytes":    {resident / 2, resident * 2},
		"process_virtual_memory_bytes":     {resident, 1 << 45},
		"process_virtual_memory_max_bytes": {resident, 1 << 64},
		"process_start_time_seconds":       {now - 3600, now + 2},
		"process_open_fds":                 {3, 1000},
		"process_max_fds":                  {3, 1 << 40},
	} {
		if value, found := values[name]; !found || value < between[0] || value > between[1] {
			t.Errorf("%s is %v (there: %v), want from %v to %v", name, value, found, between[0], between[1])
		}
	}
	// The runtime has something of each kind of memory, but need not have freed any.
	for name, value := range values {
		free := strings.Contains(name, "frees") || strings.Contains(name, "idle") || strings.Contains(name, "released") || strings.Contains(name, "last_gc")
		if strings.HasPrefix(name, "go_memstats_") && !free && value == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	for _, want := range []string{
		"# TYPE go_memstats_alloc_bytes_total counter", "# TYPE process_cpu_seconds_total counter",
		"# TYPE process_open_fds gauge", "# TYPE go_gc_duration_seconds summary", `go_gc_duration_seconds{quantile="0.25"}`, `go_info{version="go1.`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}
