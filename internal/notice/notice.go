package notice

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed texts/*.md
var textFiles embed.FS

// texts are the paragraphs of what we say, by language and name.
var texts = map[task.Language]map[string]string{task.English: paragraphs("en"), task.Japanese: paragraphs("ja")}

// paragraphs reads a file of paragraphs, each below a line with its name.
func paragraphs(language string) map[string]string {
	content, err := textFiles.ReadFile("texts/" + language + ".md")
	if err != nil {
		panic(err) // it is in the program
	}
	named := map[string]string{}
	for _, part := range strings.Split("\n"+string(content), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		named[name] = strings.TrimSpace(text)
	}
	return named
}

// Notice is what there is to say. What is empty is not said.
type Notice struct {
	Reason     task.Reason
	Detail     string        // what went wrong, in whole sentences
	Took       time.Duration // from the request to the end of the work
	Unanswered bool          // the agent did not end the run itself
	Kept       string        // commit of the work so far
	Fetch      string        // where people fetch it
	Ref        string        // and what it is called there
	Branch     string        // what they may call it
	Pull       string        // address of a pull request that the run has opened
	Paused     time.Duration
	Days       int
	Attempts   int
	Late       []Late // what no run has taken up
	Findings   []task.Finding
	Commit     string // that was published
	Receipt    string // id of its receipt
	ReceiptURL string // where people find the receipt; "" if nobody knows
}

// Late is something that came too late for a run.
type Late struct {
	Author string // of the comment
	Kind   task.CommentKind
	About  string // as in [task.Comment]
	Change task.CommentChange
}

// mostLate is how much that came too late is named.
const mostLate = 20

// Done says that the work is done and passed verification.
func (n Notice) Done(in task.Language) string { return n.text(in, "done", n.opened()) }

// Handed says that the work is done, as far as whoever did it says.
func (n Notice) Handed(in task.Language) string { return n.text(in, "handed", n.opened()) }

// Untested says that the work is done, and that nothing could be tested.
func (n Notice) Untested(in task.Language) string { return n.text(in, "untested", n.opened()) }

// Unverified says that there is work that did not pass verification.
func (n Notice) Unverified(in task.Language) string { return n.text(in, "unverified", n.opened()) }

// Failed says for what reason the work could not be done.
func (n Notice) Failed(in task.Language) string { return n.text(in, "failed", n.work(false)) }

// Unable says for what reason the work could not begin.
func (n Notice) Unable(in task.Language) string { return n.text(in, "failed", "retry") }

// Broke says what went wrong.
func (n Notice) Broke(in task.Language) string { return n.text(in, "broke", n.work(false)) }

// Lost says that the agents were lost again and again.
func (n Notice) Lost(in task.Language) string { return n.text(in, "lost", n.work(false), "retry") }

// TooLate says what came after the end of the work.
func (n Notice) TooLate(in task.Language) string { return n.text(in, n.when("late", len(n.Late) > 0)) }

// Stopped says that the work was stopped, and what is left of it.
func (n Notice) Stopped(in task.Language) string {
	return n.text(in, "stopped", n.when("unanswered", n.Unanswered), n.when("pull", n.Pull != ""), n.work(true), "again")
}

// Lapsed says that the task was paused for too long.
func (n Notice) Lapsed(in task.Language) string { return n.text(in, "lapsed", n.work(false), "again") }

// PausedNow says that the work was paused.
func (n Notice) PausedNow(in task.Language) string {
	return n.text(in, "paused", n.when("unanswered", n.Unanswered), n.when("kept", n.Kept != ""))
}

// Resumed says that the work goes on.
func (n Notice) Resumed(in task.Language) string { return n.text(in, "resumed") }

// Unasked says what a pull request has in it that nobody asked for, for its
// description.
func (n Notice) Unasked(in task.Language) string { return n.text(in, "unasked findings") }

// Found lists what was found in work that was to be published.
func (n Notice) Found(in task.Language) string { return n.text(in, "findings") }

// Drafted says why the pull request is a draft.
func (n Notice) Drafted(in task.Language) string { return n.text(in, "drafted findings", n.opened()) }

// Attested says where the receipt of a published commit is, and how it is checked.
func (n Notice) Attested(in task.Language) string {
	if n.ReceiptURL == "" {
		return n.text(in, "receipt_id")
	}
	return n.text(in, "receipt_url")
}

func (n Notice) opened() string { return n.when("opened", n.Pull != "") }

// when is a paragraph that is said in some cases only.
func (Notice) when(name string, said bool) string {
	if !said {
		return ""
	}
	return name
}

// work names the paragraphs about what was kept.
func (n Notice) work(evenNothing bool) string {
	switch {
	case n.Kept == "":
		return n.when("nothing", evenNothing)
	case n.Fetch == "":
		return "kept"
	default:
		return "kept fetch"
	}
}

// text joins paragraphs, of which several may be named together. What is put in is
// not looked at for places again.
func (n Notice) text(in task.Language, names ...string) string {
	var said []string
	for name := range strings.FieldsSeq(strings.Join(names, " ")) {
		said = append(said, texts[in][name])
	}
	return strings.NewReplacer(
		"{reason}", cmp.Or(n.Reason.In(in), string(n.Reason)), "{detail}", n.Detail, "{seconds}", fmt.Sprintf("%.1f", max(0, n.Took.Seconds())),
		"{kept}", n.Kept, "{fetch}", n.Fetch, "{ref}", n.Ref, "{branch}", n.Branch, "{pull}", n.Pull,
		"{paused}", lasting(n.Paused, in), "{days}", strconv.Itoa(n.Days), "{attempts}", strconv.Itoa(n.Attempts),
		"{late}", n.late(in), "{findings}", n.findings(in),
		"{commit}", n.Commit, "{receipt}", n.Receipt, "{receipt_url}", n.ReceiptURL,
	).Replace(strings.Join(said, "\n\n"))
}

// late is a list with one line for each comment, and each line once.
func (n Notice) late(in task.Language) string {
	var lines []string
	for _, one := range n.Late {
		what := strings.NewReplacer("{place}", code(one.About)).Replace(texts[in]["late_"+string(one.Kind)])
		line := "- " + strings.NewReplacer("{what}", what, "{author}", one.Author).Replace(texts[in]["late_"+string(one.Change)])
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - mostLate; more > 0 {
		rest := strings.ReplaceAll(texts[in]["late_more"], "{count}", strconv.Itoa(more))
		lines = append(lines[:mostLate], "- "+rest)
	}
	return strings.Join(lines, "\n")
}

// code is a text of others as code.
func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }

// findings are a list with one line for each.
func (n Notice) findings(in task.Language) string {
	var lines []string
	for _, finding := range n.Findings {
		line := finding.In(in)
		if place := finding.Place(); place != "" {
			line = code(place) + ": " + line
		}
		lines = append(lines, "- "+line)
	}
	return strings.Join(lines, "\n")
}

// lasting is a longer duration as people are told of it.
func lasting(d time.Duration, in task.Language) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	units := map[task.Language][3]string{task.English: {"%d d ", "%d h ", "%d min"}, task.Japanese: {"%d日", "%d時間", "%d分"}}[in]
	var out strings.Builder
	for i, n := range []int{days, hours} {
		if n > 0 {
			fmt.Fprintf(&out, units[i], n)
		}
	}
	fmt.Fprintf(&out, units[2], minutes)
	return out.String()
}
