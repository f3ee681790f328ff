// Package metrics holds counters, gauges and histograms and writes them in the text
// format of Prometheus, version 0.0.4.
package metrics

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// contentType is the media type of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Kinds of metrics, as the text format names them.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
	summary   = "summary"
)

// Label tells metrics with the same name apart.
type Label struct{ Name, Value string }

// Registry is a set of metrics. Its zero value is an empty one. Any number of
// goroutines may use it.
type Registry struct {
	mu       sync.Mutex
	families []*family // sorted by name
}

// family is what has a name in common.
type family struct {
	name, help, kind string
	series           []series
}

// series writes the lines of one combination of labels, or of all if there are any
// number of them.
type series struct {
	labels string
	write  func(*page)
}

// Counter adds a number that never falls; read is called whenever somebody asks.
// Of one name, there may be several with different labels. Like the other methods
// that add, it panics if the metric is there already: names are not input.
func (r *Registry) Counter(name, help string, read func() float64, labels ...Label) {
	r.addFunc(counter, name, help, read, labels)
}

// Gauge adds a number that rises and falls; see Counter.
func (r *Registry) Gauge(name, help string, read func() float64, labels ...Label) {
	r.addFunc(gauge, name, help, read, labels)
}

func (r *Registry) addFunc(kind, name, help string, read func() float64, labels []Label) {
	text := labelText(labels)
	r.add(kind, name, help, series{text, func(p *page) { p.sample(name, text, read()) }})
}

func (r *Registry) add(kind, name, help string, added series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearchFunc(r.families, name, func(f *family, name string) int { return cmp.Compare(f.name, name) })
	if !found {
		r.families = slices.Insert(r.families, at, &family{name: name, help: help, kind: kind})
	}
	to := r.families[at]
	same := func(s series) bool { return s.labels == added.labels }
	if to.kind != kind || to.help != help || slices.ContainsFunc(to.series, same) {
		panic(fmt.Sprintf("metrics: %s{%s} is there already", name, added.labels))
	}
	to.series = append(to.series, added)
}

// String is the metrics of this moment in the text format.
func (r *Registry) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var p page
	for _, f := range r.families {
		p.head(f.name, f.help, f.kind)
		for _, s := range f.series {
			s.write(&p)
		}
	}
	return p.String()
}

// ServeHTTP answers with the metrics of this moment.
func (r *Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", contentType)
	// Who does not read the answer is no concern of ours.
	_, _ = strings.NewReader(r.String()).WriteTo(w)
}
