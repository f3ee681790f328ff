package forgetest

import (
	"slices"
	"testing"
)

// Options says how much of the suite to run.
type Options struct {
	// Comments is how many comments the long conversation has; 0 means 1,000.
	Comments int
	// Items is how many items the long listing has; 0 means 110.
	Items int
	// SilentReviews says that what people write with a review is a comment like
	// any other on this forge, so that theirs are tested without a text.
	SilentReviews bool
	// Only names the tests to run; nil means all.
	Only []string
	// Without names tests that have no meaning on this forge, and says why.
	Without map[string]string
}

// Run runs the suite. Each test makes a repository of its own, and they run in
// parallel.
func Run(t *testing.T, fixture Fixture, options Options) {
	if options.Comments == 0 {
		options.Comments = 1000
	}
	if options.Items == 0 {
		options.Items = 110
	}
	all := &suite{fixture, options}
	for _, one := range []struct {
		name string
		test func(*suite, *testing.T)
	}{
		{"Repositories", (*suite).repositories},
		{"Access", (*suite).access},
		{"Item", (*suite).item},
		{"ItemOfThePast", (*suite).itemOfThePast},
		{"Moved", (*suite).moved},
		{"Ghost", (*suite).ghost},
		{"WrongKeys", (*suite).wrongKeys},
		{"List", (*suite).list},
		{"ListIsComplete", (*suite).listIsComplete},
		{"Comments", (*suite).comments},
		{"CommentsAreComplete", (*suite).commentsAreComplete},
		{"StrangeText", (*suite).strangeText},
		{"LargeText", (*suite).largeText},
		{"LabelEvents", (*suite).labelEvents},
		{"LinkedPulls", (*suite).linkedPulls},
		{"CreateComment", (*suite).createComment},
		{"RepeatComment", (*suite).repeatComment},
		{"EditComment", (*suite).editComment},
		{"Labels", (*suite).labels},
		{"StrangeLabels", (*suite).strangeLabels},
		{"LabelsAtOnce", (*suite).labelsAtOnce},
		{"Assignees", (*suite).assignees},
		{"Remote", (*suite).remote},
		{"OpenPull", (*suite).openPull},
		{"FindPull", (*suite).findPull},
		{"EditPull", (*suite).editPull},
		{"Diff", (*suite).diff},
		{"Reviews", (*suite).reviews},
		{"ReviewersAccess", (*suite).reviewersAccess},
		{"SubmitReview", (*suite).submitReview},
		{"Reply", (*suite).reply},
		{"Written", (*suite).written},
		{"WrittenChanges", (*suite).writtenChanges},
		{"Dismissed", (*suite).dismissed},
		{"Reactions", (*suite).reactions},
		{"Statuses", (*suite).statuses},
		{"Checks", (*suite).checks},
		{"ManyChecks", (*suite).manyChecks},
		{"CheckLog", (*suite).checkLog},
		{"ResolveThread", (*suite).resolveThread},
		{"MergePull", (*suite).mergePull},
		{"MergedFiles", (*suite).mergedFiles},
		{"Context", (*suite).context},
	} {
		if why, without := options.Without[one.name]; without {
			t.Logf("without %s: %s", one.name, why)
			continue
		}
		if options.Only != nil && !slices.Contains(options.Only, one.name) {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			one.test(all, t)
		})
	}
}

type suite struct {
	Fixture
	Options
}
