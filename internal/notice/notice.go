package notice

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Notice is what there is to say. What is empty is not said.
type Notice struct {
	Reason     task.Reason
	Review     bool          // the work is a review
	Detail     string        // what went wrong, in whole sentences
	Took       time.Duration // from the request to the end of the work
	Unanswered bool          // the agent did not end the run itself
	Kept       string        // commit of the work so far
	Fetch      string        // where people fetch it
	Until      time.Time     // the last day on which they can; zero for ever
	Ref        string        // and what it is called there
	Branch     string        // what they may call it
	Pull       string        // address of a pull request that the run has opened
	Paused     time.Duration
	Days       int
	Attempts   int
	Late       []Late // what no run has taken up
	Findings   []task.Finding
	Commit     string // that was published, reviewed, refused, or is missing
	Receipt    string // id of its receipt
	ReceiptURL string // where people find the receipt; "" if nobody knows
	Checks     []Check
	Account    string // our own on the forge; "" if it is not known
	Repository string // with the forge
	Pushed     string // branch that was to be published
}

// Check is a check of a commit that failed.
type Check struct {
	Name string
	URL  string // may be empty
}

// mostChecks is how many checks are named.
const mostChecks = 20

// Late is something that came too late for a run.
type Late struct {
	Author string // of the comment
	Kind   task.CommentKind
	About  string // as in [task.Comment]
	Change task.CommentChange
}

// longestDetail is how much is shown of what a forge said, in bytes or characters.
const longestDetail = 500

// mostLate is how much that came too late is named.
const mostLate = 20

// Done says that the work is done and passed verification.
func (n Notice) Done(in task.Language) string { return n.paragraphs(in, "notice.done", n.opened()) }

// Handed says that the work is done, as far as whoever did it says.
func (n Notice) Handed(in task.Language) string { return n.paragraphs(in, "notice.handed", n.opened()) }

// Untested says that the work is done, and that nothing could be tested.
func (n Notice) Untested(in task.Language) string {
	return n.paragraphs(in, "notice.untested", n.opened())
}

// Unverified says that there is work that did not pass verification.
func (n Notice) Unverified(in task.Language) string {
	return n.paragraphs(in, "notice.unverified", n.opened())
}

// Failed says for what reason the work could not be done.
func (n Notice) Failed(in task.Language) string {
	return n.paragraphs(in, "notice.failed", n.work(false), n.fetch())
}

// Unable says for what reason the work could not begin.
func (n Notice) Unable(in task.Language) string {
	return n.paragraphs(in, "notice.failed", n.when("notice.commit", n.Commit != ""), n.whatToDo(), n.again("notice.retry"))
}

// Next says what can be done after a failure, and how the work begins anew. It stands behind all
// else that there is to say about the failure.
func (n Notice) Next(in task.Language) string {
	return n.paragraphs(in, n.whatToDo(), n.again("notice.retry"))
}

// Rejected says that the forge did not accept the branch of the work, or the pull request: whose
// and where, what the forge said, and what can be done.
func (n Notice) Rejected(in task.Language, pull bool) string {
	key := "notice.rejected_branch"
	if pull {
		key = "notice.rejected_pull"
	}
	n.Detail = code(textfmt.Shorten(textfmt.OneLine(textfmt.Plain(n.Detail)), longestDetail))
	n.Account = cmp.Or(n.Account, messages.Text(in, "notice.the_bot"))
	return n.paragraphs(in, key, n.work(false), n.fetch(), n.whatToDo(), n.again("notice.retry"))
}

// Waits says for what reason the work has not begun yet, and what can be done about it.
func (n Notice) Waits(in task.Language) string { return n.paragraphs(in, "notice.waits") }

// WaitsAgain says for what reason the work that had begun does not go on, and what can be done
// about it.
func (n Notice) WaitsAgain(in task.Language) string { return n.paragraphs(in, "notice.waits_again") }

// TriedLater says for what reason the work waits, and what can be done about it.
func (n Notice) TriedLater(in task.Language) string { return n.paragraphs(in, "notice.tried_later") }

// Broke says what went wrong.
func (n Notice) Broke(in task.Language) string {
	return n.paragraphs(in, "notice.broke", n.work(false), n.fetch())
}

// Lost says that the agents were lost again and again.
func (n Notice) Lost(in task.Language) string {
	return n.paragraphs(in, "notice.lost", n.work(false), n.fetch(), n.again("notice.retry"))
}

