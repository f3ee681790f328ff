package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/journal"
)

const (
	// maxVerdict and maxBaselines are how many bytes of HTML the last verification and the tests
	// before the work have on the page. Longer ones are fetched when they are opened.
	maxVerdict   = 100 << 10
	maxBaselines = 70 << 10
	// mostNamed is how many names of tests or files are shown of many.
	mostNamed = 200
	// mostVerdicts is how many verifications are named.
	mostVerdicts = 30
	// mostTests is how many runs of tests the outline of a verification names.
	mostTests = 20
)

// outlineOf is what is shown of an earlier verification until it is opened.
func outlineOf(of journal.Verdict) journal.Verdict {
	short := journal.Verdict{Round: of.Round, Passed: of.Passed, Untested: of.Untested, NoTests: of.NoTests}
	for _, run := range of.Tests[:min(len(of.Tests), mostTests)] {
		short.Tests = append(short.Tests, journal.TestedRun{ExitCode: run.ExitCode, TimedOut: run.TimedOut, Counted: run.Counted, Ran: run.Ran, Failed: run.Failed})
	}
	return short
}

// lastVerdicts are as many verifications as are named.
func lastVerdicts(all []verdictView) []verdictView {
	return slices.Delete(all, 0, max(0, len(all)-mostVerdicts))
}

// newestFirst are verifications in the other order.
func newestFirst(all []verdictView) []verdictView {
	last := slices.Clone(all)
	slices.Reverse(last)
	return last
}

// problemsOf are what is wrong with the work besides its tests.
func problemsOf(one journal.Verdict) (texts []string) {
	for _, text := range []string{one.Setup, one.Unrun, one.TooLarge} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// testsLine is how many tests ran, and how many failed.
func testsLine(v visit, run journal.TestedRun) string {
	if run.Counted {
		return v.t("checks.counted", run.Ran, run.Failed)
	}
	if run.TimedOut {
		return v.t("row.timed_out")
	}
	return v.t("row.exit", run.ExitCode)
}

// testedFacts say how a run of the tests or of the build ended.
func testedFacts(v visit, run journal.TestedRun) (facts []string) {
	switch {
	case run.TimedOut:
		facts = append(facts, v.t("row.timed_out"))
	case run.ExitCode != 0:
		facts = append(facts, v.t("row.exit", run.ExitCode))
	}
	if run.Counted {
		facts = append(facts, v.t("checks.counts", run.Ran, run.Failed, run.Skipped))
	}
	if run.Milliseconds > 0 {
		facts = append(facts, tookMilliseconds(run.Milliseconds))
	}
	if !run.Compared {
		facts = append(facts, v.t("checks.not_compared"))
	}
	return facts
}

func tookMilliseconds(ms int64) string { return took(time.Duration(ms) * time.Millisecond) }

// baselinesOf are the runs of the tests before any change.
func baselinesOf(setup journal.Setup) (runs []journal.Baseline) {
	for _, project := range setup.Receipt.Projects {
		if project.Baseline != nil {
			runs = append(runs, *project.Baseline)
		}
	}
	if len(runs) == 0 && setup.Receipt.Baseline != nil {
		runs = append(runs, *setup.Receipt.Baseline)
	}
	return runs
}

// hasImage reports whether a kind of sandbox runs an image. The others have the programs of the
// machine, and the image that an environment would have says nothing of them.
func hasImage(kind string) bool { return kind == "docker" || kind == "kubernetes" }

// usageRow is what was used for one thing.
type usageRow struct {
	name                  string
	calls                 int
	input, cached, output int64
	cost                  int64
}

func (r *usageRow) add(used journal.Usage) {
	r.calls++
	r.input += used.Tokens.Input
	r.cached += used.Tokens.Cached
	r.output += used.Tokens.Output
	r.cost += used.Cost
}

// cachedShare is how much of the input was cached.
func (r *usageRow) cachedShare() string {
	if r.input == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(r.cached)/float64(r.input))
}

// tabKey is the name of a tab in the keys of texts.
func tabKey(tab string) string {
	if tab == tabConversation {
		return "conversation"
	}
	return tab
}
