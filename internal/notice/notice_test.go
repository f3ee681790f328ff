package notice

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Every notice begins with one word that says how it stands, and leaves no place
// unfilled.
func TestOneLookForAll(t *testing.T) {
	t.Parallel()
	whole := Notice{
		Reason: task.ReasonUnassigned, Detail: "The command failed.", Took: 1500 * time.Millisecond, Unanswered: true, Kept: "c0ffee",
		Fetch: "https://toryo.example/git/1.git", Ref: "refs/toryo/wip", Branch: "toryo-1", Pull: "https://forge.example/1",
		Paused: 25*time.Hour + 5*time.Minute, Days: 30, Attempts: 3, Late: []Late{{Author: "alice", Kind: task.ReviewComment, About: "a.go:1", Change: task.CommentEdited}},
	}
	begins := map[task.Language]*regexp.Regexp{
		task.English:  regexp.MustCompile(`^\*\*(Done|Failed|Stopped|Paused|Resumed)\.\*\* `),
		task.Japanese: regexp.MustCompile(`^\*\*(完了|失敗|停止|一時停止|再開)しました。\*\* `),
	}
	for language, begin := range begins {
		for name, say := range map[string]func(Notice, task.Language) string{
			"done": Notice.Done, "handed": Notice.Handed, "untested": Notice.Untested, "unverified": Notice.Unverified, "failed": Notice.Failed, "unable": Notice.Unable, "broke": Notice.Broke,
			"lost": Notice.Lost, "rejected branch": func(n Notice, in task.Language) string { return n.Rejected(in, false) }, "rejected pull request": func(n Notice, in task.Language) string { return n.Rejected(in, true) },
			"stopped": Notice.Stopped, "lapsed": Notice.Lapsed, "paused": Notice.PausedNow, "resumed": Notice.Resumed,
		} {
			for _, n := range []Notice{whole, {Reason: task.ReasonUnassigned, Detail: "x"}} {
				text := say(n, language)
				if !begin.MatchString(text) || strings.ContainsAny(text, "{}") || strings.Contains(text, "\n\n\n") {
					t.Errorf("%s in %s is\n%s", name, language, text)
				}
			}
		}
	}
}

func TestWhatIsPutInIsLeftAlone(t *testing.T) {
	t.Parallel()
	if got, want := (Notice{Detail: "it said {kept} {reason}", Kept: "c0ffee"}).Broke(task.English),
		"**Failed.** it said {kept} {reason}\n\nThe work so far is kept as commit `c0ffee`."; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestAStopSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	n := Notice{Reason: task.ReasonUnassigned, Took: 1234 * time.Millisecond, Kept: "c0ffee", Fetch: "https://h/git/1.git", Ref: "refs/toryo/wip", Branch: "toryo-1"}
	for _, part := range []string{"the bot was unassigned", "1.2 s", "`c0ffee`", "git fetch https://h/git/1.git refs/toryo/wip", "git switch -c toryo-1", "assign the bot again"} {
		if text := n.Stopped(task.English); !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	n.Until = time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)
	for _, in := range []task.Language{task.English, task.Japanese} {
		if text := n.Stopped(in); !strings.Contains(text, "2026-12-24") || !strings.Contains(text, "git fetch https://h/git/1.git refs/toryo/wip") {
			t.Errorf("it does not say until when:\n%s", text)
		}
	}
	if text := (Notice{Reason: task.ReasonUnassigned}).Stopped(task.Japanese); !strings.Contains(text, "保存された作業はありません") {
		t.Errorf("it says\n%s", text)
	}
}

// How to begin anew depends on whether the bot is assigned: nobody can assign it again that is.
func TestHowToBeginAnew(t *testing.T) {
	t.Parallel()
	for reason, want := range map[task.Reason]string{
		task.ReasonUnassigned:    "assign the bot again.",
		task.ReasonItemClosed:    "reopen it",
		task.ReasonStopRequested: "select Retry on the task page, or unassign the bot and then assign it again",
	} {
		if text := (Notice{Reason: reason}).Stopped(task.English); !strings.Contains(text, want) {
			t.Errorf("after %s it says\n%s", reason, text)
		}
	}
	if text := (Notice{Reason: task.ReasonPausedTooLong}).Lapsed(task.English); !strings.Contains(text, "unassign the bot and then assign it again") {
		t.Errorf("it says\n%s", text)
	}
}

// What a forge said is data: one line of code, of bounded length.
func TestRejectedSaysWhatTheForgeSaid(t *testing.T) {
	t.Parallel()
	n := Notice{Reason: task.ReasonRejectedByForge, Account: "toryo-bot", Repository: "gitea:team/app", Pushed: "toryo/3-x", Detail: "remote: `no`\n# {kept} \x1b[31m" + strings.Repeat("x", 5000)}
	text := n.Rejected(task.English, false)
	for _, part := range []string{"toryo-bot pushed the branch `toryo/3-x` to `gitea:team/app`", "`remote: 'no' # {kept} ", "What to do: give the bot's account permission to push", "select Retry"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	if len(text) > 2000 || strings.Contains(text, "\x1b") || strings.Contains(text, "\n#") {
		t.Errorf("it says\n%s", text)
	}
	if text := (Notice{}).Rejected(task.Japanese, true); !strings.Contains(text, "ボット による") {
		t.Errorf("without a name it says\n%s", text)
	}
}

// The server may be newer than the agent and send what this version has no text for.
func TestLateCommentsOfKindsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in     task.Language
		kind   task.CommentKind
		change task.CommentChange
		want   string
	}{
		{task.English, "discussion", task.CommentEdited, "- an edit of a comment by alice\n"},
		{task.English, task.ReviewComment, "resolved", "- a comment on `a.go:1` by alice\n"},
		{task.English, "", "", "- a comment by alice\n"},
		{task.Japanese, "discussion", "resolved", "- alice さんのコメント\n"},
	} {
		text := Notice{Late: []Late{{Author: "alice", Kind: test.kind, About: "a.go:1", Change: test.change}}}.TooLate(test.in)
		if !strings.Contains(text, test.want) {
			t.Errorf("a comment of the kind %q with the change %q is\n%s", test.kind, test.change, text)
		}
	}
}
