package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// ProofOutcome says which tests show that the request is fulfilled.
type ProofOutcome struct {
	Shown []string `json:"shown,omitempty"` // they fail without the change and pass with it
	None  string   `json:"none,omitempty"`  // why no test can show it, as the plan says
	Wrong []string `json:"wrong,omitempty"` // why the work is not done
}

// prove looks for the tests that show it: those that the plan or the model names, or else
// those that the change has fixed.
func (r *run) prove(ctx context.Context, verdict *Verdict, runs []tested, written []string) error {
	proof := &verdict.Proof
	proof.None = r.state.plan.Proof.NoneBecause
	for _, run := range runs {
		proof.Shown = append(proof.Shown, run.outcome.Fixed...)
		if run.fixedAsAWhole() {
			proof.Shown = append(proof.Shown, run.outcome.Command)
		}
	}
	r.requested(verdict, runs)
	named, err := r.named(runs)
	if err != nil {
		return err
	}
	groups := make([][]string, len(named)) // tests that are not known to fail without the change
	for i, name := range named {
		groups[i] = proof.look(name, runs)
	}
	unshown := r.Work.Pull == nil && len(named) == 0 && proof.None == "" && len(proof.Shown) == 0 && stillFailing(runs)
	if unshown {
		groups = [][]string{added(runs)}
	}
	red, err := r.failingWithoutChange(ctx, verdict, runs, slices.Concat(groups...), written)
	if err != nil {
		return err
	}
	proof.take(named, groups, red)
	if unshown && len(proof.Shown) == 0 {
		verdict.finding(nothingShown, "", "", nil)
	}
	return nil
}

// take takes over which tests do not pass without the change.
func (p *ProofOutcome) take(named []string, groups [][]string, red map[string]bool) {
	for name := range red {
		p.Shown = append(p.Shown, name)
	}
	for i, name := range named {
		if len(groups[i]) > 0 && len(p.Shown) == 0 {
			p.wrong("The test %s, which is to show that the request is fulfilled, passes without the change too.", name)
		}
	}
	slices.Sort(p.Shown)
	p.Shown = slices.Compact(p.Shown)
	p.Shown = p.Shown[:min(len(p.Shown), mostNamed)]
}

func (p *ProofOutcome) wrong(format string, names ...any) {
	for i := range names {
		names[i] = llm.QuoteLine(fmt.Sprint(names[i]))
	}
	p.Wrong = append(p.Wrong, fmt.Sprintf(format, names...))
}

// fixedAsAWhole reports whether tests without names failed before and pass now.
func (t *tested) fixedAsAWhole() bool {
	return t.ran.Tests == nil && t.ran.Passed() && t.project.Baseline != nil && t.project.Baseline.Tests == nil && !t.project.Baseline.Passed() && len(t.outcome.Fixed) == 0
}

// stillFailing reports whether tests fail that failed before. That none was found is no
// failure.
func stillFailing(runs []tested) bool {
	return slices.ContainsFunc(runs, func(t tested) bool {
		return len(t.outcome.Before) > 0 || t.ran.ExitCode != 0 && t.ran.Tests == nil && len(t.outcome.Flaky) == 0
	})
}

// named are the tests that the model names at the end, or else those that the plan names.
// Those of the plan that fail are never left out.
func (r *run) named(runs []tested) ([]string, error) {
	var executed execution
	if err := r.state.outcome(task.Execution, &executed); err != nil {
		return nil, err
	}
	names := slices.Clone(executed.Proof)
	for _, name := range r.state.plan.Proof.Tests {
		if len(executed.Proof) == 0 || !slices.Contains(names, name) && slices.ContainsFunc(runs, func(t tested) bool { return t.fails(name) }) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.TrimSpace(name) == "" }), nil
}

// fails reports whether a test of a name fails.
func (t *tested) fails(name string) bool {
	return slices.ContainsFunc(t.ran.Failing, func(test string) bool { return means(name, test) })
}

// look takes up a test that is named, or a file or class of tests. It returns those of the
// tests that are meant which pass now and of which it is not known how they end without the
// change. One that fails as it did before does not matter where another one was fixed.
func (p *ProofOutcome) look(name string, runs []tested) (fresh []string) {
	var all namedTests
	for i := range runs {
		all.look(name, &runs[i], len(runs) == 1)
	}
	if !all.found {
		p.wrong("The test %s, which is to show that the request is fulfilled, was not run. If it has another name now, name it in proof when you call finish.", name)
	}
	if !all.fixed {
		all.worse = append(all.worse, all.same...)
	}
	slices.Sort(all.worse)
	for _, test := range all.worse {
		p.wrong("The test %s, which is to show that the request is fulfilled, does not pass.", test)
	}
	if all.fixed || len(all.worse) > 0 {
		return nil
	}
	slices.Sort(all.fresh)
	return all.fresh
}

// namedTests are the tests that a name means.
type namedTests struct {
	found, fixed bool
	worse        []string // they do not pass, and did before or were not there
	same         []string // they did not pass before either
	fresh        []string // they pass, and it is not known how they end without the change
}

