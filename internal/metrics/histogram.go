package metrics

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const (
	// mostSeries is how many combinations of labels a histogram keeps apart. It bounds
	// memory and the size of the answer if a label turns out to be input after all.
	mostSeries = 2000
	// other is the value of the labels of all further combinations.
	other = "other"
)

// Histogram counts values in buckets, for each combination of its labels.
type Histogram struct {
	name   string
	bounds []float64
	labels []string

	mu     sync.Mutex
	series map[string]*buckets // by the text of the labels
}

// buckets is the values of one combination of labels.
type buckets struct {
	counts []uint64 // by bound; not cumulative
	count  uint64
	sum    float64
}

// Histogram adds a histogram with the upper bounds of its buckets, which rise; see
// Counter.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	h := &Histogram{name: name, bounds: bounds, labels: labels, series: make(map[string]*buckets)}
	if !slices.IsSorted(bounds) {
		panic(fmt.Sprintf("metrics: the bounds of %s do not rise: %v", name, bounds))
	}
	r.add(histogram, name, help, series{write: h.write})
	return h
}

// Observe counts a value. There is one label value for each label of the histogram.
func (h *Histogram) Observe(value float64, labelValues ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := h.bucketsOf(labelValues)
	// A value is in the first bucket whose bound is not below it.
	if at, _ := slices.BinarySearch(h.bounds, value); at < len(h.bounds) {
		to.counts[at]++
	}
	to.count++
	to.sum += value
}

func (h *Histogram) bucketsOf(labelValues []string) *buckets {
	key := h.key(func(i int) string { return labelValues[i] })
	if _, known := h.series[key]; !known && len(h.series) >= mostSeries {
		key = h.key(func(int) string { return other })
	}
	if h.series[key] == nil {
		h.series[key] = &buckets{counts: make([]uint64, len(h.bounds))}
	}
	return h.series[key]
}

func (h *Histogram) key(value func(int) string) string {
	labels := make([]Label, len(h.labels))
	for i, name := range h.labels {
		labels[i] = Label{name, value(i)}
	}
	return labelText(labels)
}

func (h *Histogram) write(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, labels := range slices.Sorted(maps.Keys(h.series)) {
		one := h.series[labels]
		var below uint64
		for i, bound := range h.bounds {
			below += one.counts[i]
			p.sample(h.name+"_bucket", and(labels, `le="`+number(bound)+`"`), float64(below))
		}
		p.sample(h.name+"_bucket", and(labels, `le="+Inf"`), float64(one.count))
		p.sample(h.name+"_sum", labels, one.sum)
		p.sample(h.name+"_count", labels, float64(one.count))
	}
}
