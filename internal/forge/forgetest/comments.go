package forgetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func (s *suite) comments(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	other := s.Person(t, name, forge.WriteAccess)
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for _, key := range []task.Key{
		s.Issue(t, name, author, "An issue", "its text"),
		s.Pull(t, name, author, "topic", "main", "A pull request", "its text"),
	} {
		if got := must[[]task.Comment](t)(f.Comments(ctx, key)); len(got) != 0 {
			t.Errorf("%s has comments from the start: %v", key, got)
		}
		first := s.Comment(t, key, author, "first")
		// What the forge notes by itself is not a comment.
		s.Label(t, key, author, true, "some-label")
		s.Assign(t, key, author, other)
		second := s.Comment(t, key, other, "second")
		third := s.Comment(t, key, author, "third")
		s.EditComment(t, key, author, first, "first, edited")
		s.RemoveComment(t, key, author, third)

		got := must[[]task.Comment](t)(f.Comments(ctx, key))
		if len(got) != 2 {
			t.Fatalf("%s has %d comments, want 2: %+v", key, len(got), got)
		}
		for i, want := range []task.Comment{
			{ID: first, Kind: task.ItemComment, Author: author, Body: "first, edited"},
			{ID: second, Kind: task.ItemComment, Author: other, Body: "second"},
		} {
			if age := time.Since(got[i].CreatedAt); age < -time.Minute || age > time.Hour {
				t.Errorf("created at %v", got[i].CreatedAt)
			}
			want.CreatedAt, want.UpdatedAt = got[i].CreatedAt, got[i].UpdatedAt
			if diff := difference(want, got[i]); diff != "" {
				t.Error(diff)
			}
		}
		if got[1].Edited() {
			t.Errorf("a comment that nobody edited is shown as edited: %+v", got[1])
		}
	}
}

func (s *suite) commentsAreComplete(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "A long conversation", "")
	var want []string
	for i := range s.Comments {
		want = append(want, s.Comment(t, key, author, fmt.Sprint("Comment ", i)))
	}
	var ids []string
	for i, comment := range must[[]task.Comment](t)(f.Comments(ctx, key)) {
		ids = append(ids, comment.ID)
		if body := fmt.Sprint("Comment ", i); comment.Body != body {
			t.Fatalf("comment %d says %q, want %q", i, comment.Body, body)
		}
	}
	if diff := difference(want, ids); diff != "" {
		t.Errorf("read %d of %d: %s", len(ids), len(want), diff)
	}
}

// strangeText has what people, their tools and their enemies write.
func (s *suite) strangeText(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "Emoji 👩🏽‍💻 and \"quotes\" & <b>", "a\r\nb")
	item := must[forge.Item](t)(f.Item(ctx, key))
	if item.Title != "Emoji 👩🏽‍💻 and \"quotes\" & <b>" || item.Body != "a\nb" {
		t.Errorf("title %q, body %q", item.Title, item.Body)
	}
	tests := []struct{ name, written, want string }{
		{"emoji", "👍🏽 👨‍👩‍👧 日本語", "👍🏽 👨‍👩‍👧 日本語"},
		{"line ends of another system", "a\r\n\r\nb", "a\n\nb"},
		{"control characters", "a\x1b[31mb\x07c\td", "a[31mbc\td"},
		{"a NUL character", "a\x00b", "ab"},
		{"markup", "<script>alert(1)</script> <!-- hidden --> &amp; \\u0000", "<script>alert(1)</script> <!-- hidden --> &amp; \\u0000"},
		{"right to left", "a\u202eb\u200bc", "a\u202eb\u200bc"},
	}
	for _, test := range tests {
		id := s.Comment(t, key, author, test.written)
		comments := must[[]task.Comment](t)(f.Comments(ctx, key))
		got := comments[len(comments)-1]
		if got.ID != id || got.Body != test.want {
			t.Errorf("%s: read %q, want %q", test.name, got.Body, test.want)
		}
	}
	// What we post ourselves comes back as it was posted.
	posted := plain("👍🏽 a\r\nb\x00c\n/close @someone fixes #1 <!-- x -->")
	got := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: posted, Marker: forge.MarkerOf("strange")}))
	if got.Body != posted.With(forge.MarkerOf("strange")) {
		t.Errorf("posted %q, read %q", posted, got.Body)
	}
	if item := must[forge.Item](t)(f.Item(ctx, key)); item.State != forge.Open {
		t.Error("what we posted closed the issue")
	}
}

func (s *suite) largeText(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "Large", "")
	large := strings.Repeat("0123456789abcde\n", 10<<20/16)
	s.Comment(t, key, author, strings.TrimSpace(large))
	got := must[[]task.Comment](t)(f.Comments(ctx, key))
	if len(got) != 1 || got[0].Body != strings.TrimSpace(large) {
		t.Errorf("read %d comments, the first of %d bytes", len(got), len(got[0].Body))
	}
	posted := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: plain(large)}))
	if len(posted.Body) > forge.MaxText || !strings.HasPrefix(posted.Body, "0123456789") {
		t.Errorf("posted a comment of %d bytes", len(posted.Body))
	}
}
