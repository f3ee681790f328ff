package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/testfiles"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// tested is a run of the tests of one project with the commit's files.
type tested struct {
	project environment.ProjectSetup // with the run from before the change
	ran     environment.Baseline
	outcome *TestOutcome
}

// The results of tests by name.
type results map[string]testreport.Status

func resultsOf(ran *environment.Baseline) results {
	if ran == nil || ran.Tests == nil {
		return nil
	}
	all := make(results, len(ran.Tests.Cases))
	for _, one := range ran.Tests.Cases {
		all[one.Name] = one.Status
	}
	return all
}

// TestFinding is a change to tests, or to how they are run, by which tests could pass
// that the work did not make pass.
type TestFinding struct {
	ID     string `json:"id"` // by which a model explains it
	Kind   string `json:"kind"`
	Folder string `json:"folder,omitempty"` // of the project
	// Names are the tests, or the lines of a build file. There may be More.
	Names []string `json:"names,omitempty"`
	More  int      `json:"more,omitempty"`
	Note  string   `json:"note,omitempty"`
	// Before says that it was so before the change too.
	Before bool `json:"before,omitempty"`
	// Because says which part of the request asks for it, in the words of a model that
	// did not do the work. Without it the work has not passed.
	Because string `json:"because,omitempty"`
}

// The kinds of findings.
const (
	testsNotRun    = "not_run"
	testsSkipped   = "skipped"
	testsRewritten = "rewritten" // while they ran
	noReport       = "no_report"
	failsAsBefore  = "fails_as_before" // with the tests as they were before the change
	flakyWithWork  = "flaky"           // fails now and then, and was never seen to before the change
	buildFileLines = "build_file"
	stillFails     = "still_fails" // a test that the request names
	nothingShown   = "nothing_shown"
	beyondMerge    = "beyond_merge" // of a run that is to merge the base and nothing else
	branchLost     = "branch_lost"  // of such a run: what the pull request had is gone
	pushLost       = "push_lost"    // of what others have pushed while the run went on
	testsLost      = "tests_lost"   // in files with conflicts
)

// finding adds one to the verdict.
func (v *Verdict) finding(kind, folder, note string, names []string) {
	slices.Sort(names)
	names = slices.Compact(names)
	v.Findings = append(v.Findings, TestFinding{ID: fmt.Sprintf("t%d", len(v.Findings)+1), Kind: kind, Folder: folder, Note: note,
		Names: names[:min(len(names), mostNamed)], More: max(0, len(names)-mostNamed)})
}

// unexplained reports whether there are findings that nothing explains, of those that a
// function chooses; nil means all.
func (v *Verdict) unexplained(of func(TestFinding) bool) bool {
	return slices.ContainsFunc(v.Findings, func(f TestFinding) bool { return f.Because == "" && (of == nil || of(f)) })
}

// shortestQuote is how many bytes of the request explain something.
const shortestQuote = 8

// explain takes over which findings the request asks for: in words that it has.
func (v *Verdict) explain(request string) {
	request = textfmt.OneLine(request)
	for i := range v.Findings {
		for _, given := range v.Judgement.Explained {
			quote := textfmt.OneLine(given.Quote)
			if given.Finding == v.Findings[i].ID && len(quote) >= shortestQuote && v.Findings[i].explicable() && strings.Contains(request, quote) {
				v.Findings[i].Because = strings.TrimSpace(given.Because + " “" + quote + "”")
			}
		}
	}
	for i := range v.Tests {
		v.Tests[i].Doubted = v.unexplained(func(f TestFinding) bool { return f.Kind == buildFileLines || f.Folder == v.Tests[i].Folder })
	}
}

// explicable reports whether a request may ask for it. No request asks to undo the work of
// others: a model that quotes a few words of it must not decide about that.
func (f TestFinding) explicable() bool {
	switch f.Kind {
	case testsRewritten, branchLost, pushLost:
		return false
	case noReport:
		return f.Before
	default:
		return true
	}
}

