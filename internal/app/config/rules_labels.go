package config

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// checkAllLabels makes sure that a label means one thing. Forges do not
// distinguish small and capital letters in labels.
func (l *loader) checkAllLabels() {
	for _, forge := range []task.Forge{task.GitHub, task.GitLab, task.Gitea} {
		l.checkLabels(string(forge))
	}
}

// stateLabels lists the keys of a forge's state labels.
func (l *loader) stateLabels(forge string) []*key {
	var labels []*key
	for _, m := range l.schema.sections[forge].members {
		if m.key != nil && m.key.format == "label" {
			labels = append(labels, m.key)
		}
	}
	return labels
}

// checkLabels makes sure that the label tells the state.
func (l *loader) checkLabels(forge string) {
	labels := l.stateLabels(forge)
	for i, label := range labels {
		text := shown(label.load(&l.config))
		if forge == string(task.GitLab) && strings.Contains(text, ",") {
			l.conflict(complain("remove the comma", "GitLab does not allow a comma in a label"), label.path)
		}
		for _, other := range labels[:i] {
			if strings.EqualFold(text, shown(other.load(&l.config))) {
				l.conflict(complain("give every state a label of its own", "%s and %s have the same text %s", other.name, label.name, show(text)), label.path, other.path)
			}
		}
	}
}
