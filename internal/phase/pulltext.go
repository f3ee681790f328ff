package phase

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const longestBody = 60_000 // what every forge takes

// scriptedLine marks what a script has answered, when one has.
func (r *run) scriptedLine() string {
	if !r.state.scripted {
		return ""
	}
	return "\n\n" + r.text("run.scripted")
}

// pullBody is the description of the pull request: what was done is the model's,
// how it was verified is ours.
func (r *run) pullBody(text pullRequestText, verdict Verdict) string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", title, strings.Join(lines, "\n"))
		}
	}
	if !verdict.Passed {
		b.WriteString("> [!WARNING]\n> " + r.text("run.not_verified") + "\n\n")
	}
	section(r.text("run.summary"), []string{tool.Shorten(strings.TrimSpace(text.Summary), 20_000)})
	section(r.text("run.actions"), r.actionLines())
	section(r.text("run.verification"), r.verificationLines(verdict))
	section(r.text("run.unexplained"), r.findingLines(verdict, false))
	section(r.text("run.explained"), r.findingLines(verdict, true))
	var failing, fixed, before, flaky []string
	for _, tests := range verdict.Tests {
		failing, fixed, before = append(failing, tests.New...), append(fixed, tests.Fixed...), append(before, tests.Before...)
		flaky = append(flaky, tests.Flaky...)
	}
	section(r.text("run.new_failing"), nameLines(failing))
	section(r.text("run.fixed"), nameLines(fixed))
	section(r.text("run.still_failing"), nameLines(before))
	section(r.text("run.flaky"), nameLines(flaky))
	section(r.text("run.warnings"), bullets(r.state.warnings))
	if r.Work.Item.Kind == task.Issue {
		b.WriteString(r.text("run.closes", r.Work.Item.Number) + "\n")
	}
	return tool.Shorten(strings.TrimSpace(b.String()), longestBody) + r.scriptedLine() + "\n"
}

func (r *run) actionLines() []string {
	var lines []string
	for _, action := range r.state.plan.ActionPlan.Actions {
		mark := " "
		if action.Done {
			mark = "x"
		}
		lines = append(lines, fmt.Sprintf("- [%s] %s", mark, textfmt.OneLine(action.What)))
	}
	return lines
}

// findingLines are the findings about tests that something explains, or nothing.
func (r *run) findingLines(verdict Verdict, explained bool) []string {
	var lines []string
	for _, finding := range verdict.Findings {
		if (finding.Because != "") != explained {
			continue
		}
		text, _ := messages.Find(r.language, "run.found_"+finding.Kind) // an older run may have found another kind
		if finding.Note != "" {
			text += " (" + textfmt.OneLine(finding.Note) + ")"
		}
		if explained {
			text = r.text("run.because", text, textfmt.OneLine(finding.Because))
		}
		lines = append(lines, "- "+text)
		for _, line := range nameLines(finding.Names) {
			lines = append(lines, "  "+line)
		}
	}
	if explained && len(verdict.TestFiles) > 0 {
		lines = append(lines, "- "+r.text("run.test_files"))
		for _, line := range nameLines(verdict.TestFiles) {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

func (r *run) verificationLines(verdict Verdict) []string {
	var lines []string
	add := func(text string) { lines = append(lines, "- "+text) }
	if verdict.Setup != "" {
		add(r.text("run.setup_broken", textfmt.OneLine(verdict.Setup)))
	}
	if verdict.Build != nil {
		add(r.text("run.build") + ": " + verdict.Build.line(r.language))
	}
	for _, tests := range verdict.Tests {
		add(r.text("run.tests") + ": " + tests.line(r.language))
	}
	if verdict.Unrun != "" {
		add(r.text("run.not_run", verdict.Unrun))
	}
	if shown := verdict.Proof.Shown; len(shown) > 0 {
		add(r.text("run.shown", names(shown)))
	} else if verdict.Proof.None != "" {
		add(r.text("run.none_shown", textfmt.OneLine(verdict.Proof.None)))
	}
	for _, text := range verdict.Proof.Wrong {
		add(r.text("run.problem", textfmt.OneLine(text)))
	}
	if len(verdict.Placeholders) == 0 {
		add(r.text("run.no_placeholders"))
	}
	for _, line := range verdict.Placeholders {
		add(r.text("run.placeholder", strings.ReplaceAll(line, "`", "'")))
	}
	for _, text := range verdict.Judgement.Missing {
		add(r.text("run.missing", textfmt.OneLine(text)))
	}
	for _, text := range verdict.Judgement.Problems {
		add(r.text("run.problem", textfmt.OneLine(text)))
	}
	if verdict.Judgement.Satisfied {
		add(r.text("run.judged"))
	}
	return lines
}

// untested reports whether no test was run: it says why, or the runners found none.
func (v *Verdict) untested() bool {
	if len(v.Tests) == 0 {
		return v.Unrun != ""
	}
	return !slices.ContainsFunc(v.Tests, func(t TestOutcome) bool { return !t.foundNone() })
}

// foundNone reports whether the runner ended without a test.
func (t *TestOutcome) foundNone() bool { return t.Counted && t.Note == testreport.NoTests }

// line says how it ended, for people.
func (t *TestOutcome) line(in task.Language) string {
	how := messages.Text(in, "run.exit_code", t.ExitCode)
	switch {
	case t.TimedOut:
		how = messages.Text(in, "run.timed_out")
	case t.good():
		how = messages.Text(in, "run.passed")
	case t.clean(): // or it would be, but for the findings
		how = messages.Text(in, "run.doubted")
	case t.ExitCode == 0:
		how = messages.Text(in, "run.no_verdict", t.Note)
	case t.foundNone():
		how = messages.Text(in, "run.no_test_found")
	case t.Compared && !t.Worse && len(t.Flaky) == 0: // one that is flaky may have passed before
		how = messages.Text(in, "run.exit_code_before", t.ExitCode)
	}
	if t.Counted && t.Ran+t.Skipped > 0 && !t.Doubted {
		how += messages.Text(in, "run.counts", t.Ran-t.Failed, t.Failed, t.Skipped)
	}
	if !t.Compared && t.ExitCode != 0 {
		how += ". " + messages.Text(in, "run.no_comparison")
	}
	return "`" + textfmt.OneLine(t.Command) + "`: " + how
}

func bullets(texts []string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, "- "+textfmt.OneLine(text))
	}
	return lines
}

func nameLines(all []string) []string {
	const most = 50
	return bullets(codeNames(all, most))
}

// names is the beginning of a list of names, on one line.
func names(all []string) string {
	const most = 10
	return strings.Join(codeNames(all, most), ", ")
}

// codeNames are the first names of a list as code, and how many more there are.
func codeNames(all []string, most int) []string {
	var shown []string
	for _, name := range all[:min(len(all), most)] {
		shown = append(shown, "`"+strings.ReplaceAll(textfmt.OneLine(name), "`", "'")+"`")
	}
	if more := len(all) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("… %d", more))
	}
	return shown
}

