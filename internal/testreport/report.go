package testreport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Status is how a test ended.
type Status string

// A test that is marked as failing, and failed, is skipped: whatever it does, the run
// passes. Its message says so.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Case is one test. Its name is the same in every run: the package, class or file,
// then the test's own name with its parameters.
type Case struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // why it failed or was skipped
}

// Report is what a runner says about one run.
type Report struct {
	Runner string `json:"runner"`
	Cases  []Case `json:"cases"`
	// Complete says that the runner finished its report and that nothing in it
	// contradicts the rest.
	Complete bool   `json:"complete"`
	ExitCode int    `json:"exit_code"`
	Note     string `json:"note,omitempty"` // why it is not complete
}

// NoTests is the note of a report of no test.
const NoTests = "no test was found"

// What is kept of a report at most. A report with more cases is not complete; longer
// texts are cut.
const (
	MaxCases   = 50_000
	MaxName    = 500
	MaxMessage = 4000
)

// Counts are the numbers of tests that ran, and of those that passed, failed and
// were skipped. A skipped test did not run.
func (r Report) Counts() (ran, passed, failed, skipped int) {
	for _, c := range r.Cases {
		switch c.Status {
		case Passed:
			passed++
		case Failed:
			failed++
		case Skipped:
			skipped++
		}
	}
	return passed + failed, passed, failed, skipped
}

// Passed says whether the tests passed: the runner finished its report, at least one
// test ran and passed, none failed, and the exit code says the same.
func (r Report) Passed() bool {
	_, passed, failed, _ := r.Counts()
	return r.Complete && r.ExitCode == 0 && passed > 0 && failed == 0
}

// Failing are the names of the tests that failed, in order.
func (r Report) Failing() []string {
	failing := []string{}
	for _, c := range r.Cases {
		if c.Status == Failed {
			failing = append(failing, c.Name)
		}
	}
	return failing
}

// builder puts a report together and keeps to the limits.
type builder struct {
	cases    []Case
	seen     map[string]int
	notes    []string
	controls int             // how many were reported
	expected map[string]bool // names of tests that are marked as failing, as the runner knows them
}

func newBuilder() *builder { return &builder{seen: map[string]int{}, expected: map[string]bool{}} }

// expectedFailure is the message of a test that is marked as failing.
const expectedFailure = "expected to fail"

// doubt says why the report is not complete.
func (b *builder) doubt(format string, values ...any) {
	const most = 5
	if len(b.notes) < most {
		b.notes = append(b.notes, printable(fmt.Sprintf(format, values...), MaxName))
	}
}

// add adds a case. Runners allow several tests of one name: the second is "name #2".
func (b *builder) add(c Case) {
	if len(b.cases) >= MaxCases {
		if len(b.cases) == MaxCases && b.seen[""] == 0 {
			b.seen[""] = 1
			b.doubt("there are more than %d tests", MaxCases)
		}
		return
	}
	switch c.Status {
	case Passed, Failed, Skipped:
	default:
		b.doubt("the report has the unknown status %q", c.Status)
		c.Status = Failed
	}
	c.Name, c.File, c.Message = printable(c.Name, MaxName), printable(c.File, MaxName), message(c.Message)
	if c.Name == "" {
		b.doubt("the report has a test without a name")
		return
	}
	b.seen[c.Name]++
	if n := b.seen[c.Name]; n > 1 {
		c.Name = fmt.Sprintf("%s #%d", c.Name, n)
	}
	b.cases = append(b.cases, c)
}

func (b *builder) report() Report {
	r := Report{Cases: b.cases, Complete: len(b.notes) == 0, Note: strings.Join(b.notes, "; ")}
	if r.Cases == nil {
		r.Cases = []Case{}
	}
	if r.Complete && len(r.Cases) == 0 {
		r.Complete, r.Note = false, NoTests
	}
	return r
}

// printable makes one line of a text: what a terminal would act on becomes a space.
// A text that is too long is cut, and ends with a hash of the whole, so that two
// that begin alike stay apart.
func printable(text string, most int) string {
	cut := ""
	if len(text) > most {
		sum := sha256.Sum256([]byte(text))
		cut = "…" + hex.EncodeToString(sum[:6])
		text = text[:most-len(cut)]
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text) + cut
}

// message does the same for a text of several lines, of which it keeps the beginning.
func message(text string) string {
	if len(text) > MaxMessage {
		text = text[:MaxMessage]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, text))
}
