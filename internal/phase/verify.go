package phase

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// Verdict is what verification comes to. Everything but Judgement is found out
// here, not said by a model.
type Verdict struct {
	Round  int  `json:"round"`
	Passed bool `json:"passed"`
	Again  bool `json:"again,omitempty"` // there is another round of repair
	// Commit has the files that the verdict is about, and that are published.
	Commit string `json:"commit,omitempty"`
	before string // the commit that it is compared with
	// Setup says why the environment cannot be set up with these files, although it
	// could before.
	Setup string `json:"setup,omitempty"`
	// Untested says that build and tests could be run before, and not any more, for a
	// reason that is not the work's.
	Untested bool `json:"untested,omitempty"`
	// Changed is false when the run has changed nothing.
	Changed bool `json:"changed"`
	// Emptied says that the run has taken back all that the pull request does, which counts
	// as no change.
	Emptied   bool          `json:"emptied,omitempty"`
	Idle      bool          `json:"idle,omitempty"`          // nothing was to be changed
	Conflicts []string      `json:"conflicts,omitempty"`     // files with marks of a merge in them
	Undecided []string      `json:"undecided,omitempty"`     // files with conflicts that cannot be marked, of which the model was not told
	TooLarge  string        `json:"too_large,omitempty"`     // files that no commit can have
	Build     *TestOutcome  `json:"build,omitempty"`         // nil if there is nothing to build
	Tests     []TestOutcome `json:"project_tests,omitempty"` // of each project; none if they could not be run
	Unrun     string        `json:"unrun,omitempty"`         // why tests were not run
	NoTests   bool          `json:"no_tests,omitempty"`      // because none are known
	// TestFiles are files of the change that are tests or say how they are run.
	TestFiles []string `json:"test_files,omitempty"`
	// Findings are what the change does to tests.
	Findings []TestFinding `json:"test_findings,omitempty"`
	Proof    ProofOutcome  `json:"proof,omitzero"`
	// Placeholders are added lines that stand in for work.
	Placeholders []string  `json:"placeholders,omitempty"`
	Judgement    Judgement `json:"judgement"`
}

// TestOutcome is a run of the tests, or of the build, against the baseline.
type TestOutcome struct {
	Command  string   `json:"command"`
	Folder   string   `json:"folder,omitempty"` // of the project
	ExitCode int      `json:"exit_code"`
	TimedOut bool     `json:"timed_out,omitempty"`
	Compared bool     `json:"compared"` // with a baseline
	New      []string `json:"new,omitempty"`
	Fixed    []string `json:"fixed,omitempty"`
	Before   []string `json:"before,omitempty"` // failing before and now
	Flaky    []string `json:"flaky,omitempty"`  // seen to pass and to fail with the same files
	// Passed says that the runner's report says so, or if there is none, the exit code.
	Passed bool `json:"passed,omitempty"`
	// Counted says that the numbers are known, from the runner's report. Note is what
	// is wrong with that.
	Counted bool `json:"counted,omitempty"`
	Ran     int  `json:"ran,omitempty"`
	Failed  int  `json:"failed,omitempty"`
	Skipped int  `json:"skipped,omitempty"`
	// Milliseconds is how long it took.
	Milliseconds int64  `json:"milliseconds,omitempty"`
	Note         string `json:"note,omitempty"`
	// Doubted says that there are findings about these tests that nothing explains.
	Doubted bool `json:"doubted,omitempty"`
	// Worse says that it failed in a way that it did not before.
	Worse  bool   `json:"worse,omitempty"`
	Output string `json:"output,omitempty"` // the end of it, when it is worse
}

// Judgement is a model's view of the change against the request.
type Judgement struct {
	Satisfied  bool     `json:"satisfied"`
	Missing    []string `json:"missing,omitempty"`
	Problems   []string `json:"problems,omitempty"`
	Assessment string   `json:"assessment,omitempty"`
	// Explained are the findings about tests that the request asks for.
	Explained []Explained `json:"explained,omitempty"`
}

