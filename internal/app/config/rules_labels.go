package config

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// checkAllLabels makes sure that a label means one thing. Forges do not
// distinguish small and capital letters in labels.
func (l *loader) checkAllLabels() {
	for _, forge := range []task.Forge{task.GitHub, task.GitLab, task.Gitea} {
		l.checkLabels(string(forge))
	}
	review := l.config.Review.Label
	if state := l.stateOf(review); state != nil {
		l.conflict(complain("choose another label", "%s is also %s", show(review), state.path), "review.label", state.path)
	}
	approval := l.config.Planning.ApprovalLabel
	if state := l.stateOf(approval); state != nil {
		l.conflict(complain("choose another label", "%s is also %s", show(approval), state.path), "planning.approval_label", state.path)
	}
	if strings.EqualFold(approval, review) {
		l.conflict(complain("choose another label", "%s is also review.label", show(approval)), "planning.approval_label", "review.label")
	}
	names := l.config.RoleNames()
	for i, name := range names {
		path := join("roles", pathName(name))
		state := l.stateOf(name)
		same := func(other string) bool { return strings.EqualFold(other, name) }
		switch {
		case state != nil:
			l.conflict(complain("choose another label", "this label is also %s", state.path), path)
		case same(review):
			l.conflict(complain("choose another label", "this label is also review.label"), path)
		case same(approval):
			l.conflict(complain("choose another label", "this label is also planning.approval_label"), path)
		case slices.ContainsFunc(reservedNames(), same):
			l.conflict(complain("choose another label", "this is a name of llm_overrides that is not a role"), path)
		case slices.ContainsFunc(names[:i], same):
			l.conflict(complain("remove one of them", "this role is there twice: labels do not differ by capital letters"), path)
		}
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

// stateOf is the first key whose label is this one, or nil.
func (l *loader) stateOf(label string) *key {
	for _, forge := range []task.Forge{task.GitHub, task.GitLab, task.Gitea} {
		for _, state := range l.stateLabels(string(forge)) {
			if strings.EqualFold(label, shown(state.load(&l.config))) {
				return state
			}
		}
	}
	return nil
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