// TooLate says what came after the end of the work.
func (n Notice) TooLate(in task.Language) string {
	return n.paragraphs(in, n.when("notice.late", len(n.Late) > 0))
}

// Stopped says that the work was stopped, and what is left of it.
func (n Notice) Stopped(in task.Language) string {
	return n.paragraphs(in, "notice.stopped", n.when("notice.unanswered", n.Unanswered), n.when("notice.pull", n.Pull != ""), n.work(true), n.fetch(), n.again(n.anew()))
}

// Lapsed says that the task was paused for too long.
func (n Notice) Lapsed(in task.Language) string {
	return n.paragraphs(in, "notice.lapsed", n.work(false), n.fetch(), n.again("notice.retry"))
}

// PausedNow says that the work was paused.
func (n Notice) PausedNow(in task.Language) string {
	return n.paragraphs(in, "notice.paused", n.when("notice.unanswered", n.Unanswered), n.when("notice.kept", n.Kept != ""), n.whatToDo())
}

// Undecided says that reviews keep asking for changes, and that a person has to decide.
func (n Notice) Undecided(in task.Language) string { return n.paragraphs(in, "notice.undecided") }

// Unmergeable says that the base was merged again and again, and that a person has to do it now.
func (n Notice) Unmergeable(in task.Language) string { return n.paragraphs(in, "notice.unmergeable") }

// ReviewedBefore says that a commit whose review is asked for was reviewed before.
func (n Notice) ReviewedBefore(in task.Language) string {
	return n.paragraphs(in, "notice.reviewed_before")
}

// NotMerged says that the forge did not let us merge a commit, and what it said.
func (n Notice) NotMerged(in task.Language) string {
	n.Detail = code(textfmt.Cut(textfmt.OneLine(n.Detail), longestDetail))
	return n.paragraphs(in, "notice.not_merged")
}

// ChecksFailed says which checks of a commit failed.
func (n Notice) ChecksFailed(in task.Language) string {
	return n.paragraphs(in, "notice.checks_failed")
}

// ChecksFailInBase says that the checks that failed fail in the base too.
func (n Notice) ChecksFailInBase(in task.Language) string {
	return n.paragraphs(in, "notice.checks_base")
}

// ChecksPassed says that checks that failed pass now, without a change.
func (n Notice) ChecksPassed(in task.Language) string {
	return n.paragraphs(in, "notice.checks_passed")
}

// ChecksUndecided says that checks keep failing, and that a person has to decide.
func (n Notice) ChecksUndecided(in task.Language) string {
	return n.paragraphs(in, "notice.checks_undecided")
}

// Resumed says that the work goes on.
func (n Notice) Resumed(in task.Language) string { return n.paragraphs(in, "notice.resumed") }

// Approved says that the work goes on by a plan that is approved.
func (n Notice) Approved(in task.Language) string { return n.paragraphs(in, "notice.approved") }

// Unapproved says that the work goes on by a plan that needs no approval any more.
func (n Notice) Unapproved(in task.Language) string { return n.paragraphs(in, "notice.unapproved") }

// Unasked says what a pull request has in it that nobody asked for, for its
// description.
func (n Notice) Unasked(in task.Language) string { return n.paragraphs(in, "notice.unasked") }

// Drafted says why the pull request is a draft.
func (n Notice) Drafted(in task.Language) string {
	return n.paragraphs(in, "notice.drafted", n.opened())
}

// Attested says where the receipt of a published commit is, and how it is checked.
func (n Notice) Attested(in task.Language) string {
	if n.ReceiptURL == "" {
		return n.paragraphs(in, "notice.receipt_id")
	}
	return n.paragraphs(in, "notice.receipt_url")
}

func (n Notice) opened() string { return n.when("notice.opened", n.Pull != "") }

// again is the paragraph about how the work begins anew: reviews are asked for by a label.
func (n Notice) again(otherwise string) string {
	if n.Review {
		return "notice.again_review"
	}
	return otherwise
}

// anew is the paragraph about how stopped work begins anew: that depends on whether the bot is
// still assigned.
func (n Notice) anew() string {
	switch n.Reason { //nolint:exhaustive // with the others it is
	case task.ReasonUnassigned:
		return "notice.again"
	case task.ReasonItemClosed:
		return "notice.again_closed"
	default:
		return "notice.retry"
	}
}

// whatToDo is the paragraph about what can be done about the reason.
func (n Notice) whatToDo() string {
	return n.when("notice.todo", messages.Fix(task.English, n.Reason) != "")
}

