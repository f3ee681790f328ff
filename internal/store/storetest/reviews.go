package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var reviewChecks = []check{
	{"a question is kept", questions},
	{"a review is kept", reviews},
	{"a review of an unknown question is refused", reviewUnknown},
	{"a review is kept together with its writes", reviewWrites},
	{"a head commit is reviewed once", reviewOnce},
	{"of many that review one commit at once, one does", reviewTogether},
	{"reviews are listed by owner", listReviews},
	{"reviews are found by their question", findReviews},
	{"a review goes with its threads", deleteReview},
	{"bad reviews are refused", badReviews},
	{"a review is made while somebody works on it", reviewStates},
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
	equal(t, got[[]store.Question](t)(s.ListQuestions(t.Context(), store.QuestionFilter{})), []store.Question{first, second})
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
	want.QuestionID, want.CreatedAt, want.Verdict = question.ID, noon, "request_changes"
	stored := got[store.Review](t)(s.AddReview(t.Context(), want))
	want.ID = stored.ID
	equal(t, stored, want)
	equal(t, got[store.Review](t)(s.Review(t.Context(), stored.ID)), want)
	_, err := s.Review(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
	got[store.Review](t)(s.AddReview(t.Context(), pullReview("def"))) // as those that were made before verdicts were kept
	other := want.Pull
	other.Number++
	equal(t, got[map[string]string](t)(s.Verdicts(t.Context(), want.Pull)), map[string]string{"abc": "request_changes"})
	equal(t, got[map[string]string](t)(s.Verdicts(t.Context(), other)), map[string]string{})
}

func reviewUnknown(t *testing.T, s store.Store) {
	_, err := s.AddReview(t.Context(), store.Review{QuestionID: "nothing"})
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{}))), 0)
}

func reviewWrites(t *testing.T, s store.Store) {
	write := store.Action{Item: pullReview("").Pull, IdempotencyKey: "review/abc", Kind: "submit_review"}
	got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc"), write))
	_, err := s.AddReview(t.Context(), pullReview("abc"), store.Action{Item: write.Item, IdempotencyKey: "second", Kind: "submit_review"})
	wantCode(t, err, task.Conflict)
	_, err = s.AddReview(t.Context(), pullReview("def"), store.Action{Item: write.Item, Kind: "submit_review"})
	wantCode(t, err, task.Invalid)
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{}))), 1)
	pending := got[[]store.Action](t)(s.PendingActions(t.Context(), write.Item))
	equal(t, len(pending), 1)
	equal(t, pending[0].IdempotencyKey, "review/abc")

	// What the forge has refused makes room for another review of the commit.
	must(t, s.Refuse(t.Context(), pending[0].ID, task.ReasonRejectedByForge, "no"))
	second := pullReview("abc")
	second.Verdict = "approve"
	got[store.Review](t)(s.AddReview(t.Context(), second, write))
	equal(t, got[map[string]string](t)(s.Verdicts(t.Context(), write.Item)), map[string]string{"abc": "approve"})
	equal(t, got[store.Action](t)(s.Action(t.Context(), "review/abc")).Status, store.Pending)
	_, err = s.AddReview(t.Context(), second, write)
	wantCode(t, err, task.Conflict)
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
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{}))), 1)
}

func listReviews(t *testing.T, s store.Store) {
	a := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", AnswerText: "1"}))
	b := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "bob", AnswerText: "2"}))
	c := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", AnswerText: "3"}))
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Owner: "alice"})), []store.Review{a, c})
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{})), []store.Review{a, b, c})
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Owner: "carol"}))), 0)
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Owner: "alice", Limit: 1})), []store.Review{a})
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{After: a.ID, Limit: 1})), []store.Review{b})
	of := pullReview("abc")
	of.CreatedAt = noon
	pull := got[store.Review](t)(s.AddReview(t.Context(), of))
	pull.Title = of.CustomQuestionText // in a list
	equal(t, got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Pull: of.Pull})), []store.Review{pull})
	equal(t, len(got[[]task.Key](t)(s.ReviewedPulls(t.Context(), noon.Add(time.Second)))), 0)
	equal(t, got[[]task.Key](t)(s.ReviewedPulls(t.Context(), noon)), []task.Key{of.Pull})
	of.Pull.Number++
	equal(t, len(got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Pull: of.Pull}))), 0)
	_, err := s.ListReviews(t.Context(), store.ReviewFilter{Limit: -1})
	wantCode(t, err, task.Invalid)
}

