package web

import (
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// A person does the whole story on the board with mouse and keyboard, and sees
// what the bot does without loading a page again.
func TestStoryOnTheBoard(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice := h.window(t, "alice")
	alice.Click(`nav a[href="/board"]`)
	alice.Click(`a[href="/board/team/app"]`)
	alice.Click(`a[href="/board/team/app/issues/new"]`)
	alice.Fill(`input[name=title]`, "Fix the gate")
	alice.Fill(`textarea[name=body]`, "It **squeaks**.\n\n- oil it")
	alice.Click(`form.card button.primary`)
	alice.At("/board/team/app/issues/1")
	alice.Sees(".comment .text strong", "squeaks")
	alice.Fill(`input#label`, "bug")
	alice.Click(`form[action$="/label"] button`)
	alice.Sees("#labels .tag", "bug")
	alice.Click(`form[action$="/assign"] button[value=toryo]`)
	alice.Sees("#assignees", "toryo")

	// The bot works; the page shows it by itself.
	hands := h.board.As(bot)
	issue := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}
	alice.IsLive()
	_, err := hands.AddComment(t.Context(), issue, "I have begun.")
	must(t, err)
	alice.Sees("#conversation .comment.bot", "I have begun.")
	alice.Fill(`#comment-form textarea`, "Use the good oil, please.")
	alice.Click(`#comment-form button`)
	alice.Sees("#conversation .comment", "Use the good oil")
	alice.Shot("issue")
	alice.Click(`#bot-card .confirm > summary`)
	alice.Click(`#bot-card .confirm-body button`)
	alice.Sees("#conversation .event", "unassigned toryo")

	h.push(t, "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n\nfunc Close() {}\n")
	_, _, err = hands.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Fix the gate", Body: "Closes #1.", Head: "fix"})
	must(t, err)
	alice.Sees("#linked", "team/app#2")
	alice.Click(`#linked a`)
	alice.At("/board/team/app/pulls/2")
	alice.Click(`.tabs a[href$="tab=changes"]`)
	alice.Sees("td.del", "squeak")
	alice.Sees("td.add", "silence")
	alice.Click(`td.n a[href*="new%3A4"]`)
	alice.Fill(`#line-form textarea`, "Is it really silent?")
	alice.Click(`#line-form button`)
	alice.Sees(".talk .comment", "Is it really silent?")
	alice.Shot("changes")
	alice.Click(`.talk details summary`)
	alice.Fill(`.talk details textarea`, "I have listened.")
	alice.Click(`.talk details button`)
	alice.Sees(".talk .comment", "I have listened.")
	alice.Click(`details.card > summary`)
	alice.Sees(`form[action$="/review"] fieldset`, "Request changes")
	alice.Click(`input[value=approve]`)
	alice.Fill(`form[action$="/review"] textarea`, "Good work.")
	alice.Click(`form[action$="/review"] button`)
	alice.At("/board/team/app/pulls/2")
	alice.Sees("#conversation .comment", "Good work.")
	alice.Shot("pull")
	alice.Click(`#item-head .confirm > summary`)
	alice.Click(`#item-head .confirm-body button`)
	alice.Sees("#item-head .badge", "Merged")

	alice.Click(`#conversation a[href="/board/team/app/items/1"]`) // where its text names the issue
	alice.At("/board/team/app/issues/1")
	alice.Sees("#item-head .badge", "Closed")
	merged, err := hands.Item(t.Context(), issue)
	must(t, err)
	if merged.State != forge.Closed {
		t.Errorf("the issue is %s", merged.State)
	}
}

// A person opens a pull request for a branch that was pushed.
func TestOpenAPullRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice := h.window(t, "alice")
	alice.Open("/board/team/app/pulls")
	alice.Click(`a[href="/board/team/app/pulls/new"]`)
	alice.Sees("main", "There is no branch other than main.")
	h.push(t, "package gate\n")
	alice.Open("/board/team/app/pulls/new")
	alice.Accessible("a new pull request")
	alice.Fill(`input[name=title]`, "Fix the gate")
	alice.Fill(`textarea[name=body]`, "It **squeaks**.")
	alice.Shot("new-pull")
	alice.Click(`form.card button.primary`)
	alice.At("/board/team/app/pulls/1")
	alice.Sees("#item-head code", "fix → main")
	alice.Sees(".comment .text strong", "squeaks")
	if log := h.audit(t); log[0] != "alice pull.create /board/team/app/pulls title=Fix the gate head=fix base=main done" {
		t.Errorf("the audit log ends with %q", log[0])
	}
	// The same branches have one pull request, and what cannot be is said.
	v := h.visitor(t, "alice")
	form := url.Values{"title": {"Again"}, "head": {"fix"}, "base": {"main"}}
	if status, page := v.post("/board/team/app/pulls", form); status != 200 || !strings.Contains(page, "Fix the gate") {
		t.Errorf("the same branches again answer %d", status)
	}
	for _, bad := range []struct {
		title, head, base string
		status            int
	}{{"x", "", "", 422}, {"", "fix", "main", 422}, {"x", "none", "", 404}, {"x", "main", "main", 422}, {"x", "--all", "main", 422}} {
		status, _ := v.post("/board/team/app/pulls", url.Values{"title": {bad.title}, "head": {bad.head}, "base": {bad.base}})
		if status != bad.status {
			t.Errorf("%+v answers %d", bad, status)
		}
	}
	if status, _ := h.visitor(t, "vera").get("/board/team/app/pulls/new"); status != 403 {
		t.Errorf("a viewer gets %d", status)
	}
}

// Two people work on one issue, and each sees what the other does.
func TestTwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	_, err := h.board.EnsureUser(t.Context(), "alice", forge.WriteAccess)
	must(t, err)
	_, err = h.board.As("alice").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Fix the gate"})
	must(t, err)
	alice, bob := h.window(t, "alice"), h.window(t, "bob")
	for _, one := range []*window{alice, bob} {
		one.Open("/board/team/app/issues/1")
		one.IsLive()
	}
	bob.Fill(`#comment-form textarea`, "half a sentence")
	alice.Fill(`#comment-form textarea`, "From Alice.")
	alice.Click(`#comment-form button`)
	bob.Sees("#conversation .comment", "From Alice.")
	if typed := get[string](bob, `document.querySelector("#comment-form textarea").value`); typed != "half a sentence" {
		t.Errorf("what Bob was typing became %q", typed)
	}
	bob.Click(`#comment-form button`)
	alice.Sees("#conversation .comment", "half a sentence")
	if edits := get[int](alice, `document.querySelectorAll("#conversation form[action$='/edit']").length`); edits != 1 {
		t.Errorf("Alice can edit %d comments", edits)
	}
}
