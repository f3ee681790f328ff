package forge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// NewestChecks returns the newest of each name, by name, and no more than [MaxChecks]: what
// has succeeded is left out first, so that no failure is hidden by many successes. Of two at
// the same time, and of those without a time, the one that comes later in the list is newer.
func NewestChecks(checks []Check) []Check {
	return oneOfEach(checks, func(check, known Check) bool { return check.At.IsZero() || !check.At.Before(known.At) })
}

// WorstChecks is like [NewestChecks], but of each name returns the one that has failed, or
// else has not ended: they are different checks that are named alike.
func WorstChecks(checks []Check) []Check {
	return oneOfEach(checks, func(check, known Check) bool { return badness(check) > badness(known) })
}

// Unread stands in a list for checks that the forge has and that were not read, so that the list
// does not look whole. Nothing is known of them: it is only reported.
func Unread() Check {
	return Check{
		Name: "more checks than are read", State: StatusError, Canceled: true,
		Description: "The commit has so many checks that not all of them were read.",
	}
}

func badness(check Check) int {
	switch {
	case check.Failed() && !check.Canceled:
		return 3
	case check.Failed():
		return 2
	case check.State == StatusPending:
		return 1
	default:
		return 0
	}
}

func oneOfEach(checks []Check, replaces func(check, known Check) bool) []Check {
	kept := map[string]Check{}
	for _, check := range checks {
		if known, found := kept[check.Name]; !found || replaces(check, known) {
			kept[check.Name] = check
		}
	}
	byName := func(a, b Check) int { return cmp.Compare(a.Name, b.Name) }
	all := slices.SortedFunc(maps.Values(kept), byName)
	if len(all) > MaxChecks {
		slices.SortStableFunc(all, func(a, b Check) int { return succeeded(a) - succeeded(b) })
		all = all[:MaxChecks]
		slices.SortFunc(all, byName)
	}
	return all
}

func succeeded(check Check) int {
	if check.State == StatusSuccess {
		return 1
	}
	return 0
}

// logTime is what forges write before each line of a log: the time, and on GitLab by which
// stream it came.
var logTime = lazyregexp.New(`(?m)^\x{FEFF}?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z (?:[0-9a-f]{2}[OE][+ ])?`)

// LogEnd keeps the end of a log that is written to it. However long the log is, a few times
// as much is held as is asked for.
type LogEnd struct {
	most int // of what it returns
	kept []byte
	cut  bool // the beginning is missing
}

// NewLogEnd makes one that returns at most so many bytes.
func NewLogEnd(maxBytes int) *LogEnd { return &LogEnd{most: max(maxBytes, 0)} }

// Write implements [io.Writer]. It never fails.
func (e *LogEnd) Write(p []byte) (int, error) {
	written, room := len(p), e.room()
	if len(p) > room {
		p, e.cut = p[len(p)-room:], true
	}
	if len(e.kept)+len(p) > 2*room {
		e.kept, e.cut = append(e.kept[:0], e.kept[len(e.kept)-(room-len(p)):]...), true
	}
	e.kept = append(e.kept, p...)
	return written, nil
}

// room is how much of a log is looked at, so that enough is left without times and colors.
func (e *LogEnd) room() int { return 2 * e.most }

// String is the end of the log: without escape sequences of terminals and without the times
// that forges write before lines. A line of which the beginning is missing is left out,
// unless it is the only one.
func (e *LogEnd) String() string {
	text := lastLines(string(e.kept), e.room(), e.cut)
	text = logTime.ReplaceAllString(Clean(textfmt.StripEscapes(text)), "")
	return strings.ToValidUTF8(lastLines(text, e.most, false), "")
}

// lastLines returns the last of a text, whole lines where it can. cut says that the beginning
// is missing already.
func lastLines(text string, most int, cut bool) string {
	end := text[max(0, len(text)-most):]
	if cut || len(end) < len(text) {
		if _, whole, found := strings.Cut(end, "\n"); found && whole != "" {
			return whole
		}
	}
	return end
}
