package environment

import (
	"regexp"
	"slices"
	"strings"
)

// failedRuns finds the output of the commands that failed, in logs that tell where a command
// begins and how it ended. Of other logs the whole is one.
func failedRuns(lines []string) []run {
	var found []run
	start := 0
	for at, line := range lines {
		switch {
		case line == "" || !strings.ContainsAny(line[:1], "$#TEs\"0123456789") && !strings.Contains(line, "##["):
		case commandBegins.MatchString(line):
			start = at
		case commandFailed.MatchString(line):
			found = append(found, run{start, at + 1})
			start = at + 1
		}
	}
	if len(found) == 0 {
		found = append(found, run{0, len(lines)})
	}
	return found
}

var (
	// Travis CI, GitHub Actions, GitLab.
	commandBegins = regexp.MustCompile(`^(\$ |##\[group\]Run |[0-9TZ:.-]* ?##\[group\]Run |section_start:\d+:)`)
	commandFailed = regexp.MustCompile(`^The command ".*" (exited with [1-9]|failed and exited with)|^" exited with [1-9]|^The command ".*" failed (\d|and)|##\[error\]Process completed with exit code [1-9]|^ERROR: Job failed`)
)

// noise reports whether the line tells nothing: empty ones and the marks of CI systems.
func noise(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.Trim(line, ".-=_") == "" && len(line) < 4 || strings.HasPrefix(line, "travis_fold:") || strings.HasPrefix(line, "travis_time:") || strings.HasPrefix(line, "section_start:") || strings.HasPrefix(line, "section_end:")
}

// longestTrace is the most lines of a stack trace that are taken with what it belongs to.
const longestTrace = 45

// weak is the weight below which a finding is only a word.
const weak = 5

// finding is a part of a log that tells of a failure.
type part struct {
	start, end int
	weight     int
}

// findings are the parts of the log that tell of failures, the most telling first.
func (e *excerpt) findings(runs []run) []part {
	seen := map[string]int{}
	var found []part
	next := 0
	for at := 0; at < len(e.lines); at++ {
		line := e.lines[at]
		s, ok := signalOf(line)
		if !ok {
			continue
		}
		key := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, line)
		if seen[key]++; seen[key] > repeats {
			continue
		}
		if s.weight < weak && (strings.Contains(line, "0 errors") || strings.Contains(line, "0 failed")) {
			continue
		}
		p := part{start: max(next, at-s.before), end: e.extent(at, s), weight: s.weight}
		for _, r := range runs {
			if at >= r.start && at < r.end && s.weight >= weak {
				p.weight += 100
				break
			}
		}
		found = append(found, p)
	}
	slices.SortStableFunc(found, func(a, b part) int {
		if a.weight == b.weight && a.weight < weak {
			return b.start - a.start // of mere words the last ones tell most
		}
		return b.weight - a.weight
	})
	return found
}

// extent is where the block ends that begins with the line.
func (e *excerpt) extent(at int, s signal) int {
	blanks := 0
	for end := at + 1; end < len(e.lines); end++ {
		line := e.lines[end]
		if end-at > s.after && (end-at > longestTrace || !frame.MatchString(line)) {
			return end
		}
		if s.until != nil && s.until.MatchString(line) {
			return end + 1
		}
		if strings.TrimSpace(line) == "" {
			if blanks++; blanks > s.blanks {
				return end
			}
		}
	}
	return len(e.lines)
}

// signal is a line with which something begins that tells of a failure.
type signal struct {
	match         *regexp.Regexp
	weight        int
	before, after int
	blanks        int // how many empty lines the block may have
	until         *regexp.Regexp
}

func signalOf(line string) (signal, bool) {
	lower := strings.ToLower(line)
	if !slices.ContainsFunc(signalWords, func(word string) bool { return strings.Contains(lower, word) }) {
		return signal{}, false
	}
	for _, s := range signals {
		if s.match.MatchString(line) {
			return s, true
		}
	}
	return signal{}, false
}

var (
	passed = regexp.MustCompile(`^\s*(--- PASS|ok\s|PASS\b|Finished in|test result)`)
	// frame is a line of a stack trace.
	frame = regexp.MustCompile(`^\s*(\[\w+\]\s+|# )?(at |from |#\d+ |File ".*", line \d|\S+:\d+:in |\.\.\. \d+ more|\(?\S+\.exs?:\d+: )`)
)

var signals = []signal{
	{match: regexp.MustCompile(`^=+ (FAILURES|ERRORS) =+`), weight: 9, after: 80, blanks: 80, until: regexp.MustCompile(`^=+ .*(in [0-9.]+ ?s|summary)`)},
	{match: regexp.MustCompile(`^(Failures|Failed examples|failures|FAILURES!):?$`), weight: 9, after: 60, blanks: 60, until: regexp.MustCompile(`^(Finished in|test result)`)},
	{match: regexp.MustCompile(`^\s*\d+ failing`), weight: 9, after: 60, blanks: 60},
	{match: regexp.MustCompile(`^There (was|were) \d+ (failure|error)`), weight: 9, after: 50, blanks: 50},
	{match: regexp.MustCompile(`^(\[ERROR\]|\[INFO\])?\s*(Failed tests:|Tests in error:|Failures:|Errors:)\s*`), weight: 9, after: 30, blanks: 1},
	{match: regexp.MustCompile(`^\s*--- FAIL|^FAIL:|^\s*FAIL\s+\S+[./]|^\s*● |\*\*\* FAILED \*\*\*| FAILED$|<<< (FAILURE|ERROR)!|^not ok|^---- .* stdout ----|^\s*(\d+\) )?(Failure|Error|FAIL|ERROR):$|\[compilation failed\]|Dubious, test returned`), weight: 8, after: 20, blanks: 3, until: passed},
	{match: regexp.MustCompile(`^\* What went wrong:`), weight: 8, after: 12, blanks: 0},
	{match: regexp.MustCompile(`^\s*Traceback \(most recent|^panic: |panicked at |^Exception in thread|^Caused by: `), weight: 7, before: 2, after: 25},
	{match: regexp.MustCompile(`(?i)(:\d+(:\d+)?:? (fatal )?error\b|^error(\[E\d+\])?:|^\[error\]|^fatal: )|\b[A-Za-z.]*(Error|Exception): |[✗✖❌]`), weight: 6, before: 3, after: 6},
	{match: regexp.MustCompile(`^make(\[\d+\])?: \*\*\*`), weight: 4, before: 6, after: 1},
	{match: regexp.MustCompile(`(?i)(:\d+(:\d+)?:? warning)`), weight: 2, before: 0, after: 4},
	{match: regexp.MustCompile(`(?i)\b(errors?|fatal|fail(ed|ures?|s)?|not found|no such file|cannot|can't|could not|unable|undefined|denied|exception|abort(ed|ing)?|crash(ed)?|mismatch|violat\w+|rejected)\b`), weight: 3, before: 2, after: 4},
}

var signalWords = []string{"fail", "err", "fatal", "panic", "exception", "traceback", "caused by", "went wrong", "not ok", "stdout ----", "***", "not found", "cannot", "can't", "no such", "undefined", "denied", "abort", "unable", "could not", "dubious", "crash", "mismatch", "violat", "rejected", "warning", "● ", "✗", "✖", "❌", "there w"}