// Explained says which part of the request asks for what was found about tests.
type Explained struct {
	Finding string `json:"finding"`
	Because string `json:"because"`
	Quote   string `json:"quote"` // words of the request
}

// verify finds out whether the work is good.
func (r *run) verify(ctx context.Context) error {
	if err := r.begin(ctx, task.Verification); err != nil {
		return err
	}
	verdict := Verdict{Round: r.state.timesEnded(task.Verification) + 1}
	if err := r.facts(ctx, &verdict); err != nil {
		return err
	}
	if verdict.Changed && !verdict.conflicts() {
		if err := r.askJudgement(ctx, &verdict); err != nil {
			return err
		}
	}
	verdict.explain(r.requestedText())
	verdict.Passed = verdict.passed()
	var last execution
	if err := r.state.outcome(task.Execution, &last); err != nil {
		return err
	}
	verdict.Again = !verdict.Passed && !verdict.Untested && r.repairs() < r.Limits.Repairs && last.Reason == task.ReasonCompleted && !r.failsAgainOnTests(verdict)
	if verdict.Idle = last.Reason == task.ReasonCompleted && r.idle(verdict); verdict.Idle {
		verdict.Again = false
	}
	status := PhaseCompleted
	if !verdict.Passed {
		status = PhaseFailed
	}
	return r.end(ctx, task.Verification, status, verdict)
}

// idle reports whether it is right that nothing was changed: a comment led to the run, and the
// model, which was told that it has changed nothing, says again that the comment asks for no
// change.
func (r *run) idle(verdict Verdict) bool {
	var before Verdict
	return r.mayBeIdle(verdict) && r.repairs() > 0 && r.state.outcome(task.Verification, &before) == nil && before.untouched()
}

// mayBeIdle reports whether nothing was changed, and nothing but the comment that led to the run
// could have asked for a change. What people have said since the run began may have: when the run
// ends as idle, that would count as dealt with.
func (r *run) mayBeIdle(verdict Verdict) bool {
	own, _ := task.CommentOf(r.Work.Occasion)
	return r.Work.Commented() && verdict.untouched() && !slices.ContainsFunc(r.state.newComments, func(c task.CommentEntry) bool {
		withdrawn, again := c.Change == task.CommentDeleted, c.ID == own && c.Change != task.CommentEdited
		return !withdrawn && !again
	})
}

// untouched reports whether the run has left everything as it was.
func (v *Verdict) untouched() bool { return !v.Changed && !v.Emptied && v.TooLarge == "" }

// repairs is how many verifications in a row have found something that was to be fixed. What
// people say in between makes it other work.
func (r *run) repairs() int {
	outcomes := r.state.phase(task.Verification).outcomes
	count := 0
	for _, outcome := range slices.Backward(outcomes) {
		var verdict Verdict
		if json.Unmarshal(outcome, &verdict) != nil || !verdict.Again {
			break
		}
		count++
	}
	return count
}

// failsAgainOnTests reports whether all that is wrong are findings about tests, and the model was
// told of some before: they go back to it once.
func (r *run) failsAgainOnTests(verdict Verdict) bool {
	if r.state.timesEnded(task.Verification) == 0 || !verdict.unexplained(nil) {
		return false
	}
	var before Verdict
	if r.state.outcome(task.Verification, &before) != nil || !before.unexplained(nil) {
		return false
	}
	verdict.Findings = nil
	return verdict.passed()
}

func (v *Verdict) passed() bool {
	return v.Changed && !v.unexplained(nil) && len(v.Proof.Wrong) == 0 && !v.conflicts() && v.TooLarge == "" && v.Setup == "" && !v.Untested && (v.Build == nil || !v.Build.Worse) && !v.worse() &&
		len(v.Placeholders) == 0 && v.Judgement.Satisfied
}

// conflicts reports whether something has to be decided before there is anything to test.
func (v *Verdict) conflicts() bool { return len(v.Conflicts)+len(v.Undecided) > 0 }

