package web

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// in is the visitor with pages in a language.
func (v *visitor) in(language string) *visitor {
	v.header.Set("Accept-Language", language)
	return v
}

// Whoever saves a question, and whoever deletes a review, is told that the question goes with
// its last review.
func TestQuestionThatIsDeletedWithItsLastReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	question := store.Question{Text: "How is a gate fixed?", PurposeText: "why"}
	one, err := h.pages.Reviews.AddReviewOf(t.Context(), "alice", question, store.Review{AnswerText: paper, Judgement: []byte("{}")})
	must(t, err)
	for language, want := range map[string]string{"en": "deleted with its last review", "ja": "最後のレビューと一緒に削除されます"} {
		for _, path := range []string{"/reviews", "/reviews/new", "/reviews/" + one.ID} {
			if _, page := h.visitor(t, "alice").in(language).get(path); !strings.Contains(page, want) {
				t.Errorf("%s has no %q", path, want)
			}
		}
	}
	h.visitor(t, "alice").post("/reviews/"+one.ID+"/delete", nil)
	if left, err := h.pages.Reviews.Questions(t.Context(), "alice", "", 0); err != nil || len(left) > 0 {
		t.Errorf("afterwards there are %+v, %v", left, err)
	}
}

// What nobody works on any more was interrupted, which is said in the reader's language.
func TestInterruptedReviewAndMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	now := time.Now()
	made, err := h.store.AddReview(t.Context(), store.Review{
		Owner: "alice", CustomQuestionText: "Why?", AnswerText: paper, State: store.Judging, HeldUntil: now.Add(-time.Minute),
	})
	must(t, err)
	one := h.review(t, "alice", paper)
	thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
	must(t, err)
	_, _, err = h.store.BeginTurn(t.Context(), store.Ask{ThreadID: thread.ID, Content: "why?", Claim: "dead", Now: now.Add(-time.Hour), Until: now.Add(-time.Minute)})
	must(t, err)
	for language, want := range map[string][]string{
		"en": {"The assessment failed: Interrupted<", ">Retry<", "No answer. Interrupted<"},
		"ja": {"講評を作成できませんでした: 中断されました<", ">再試行<", "回答がありませんでした。 中断されました<"},
	} {
		_, first := h.visitor(t, "alice").in(language).get("/reviews/" + made.ID)
		_, second := h.visitor(t, "alice").in(language).get("/reviews/" + one.ID)
		for _, text := range want {
			if !strings.Contains(first+second, text) {
				t.Errorf("%s: nothing says %q", language, text)
			}
		}
	}
}
