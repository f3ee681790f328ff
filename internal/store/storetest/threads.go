package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var threadChecks = []check{
	{"a thread is kept", threads},
	{"a thread needs its review", threadUnknown},
	{"a review has one thread without an owner", sharedThread},
	{"summaries are appended where the last one ended", summaries},
	{"a turn is a question and its answer", turns},
	{"one turn is answered at a time", turnsInOrder},
	{"of many that begin a turn at once, one does", turnsTogether},
	{"a turn whose holder is gone is taken over, and the holder kept out", turnTakenOver},
	{"a question without an answer stays, and can be asked again", turnFails},
	{"a comment on a forge is a message once", turnOrigins},
	{"what a page sends twice is a message once", turnKeys},
	{"threads are listed by who speaks in them", threadsOf},
	{"what a model was sent is kept with the answer", sentKept},
	{"bad turns are refused", badTurns},
}

func newThread(t testing.TB, s store.Store) store.Thread {
	t.Helper()
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{}))
	return got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: review.ID, Owner: "alice", Language: "en", CreatedAt: noon}))
}

// begin begins a turn that has to begin, held for a minute after noon.
func begin(t testing.TB, s store.Store, ask store.Ask) store.Begun {
	t.Helper()
	turn, begun, err := try(t, s, ask)
	if err != nil || !begun {
		t.Fatalf("the turn has not begun: %v", err)
	}
	return turn
}

func try(t testing.TB, s store.Store, ask store.Ask) (store.Begun, bool, error) {
	t.Helper()
	if ask.Claim == "" {
		ask.Claim = "me"
	}
	if ask.Now.IsZero() {
		ask.Now = noon
	}
	ask.Until = ask.Now.Add(time.Minute)
	return s.BeginTurn(t.Context(), ask)
}

func answer(t testing.TB, s store.Store, turn store.Begun, text string) {
	t.Helper()
	got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: text}))
}

func threads(t *testing.T, s store.Store) {
	first := newThread(t, s)
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), first.ID)), first)
	second := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{
		ReviewID: first.ReviewID, Owner: "bob", Language: "ja", ConversationSummary: "要約", SummaryUpToTurn: 5, LastSectionMentionTurn: 4, LastSectionParagraphNumbers: []int{3, 1},
	}))
	equal(t, got[[]store.Thread](t)(s.ListThreads(t.Context(), first.ReviewID)), []store.Thread{first, second})
	newThread(t, s)
}

func threadUnknown(t *testing.T, s store.Store) {
	_, err := s.AddThread(t.Context(), store.Thread{ReviewID: "nothing"})
	wantCode(t, err, task.NotFound)
	_, err = s.SharedThread(t.Context(), "nothing", "ja")
	wantCode(t, err, task.NotFound)
	_, err = s.Thread(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
	wantCode(t, s.AddSummary(t.Context(), "nothing", 0, 5, "x"), task.NotFound)
	equal(t, len(got[[]store.Thread](t)(s.ListThreads(t.Context(), "nothing"))), 0)
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), "nothing"))), 0)
}

func sharedThread(t *testing.T, s store.Store) {
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{}))
	ids := make([]string, 6)
	together(len(ids), func(i int) {
		thread, err := s.SharedThread(t.Context(), review.ID, "en")
		if err != nil || thread.Owner != "" || thread.Language != "en" {
			t.Errorf("%+v, %v", thread, err)
		}
		ids[i] = thread.ID
	})
	equal(t, len(slices.Compact(ids)), 1)
	equal(t, len(got[[]store.Thread](t)(s.ListThreads(t.Context(), review.ID))), 1)
}

