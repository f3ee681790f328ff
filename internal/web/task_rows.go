package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// maxInline is how many bytes the text of an entry has that is in the page; see also pageInline. What
	// is longer is fetched when somebody opens it, or has a page of its own.
	maxInline = 4 << 10
	// longestLabel is how many characters the line of a call has.
	longestLabel = 160
)

// entryView is an entry of the journal as the page shows it.
type entryView struct {
	journal.Entry
	of    task.ID
	away  bool // its text is too long for the page
	open  bool
	whole bool // it is shown alone
}

// path is where the entry has a page of its own.
func (e entryView) path() string {
	return "/tasks/" + string(e.of) + "/entries/" + strconv.FormatInt(e.Position, 10)
}

// anchor is its id in the page.
func (e entryView) anchor() string { return "e" + strconv.FormatInt(e.Position, 10) }

// newEntryView is an entry of a task. Output that comes while the page is open is added to what is
// there, and is never too long. A call without a result runs only as long as the run does that made it.
func newEntryView(of task.Task, entry journal.Entry) entryView {
	begins := entry.Kind == task.ToolCalled && entry.Result == nil
	entry.Interrupted = begins && (entry.Interrupted || of.State != task.Running || entry.Generation != of.Generation)
	view := entryView{Entry: entry, of: of.ID}
	view.away = view.size() > maxInline && !entry.IsOutput()
	view.open = !view.away && entry.Kind == task.ToolCalled && (entry.Result == nil || entry.Result.Failed)
	return view
}

// commentPart begins the name of a comment among those that a run took up together.
const commentPart = "comment-"

// commentOf is the text of a comment by its name; empty if there is none.
func commentOf(entry journal.Entry, part string) string {
	number, is := strings.CutPrefix(part, commentPart)
	at, err := strconv.Atoi(number)
	if !is || err != nil || entry.Signal == nil || at < 0 || at >= len(entry.Signal.Comments) {
		return ""
	}
	return entry.Signal.Comments[at].Body
}

// over reports whether nothing more comes of a call.
func (e entryView) over() bool { return e.Result != nil || e.Interrupted }

// A text that is cut may be cut inside the sequence of a colour. maxColour is how long one is.
var (
	cutColour    = lazyregexp.New(`\x1b(\[[0-9;:]*)?$`)
	restOfColour = lazyregexp.New(`^\[?[0-9;:]*m`)
)

const maxColour = 32

// ending is the end of what a program wrote, from the beginning of a line on if there is one.
func ending(output string, most int) string {
	if len(output) <= most {
		return output
	}
	from := len(output) - most
	if cutColour.MatchString(output[max(0, from-maxColour):from]) {
		from += len(restOfColour.FindString(output[from:]))
	}
	output = strings.ToValidUTF8(output[from:], "")
	if _, after, is := strings.Cut(output, "\n"); is && after != "" {
		return after
	}
	return output
}

// size is how many bytes of text the entry has.
func (e entryView) size() int {
	size := len(e.Text) + len(e.Body) + len(paragraphs(e.Texts())) + len(paragraphs(e.Thinking()))
	if e.Call != nil {
		size += len(e.Call.Arguments)
	}
	if e.Result != nil {
		size += len(e.Result.Printed())
	}
	if e.Message != nil {
		for _, block := range e.Message.Begin {
			size += len(block.Text)
		}
		if e.Message.Block != nil {
			size += len(e.Message.Block.Text)
		}
	}
	if e.Signal != nil {
		for _, comment := range e.Signal.Comments {
			size += len(comment.Body)
		}
	}
	if e.Plan != nil {
		size += planSize(*e.Plan)
	}
	return size
}

// callArguments are the arguments of the tools that have a line of their own.
type callArguments struct {
	Command  string `json:"command"`
	Path     string `json:"path"`
	Old      string `json:"old"`
	New      string `json:"new"`
	Line     *int   `json:"line"`
	Patch    string `json:"patch"`
	Pattern  string `json:"pattern"`
	Question string `json:"question"`
	Summary  string `json:"summary"`
	Action   string `json:"action"`
	ID       string `json:"id"`
	Items    []struct {
		Text  string `json:"text"`
		State string `json:"state"`
	} `json:"items"`
}

// argumentsOf reads the arguments of a call as far as they can be read.
func argumentsOf(call *journal.Call) (in callArguments) {
	if call != nil {
		_ = json.Unmarshal([]byte(call.Arguments), &in) // a model writes them: what is of another type stays empty
	}
	return in
}

// callLabel is one line about a call: what is done, in words, and to what, as code. What is
// empty for a command.
func callLabel(v visit, call *journal.Call) (what, object string) {
	in := argumentsOf(call)
	switch call.Name {
	case "run", "shell", "bash":
		if in.Command != "" {
			return "", in.Command
		}
	case "test":
		return v.t("row.test"), ""
	case "edit":
		return editLabel(v, in), in.Path
	case "patch":
		return v.t("row.edit"), strings.Join(patchedFiles(in.Patch), ", ")
	case "read":
		return v.t("row.read"), in.Path
	case "list":
		return v.t("row.list"), textOr(in.Path, ".")
	case "search":
		return v.t("row.search"), in.Pattern
	case "diff":
		return v.t("row.diff"), in.Path
	case "todo":
		return v.t("row.todo"), ""
	case "tick":
		return v.t("row.tick"), in.Action
	case "ask":
		return v.t("row.ask"), ""
	case "finish":
		return v.t("row.finish"), ""
	case "comments":
		return v.t("row.comments"), in.ID
	}
	return call.Name, firstArgument(call.Arguments)
}

