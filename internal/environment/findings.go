package environment

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// run is where a log has the output of one command: from start, which is the command itself, up to end,
// where the CI system says that it failed.
type run struct{ start, end int }

// failedRuns finds the output of the commands that failed, in the logs of CI systems that tell
// where a command begins and how it ended. Of other logs the whole is one.
func failedRuns(lines []string) []run {
	var found []run
	start, repeated := 0, 0
	for at, line := range lines {
		if strings.HasPrefix(line, "The command \"") {
			repeated = at
		}
		switch {
		case strings.HasPrefix(line, "$ ") || strings.Contains(line, "##[group]Run "):
			start = at
		case commandFailed(line):
			end := at
			if strings.HasPrefix(line, "\" ") && repeated > start {
				end = repeated
			}
			found = append(found, run{start, end})
			start = at + 1
		}
	}
	if len(found) == 0 {
		found = append(found, run{0, len(lines)})
	}
	return found
}

// commandFailed reports whether the line is how a CI system says that a command failed: Travis
// CI (whose commands may have several lines), GitHub Actions, GitLab.
func commandFailed(line string) bool {
	if strings.HasPrefix(line, "The command \"") || strings.HasPrefix(line, "\" ") {
		return strings.Contains(line, "\" failed ") || strings.Contains(line, "\" exited with ") && !strings.Contains(line, "\" exited with 0")
	}
	return strings.Contains(line, "##[error]Process completed with exit code ") || strings.HasPrefix(line, "ERROR: Job failed")
}

// noise reports whether the line tells nothing: an empty one, or a mark of a CI system.
func noise(line string) bool {
	line = strings.TrimSpace(line)
	if len(line) < 4 && strings.Trim(line, ".-=_") == "" {
		return true
	}
	return slices.ContainsFunc(ciMarks, func(mark string) bool { return strings.HasPrefix(line, mark) })
}

var ciMarks = []string{"travis_fold:", "travis_time:", "section_start:", "section_end:"}

// part is a part of a log that tells of a failure.
type part struct {
	at     int // the line by which it was found
	signal *signal
}

const (
	// weak is the weight below which a finding is only a word.
	weak = 5
	// longestBefore is the most indented lines before a finding that are taken with it.
	longestBefore = 20
	// longestTrace is the most lines of a stack trace, or indented ones, that are taken with what they
	// belong to.
	longestTrace = 45
)

// The groups of findings. Their numbers are added.
const (
	strong   = 1 // not only a word
	inFailed = 2 // in the output of a command that failed
	groups   = 4
)

// findings are the parts of the log that tell of failures, in groups, the most telling first. Of equal
// ones the first is most likely the cause; of mere words the last tells most.
func (e *excerpt) findings(runs []run) [groups][]part {
	type kind struct {
		group int
		text  string
	}
	seen := map[kind]int{}
	var found [groups][]part
	for at, line := range e.lines {
		s := signalOf(line)
		if s == nil {
			continue
		}
		for len(runs) > 0 && at >= runs[0].end {
			runs = runs[1:]
		}
		group := 0
		if s.weight >= weak {
			group += strong
		}
		if len(runs) > 0 && at >= runs[0].start {
			group += inFailed
		}
		key := kind{group, withoutNumbers(line)}
		if seen[key]++; seen[key] <= repeats {
			found[group] = append(found[group], part{at, s})
		}
	}
	for group := range found {
		if group&strong == 0 {
			slices.Reverse(found[group])
		}
		slices.SortStableFunc(found[group], func(a, b part) int { return b.signal.weight - a.signal.weight })
	}
	return found
}

// beginning is where the block begins that has the line. Some tools print what a failed test said before
// its result, indented: that belongs to it too, and the line above, which is the name of the test.
func (e *excerpt) beginning(at int, s *signal) int {
	if s.weight >= weak && at > 0 && indentation(e.lines[at-1]) > indentation(e.lines[at]) {
		for start := at - 1; start >= max(0, at-longestBefore); start-- {
			if indentation(e.lines[start]) <= indentation(e.lines[at]) {
				return min(start, at-s.before)
			}
		}
	}
	return at - s.before
}

