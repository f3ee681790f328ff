package metrics

import (
	"strconv"
	"strings"
)

// page is text in the format of Prometheus.
type page struct{ strings.Builder }

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeValue = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// head begins a family.
func (p *page) head(name, help, kind string) {
	p.WriteString("# HELP " + name + " " + escapeHelp.Replace(help) + "\n")
	p.WriteString("# TYPE " + name + " " + kind + "\n")
}

// sample writes one value; labels are as labelText makes them.
func (p *page) sample(name, labels string, value float64) {
	p.WriteString(name)
	if labels != "" {
		p.WriteString("{" + labels + "}")
	}
	p.WriteString(" " + number(value) + "\n")
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// labelText is the labels as they stand between braces. The format demands UTF-8.
func labelText(labels []Label) string {
	var text strings.Builder
	for i, label := range labels {
		if i > 0 {
			text.WriteByte(',')
		}
		value := escapeValue.Replace(strings.ToValidUTF8(label.Value, "\uFFFD"))
		text.WriteString(label.Name + `="` + value + `"`)
	}
	return text.String()
}

// and joins two texts of labels.
func and(labels, more string) string {
	if labels == "" {
		return more
	}
	return labels + "," + more
}
