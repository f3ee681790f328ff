package environment

import (
	"bytes"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Class says what is to be done about a failure.
type Class string

// The classes. Unknown failures are Fixable: a model may see what we do not.
const (
	Retryable Class = "retryable" // wait, then try the same again
	Fixable   Class = "fixable"   // ask the model for other commands
	Fatal     Class = "fatal"     // tell the people and go on without
)

// Kind says what went wrong.
type Kind string

// The kinds of failure.
const (
	Network         Kind = "network"
	Server          Kind = "server"
	Lock            Kind = "lock"
	VersionConflict Kind = "version_conflict"
	PackageNotFound Kind = "package_not_found"
	ConfigSyntax    Kind = "config_syntax"
	Container       Kind = "container"
	Resource        Kind = "resource"
	Unknown         Kind = "unknown"
)

// Class is what the kind calls for.
func (k Kind) Class() Class {
	switch k {
	case Network, Server, Lock:
		return Retryable
	case Container, Resource:
		return Fatal
	default:
		return Fixable
	}
}

// Classification is what a failed command's log means, and the line that
// decided it. Number counts lines from 1; it is 0 when no line decided.
type Classification struct {
	Class  Class  `json:"class"`
	Kind   Kind   `json:"kind"`
	Line   string `json:"line"`
	Number int    `json:"line_number"`
}

const (
	// logHead and logTail are how much of a long log is looked at.
	logHead = 256 << 10
	logTail = 1 << 20
	// longestTail is what an excerpt is made of.
	longestTail = 8 << 20
	// mostOverwritten is how many texts of one line an excerpt may have.
	mostOverwritten = 3
	// closeToEnd is how many lines before the end are looked at first: an early
	// failure that the tool got over is seldom the cause.
	closeToEnd = 150
	// longestLine is how much of one line is looked at and shown.
	longestLine = 2000
)

var (
	ansiEscape = lazyregexp.New(`\x1b\[[0-9;?]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[()][A-Z0-9]`)
	// buildStep begins a step of an image build. Steps before the last one
	// succeeded, so nothing in them is the cause.
	buildStep = lazyregexp.New(`^Step \d+/\d+ : `)
	// complaint is how most programs say that something went wrong.
	complaint = lazyregexp.New(`(?i)\b(error|fatal|failed|not found|no such file|cannot|can't|undefined|denied|exception)\b`)
	// echoed is a line that repeats the command and tells nothing else.
	echoed = lazyregexp.New(`^(The command '.*' returned a non-zero code: \d+|\s*---> Running in [0-9a-f]+|\+ .*)$`)
)

// Classify reads the log of a command that ended with the exit code and says
// what kind of failure it was. It looks for the cause, which is rarely the last
// line: of all the lines that tell something, the one whose rule has the lowest
// rank decides, and of those the first.
func Classify(log []byte, exitCode int) Classification {
	lines := logLines(log)
	start := 0
	for number, line := range lines {
		if strings.HasPrefix(line, "Step ") && buildStep.MatchString(line) {
			start = number
		}
	}
	near := max(start, len(lines)-closeToEnd)
	found, decided := decide(lines, near, len(lines))
	if !decided && near > start {
		found, decided = decide(lines, start, near)
	}
	if !decided {
		found = fromExitCode(lines, start, exitCode)
	}
	found.Class = found.Kind.Class()
	return found
}

// finding is what the lines looked at so far tell.
type finding struct {
	rank  int
	cause Classification
	// again is what was tried again and is not known to have worked.
	again    Classification
	possible []int
}

// decide applies the rules to the lines from start up to end.
func decide(lines []string, start, end int) (Classification, bool) {
	found := finding{rank: len(rankOrder)}
	for number := start; number < end; number++ {
		if !echoed.MatchString(lines[number]) {
			found.look(lines[number], number+1)
		}
	}
	if found.again.Number > 0 && found.rank > retried {
		return found.again, true
	}
	return found.cause, found.rank < len(rankOrder)
}

// look takes the line into account.
func (f *finding) look(line string, number int) {
	lower := strings.ToLower(line)
	if f.again.Number > 0 && goesOn(lower) {
		f.again = Classification{}
	}
	f.possible = ruleIndex.candidates(lower, f.possible[:0])
	if len(f.possible) == 0 {
		return
	}
	triedAgain := hasOne(lower, retryWords)
	if onlyWarns(lower) && !triedAgain {
		return
	}
	slices.Sort(f.possible)
	for _, index := range slices.Compact(f.possible) {
		candidate := rules[index]
		rank := candidate.rank
		if rank == broken && triedAgain {
			rank = retried
		}
		if rank >= f.rank || (rank == retried && f.again.Number > 0) || !candidate.matches(lower) {
			continue
		}
		matched := Classification{Kind: candidate.kind, Line: strings.TrimSpace(line), Number: number}
		if rank == retried {
			f.again = matched
			continue
		}
		f.rank, f.cause = rank, matched
	}
}

// retryWords are how tools say that what failed is going to be tried again.
const retryWords = "retrying|will retry|tries remaining|retries left|trying again|retry scheduled|attempting retry"

// onlyWarns reports whether the line is a warning of a tool that also says
// plainly what stopped it.
func onlyWarns(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.Contains(line, "npm warn") || strings.HasPrefix(line, "warning \"") || strings.HasPrefix(line, "warn ")
}

// goesOn reports whether the line shows a tool further on: then whatever it had
// to try again, or to wait for, worked in the end.
func goesOn(line string) bool {
	if listsVersions(line) {
		return true
	}
	line = strings.TrimLeft(line, " \t")
	for _, beginning := range progressWords {
		if strings.HasPrefix(line, beginning) {
			return true
		}
	}
	return false
}

var progressWords = []string{"added ", "compiling ", "checking ", "downloaded ", "downloading ", "collecting ", "successfully ",
	"installing collected", "fetched ", "unpacking ", "setting up ", "resolved ", "progress: ", "> task ", "package operations:", "building wheel"}

// listsVersions reports whether the line is pip's list of the versions that it
// saw: then the index was reached, whatever had to be tried again before.
func listsVersions(line string) bool {
	_, versions, found := strings.Cut(line, "(from versions: ")
	return found && !strings.HasPrefix(versions, "none") && !strings.HasPrefix(versions, ")")
}

// fromExitCode is for a log that tells nothing.
func fromExitCode(lines []string, start, exitCode int) Classification {
	if exitCode == exitKilled {
		return Classification{Kind: Resource}
	}
	last := Classification{Kind: Unknown}
	for number := len(lines) - 1; number >= start; number-- {
		text := strings.TrimSpace(lines[number])
		if text == "" || echoed.MatchString(lines[number]) {
			continue
		}
		found := Classification{Kind: Unknown, Line: text, Number: number + 1}
		if complaint.MatchString(text) {
			return found
		}
		if last.Number == 0 {
			last = found
		}
	}
	return last
}

// exitKilled is the exit code of a command that was killed with SIGKILL. The
// sandbox reports its own time limit apart, so this is the kernel, short of
// memory.
const exitKilled = 137

// logLines cuts a log into lines as a terminal would show them: without colours,
// and of a line that was written over only what stayed. The middle of a very
// long log is left out.
func logLines(log []byte) []string {
	lines := cutLines(log, logTail)
	for number, line := range lines {
		lines[number] = shortLine(line[strings.LastIndexByte(line, '\r')+1:])
	}
	return lines
}

// excerptLines are the lines of the log for an excerpt: more of a long log, and each text of
// a line that was written over with another text. Of progress that counts, the last stays.
func excerptLines(log []byte) []string {
	var lines []string
	for _, line := range cutLines(log, longestTail) {
		parts := strings.Split(line, "\r")
		for at, part := range parts {
			if at == len(parts)-1 || strings.TrimSpace(part) != "" && withoutNumbers(part) != withoutNumbers(parts[at+1]) && at < mostOverwritten {
				lines = append(lines, shortLine(part))
			}
		}
	}
	return lines
}

// withoutNumbers is the text without digits and what progress bars are drawn with.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || strings.ContainsRune(" .,%=#>|/-", r) {
			return -1
		}
		return r
	}, text)
}

// cutLines are the lines of the log, without the middle of a very long one. What was written over
// is in them.
func cutLines(log []byte, tail int) []string {
	if len(log) > logHead+tail {
		short := make([]byte, 0, logHead+tail+1)
		short = append(short, log[:logHead]...)
		short = append(short, '\n')
		log = append(short, log[len(log)-tail:]...)
	}
	if bytes.IndexByte(log, 0x1b) >= 0 {
		log = ansiEscape.ReplaceAll(log, nil)
	}
	lines := strings.Split(strings.ToValidUTF8(string(log), "\uFFFD"), "\n")
	for number, line := range lines {
		lines[number] = strings.TrimRight(line, "\r")
	}
	return lines
}

// shortLine is the part of a line that is looked at and shown.
func shortLine(line string) string {
	if len(line) > longestLine {
		return strings.ToValidUTF8(line[:longestLine], "")
	}
	return line
}