// worse reports whether tests fail that did not before.
func (v *Verdict) worse() bool {
	return slices.ContainsFunc(v.Tests, func(t TestOutcome) bool { return t.Worse })
}

// facts finds out what can be found out without a model. What the base has got
// since comes first, so that what is verified is what will be merged.
func (r *run) facts(ctx context.Context, verdict *Verdict) error {
	if err := r.merge(ctx, r.Repository.Merge); err != nil {
		return err
	}
	verdict.Commit = r.state.saved // whatever goes on in the workspace from now on
	diff, err := r.Repository.Diff(ctx, verdict.Commit)
	if err != nil {
		return fmt.Errorf("look at what has changed: %w", err)
	}
	if verdict.Changed, err = r.Repository.Changed(ctx, verdict.Commit); err != nil {
		return fmt.Errorf("look whether anything has changed: %w", err)
	}
	if r.Work.Pull != nil && len(diff.Files) == 0 {
		verdict.Changed, verdict.Emptied = false, verdict.Changed // nothing would be left of the pull request
	}
	verdict.Conflicts, verdict.Placeholders = inspect(diff.Text)
	if verdict.Conflicts, err = r.unresolved(ctx, verdict.Commit, diff, verdict.Conflicts); err != nil {
		return err
	}
	verdict.Undecided = slices.DeleteFunc(slices.Clone(r.state.untold), func(name string) bool { return slices.Contains(verdict.Conflicts, name) })
	if err := r.Repository.Fits(ctx); task.CodeOf(err) == task.TooLarge {
		verdict.TooLarge = err.Error()
	} else if err != nil {
		return err
	}
	if !verdict.Changed || verdict.conflicts() {
		verdict.Unrun = "there was nothing that could be tested"
		return nil
	}
	if err := r.runTests(ctx, verdict); err != nil {
		return err
	}
	return r.lookForLosses(ctx, verdict) // running tests begins with no findings
}

// compare holds a run of the tests against the baseline. Without one, whatever
// fails counts against the work.
func compare(baseline *environment.Baseline, ran environment.Baseline) *TestOutcome {
	outcome := &TestOutcome{Command: ran.Line(), Folder: ran.Folder, Milliseconds: ran.Milliseconds, ExitCode: ran.ExitCode, TimedOut: ran.Exceeded == sandbox.TimeLimit,
		Compared: baseline != nil, New: ran.Failing}
	bad := !ran.Passed()
	outcome.Worse, outcome.Passed = bad, !bad
	if ran.Tests != nil {
		outcome.Counted, outcome.Note = true, ran.Tests.Note
		outcome.Ran, _, outcome.Failed, outcome.Skipped = ran.Tests.Counts()
	}
	if baseline != nil {
		outcome.New = baseline.NewFailures(ran)
		outcome.Fixed = fixed(*baseline, ran)
		outcome.Before = slices.DeleteFunc(slices.Clone(ran.Failing), func(name string) bool { return slices.Contains(outcome.New, name) })
		brokenBefore := !baseline.Passed()
		// What failed before without naming a test cannot be told from what
		// fails now in the same way.
		outcome.Worse = bad && (!brokenBefore || len(outcome.New) > 0 || baseline.Readable && !ran.Readable)
	}
	if outcome.Worse {
		outcome.Output = ran.Output
	}
	return outcome
}

// cut is the outcome with the first names of each list.
func (t *TestOutcome) cut() TestOutcome {
	short := *t
	for _, list := range []*[]string{&short.New, &short.Fixed, &short.Before, &short.Flaky} {
		*list = (*list)[:min(len(*list), mostOutcomes)]
	}
	return short
}

// mostOutcomes bounds how many tests each list of an outcome names. It is in the journal.
const mostOutcomes = 500

// fixed are the tests that failed before and pass now.
func fixed(baseline, ran environment.Baseline) []string {
	names := ran.NewFailures(baseline)
	now := resultsOf(&ran)
	if now == nil {
		if ran.Readable {
			return names
		}
		return nil // it failed in another way, and says nothing of them
	}
	return slices.DeleteFunc(names, func(name string) bool { return now[name] != testreport.Passed })
}