// doneComment is what people are told at the end of a run that handed something
// over.
func (r *run) doneComment(handed completion, verdict Verdict) string {
	if handed.Idle {
		return r.idleComment(handed)
	}
	var said notice.Notice
	if handed.Pull != nil {
		said.Pull = cmp.Or(handed.Pull.URL, fmt.Sprintf("#%d", handed.Pull.Number))
	}
	parts := []string{said.Done(r.language)}
	if verdict.untested() {
		parts = []string{said.Untested(r.language)}
	}
	if handed.State != task.Done {
		parts = []string{said.Unverified(r.language)}
	}
	parts = append(parts, tool.Shorten(strings.TrimSpace(handed.Text.Summary), 10_000),
		strings.Join(r.verificationLines(verdict), "\n"))
	if unexplained := r.findingLines(verdict, false); len(unexplained) > 0 {
		parts = append(parts, "**"+r.text("run.unexplained")+"**\n\n"+strings.Join(unexplained, "\n"))
	}
	if len(r.state.warnings) > 0 {
		parts = append(parts, "**"+r.text("run.warnings")+"**\n\n"+strings.Join(bullets(r.state.warnings), "\n"))
	}
	return strings.Join(parts, "\n\n") + r.scriptedLine()
}

// idleComment is what people are told of a run that was to change nothing. What was said in a
// thread is not said twice.
func (r *run) idleComment(handed completion) string {
	if len(handed.Text.Replies) > 0 {
		return ""
	}
	return r.text("run.idle") + "\n\n" + tool.Shorten(strings.TrimSpace(handed.Text.Summary), 10_000) + r.scriptedLine()
}

// failureComment is what people are told when nothing could be handed over. What the model said
// is not about the failure, and is shown as its words.
func (r *run) failureComment(failed givenUp) string {
	about := notice.Notice{Reason: failed.Reason, Review: r.Work.Type == task.Review, Kept: r.state.saved}
	parts := []string{about.Failed(r.language)}
	if detail := strings.TrimSpace(failed.Detail); detail != "" {
		parts = append(parts, r.text("run.detail", tool.Shorten(tool.Printable(detail), 4000)))
	}
	if said := strings.TrimSpace(failed.Said); said != "" {
		parts = append(parts, r.text("run.said", inBlock(tool.Shorten(tool.Printable(said), 4000))))
	}
	if len(r.state.warnings) > 0 {
		parts = append(parts, "**"+r.text("run.warnings")+"**\n\n"+strings.Join(bullets(r.state.warnings), "\n"))
	}
	return strings.Join(append(parts, about.Next(r.language)), "\n\n") + r.scriptedLine()
}