func (m *namedTests) look(name string, run *tested, alone bool) {
	if run.ran.Tests == nil { // only the exit code is known
		m.found = m.found || run.ran.Passed() && alone
		return
	}
	before := resultsOf(run.project.Baseline)
	for test, status := range resultsOf(&run.ran) {
		if !means(name, test) {
			continue
		}
		m.found = true
		switch was, old := before[test]; {
		case status != testreport.Passed && old && was != testreport.Passed:
			m.same = append(m.same, test)
		case status != testreport.Passed:
			m.worse = append(m.worse, test)
		case was == testreport.Failed:
			m.fixed = true
		default:
			m.fresh = append(m.fresh, test)
		}
	}
}

// means reports whether a name, as somebody wrote it, is that of a test. Runners put
// files, packages and classes before the name of the function.
func means(name, test string) bool {
	name = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(name), "()"))
	if hasWords(test, name) {
		return true
	}
	// A file, class and function in the form of another runner: all words, in order.
	words := nameParts.FindAllString(test, -1)
	parts := nameParts.FindAllString(name, -1)
	for _, part := range parts {
		at := slices.Index(words, part)
		if at < 0 {
			return false
		}
		words = words[at+1:]
	}
	return len(parts) > 1
}

// hasWords reports whether a text has words in it, as whole words.
func hasWords(text, words string) bool {
	for at := 0; words != ""; at++ {
		next := strings.Index(text[at:], words)
		if next < 0 {
			return false
		}
		if at += next; wordEnds(text, at) && wordEnds(text, at+len(words)) {
			return true
		}
	}
	return false
}

var nameParts = lazyregexp.New(`\w+`)

// wordEnds reports whether no word goes on at a place of a text.
func wordEnds(text string, at int) bool {
	return at == 0 || at >= len(text) || !nameParts.MatchString(text[at-1:at]) || !nameParts.MatchString(text[at:at+1])
}

// requestedText is the text of the request, with comments and reviews.
func (r *run) requestedText() string {
	var said []string
	for _, comment := range r.Work.Comments {
		said = append(said, comment.Body)
	}
	if r.Work.Pull == nil || !r.ownBranch() { // or the title and the text are a model's
		said = append(said, r.Work.Title, r.Work.Body)
	}
	if pull := r.Work.Pull; pull != nil {
		for _, comment := range pull.Summaries {
			said = append(said, comment.Body)
		}
		for _, thread := range pull.Threads {
			for _, comment := range thread.Comments {
				said = append(said, comment.Body)
			}
		}
	}
	return strings.Join(append(said, r.state.newCommentTexts()...), "\n")
}

// requested finds tests that the request names, that failed before and still fail.
func (r *run) requested(verdict *Verdict, runs []tested) {
	text := r.requestedText()
	for _, run := range runs {
		var failing []string
		for _, test := range run.outcome.Before {
			const shortest = 5 // shorter words are in every text
			if last := ownName(test); len(last) >= shortest && hasWords(text, last) {
				failing = append(failing, test)
			}
		}
		if len(failing) > 0 {
			verdict.finding(stillFails, run.outcome.Folder, "", failing)
		}
	}
}

// ownName is the name of a test without the file, package or class before it.
func ownName(test string) string {
	if at := strings.LastIndex(test, " > "); at >= 0 {
		return test[at+len(" > "):]
	}
	words := nameParts.FindAllString(test, -1)
	if len(words) == 0 {
		return test
	}
	return words[len(words)-1]
}

// added are the tests that are new.
func added(runs []tested) []string {
	var names []string
	for i := range runs {
		before := resultsOf(runs[i].project.Baseline)
		for test, status := range resultsOf(&runs[i].ran) {
			if _, known := before[test]; !known && status == testreport.Passed {
				names = append(names, test)
			}
		}
	}
	slices.Sort(names)
	return names
}

// failingWithoutChange runs tests, of which the change has written some, without the rest of it, and says which do not pass then.
func (r *run) failingWithoutChange(ctx context.Context, verdict *Verdict, runs []tested, names, written []string) (map[string]bool, error) {
	red := map[string]bool{}
	if len(names) == 0 {
		return red, nil
	}
	without, err := r.Repository.Mixed(ctx, verdict.before, verdict.Commit, written)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		now := resultsOf(&runs[i].ran)
		here := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, is := now[name]; return !is })
		if len(here) == 0 {
			continue
		}
		ran, err := r.runAgain(ctx, without, runs[i].project, here)
		if err != nil {
			return nil, err
		}
		status := resultsOf(ran)
		for _, name := range here {
			// What cannot be compiled without the change says nothing of tests that were there.
			_, old := resultsOf(runs[i].project.Baseline)[name]
			if ran != nil && (status[name] == testreport.Failed || !old && status[name] != testreport.Passed) {
				red[name] = true
			}
		}
	}
	return red, nil
}