// askJudgement has a model compare the change with the request.
func (r *run) askJudgement(ctx context.Context, verdict *Verdict) error {
	system, err := r.system(task.Verification)
	if err != nil {
		return err
	}
	diff, err := r.Repository.Diff(ctx, verdict.Commit)
	if err != nil {
		return err
	}
	files, err := r.Repository.Export(ctx, verdict.Commit)
	if err != nil {
		return fmt.Errorf("export the files for the comparison: %w", err)
	}
	defer func() {
		if err := files.Remove(); err != nil {
			r.Log.WarnContext(ctx, "failed to remove the files of the comparison", "error", err)
		}
	}()
	looking, err := tool.OpenDirectory(files.Dir())
	if err != nil {
		return fmt.Errorf("open the files for the comparison: %w", err)
	}
	defer func() { _ = looking.Close() }() // it was only read
	const longestDiff = 60_000
	t, err := r.open(ctx, opening{name: fmt.Sprintf("%s-%d", task.Verification, verdict.Round), phase: task.Verification, system: system,
		tools: append(lookers(tool.Workspace{Files: looking, Mount: sandbox.WorkspacePath}), r.readComments(task.Verification)), pinned: r.blocks(task.Verification,
			conversation.Block{Name: planBlock, Text: r.state.plan.checklist()},
			conversation.Block{Name: "facts", Text: verdict.describe()},
			conversation.Block{Name: "diff", Text: llm.Quote(llm.Origin{Source: "diff"}, tool.Shorten(tool.Printable(diff.Text), longestDiff))},
		)})
	if err != nil {
		return err
	}
	err = t.object(ctx, func(object map[string]any) error {
		if _, given := object["satisfied"].(bool); !given {
			return errors.New(`"satisfied" has to be true or false`)
		}
		verdict.Judgement = Judgement{}
		return into(object, &verdict.Judgement)
	})
	if errors.Is(err, errNoAnswer) {
		verdict.Judgement = Judgement{Problems: []string{"the model that was to compare the change with the request gave no answer that can be used"}}
		return nil
	}
	if len(verdict.Judgement.Missing)+len(verdict.Judgement.Problems) > 0 {
		verdict.Judgement.Satisfied = false
	}
	return err
}

// conflictLines name the conflicts that are left, for a model.
func (v *Verdict) conflictLines() (lines []string) {
	for _, name := range v.Conflicts {
		lines = append(lines, plainName(name)+" has marks of a merge conflict in it. The base branch has changed; bring both sides together and remove the marks.")
	}
	for _, name := range v.Undecided {
		lines = append(lines, unmarkedText(name))
	}
	return lines
}

// describe is what was found, for a model.
func (v *Verdict) describe() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if !v.Changed {
		add("Nothing has been changed.")
	}
	lines = append(lines, v.conflictLines()...)
	if v.TooLarge != "" {
		add("It cannot be committed: %s.", llm.QuoteLine(v.TooLarge))
	}
	if v.Setup != "" {
		add("The environment cannot be set up with the changed files: %s", llm.QuoteLine(v.Setup))
	}
	if v.Build != nil {
		add("%s", v.Build.describe("The build"))
	}
	for _, tests := range v.Tests {
		add("%s", tests.describe("The tests"))
	}
	if v.Unrun != "" {
		add("Tests were not run: %s.", v.Unrun)
	}
	for _, finding := range v.Findings {
		text := finding.describe()
		if finding.Note != "" {
			text += " (" + llm.QuoteLine(finding.Note) + ")"
		}
		add("Finding %s: %s: %s", finding.ID, text, quoted(finding.Names))
	}
	for _, text := range v.Proof.Wrong {
		add("%s", text)
	}
	if len(v.Proof.Shown) > 0 {
		add("Tests that fail without the change and pass with it: %s", quoted(v.Proof.Shown))
	}
	for _, line := range v.Placeholders {
		add("A placeholder is left in the change: %s", llm.QuoteLine(line))
	}
	for _, text := range v.Judgement.Missing {
		add("Missing: %s", llm.QuoteLine(text))
	}
	for _, text := range v.Judgement.Problems {
		add("Problem: %s", llm.QuoteLine(text))
	}
	return strings.Join(lines, "\n")
}