func summaries(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	var added atomic.Int64
	together(4, func(int) {
		switch err := s.AddSummary(t.Context(), thread.ID, 0, 5, "【1～5ターンの要約】"); {
		case err == nil:
			added.Add(1)
		case task.CodeOf(err) != task.Conflict:
			t.Error(err)
		}
	})
	equal(t, added.Load(), 1)
	wantCode(t, s.AddSummary(t.Context(), thread.ID, 10, 15, "x"), task.Conflict)
	wantCode(t, s.AddSummary(t.Context(), thread.ID, 5, 5, "x"), task.Invalid)
	must(t, s.AddSummary(t.Context(), thread.ID, 5, 10, "【6～10ターンの要約】"))
	thread.ConversationSummary, thread.SummaryUpToTurn = "【1～5ターンの要約】\n\n【6～10ターンの要約】", 10
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)), thread)
}

func turns(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "§3について", Author: "alice", Place: "t1"})
	equal(t, first, store.Begun{Thread: thread, Message: store.Message{
		ID: first.Message.ID, ThreadID: thread.ID, Turn: 1, Role: store.UserMessage, Content: "§3について", Author: "alice", Place: "t1",
		State: store.Answering, Attempts: 1, HeldUntil: noon.Add(time.Minute), CreatedAt: noon,
	}})
	said := got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{
		MessageID: first.Message.ID, Claim: "me", Content: "はい", Note: "ここまで", Citations: json.RawMessage(`[{"n": 3}]`),
		LastSectionMentionTurn: 1, LastSectionParagraphNumbers: []int{3, 5},
	}))
	equal(t, said.Role, store.AssistantMessage)
	equal(t, said.Turn, 1)
	equal(t, said.Content, "はい")
	equal(t, said.Cause, "ここまで")
	equal(t, string(said.Citations), `[{"n": 3}]`)
	asked := first.Message
	asked.State, asked.HeldUntil = store.Answered, time.Time{}
	equal(t, got[[]store.Message](t)(s.Messages(t.Context(), thread.ID)), []store.Message{asked, said})
	second := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "And?"})
	equal(t, second.Message.Turn, 2)
	equal(t, second.History, []store.Message{asked, said})
	equal(t, second.Thread.LastSectionMentionTurn, 1)
	equal(t, second.Thread.LastSectionParagraphNumbers, []int{3, 5})
	answer(t, s, second, "Yes.")
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)), thread)
}

func turnsInOrder(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "one"})
	if _, begun, err := try(t, s, store.Ask{ThreadID: thread.ID, Content: "two", Claim: "you"}); begun || err != nil {
		t.Fatalf("a second turn began: %v", err)
	}
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))), 1)
	must(t, s.HoldTurn(t.Context(), first.Message.ID, "me", noon.Add(time.Hour)))
	if _, begun, err := try(t, s, store.Ask{ThreadID: thread.ID, Content: "two", Claim: "you", Now: noon.Add(30 * time.Minute)}); begun || err != nil {
		t.Fatalf("a turn that is held was taken: %v", err)
	}
	answer(t, s, first, "1")
	equal(t, begin(t, s, store.Ask{ThreadID: thread.ID, Content: "two"}).Message.Turn, 2)
}

func turnsTogether(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	var won atomic.Int64
	together(8, func(i int) {
		_, begun, err := try(t, s, store.Ask{ThreadID: thread.ID, Content: fmt.Sprint(i), Claim: fmt.Sprint("claim ", i)})
		if err != nil {
			t.Error(err)
		}
		if begun {
			won.Add(1)
		}
	})
	equal(t, won.Load(), 1)
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))), 1)
}

func turnTakenOver(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "one"})
	again := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "one", Claim: "you", Now: noon.Add(2 * time.Minute)})
	equal(t, again.Message.ID, first.Message.ID)
	equal(t, again.Message.Attempts, 2)
	_, err := s.EndTurn(t.Context(), store.Ended{MessageID: first.Message.ID, Claim: "me", Content: "late"})
	wantCode(t, err, task.LeaseLost)
	wantCode(t, s.HoldTurn(t.Context(), first.Message.ID, "me", noon.Add(time.Hour)), task.LeaseLost)
	wantCode(t, s.FailTurn(t.Context(), first.Message.ID, "me", "late"), task.LeaseLost)
	other := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "two", Now: noon.Add(9 * time.Minute)})
	equal(t, other.Message.Turn, 1)
	answer(t, s, other, "2")
	said := got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))
	equal(t, len(said), 3)
	equal(t, said[0].ID, first.Message.ID)
	equal(t, said[0].State, store.Unanswered)
	equal(t, said[0].Cause, "interrupted")
}

