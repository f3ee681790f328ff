package storetest

import (
	"encoding/json"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var reviewChecks = []check{
	{"a question is kept", questions},
	{"a review is kept", reviews},
	{"a review of an unknown question is refused", reviewUnknown},
	{"a head commit is reviewed once", reviewOnce},
	{"of many that review one commit at once, one does", reviewTogether},
	{"reviews are listed by owner", listReviews},
	{"a review goes with its threads", deleteReview},
	{"bad reviews are refused", badReviews},
}

func questions(t *testing.T, s store.Store) {
	_, err := s.Question(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
	first := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Text: "問題文", PurposeText: "出題趣旨", GradingImpressionText: "採点実感", CreatedAt: noon}))
	equal(t, first, store.Question{ID: first.ID, Text: "問題文", PurposeText: "出題趣旨", GradingImpressionText: "採点実感", CreatedAt: noon})
	second := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{ID: first.ID}))
	if second.ID == first.ID || second.CreatedAt.IsZero() {
		t.Fatalf("the second question is %+v", second)
	}
	equal(t, got[store.Question](t)(s.Question(t.Context(), first.ID)), first)
	equal(t, got[[]store.Question](t)(s.ListQuestions(t.Context())), []store.Question{first, second})
}

func pullReview(commit string) store.Review {
	return store.Review{
		Owner: "alice", CustomQuestionText: "custom", AnswerText: "$$[1]\nanswer", Judgement: json.RawMessage(`{"overall_review": "good"}`),
		Pull: task.Key{Forge: task.Gitea, Repository: "a/b", Kind: task.Pull, Number: 3}, HeadCommit: commit,
	}
}

func reviews(t *testing.T, s store.Store) {
	question := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Text: "q"}))
	want := pullReview("abc")
	want.QuestionID, want.CreatedAt = question.ID, noon
	stored := got[store.Review](t)(s.AddReview(t.Context(), want))
	want.ID = stored.ID
	equal(t, stored, want)
	equal(t, got[store.Review](t)(s.Review(t.Context(), stored.ID)), want)
	_, err := s.Review(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
}

func reviewUnknown(t *testing.T, s store.Store) {
	_, err := s.AddReview(t.Context(), store.Review{QuestionID: "nothing"})
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), ""))), 0)
}

func reviewOnce(t *testing.T, s store.Store) {
	first := got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc")))
	_, err := s.AddReview(t.Context(), pullReview("abc"))
	wantCode(t, err, task.Conflict)
	got[store.Review](t)(s.AddReview(t.Context(), pullReview("def")))
	other := pullReview("abc")
	other.Pull.Number++
	got[store.Review](t)(s.AddReview(t.Context(), other))
	for range 2 { // documents have no commit
		got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice"}))
	}
	must(t, s.DeleteReview(t.Context(), first.ID))
	got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc")))
}

func reviewTogether(t *testing.T, s store.Store) {
	together(8, func(int) {
		_, err := s.AddReview(t.Context(), pullReview("abc"))
		if code := task.CodeOf(err); err != nil && code != task.Conflict {
			t.Error(err)
		}
	})
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), ""))), 1)
}

func listReviews(t *testing.T, s store.Store) {
	a := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", AnswerText: "1"}))
	b := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "bob", AnswerText: "2"}))
	c := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", AnswerText: "3"}))
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), "alice")), []store.Review{a, c})
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), "")), []store.Review{a, b, c})
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), "carol"))), 0)
}

func deleteReview(t *testing.T, s store.Store) {
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{}))
	thread := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: review.ID}))
	got[store.Message](t)(s.AddMessage(t.Context(), store.Message{ThreadID: thread.ID, Turn: 1, Role: store.UserMessage}))
	must(t, s.DeleteReview(t.Context(), review.ID))
	_, err := s.Review(t.Context(), review.ID)
	wantCode(t, err, task.NotFound)
	_, err = s.Thread(t.Context(), thread.ID)
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))), 0)
	wantCode(t, s.DeleteReview(t.Context(), review.ID), task.NotFound)
}