// when is a paragraph that is said in some cases only.
func (Notice) when(key string, said bool) string {
	if !said {
		return ""
	}
	return key
}

// work is the paragraph about what was kept.
func (n Notice) work(evenNothing bool) string {
	if n.Kept == "" {
		return n.when("notice.nothing", evenNothing)
	}
	return "notice.kept"
}

// fetch is the paragraph about how to get what was kept.
func (n Notice) fetch() string {
	switch {
	case n.Kept == "" || n.Fetch == "":
		return ""
	case n.Until.IsZero():
		return "notice.fetch"
	}
	return "notice.fetch_until"
}

// paragraphs joins texts; an empty key is none. What is put in is not looked at for
// places again.
func (n Notice) paragraphs(in task.Language, keys ...string) string {
	var said []string
	for _, key := range keys {
		if key != "" {
			said = append(said, messages.Text(in, key))
		}
	}
	return strings.NewReplacer(
		"{reason}", cmp.Or(messages.Reason(in, n.Reason), string(n.Reason)), "{detail}", n.Detail, "{seconds}", fmt.Sprintf("%.1f", max(0, n.Took.Seconds())),
		"{kept}", n.Kept, "{fetch}", n.Fetch, "{until}", n.Until.Format(time.DateOnly), "{ref}", n.Ref, "{branch}", n.Branch, "{pull}", n.Pull,
		"{paused}", lasting(n.Paused, in), "{days}", strconv.Itoa(n.Days), "{attempts}", strconv.Itoa(n.Attempts),
		"{late}", n.late(in), "{findings}", n.Found(in),
		"{checks}", n.checks(in),
		"{commit}", n.Commit, "{receipt}", n.Receipt, "{receipt_url}", n.ReceiptURL,
		"{fix}", messages.Fix(in, n.Reason), "{account}", n.Account, "{repository}", n.Repository, "{pushed}", n.Pushed,
	).Replace(strings.Join(said, "\n\n"))
}

// late is a list with one line for each comment, and each line once.
func (n Notice) late(in task.Language) string {
	var lines []string
	for _, one := range n.Late {
		what := strings.NewReplacer("{place}", code(one.About)).Replace(lateText(in, string(one.Kind), "notice.late_item"))
		line := "- " + strings.NewReplacer("{what}", what, "{author}", one.Author).Replace(lateText(in, string(one.Change), "notice.late_new"))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - mostLate; more > 0 {
		rest := strings.ReplaceAll(messages.Text(in, "notice.late_more"), "{count}", strconv.Itoa(more))
		lines = append(lines[:mostLate], "- "+rest)
	}
	return strings.Join(lines, "\n")
}

// checks is a list with one line for each check. Names and addresses are those of others.
func (n Notice) checks(in task.Language) string {
	var lines []string
	for _, check := range n.Checks {
		line := "- " + code(textfmt.Shorten(textfmt.OneLine(check.Name), longestCheck))
		if address := webAddress(check.URL); address != "" {
			line += " (<" + address + ">)"
		}
		lines = append(lines, line)
	}
	if more := len(lines) - mostChecks; more > 0 {
		lines = append(lines[:mostChecks], "- "+messages.Text(in, "notice.checks_more", more))
	}
	return strings.Join(lines, "\n")
}

// longestCheck bounds the name of a check, in characters.
const longestCheck = 200

// webAddress is the address of a web page, if it is one that can stand in a text.
func webAddress(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || len(address) > 1000 {
		return ""
	}
	if address = at.String(); strings.ContainsAny(address, "<>`") {
		return ""
	}
	return address
}

// lateText is the text for a kind or a change of a comment. The server may be newer than
// the agent and send one that has no text here: then it is the text with the key otherwise.
func lateText(in task.Language, code, otherwise string) string {
	if text, found := messages.Find(in, "notice.late_"+code); found {
		return text
	}
	return messages.Text(in, otherwise)
}

// code is a text of others as code.
func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }

// Found lists what was found in work that was to be published, with one line for each.
func (n Notice) Found(in task.Language) string {
	var lines []string
	for _, finding := range n.Findings {
		line := messages.Finding(in, finding)
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
	var out strings.Builder
	if days > 0 {
		out.WriteString(messages.Text(in, "notice.days", days))
	}
	if hours > 0 {
		out.WriteString(messages.Text(in, "notice.hours", hours))
	}
	return out.String() + messages.Text(in, "notice.minutes", minutes)
}