// extent is where the block ends that begins with the line. The lines of a stack trace belong to it,
// and, if it is more than a word, those that are indented further.
func (e *excerpt) extent(at int, s *signal) int {
	blanks, indented := 0, indentation(e.lines[at])
	for end := at + 1; end < len(e.lines); end++ {
		line := e.lines[end]
		belongs := s.weight >= weak && indentation(line) > indented || frame.MatchString(line)
		if end-at > s.after && (end-at > longestTrace || !belongs) {
			return end
		}
		if s.until != nil && s.until.MatchString(line) {
			return end + 1
		}
		if !belongs {
			blanks += min(e.blanks[end], 1)
		}
		if blanks > s.blanks {
			return end
		}
	}
	return len(e.lines)
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// frame is a line of a stack trace.
var frame = lazyregexp.New(`^\s*(\[\w+\]\s+|# )?(at |from |#\d+ |File ".*", line \d|\S+:\d+:in |\.\.\. \d+ more|\(?\S+\.exs?:\d+: |\S+:\d+: in |\[C\]: in )`)

// signal is a kind of line with which something begins that tells of a failure.
type signal struct {
	words         string // one of these, in lower case, is in the line
	match         *lazyregexp.Regexp
	weight        int                // 0: it tells of no failure
	before, after int                // how many lines belong to it
	blanks        int                // at how many gaps of empty lines it does not end
	until         *lazyregexp.Regexp // its last line
}

// signalOf is the first signal that the line is, or nil if it tells of no failure.
func signalOf(line string) *signal {
	lower := strings.ToLower(line)
	for at := range signals {
		if s := &signals[at]; hasOne(lower, s.words) && (s.match == nil || s.match.MatchString(line)) {
			if s.weight == 0 {
				return nil
			}
			return s
		}
	}
	return nil
}

// testsGoOn is a line with which the report on one failed test is over.
var testsGoOn = lazyregexp.New(`^\s*(--- PASS|ok\s|PASS\b|Finished in|test result)`)

// signals is the table: first what begins the report of all failures of a test runner, then
// that of one, then errors of compilers and interpreters, then words.
var signals = []signal{
	// pytest
	{words: "failures =|errors =", match: lazyregexp.New(`^=+ (FAILURES|ERRORS) =+`), weight: 9, after: 80, blanks: 80, until: lazyregexp.New(`^=+ .*(in [0-9.]+ ?s|summary)`)},
	// RSpec, cargo test, PHPUnit
	{words: "failures|failed examples", match: lazyregexp.New(`^(Failures|Failed examples|failures|FAILURES!):?$`), weight: 9, after: 60, blanks: 60, until: lazyregexp.New(`^(Finished in|test result)`)},
	{words: "there was|there were", match: lazyregexp.New(`^There (was|were) \d+ (failure|error)`), weight: 9, after: 50, blanks: 50},
	// Mocha
	{words: " failing", match: lazyregexp.New(`^\s*\d+ failing`), weight: 9, after: 60, blanks: 60},
	// Surefire
	{words: "failed tests:|tests in error:|failures:|errors:", match: lazyregexp.New(`^(\[ERROR\]|\[INFO\])?\s*(Failed tests:|Tests in error:|Failures:|Errors:)\s*`), weight: 9, after: 30, blanks: 1},
	// go test, unittest, Jest, ScalaTest, JUnit of Gradle and Maven, TAP, minitest, R, sanitizers
	{words: "fail|error|not ok|● |stdout ----|dubious|[-] |segmentation", match: lazyregexp.New(`^\s*--- FAIL|^FAIL:|^\s*FAIL\s+\S+[./]|^\s*● |\*\*\* FAILED \*\*\*| FAILED$|<<< (FAILURE|ERROR)!|^not ok|^---- .* stdout ----|^\s*(\d+\) )?(Failure|Error|FAIL|ERROR):?$|^\s*fail: |:\s+FAIL( \([\d.]+s\))?$|^\s*\[-\] |: failed$|Sanitizer: |runtime error: |Segmentation fault|^Running the tests in .* failed|\[compilation failed\]|Dubious, test returned`), weight: 8, after: 20, blanks: 3, until: testsGoOn},
	// RSpec, ExUnit, PHPUnit, Mocha
	{words: ") ", match: lazyregexp.New(`^\s*\d+\) \S`), weight: 8, after: 20, blanks: 3, until: testsGoOn},
	// Gradle
	{words: "what went wrong", weight: 8, after: 12},
	// No failure, whatever the words: a test that passed, a number of failures that is none, a note of a compiler
	{words: "ok|pass|✓|✔|error|fail|note|remark", match: lazyregexp.New(`(?i)^\s*(ok \d|--- pass|[✓✔] )|(\bok|\bpassed|✓|✔)( \([^()]*\))?$|\b(no|0|without|without any) (errors?|failures?|failed)\b|:\d+: (note|remark):`)},
	{words: "traceback (most recent|panic: |panicked at |exception in thread|caused by: ", weight: 7, before: 2, after: 25},
	{words: "error|fatal|exception: |✗|✖|❌", match: lazyregexp.New(`(?i)(:\d+(:\d+)?:? (fatal )?error\b|\): error |^error(\[E\d+\])?:|^\W*(\w+ )?error (at|in|found|occurred)\b|^\[error\]|^fatal: )|\b[A-Za-z.]*(Error|Exception): |[✗✖❌]`), weight: 6, before: 3, after: 6},
	{words: ": ***", match: lazyregexp.New(`^make(\[\d+\])?: \*\*\*`), weight: 4, before: 6, after: 1},
	{words: " warning", match: lazyregexp.New(`(?i):\d+(:\d+)?:? warning`), weight: 2, after: 4},
	// Linters
	{words: ":", match: lazyregexp.New(`^\s*\S*\w\.\w+:\d+:\d+: `), weight: 5, before: 1, after: 3},
	{words: "error|fatal|fail|not found|no such file|cannot|can't|could not|unable to|undefined|denied|exception|abort|crash|mismatch|violat|rejected", match: lazyregexp.New(`(?i)\b(errors?|fatal|fail(ed|ures?|s)?|not found|no such file|cannot|can't|could not|unable|undefined|denied|exception|abort(ed|ing)?|crash(ed)?|mismatch|violat\w+|rejected)\b`), weight: 3, before: 2, after: 4},
}