func badReviews(t *testing.T, s store.Store) {
	for _, spoil := range []func(*store.Review){
		func(r *store.Review) { r.Judgement = json.RawMessage(`{`) },
		func(r *store.Review) { r.HeadCommit = "" },
		func(r *store.Review) { r.Pull.Number = 0 },
		func(r *store.Review) { r.AnswerText = "\x00" },
	} {
		bad := pullReview("abc")
		spoil(&bad)
		_, err := s.AddReview(t.Context(), bad)
		wantCode(t, err, task.Invalid)
	}
}

var threadChecks = []check{
	{"a thread is kept and updated", threads},
	{"a thread needs its review", threadUnknown},
	{"messages are kept by turn, the user's first", messages},
	{"a turn has one message of each role", messageTwice},
	{"bad messages are refused", badMessages},
}

func newThread(t testing.TB, s store.Store) store.Thread {
	t.Helper()
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{}))
	return got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: review.ID, Owner: "alice", CreatedAt: noon}))
}

func threads(t *testing.T, s store.Store) {
	first := newThread(t, s)
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), first.ID)), first)
	second := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{
		ReviewID: first.ReviewID, Owner: "bob", ConversationSummary: "要約", SummaryUpToTurn: 5, LastSectionMentionTurn: 4, LastSectionParagraphNumbers: []int{3, 1},
	}))
	equal(t, got[[]store.Thread](t)(s.ListThreads(t.Context(), first.ReviewID)), []store.Thread{first, second})
	newThread(t, s)

	changed := first
	changed.ConversationSummary, changed.SummaryUpToTurn = "【1～5ターンの要約】", 5
	changed.LastSectionMentionTurn, changed.LastSectionParagraphNumbers = 7, []int{1, 3, 5}
	must(t, s.UpdateThread(t.Context(), changed))
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), first.ID)), changed)
	changed.LastSectionParagraphNumbers = nil
	must(t, s.UpdateThread(t.Context(), changed))
	elsewhere := changed
	elsewhere.Owner, elsewhere.ReviewID = "mallory", "elsewhere"
	must(t, s.UpdateThread(t.Context(), elsewhere))
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), first.ID)), changed)
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), second.ID)), second)
}

func threadUnknown(t *testing.T, s store.Store) {
	_, err := s.AddThread(t.Context(), store.Thread{ReviewID: "nothing"})
	wantCode(t, err, task.NotFound)
	_, err = s.Thread(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
	wantCode(t, s.UpdateThread(t.Context(), store.Thread{ID: "nothing"}), task.NotFound)
	equal(t, len(got[[]store.Thread](t)(s.ListThreads(t.Context(), "nothing"))), 0)
}

func messages(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	say := func(turn int, role store.MessageRole) store.Message {
		return got[store.Message](t)(s.AddMessage(t.Context(), store.Message{ThreadID: thread.ID, Turn: turn, Role: role, Content: "§3について", CreatedAt: noon}))
	}
	a2, a1 := say(2, store.AssistantMessage), say(1, store.AssistantMessage)
	u10, u1, u2 := say(10, store.UserMessage), say(1, store.UserMessage), say(2, store.UserMessage)
	equal(t, got[[]store.Message](t)(s.Messages(t.Context(), thread.ID)), []store.Message{u1, a1, u2, a2, u10})
}

func messageTwice(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	together(6, func(int) {
		_, err := s.AddMessage(t.Context(), store.Message{ThreadID: thread.ID, Turn: 1, Role: store.UserMessage})
		if err != nil && task.CodeOf(err) != task.Conflict {
			t.Error(err)
		}
	})
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))), 1)
}

func badMessages(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	_, err := s.AddMessage(t.Context(), store.Message{ThreadID: "nothing", Turn: 1, Role: store.UserMessage})
	wantCode(t, err, task.NotFound)
	_, err = s.AddMessage(t.Context(), store.Message{ThreadID: thread.ID, Turn: 0, Role: store.UserMessage})
	wantCode(t, err, task.Invalid)
	_, err = s.AddMessage(t.Context(), store.Message{ThreadID: thread.ID, Turn: 1, Role: "system"})
	wantCode(t, err, task.Invalid)
}