func deleteReview(t *testing.T, s store.Store) {
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{}))
	thread := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: review.ID}))
	asked := begin(t, s, store.Ask{ThreadID: thread.ID})
	must(t, s.DeleteReview(t.Context(), review.ID))
	_, err := s.Review(t.Context(), review.ID)
	wantCode(t, err, task.NotFound)
	_, err = s.Thread(t.Context(), thread.ID)
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))), 0)
	wantCode(t, s.DeleteReview(t.Context(), review.ID), task.NotFound)
	_, err = s.EndTurn(t.Context(), store.Ended{MessageID: asked.Message.ID, Claim: "me"})
	wantCode(t, err, task.NotFound)
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

func findReviews(t *testing.T, s store.Store) {
	question := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Text: "契約とは何か。100% sure?"}))
	official := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", QuestionID: question.ID}))
	custom := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", CustomQuestionText: "How is a Gate fixed?"}))
	pull := got[store.Review](t)(s.AddReview(t.Context(), pullReview("abc")))
	for _, c := range []struct {
		filter store.ReviewFilter
		want   []string
	}{
		{store.ReviewFilter{Text: "契約"}, []string{official.ID}},
		{store.ReviewFilter{Text: "0%"}, []string{official.ID}},
		{store.ReviewFilter{Text: "1%"}, nil},
		{store.ReviewFilter{Text: "gate"}, []string{custom.ID}},
		{store.ReviewFilter{Text: " fixed  gate"}, []string{custom.ID}},
		{store.ReviewFilter{Text: "Alice gate"}, []string{custom.ID}},
		{store.ReviewFilter{Text: "bob gate"}, nil},
		{store.ReviewFilter{Text: "A/B"}, []string{pull.ID}},
		{store.ReviewFilter{Kind: store.PullReviews}, []string{pull.ID}},
		{store.ReviewFilter{Kind: store.DocumentReviews}, []string{official.ID, custom.ID}},
		{store.ReviewFilter{Kind: store.DocumentReviews, Text: "a/b"}, nil},
	} {
		var ids []string
		for _, one := range got[[]store.Review](t)(s.ListReviews(t.Context(), c.filter)) {
			ids = append(ids, one.ID)
		}
		equal(t, ids, c.want)
	}
}

// reviewStates makes a review, with an attempt that fails and one that nobody ends.
func reviewStates(t *testing.T, s store.Store) {
	question := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Text: "What is a contract?\nSay it.", Owner: "alice"}))
	one := got[store.Review](t)(s.AddReview(t.Context(), store.Review{
		Owner: "alice", QuestionID: question.ID, AnswerText: "a", State: store.Judging, HeldUntil: noon.Add(time.Minute), Claim: "first",
	}))
	now := func() store.Review { return got[store.Review](t)(s.Review(t.Context(), one.ID)) }
	claim := "first"
	set := func(from, to store.ReviewState, at time.Time) error {
		return s.SetReviewState(t.Context(), from, store.Review{ID: one.ID, State: to, Claim: claim, Cause: "no model\x00", HeldUntil: at.Add(time.Minute), Judgement: json.RawMessage(`{"a": 1}`)}, at)
	}
	equal(t, now(), one)
	wantCode(t, set(store.NotJudged, store.Judging, noon), task.Conflict) // somebody works on it
	must(t, set(store.Judging, store.NotJudged, noon))
	equal(t, now().Cause, "no model\uFFFD")
	equal(t, len(now().Judgement), 0)
	wantCode(t, set(store.Judging, store.Judged, noon), task.Conflict)
	equal(t, now().Claim, "")
	must(t, set(store.NotJudged, store.Judging, noon))
	must(t, set(store.Judging, store.Judging, noon)) // still
	claim = "second"
	wantCode(t, set(store.Judging, store.Judged, noon), task.Conflict)  // the first works on it
	must(t, set(store.NotJudged, store.Judging, noon.Add(time.Minute))) // it does no more
	claim = "first"
	for _, to := range []store.ReviewState{store.Judging, store.NotJudged, store.Judged} { // it is late
		wantCode(t, set(store.Judging, to, noon.Add(time.Minute)), task.Conflict)
	}
	equal(t, now().Claim, "second")
	claim = "second"
	must(t, set(store.Judging, store.Judged, noon))
	equal(t, now().State, store.Judged)
	equal(t, string(now().Judgement), `{"a": 1}`)
	wantCode(t, set(store.Judging, store.NotJudged, noon), task.Conflict)
	wantCode(t, s.SetReviewState(t.Context(), store.Judging, store.Review{ID: "nothing"}, noon), task.NotFound)
	brief := got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Owner: "alice", Brief: true}))
	equal(t, brief[0].Title, question.Text)
}