// describe is the finding for a model.
func (f TestFinding) describe() string {
	return map[string]string{
		testsNotRun:    "Tests that were run before the change are not run any more",
		testsSkipped:   "Tests that were run before the change are skipped now",
		noReport:       "The test runner did not come to the end of its report, so that nothing is known of the tests",
		testsRewritten: "Files of tests were changed while the tests ran",
		failsAsBefore:  "With the tests, and the way in which they are run, as they were before the change, these do not pass",
		flakyWithWork:  "Tests fail now and then that were never seen to fail before the change",
		buildFileLines: "Lines of build files that say which tests are run, or what the packages that they use are replaced by, were changed",
		stillFails:     "Tests that the request names failed before and still fail",
		nothingShown: "Nothing shows that the request is fulfilled: tests that failed before still fail, none of them was fixed, and no test fails without the change and passes with it. " +
			"Fix what the request is about, or add such a test",
		beyondMerge: "The base was to be merged, and nothing else. These files have no conflict and are not as the merge makes them. " +
			"Put back what the pull request or people had there, unless it cannot work so",
		branchLost: "The base was to be merged, and nothing else. These files are gone, or are just as one side had them. Put back what the other side, the pull request or the base, had there",
		pushLost:   "Somebody has pushed to the branch while you worked, and these files lack what they did there. Put it back, and keep your own work",
		testsLost:  "These tests were in files in which there were conflicts, and are not there any more. Put them back",
	}[f.Kind]
}

// changedTests are the files of the change that are tests or say how they are run, and
// those of them that are put back to run the tests as they were.
type changedTests struct {
	files []string // all of them
	back  []string // to be put back
	// spliced are those of them of which only the parts about tests are put back.
	spliced map[string][]byte
	written []string // those of them that are tests for sure, and that the change has added or changed
}

// kinds knows the kinds of the files of a commit.
func (r *run) kinds(ctx context.Context, commit string, projects []environment.ProjectSetup) (testfiles.Set, error) {
	files, err := r.Repository.Files(ctx, commit)
	if err != nil {
		return testfiles.Set{}, err
	}
	commands := make([]testfiles.Project, len(projects))
	for i, project := range projects {
		commands[i] = testfiles.Project{Folder: project.Directory, Command: project.TestCommand, Failures: failuresOf(project.Baseline)}
	}
	return testfiles.New(commands, files, func(name string) []byte {
		data, _ := r.Repository.File(ctx, commit, name) // one that is too long names no files
		return data
	}), nil
}

// failuresOf is the end of what failing tests printed.
func failuresOf(ran *environment.Baseline) string {
	if ran == nil {
		return ""
	}
	return ran.Output
}

// changedTests finds them among what differs between two commits.
func (r *run) changedTests(ctx context.Context, kinds testfiles.Set, before, after string) (changedTests, error) {
	changes, err := r.Repository.Changes(ctx, before, after)
	if err != nil {
		return changedTests{}, err
	}
	names := make([]string, len(changes))
	for i, change := range changes {
		names[i] = change.Name
	}
	found := changedTests{spliced: map[string][]byte{}}
	for _, change := range changes {
		switch kinds.Kind(change.Name) {
		case testfiles.Program:
			continue
		case testfiles.Library:
			// New packages stay. Their list goes with them.
			if kinds.Stays(change.Name, names) {
				continue
			}
		case testfiles.Shared:
			if change.Added || !r.differs(ctx, before, after, change.Name, found.spliced) {
				continue
			}
		case testfiles.Test:
			if !change.Removed && kinds.Certain(change.Name) {
				found.written = append(found.written, change.Name)
			}
		case testfiles.Configuration:
		}
		found.files, found.back = append(found.files, change.Name), append(found.back, change.Name)
	}
	return found, nil
}

// differs reports whether a file of several purposes says something else about tests. It
// adds the file with these parts as they were.
func (r *run) differs(ctx context.Context, before, after, name string, spliced map[string][]byte) bool {
	was, err := r.Repository.File(ctx, before, name)
	if err != nil {
		return true
	}
	is, err := r.Repository.File(ctx, after, name)
	if err != nil {
		return true
	}
	if !testfiles.Differs(name, was, is) {
		return false
	}
	if content, ok := testfiles.Spliced(name, was, is); ok {
		spliced[name] = content
	}
	return true
}

// asBase makes a commit of the change with the tests, and what says how they are run, as
// they were before it.
func (r *run) asBase(ctx context.Context, before, after string, changed changedTests) (string, error) {
	mixed, err := r.Repository.Mixed(ctx, after, before, changed.back)
	if err != nil || len(changed.spliced) == 0 {
		return mixed, err
	}
	return r.Repository.Replaced(ctx, mixed, changed.spliced)
}
