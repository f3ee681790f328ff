package testkit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The lines of Prometheus' text format, version 0.0.4.
var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\]|\\\\|\\n)+)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\\\|\\n|\\")*",?)+)\})? (\S+)$`)
	labelPart  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\n|\\")*)"(,|$)`)
)

// ParseMetrics reads the text format of Prometheus and fails the test at whatever a
// server of Prometheus would refuse or misread: lines of another form, a family that is
// not together or has no type, samples that are there twice, histograms whose buckets do
// not add up. It returns the values by name and labels as they are written.
func ParseMetrics(t testing.TB, text string) map[string]float64 {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		t.Error("the metrics do not end with a line break")
	}
	reader := metricsReader{kinds: map[string]string{}, values: map[string]float64{}, buckets: map[string]bucketsRead{}}
	for number, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := reader.line(line); err != nil {
			t.Errorf("line %d of the metrics, %s: %v", number+1, line, err)
		}
	}
	for labels, read := range reader.buckets {
		if total, found := reader.values[labels]; !found || !read.infinite || total != read.last {
			t.Errorf("the buckets of %s end with %v, and it is %v", labels, read.last, total)
		}
	}
	return reader.values
}

// metricsReader is what ParseMetrics knows after some lines.
type metricsReader struct {
	family  string            // the last one
	kinds   map[string]string // by family
	values  map[string]float64
	buckets map[string]bucketsRead // by the name and labels of the histogram's count
}

type bucketsRead struct {
	bound, last float64
	infinite    bool
}

func (r *metricsReader) line(line string) error {
	if parts := helpLine.FindStringSubmatch(line); parts != nil {
		if _, known := r.kinds[parts[1]]; known {
			return fmt.Errorf("%s begins a second time", parts[1])
		}
		r.family, r.kinds[parts[1]] = parts[1], ""
		return nil
	}
	if parts := typeLine.FindStringSubmatch(line); parts != nil {
		if kind, known := r.kinds[parts[1]]; !known || kind != "" || parts[1] != r.family {
			return fmt.Errorf("the type of %s does not follow its help", parts[1])
		}
		r.kinds[parts[1]] = parts[2]
		return nil
	}
	parts := sampleLine.FindStringSubmatch(line)
	if parts == nil {
		return fmt.Errorf("it is not in the format")
	}
	value, err := strconv.ParseFloat(parts[4], 64)
	if err != nil {
		return err
	}
	return r.sample(parts[1], parts[2], parts[3], value)
}

func (r *metricsReader) sample(name, braced, inside string, value float64) error {
	suffixes := []string{""}
	switch r.kinds[r.family] {
	case "histogram":
		suffixes = []string{"_bucket", "_sum", "_count"}
	case "summary":
		suffixes = []string{"", "_sum", "_count"}
	}
	if suffix, of := strings.CutPrefix(name, r.family); !of || !slices.Contains(suffixes, suffix) {
		return fmt.Errorf("it does not belong to %s", r.family)
	}
	if _, twice := r.values[name+braced]; twice {
		return fmt.Errorf("it is there a second time")
	}
	r.values[name+braced] = value
	var labels []string
	bound := ""
	matched := 0
	for _, part := range labelPart.FindAllStringSubmatch(inside, -1) {
		matched += len(part[0])
		switch {
		case slices.ContainsFunc(labels, func(l string) bool { return strings.HasPrefix(l, part[1]+"=") }):
			return fmt.Errorf("the label %s is there twice", part[1])
		case part[1] == "le":
			bound = part[2]
		default:
			labels = append(labels, part[1]+`="`+part[2]+`"`)
		}
	}
	if matched != len(inside) {
		return fmt.Errorf("its labels are not in the format")
	}
	if base, is := strings.CutSuffix(name, "_bucket"); is {
		return r.bucket(base+"_count", labels, bound, value)
	}
	return nil
}

// bucket demands that bounds and counts of a histogram rise, to one without end.
func (r *metricsReader) bucket(count string, labels []string, bound string, value float64) error {
	if len(labels) > 0 {
		count += "{" + strings.Join(labels, ",") + "}"
	}
	at, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return err
	}
	if before, later := r.buckets[count]; later && (at <= before.bound || value < before.last) {
		return fmt.Errorf("it does not rise")
	}
	r.buckets[count] = bucketsRead{at, value, bound == "+Inf"}
	return nil
}