func turnFails(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "§1 one"})
	must(t, s.FailTurn(t.Context(), first.Message.ID, "me", "no model\x00"))
	said := got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))
	equal(t, said[0].State, store.Unanswered)
	equal(t, said[0].Cause, "no model\uFFFD")
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)), thread)

	// Another question is the same turn, and both stay.
	second := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "two"})
	equal(t, second.Message.Turn, 1)
	equal(t, len(second.History), 0)
	answer(t, s, second, "2")
	// The first is asked again in the turn that it is by now.
	again := begin(t, s, store.Ask{ThreadID: thread.ID, Repeat: first.Message.ID})
	equal(t, again.Message.ID, first.Message.ID)
	equal(t, again.Message.Content, "§1 one")
	equal(t, again.Message.Turn, 2)
	equal(t, len(again.History), 2)
	answer(t, s, again, "1")
	_, _, err := try(t, s, store.Ask{ThreadID: thread.ID, Repeat: first.Message.ID})
	wantCode(t, err, task.Conflict)
	_, _, err = try(t, s, store.Ask{ThreadID: thread.ID, Repeat: "nothing"})
	wantCode(t, err, task.NotFound)
	// The same words after an answer are a new question.
	equal(t, begin(t, s, store.Ask{ThreadID: thread.ID, Content: "§1 one"}).Message.Turn, 3)
}

func turnOrigins(t *testing.T, s store.Store) {
	review := got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc")))
	thread := got[store.Thread](t)(s.SharedThread(t.Context(), review.ID, "en"))
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "c1", Place: "t1"})
	equal(t, got[store.Message](t)(s.MessageOf(t.Context(), review.Pull, "c1")), first.Message)
	_, err := s.MessageOf(t.Context(), review.Pull, "c2")
	wantCode(t, err, task.NotFound)
	elsewhere := review.Pull
	elsewhere.Number++
	_, err = s.MessageOf(t.Context(), elsewhere, "c1")
	wantCode(t, err, task.NotFound)
	must(t, s.FailTurn(t.Context(), first.Message.ID, "me", "no"))
	again := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why not?", Origin: "c1"})
	equal(t, again.Message.ID, first.Message.ID)
	equal(t, again.Message.Content, "Why?")
	write := store.Action{Item: review.Pull, IdempotencyKey: "reply/c1", Kind: "reply"}
	got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: again.Message.ID, Claim: "me", Content: "Because.", Writes: []store.Action{write}}))
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), review.Pull))), 1)
	_, _, err = try(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "c1"})
	wantCode(t, err, task.Conflict)
	begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "c2"})
}

func badTurns(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	_, _, err := try(t, s, store.Ask{ThreadID: "nothing"})
	wantCode(t, err, task.NotFound)
	_, _, err = try(t, s, store.Ask{ThreadID: thread.ID, Content: "\x00"})
	wantCode(t, err, task.Invalid)
	_, _, err = try(t, s, store.Ask{ThreadID: thread.ID, Origin: long(3000)})
	wantCode(t, err, task.TooLarge)
	_, _, err = s.BeginTurn(t.Context(), store.Ask{ThreadID: thread.ID, Content: "x"})
	wantCode(t, err, task.Invalid)
	_, err = s.EndTurn(t.Context(), store.Ended{MessageID: "nothing", Claim: "me"})
	wantCode(t, err, task.NotFound)
	wantCode(t, s.HoldTurn(t.Context(), "nothing", "me", noon), task.NotFound)
	turn := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "x"})
	_, err = s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Citations: json.RawMessage("{")})
	wantCode(t, err, task.Invalid)
}

