package web

import (
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
	alice.click(`nav a[href="/board"]`)
	alice.click(`a[href="/board/team/app"]`)
	alice.click(`a[href="/board/team/app/issues/new"]`)
	alice.fill(`input[name=title]`, "Mend the gate")
	alice.fill(`textarea[name=body]`, "It **squeaks**.\n\n- oil it")
	alice.click(`form.card button.primary`)
	alice.at("/board/team/app/issues/1")
	alice.sees(".comment .text strong", "squeaks")
	alice.fill(`input#label`, "bug")
	alice.click(`form[action$="/label"] button`)
	alice.sees("#labels .tag", "bug")
	alice.click(`form[action$="/assign"] button[value=toryo]`)
	alice.sees("#assignees", "toryo")

	// The bot works; the page shows it by itself.
	hands := h.board.As(bot)
	issue := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}
	alice.until(`document.querySelector("[data-live-state]").classList.contains("on")`)
	_, err := hands.Say(t.Context(), issue, "I have begun.")
	must(t, err)
	alice.sees("#conversation .comment.bot", "I have begun.")
	alice.fill(`#comment-form textarea`, "Use the good oil, please.")
	alice.click(`#comment-form button`)
	alice.sees("#conversation .comment", "Use the good oil")
	alice.shot("issue")
	alice.click(`#bot-card .confirm > summary`)
	alice.click(`#bot-card .confirm-body button`)
	alice.sees("#conversation .event", "unassigned toryo")

	h.push(t, "mend", "gate.go", "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n\nfunc Close() {}\n")
	_, _, err = hands.Propose(t.Context(), "team/app", forge.Proposal{Title: "Mend the gate", Body: "Closes #1.", Head: "mend"})
	must(t, err)
	alice.sees("#linked", "team/app#2")
	alice.click(`#linked a`)
	alice.at("/board/team/app/pulls/2")
	alice.click(`.tabs a[href$="tab=changes"]`)
	alice.sees("td.del", "squeak")
	alice.sees("td.add", "silence")
	alice.click(`td.n a[href*="new%3A4"]`)
	alice.fill(`#line-form textarea`, "Is it really silent?")
	alice.click(`#line-form button`)
	alice.sees(".talk .comment", "Is it really silent?")
	alice.shot("changes")
	alice.click(`.talk details summary`)
	alice.fill(`.talk details textarea`, "I have listened.")
	alice.click(`.talk details button`)
	alice.sees(".talk .comment", "I have listened.")
	alice.click(`details.card > summary`)
	alice.click(`input[value=approve]`)
	alice.fill(`form[action$="/review"] textarea`, "Good work.")
	alice.click(`form[action$="/review"] button`)
	alice.at("/board/team/app/pulls/2")
	alice.sees("#conversation .comment", "Good work.")
	alice.shot("pull")
	alice.click(`#item-head .confirm > summary`)
	alice.click(`#item-head .confirm-body button`)
	alice.sees("#item-head .badge", "Merged")

	alice.open("/board/team/app/issues/1")
	alice.sees("#item-head .badge", "Closed")
	merged, err := hands.Item(t.Context(), issue)
	must(t, err)
	if merged.State != forge.Closed {
		t.Errorf("the issue is %s", merged.State)
	}
}

// Two people work on one issue, and each sees what the other does.
func TestTwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	_, err := h.board.Welcome(t.Context(), "alice", forge.WriteAccess)
	must(t, err)
	_, err = h.board.As("alice").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Mend the gate"})
	must(t, err)
	alice, bob := h.window(t, "alice"), h.window(t, "bob")
	for _, one := range []*window{alice, bob} {
		one.open("/board/team/app/issues/1")
		one.until(`document.querySelector("[data-live-state]").classList.contains("on")`)
	}
	bob.fill(`#comment-form textarea`, "half a sentence")
	alice.fill(`#comment-form textarea`, "From Alice.")
	alice.click(`#comment-form button`)
	bob.sees("#conversation .comment", "From Alice.")
	if typed := get[string](bob, `document.querySelector("#comment-form textarea").value`); typed != "half a sentence" {
		t.Errorf("what Bob was typing became %q", typed)
	}
	bob.click(`#comment-form button`)
	alice.sees("#conversation .comment", "half a sentence")
	if edits := get[int](alice, `document.querySelectorAll("#conversation form[action$='/edit']").length`); edits != 1 {
		t.Errorf("Alice can edit %d comments", edits)
	}
}