// good reports whether it passed. Journals of earlier versions have the exit code only.
func (t *TestOutcome) good() bool {
	return !t.Doubted && t.clean()
}

// clean reports whether it passed, whatever was found besides.
func (t *TestOutcome) clean() bool {
	return t.Passed || !t.Counted && t.ExitCode == 0 && !t.TimedOut
}

func (t *TestOutcome) describe(what string) string {
	text := fmt.Sprintf("%s (%s) ended with exit code %d", what, llm.QuoteLine(t.Command), t.ExitCode)
	switch {
	case t.TimedOut:
		text = fmt.Sprintf("%s (%s) did not end in time", what, llm.QuoteLine(t.Command))
	case t.clean():
		text = fmt.Sprintf("%s (%s) passed", what, llm.QuoteLine(t.Command))
	case t.ExitCode == 0:
		text = fmt.Sprintf("%s (%s) ended with exit code 0, which is no pass: %s", what, llm.QuoteLine(t.Command), llm.QuoteLine(t.Note))
	}
	if t.Counted && t.Ran+t.Skipped > 0 {
		text += fmt.Sprintf(" (%d passed, %d failed, %d skipped)", t.Ran-t.Failed, t.Failed, t.Skipped)
	}
	for _, list := range []struct {
		title string
		names []string
	}{{"newly failing", t.New}, {"fixed", t.Fixed}, {"failing before and now", t.Before}, {"flaky, which does not count", t.Flaky}} {
		if len(list.names) > 0 {
			text += fmt.Sprintf("; %s: %s", list.title, quoted(list.names))
		}
	}
	if t.Output != "" {
		text += ". From the output:\n" + llm.Quote(llm.Origin{Source: "test output"}, tool.Printable(environment.Excerpt([]byte(t.Output), longestExcerpt)))
	}
	return text
}

// quoted are the first names of a list, for a model.
func quoted(names []string) string {
	shown := slices.Clone(names[:min(len(names), 30)])
	for i := range shown {
		shown[i] = llm.QuoteLine(shown[i])
	}
	return strings.Join(shown, ", ")
}

// sendWithheld gives the model what was found in the work before it was published.
func (r *run) sendWithheld(ctx context.Context, t *chat) error {
	if len(r.state.withheld) == 0 {
		return nil
	}
	return t.send(ctx, WithheldText(r.state.withheld))
}

// WithheldText is what a model is told of work that was not published.
func WithheldText(findings []task.Finding) string {
	var lines []string
	for _, finding := range findings {
		line := messages.Finding(task.English, finding)
		if place := finding.Place(); place != "" {
			line = place + ": " + line
		}
		lines = append(lines, "- "+llm.QuoteLine(line))
	}
	return fmt.Sprintf(withheldText, strings.Join(lines, "\n"))
}

//go:embed withheld.md
var withheldText string

// sendFindings gives the model what the last verification has found, if there is
// something for it to fix.
func (r *run) sendFindings(ctx context.Context, t *chat) error {
	if r.state.timesEnded(task.Verification) == 0 {
		return nil
	}
	var verdict Verdict
	if err := r.state.outcome(task.Verification, &verdict); err != nil {
		return err
	}
	if verdict.Passed {
		return nil
	}
	text := fmt.Sprintf("Verification %d has found what is not good yet:\n%s", verdict.Round, verdict.describe())
	if r.mayBeIdle(verdict) {
		text += "\nIf the comment asks for no change, that is right: call finish with a short answer to its author as the summary, in their language."
	}
	return t.send(ctx, text+"\n\nFix it, then call finish again.")
}
