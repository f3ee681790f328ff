package environment

import (
	"slices"
	"strings"
)

// ExcerptLines is the most lines that [Excerpt] shows, without the marks for what is left out.
const ExcerptLines = 100

const (
	// endLines are kept for the end of the log and of the command that failed: most programs
	// sum up there.
	endLines = 18
	// firstLines and lastLines of the log are always shown.
	firstLines, lastLines = 3, 5
	// repeats is how often lines that differ in numbers only count as findings of their own.
	repeats = 4
	// shortGap is the most lines between two parts that are shown too.
	shortGap = 4
	// mostRuns is of how many failed commands, the last ones, the end is shown in any case.
	mostRuns = 3
	// mostFindings is how many findings of a kind are looked at: each tells one line at least.
	mostFindings = 4 * ExcerptLines
)

// Excerpt is the part of a failed command's log that tells most about the cause, in at most
// [ExcerptLines] lines and about most bytes: the blocks in which test runners and compilers
// say what failed, what stands around the line that [Classify] goes by, and the end.
func Excerpt(log []byte, most int) string { return LongExcerpt(log, most, ExcerptLines) }

// LongExcerpt is Excerpt with another limit of lines.
func LongExcerpt(log []byte, most, mostLines int) string {
	lines := excerptLines(log)
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if whole := strings.Join(lines, "\n"); len(whole) <= most && len(lines) <= mostLines {
		return whole
	}
	e := excerpt{room: most - len(leftOut) - 1, left: mostLines - 1}
	blanks := 0
	for _, line := range lines {
		if noise(line) {
			blanks++
			continue
		}
		e.lines, e.blanks, blanks = append(e.lines, line), append(e.blanks, blanks), 0
	}
	e.taken = make([]bool, len(e.lines))
	e.choose(log)
	return e.text()
}

// excerpt is an excerpt that is being chosen.
type excerpt struct {
	lines      []string // without those that tell nothing
	blanks     []int    // how many of those were before each line
	taken      []bool
	room, left int // bytes and lines
}

// choose takes lines, the most telling ones first, until there is no room: what tells of failures in
// the output of the commands that failed, then the rest of that output, then everything else.
func (e *excerpt) choose(log []byte) {
	runs := failedRuns(e.lines)
	last := len(e.lines)
	e.takeEnd(last-lastLines, last)
	e.take(0, firstLines)
	shown := runs[max(0, len(runs)-mostRuns):]
	for _, run := range shown {
		e.take(run.start, run.start+1)
		e.takeEnd(max(run.start, run.end-endLines/len(shown)), run.end)
		e.take(run.end, run.end+1)
	}
	found := e.findings(runs)
	e.takeParts(found[inFailed+strong])
	if decided := Classify(log, 1); decided.Number > 0 {
		if at := slices.IndexFunc(e.lines, func(line string) bool { return strings.TrimSpace(line) == decided.Line }); at >= 0 {
			e.take(at-2, at+3)
		}
	}
	e.takeParts(found[inFailed])
	e.takeParts(found[strong])
	for _, run := range slices.Backward(runs) {
		e.takeEnd(run.start, run.end)
	}
	e.takeParts(found[0])
	e.takeEnd(0, last)
}

// takeParts takes parts as far as there is room, and the short gaps beside them.
func (e *excerpt) takeParts(parts []part) {
	for _, p := range parts[:min(len(parts), mostFindings)] {
		if e.left == 0 {
			return
		}
		start, end := e.beginning(p.at, p.signal), e.extent(p.at, p.signal)
		e.take(start, end)
		e.close(start-shortGap, end+shortGap)
	}
}

// close takes the lines of short gaps between start and end.
func (e *excerpt) close(start, end int) {
	before := -1
	for at := max(start, 0); at < min(end, len(e.lines)); at++ {
		if !e.taken[at] {
			continue
		}
		if before >= 0 && at-before <= shortGap {
			e.take(before+1, at)
		}
		before = at
	}
}

// take takes the lines from start up to end, as far as there is room.
func (e *excerpt) take(start, end int) {
	start, end = max(start, 0), min(end, len(e.lines))
	for at := start; at < end && e.one(at); at++ {
	}
}

// takeEnd takes the lines from start up to end, the last ones if there is no room for all.
func (e *excerpt) takeEnd(start, end int) {
	start, end = max(start, 0), min(end, len(e.lines))
	for at := end - 1; at >= start && e.one(at); at-- {
	}
}

// one takes a line and reports whether there was room. A line that stands alone needs room for
// the mark before it.
func (e *excerpt) one(at int) bool {
	if e.taken[at] {
		return true
	}
	cost, lines := len(e.lines[at])+1, 1
	if (at == 0 || !e.taken[at-1]) && (at+1 == len(e.lines) || !e.taken[at+1]) {
		cost, lines = cost+len(leftOut)+1, 2
	}
	if lines > e.left || cost > e.room {
		return false
	}
	e.taken[at], e.room, e.left = true, e.room-cost, e.left-lines
	return true
}

// text is what was taken, with a mark for each part that is left out.
func (e *excerpt) text() string {
	var kept []string
	for at, line := range e.lines {
		switch {
		case e.taken[at]:
			kept = append(kept, line)
		case len(kept) == 0 || kept[len(kept)-1] != leftOut:
			kept = append(kept, leftOut)
		}
	}
	return strings.Join(kept, "\n")
}

// leftOut stands for lines of a log that are not shown.
const leftOut = "[…]"