// inBlock is a text in a block of its own, which nothing in it can leave.
func inBlock(text string) string {
	fence := textfmt.Fence(text)
	return fence + "\n" + text + "\n" + fence
}

// summarize is what a later run on the same item is told, in English as all that
// models read.
func (r *run) summarize(handed *completion, reason task.Reason) string {
	var b strings.Builder
	fmt.Fprintf(&b, "An earlier run on %s ended: %s.\n", cmp.Or(r.Work.ItemName(), "the project"), messages.Reason(task.English, reason))
	if plan := r.state.plan; plan != nil {
		b.WriteString("Its plan:\n" + plan.checklist() + "\n")
	}
	if words := r.lastText(); words != "" {
		b.WriteString("What it said it did:\n" + words + "\n")
	}
	var verdict Verdict
	if r.state.timesEnded(task.Verification) > 0 && r.state.outcome(task.Verification, &verdict) == nil {
		verdict.trim()
		b.WriteString("What verification found:\n" + verdict.describe() + "\n")
	}
	if handed != nil && handed.Pull != nil {
		fmt.Fprintf(&b, "Its pull request: %d %s\n", handed.Pull.Number, handed.Pull.URL)
	}
	for _, text := range r.state.newCommentTexts() {
		b.WriteString("Comments that it took up:\n" + text + "\n")
	}
	return tool.Shorten(b.String(), longestEarlier)
}

// trim leaves out what is long.
func (v *Verdict) trim() {
	if v.Build != nil {
		v.Build.Output = ""
	}
	for i := range v.Tests {
		v.Tests[i].Output = ""
	}
}

// attestation is what verification found, for the receipt. What a model said is among
// the findings, as such.
func (r *run) attestation(verdict Verdict) *receipt.Verdict {
	setup := r.state.setup
	made := setup.Receipt
	attested := receipt.Verdict{Passed: verdict.Passed, NotRun: verdict.Unrun, NoTests: verdict.NoTests, Environment: receipt.Environment{
		Name: cmp.Or(made.Environment, setup.Handover.EnvironmentName), Ready: setup.Handover.EnvironmentReady, Sandbox: made.Sandbox,
		Image: made.Image, Identity: made.Identity, Snapshot: made.SnapshotKey, SetupCommands: made.SetupCommands,
	}}
	add := func(kind string, outcome *TestOutcome) {
		run := receipt.Run{
			Kind: kind, Command: outcome.Command, ExitCode: outcome.ExitCode, TimedOut: outcome.TimedOut, Compared: outcome.Compared,
			Milliseconds: outcome.Milliseconds, Failed: outcome.New, FailedBefore: outcome.Before, Fixed: outcome.Fixed, Flaky: outcome.Flaky,
		}
		if outcome.Counted {
			run.Counts = &receipt.Counts{Passed: outcome.Ran - outcome.Failed, Failed: outcome.Failed, Skipped: outcome.Skipped}
		}
		folder := cmp.Or(outcome.Folder, ".")
		at := slices.IndexFunc(attested.Projects, func(p receipt.Project) bool { return p.Folder == folder })
		if at < 0 {
			at = len(attested.Projects)
			attested.Projects = append(attested.Projects, receipt.Project{Folder: folder})
		}
		attested.Projects[at].Runs = append(attested.Projects[at].Runs, run)
	}
	if verdict.Build != nil {
		add(receipt.BuildRun, verdict.Build)
	}
	for i := range verdict.Tests {
		add(receipt.TestRun, &verdict.Tests[i])
	}
	for _, list := range []struct {
		title string
		texts []string
	}{
		{"a placeholder is left: ", verdict.Placeholders}, {"a file is too large: ", nonEmpty(verdict.TooLarge)},
		{"the environment cannot be set up with these files: ", nonEmpty(verdict.Setup)},
		{"about tests: ", verdict.findingTexts()}, {"", verdict.Proof.Wrong},
		{"a model says that this is missing: ", verdict.Judgement.Missing}, {"a model says that this is wrong: ", verdict.Judgement.Problems},
	} {
		for _, text := range list.texts {
			attested.Findings = append(attested.Findings, list.title+text)
		}
	}
	return &attested
}

// findingTexts are the findings about tests, each as one text.
func (v *Verdict) findingTexts() []string {
	var texts []string
	for _, finding := range v.Findings {
		text := finding.describe()
		if finding.Note != "" {
			text += " (" + finding.Note + ")"
		}
		if len(finding.Names) > 0 {
			text += ": " + strings.Join(finding.Names, ", ")
		}
		if finding.Because != "" {
			text += " (a model explains it by the request: " + finding.Because + ")"
		}
		texts = append(texts, tool.Shorten(textfmt.OneLine(text), 2000))
	}
	return texts
}

// nonEmpty is a list of a text, or of nothing.
func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
