package forgetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// readWritten reads all that people wrote on a pull request, as a run is told of it.
func (s *suite) readWritten(t *testing.T, key task.Key) []task.Comment {
	t.Helper()
	ctx, f := t.Context(), s.Forge()
	return slices.Concat(must[[]task.Comment](t)(f.Comments(ctx, key)),
		forge.ReviewTexts(must[[]forge.Review](t)(f.Reviews(ctx, key))),
		forge.ReviewComments(must[[]forge.ReviewThread](t)(f.ReviewThreads(ctx, key))))
}

// wantWritten checks that exactly these texts are there, each once. They are "author:
// text", with " (path:line)" behind those on lines.
func (s *suite) wantWritten(t *testing.T, key task.Key, want ...string) {
	t.Helper()
	var got []string
	ids := map[string]bool{}
	for _, comment := range s.readWritten(t, key) {
		line := comment.Author + ": " + comment.Body
		if comment.Kind == task.ReviewComment {
			line += " (" + comment.About + ")"
		}
		got = append(got, line)
		id := fmt.Sprint(comment.Kind, comment.ID)
		if ids[id] || comment.CreatedAt.IsZero() {
			t.Errorf("the id %s is there twice, or it has no time: %+v", id, comment)
		}
		ids[id] = true
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}

// find returns the one comment with the text.
func (s *suite) find(t *testing.T, key task.Key, text string) task.Comment {
	t.Helper()
	all := s.readWritten(t, key)
	at := slices.IndexFunc(all, func(c task.Comment) bool { return c.Body == text })
	if at < 0 {
		t.Fatalf("%q is not in %+v", text, all)
	}
	return all[at]
}

// review has people review a pull request in every way, and returns who they are.
func (s *suite) review(t *testing.T) (key task.Key, ann, bob, carl string) {
	t.Helper()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	ann, bob, carl = s.Person(t, name, forge.WriteAccess), s.Person(t, name, forge.WriteAccess), s.Person(t, name, forge.WriteAccess)
	key, _ = s.pullWithLines(t, name, author)
	s.Comment(t, key, author, "In the conversation.")
	s.Review(t, key, ann, forge.Remark, "A remark.", map[forge.Anchor]string{{Path: "README.md", Side: forge.NewSide, Line: 2}: "On a line."})
	s.Review(t, key, bob, forge.RequestChanges, "Not yet.", nil)
	s.Review(t, key, carl, forge.Approve, "Well done.", nil)
	return key, ann, bob, carl
}

// written reads the texts of reviews, comments on lines, and answers to them: each is
// there once, wherever the forge keeps it, and a review without a text is no comment.
func (s *suite) written(t *testing.T) {
	key, ann, bob, carl := s.review(t)
	author := must[forge.Item](t)(s.Forge().Item(t.Context(), key)).Author
	s.Review(t, key, carl, forge.Approve, "", nil)
	threads := must[[]forge.ReviewThread](t)(s.Forge().ReviewThreads(t.Context(), key))
	if len(threads) != 1 {
		t.Fatalf("threads %+v", threads)
	}
	s.Reply(t, key, bob, threads[0], "An answer.")
	s.wantWritten(t, key, author+": In the conversation.", ann+": A remark.", ann+": On a line. (README.md:2)", bob+": Not yet.",
		carl+": Well done.", bob+": An answer. (README.md:2)")
}

// writtenChanges edits texts of reviews, comments on lines and answers, and deletes
// some: what is read is what is there, under the same ids.
func (s *suite) writtenChanges(t *testing.T) {
	key, ann, bob, carl := s.review(t)
	author := must[forge.Item](t)(s.Forge().Item(t.Context(), key)).Author
	threads := must[[]forge.ReviewThread](t)(s.Forge().ReviewThreads(t.Context(), key))
	s.Reply(t, key, bob, threads[0], "An answer.")
	s.Reply(t, key, ann, threads[0], "Another answer.")
	edits := map[string]string{"A remark.": ann, "Not yet.": bob, "Well done.": carl, "On a line.": ann, "An answer.": bob}
	ids := map[string]string{}
	for text, who := range edits {
		comment := s.find(t, key, text)
		ids[text] = comment.ID
		if comment.Kind == task.SummaryComment {
			s.EditReview(t, key, who, comment.ID, strings.ToUpper(text))
		} else {
			s.EditComment(t, key, who, comment.ID, strings.ToUpper(text))
		}
	}
	s.RemoveComment(t, key, ann, s.find(t, key, "Another answer.").ID)
	s.wantWritten(t, key, author+": In the conversation.", ann+": A REMARK.", ann+": ON A LINE. (README.md:2)", bob+": NOT YET.",
		carl+": WELL DONE.", bob+": AN ANSWER. (README.md:2)")
	for text, id := range ids {
		if now := s.find(t, key, strings.ToUpper(text)).ID; now != id {
			t.Errorf("the edit of %q made %s of the id %s", text, now, id)
		}
	}
}

// dismissed dismisses reviews. The text of a request for changes goes with it. That of
// another review stays: forges dismiss approvals by themselves when commits are pushed.
func (s *suite) dismissed(t *testing.T) {
	key, ann, _, carl := s.review(t)
	author := must[forge.Item](t)(s.Forge().Item(t.Context(), key)).Author
	admin := s.Person(t, key.Repository, forge.AdminAccess)
	s.Dismiss(t, key, admin, s.find(t, key, "Not yet.").ID)
	s.Dismiss(t, key, admin, s.find(t, key, "Well done.").ID)
	s.wantWritten(t, key, author+": In the conversation.", ann+": A remark.", ann+": On a line. (README.md:2)", carl+": Well done.")
	dismissed := map[forge.Verdict]bool{}
	for _, review := range must[[]forge.Review](t)(s.Forge().Reviews(t.Context(), key)) {
		dismissed[review.Verdict] = review.Dismissed
	}
	if diff := difference(map[forge.Verdict]bool{forge.Remark: false, forge.RequestChanges: true, forge.Approve: true}, dismissed); diff != "" {
		t.Error(diff)
	}
}