func editLabel(v visit, in callArguments) string {
	switch in.Command {
	case "create":
		return v.t("row.create")
	case "undo":
		return v.t("row.undo")
	default:
		return v.t("row.edit")
	}
}

func textOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// oneLabel is a text in one line that is short enough for the line of a call.
func oneLabel(text string) string {
	return textfmt.Shorten(textfmt.OneLine(textfmt.Plain(text)), longestLabel)
}

// firstArgument is the first argument by name that is a text, or all of them as they are.
func firstArgument(arguments string) string {
	rows := argumentRows(arguments)
	if rows == nil {
		return arguments
	}
	for _, row := range rows {
		if row.isText && row.value != "" {
			return row.value
		}
	}
	return ""
}

// argumentRow is an argument of a call, for people.
type argumentRow struct {
	name, value string
	isText      bool // and not a number, a list or the like
}

// argumentRows are the arguments of a call, with texts as they are and not as JSON writes them.
// They are nil if the arguments are no object, or a very large one.
func argumentRows(arguments string) []argumentRow {
	if len(arguments) > maxOutput || depth(arguments) > maxDepth {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return nil
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	rows := make([]argumentRow, 0, len(names))
	for _, name := range names {
		var text string
		isText := json.Unmarshal(fields[name], &text) == nil
		if !isText {
			text = string(fields[name])
		}
		rows = append(rows, argumentRow{name, text, isText})
	}
	return rows
}

// editPatch is what an edit changes as lines of a diff, and whether the call is one.
func editPatch(call *journal.Call) (text string, is bool) {
	if call == nil {
		return "", false
	}
	in := argumentsOf(call)
	switch {
	case call.Name == "patch" && in.Patch != "":
		return in.Patch, true
	case call.Name != "edit":
		return "", false
	case in.Command == "replace":
		return lineDiff(in.Old, in.New), true
	case in.Command == "insert":
		heading := ""
		if in.Line != nil {
			heading = fmt.Sprintf("@@ +%d @@\n", *in.Line+1)
		}
		return heading + prefixed("+", splitLines(in.New)), true
	case in.Command == "create":
		return prefixed("+", splitLines(in.New)), true
	default:
		return "", false
	}
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func prefixed(mark string, lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(mark + line + "\n")
	}
	return out.String()
}

// aroundEdit is how many lines that stay are shown around those that an edit changes.
const aroundEdit = 3

// lineDiff is what was in the place of what: the lines that both begin and end with are shown
// as such, some of them.
func lineDiff(before, after string) string {
	old, fresh := splitLines(before), splitLines(after)
	begin := 0
	for begin < len(old) && begin < len(fresh) && old[begin] == fresh[begin] {
		begin++
	}
	end := 0
	for end < len(old)-begin && end < len(fresh)-begin && old[len(old)-1-end] == fresh[len(fresh)-1-end] {
		end++
	}
	tail := old[len(old)-end:]
	return prefixed(" ", old[max(0, begin-aroundEdit):begin]) +
		prefixed("-", old[begin:len(old)-end]) + prefixed("+", fresh[begin:len(fresh)-end]) +
		prefixed(" ", tail[:min(len(tail), aroundEdit)])
}

// counted are the lines that a diff adds and removes.
func counted(patch string) (added, removed int) {
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// patchedFiles are the files that a diff names, some of them.
func patchedFiles(patch string) (names []string) {
	const most = 5
	for line := range strings.Lines(patch) {
		name, is := strings.CutPrefix(line, "+++ ")
		if !is {
			continue
		}
		if len(names) == most {
			return append(names, "…")
		}
		names = append(names, strings.TrimPrefix(strings.TrimSpace(name), "b/"))
	}
	return names
}

// isEdit reports whether a call changes files in a way that is shown as a diff.
func isEdit(call *journal.Call) bool {
	_, is := editPatch(call)
	return is
}

// callMark is how a call ended: running, good or bad.
func callMark(entry journal.Entry) string {
	switch {
	case entry.Interrupted:
		return "halted"
	case entry.Result == nil:
		return "running"
	case entry.Result.Failed:
		return "bad"
	default:
		return "good"
	}
}

// callFacts say how a call ended: exit code and how long it took.
func callFacts(v visit, entry journal.Entry) (facts []string) {
	result := entry.Result
	switch {
	case entry.Interrupted:
		return []string{v.t("row.interrupted")}
	case result == nil:
		return []string{v.t("journal.running")}
	}
	code, known := result.ExitCode()
	switch {
	case result.Exit != nil && result.Exit.TimedOut:
		facts = append(facts, v.t("row.timed_out"))
	case known && code != 0:
		facts = append(facts, v.t("row.exit", code))
	case result.Failed && !known:
		facts = append(facts, v.t("journal.failed"))
	}
	if text, is := editPatch(entry.Call); is {
		added, removed := counted(text)
		facts = append(facts, fmt.Sprintf("+%d −%d", added, removed))
	}
	if result.Milliseconds > 0 {
		facts = append(facts, took(time.Duration(result.Milliseconds)*time.Millisecond))
	}
	return facts
}

// took is a duration for people: 0.3 s, 4.1 s, 2 min 5 s, 1 h 3 min.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}