func sentKept(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	sent := json.RawMessage(`{"system": "be kind"}`)
	turn := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "why?"})
	first := got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: "so", Sent: sent}))
	turn = begin(t, s, store.Ask{ThreadID: thread.ID, Content: "and?"})
	second := got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: "so"}))
	equal(t, string(got[json.RawMessage](t)(s.Sent(t.Context(), first.ID))), string(sent))
	for _, id := range []string{"", "nothing", turn.Message.ID, second.ID} {
		_, err := s.Sent(t.Context(), id)
		wantCode(t, err, task.NotFound)
	}
	turn = begin(t, s, store.Ask{ThreadID: thread.ID, Content: "and then?"})
	_, err := s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: "so", Sent: json.RawMessage(`{`)})
	wantCode(t, err, task.Invalid)
	must(t, s.DeleteReview(t.Context(), thread.ReviewID))
	_, err = s.Sent(t.Context(), first.ID)
	wantCode(t, err, task.NotFound)
}

// turnKeys sends messages as pages do: each with a name of its own.
func turnKeys(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	first := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "page/1"})
	must(t, s.FailTurn(t.Context(), first.Message.ID, "me", "no"))
	// The page was loaded anew: the same words are the same message, under another name.
	again := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "page/2"})
	equal(t, again.Message.ID, first.Message.ID)
	answer(t, s, again, "Because.")
	_, _, err := try(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "page/2"})
	wantCode(t, err, task.Conflict)
	equal(t, begin(t, s, store.Ask{ThreadID: thread.ID, Content: "Why?", Origin: "page/3"}).Message.Turn, 2)
	equal(t, got[store.Thread](t)(s.ThreadWith(t.Context(), thread.ReviewID, thread.Owner, "page/2")).ID, thread.ID)
	for _, c := range [][3]string{{thread.ReviewID, thread.Owner, "page/1"}, {thread.ReviewID, "mallory", "page/2"}, {"nothing", thread.Owner, "page/2"}, {thread.ReviewID, thread.Owner, ""}} {
		_, err := s.ThreadWith(t.Context(), c[0], c[1], c[2])
		wantCode(t, err, task.NotFound)
	}
}

func threadsOf(t *testing.T, s store.Store) {
	ofBob := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "bob", CustomQuestionText: "What is a contract?"}))
	ofPull := got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc")))
	talk := func(review store.Review, owner string) store.Thread {
		return got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: review.ID, Owner: owner, ConversationSummary: "long"}))
	}
	his, hers, onForge, hersToo := talk(ofBob, "bob"), talk(ofBob, "alice"), talk(ofPull, ""), talk(ofPull, "alice")
	turn := begin(t, s, store.Ask{ThreadID: hersToo.ID, Content: "Why?"})
	got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: "Because.", Spoken: "en"}))
	ids := func(reader, review string, limit int) (ids []string) {
		for _, one := range got[[]store.ThreadEntry](t)(s.ThreadsOf(t.Context(), reader, review, limit)) {
			ids = append(ids, one.ID)
		}
		return ids
	}
	equal(t, ids("bob", "", 0), []string{onForge.ID, his.ID})
	equal(t, ids("alice", "", 0), []string{hersToo.ID, onForge.ID}) // bob's review is not shared with her
	must(t, s.ShareReview(t.Context(), ofBob.ID, "Alice", noon))
	equal(t, ids("alice", "", 0), []string{hersToo.ID, onForge.ID, hers.ID})
	equal(t, ids("alice", "", 1), []string{hersToo.ID})
	equal(t, ids("alice", ofBob.ID, 0), []string{hers.ID})
	entry := got[[]store.ThreadEntry](t)(s.ThreadsOf(t.Context(), "alice", "", 1))[0]
	equal(t, entry.Turns, 1)
	equal(t, entry.Spoken, "en")
	equal(t, entry.Title, ofPull.CustomQuestionText)
	equal(t, entry.Pull, ofPull.Pull)
	equal(t, entry.ConversationSummary, "")
	_, err := s.ThreadsOf(t.Context(), "", "", 0)
	wantCode(t, err, task.Invalid)
}
