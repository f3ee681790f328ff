package environment

import (
	"strings"
)

// excerptParts is how many parts an excerpt has: the end, what stands before the line that
// decided, and that line with what follows.
const excerptParts = 3

// Excerpt is the part of a failed command's log that tells most about the cause, in no more
// than about most bytes: the lines around the one that [Classify] goes by, and the last ones.
func Excerpt(log []byte, most int) string {
	lines := logLines(log)
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	decided := max(0, Classify(log, 1).Number-1)
	room := most
	taken := make([]bool, len(lines))
	take := func(from, step, most int) {
		for at := from; at >= 0 && at < len(lines) && most > 0 && room > 0; at += step {
			if cost := len(lines[at]) + 1; !taken[at] {
				if cost > room {
					return
				}
				taken[at], room, most = true, room-cost, most-cost
			}
		}
	}
	take(len(lines)-1, -1, most/excerptParts) // most programs sum up at their end
	take(decided, -1, most/excerptParts)
	take(decided, 1, most)
	take(len(lines)-1, -1, most)
	var kept []string
	for at, line := range lines {
		switch {
		case taken[at]:
			kept = append(kept, line)
		case len(kept) == 0 || kept[len(kept)-1] != leftOut:
			kept = append(kept, leftOut)
		}
	}
	return strings.Join(kept, "\n")
}

// leftOut stands for lines of a log that are not shown.
const leftOut = "[…]"
