package forgetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func (s *suite) createComment(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	self := must[string](t)(f.Self(ctx))
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for _, key := range []task.Key{
		s.Issue(t, name, author, "An issue", ""),
		s.Pull(t, name, author, "topic", "main", "A pull request", ""),
	} {
		marker := forge.MarkerOf("create " + key.String())
		made := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: plain("Hello.\n\nI begin."), Marker: marker}))
		read := must[[]task.Comment](t)(f.Comments(ctx, key))
		if len(read) != 1 {
			t.Fatalf("%d comments, want 1", len(read))
		}
		if diff := difference(read[0], made); diff != "" {
			t.Error(diff)
		}
		if made.Body != "Hello.\n\nI begin.\n\n"+marker.String() || !made.By(self) || made.Kind != task.ItemComment {
			t.Errorf("made %+v", made)
		}
		_, err := f.CreateComment(ctx, key, forge.Post{})
		wantCode(t, err, task.Invalid)
	}
}

func (s *suite) repeatComment(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "An issue", "")
	marker := forge.MarkerOf("once")

	// Someone else copies the marker before we have used it.
	s.Comment(t, key, author, "mine\n\n"+marker.String())
	if _, found, err := f.FindComment(ctx, key, marker); err != nil || found {
		t.Fatalf("found a stranger's comment by our marker: %v, %v", found, err)
	}
	first := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: plain("one"), Marker: marker, Repeat: true}))
	again := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: plain("two"), Marker: marker, Repeat: true}))
	if diff := difference(first, again); diff != "" {
		t.Errorf("repeated: %s", diff)
	}
	found, ok, err := f.FindComment(ctx, key, marker)
	if err != nil || !ok || found.ID != first.ID {
		t.Errorf("found %+v, %v, %v", found, ok, err)
	}
	if got := must[[]task.Comment](t)(f.Comments(ctx, key)); len(got) != 2 {
		t.Errorf("%d comments, want the stranger's and ours", len(got))
	}
	if _, found, err := f.FindComment(ctx, key, forge.MarkerOf("other")); err != nil || found {
		t.Errorf("found a comment that nobody wrote: %v, %v", found, err)
	}
}

func (s *suite) editComment(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "An issue", "")
	marker := forge.MarkerOf("progress")
	made := must[task.Comment](t)(f.CreateComment(ctx, key, forge.Post{Text: plain("0 of 3"), Marker: marker}))

	// Times are kept to the second on some forges: the edit is made again until
	// it falls into another second than the comment.
	var edited task.Comment
	for start, step := time.Now(), 1; !edited.Edited(); step++ {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("an edit does not show: %+v", edited)
		}
		text := fmt.Sprintf("step %d", step)
		edited = must[task.Comment](t)(f.EditComment(ctx, key, made.ID, forge.Post{Text: plain(text), Marker: marker}))
		if edited.Body != text+"\n\n"+marker.String() {
			t.Fatalf("edited to %q, got %q", text, edited.Body)
		}
	}
	if edited.ID != made.ID || edited.Author != made.Author || !edited.CreatedAt.Equal(made.CreatedAt) {
		t.Errorf("made %+v, edited %+v", made, edited)
	}
	read := must[[]task.Comment](t)(f.Comments(ctx, key))
	if len(read) != 1 || difference(edited, read[0]) != "" {
		t.Errorf("read %+v, want %+v", read, edited)
	}
	if found, ok, err := f.FindComment(ctx, key, marker); err != nil || !ok || found.ID != made.ID {
		t.Errorf("found %+v, %v, %v", found, ok, err)
	}
	s.RemoveComment(t, key, "", made.ID)
	_, err := f.EditComment(ctx, key, made.ID, forge.Post{Text: plain("lost"), Marker: marker})
	wantCode(t, err, task.NotFound)
	_, err = f.EditComment(ctx, key, "no-such-id", forge.Post{Text: plain("lost")})
	wantCode(t, err, task.NotFound)
}

func labelsOf(t testing.TB, f forge.Reader, key task.Key) []string {
	t.Helper()
	labels := must[forge.Item](t)(f.Item(t.Context(), key)).Labels
	slices.Sort(labels)
	return labels
}

func (s *suite) labels(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for _, key := range []task.Key{
		s.Issue(t, name, author, "An issue", ""),
		s.Pull(t, name, author, "topic", "main", "A pull request", ""),
	} {
		s.Label(t, key, author, true, "by-a-person")
		for range 2 {
			try(t, f.AddLabel(ctx, key, "coding agent"))
		}
		try(t, f.AddLabel(ctx, key, "made-when-needed-"+string(key.Kind)))
		want := []string{"by-a-person", "coding agent", "made-when-needed-" + string(key.Kind)}
		if diff := difference(want, labelsOf(t, f, key)); diff != "" {
			t.Error(diff)
		}
		for range 2 {
			try(t, f.RemoveLabel(ctx, key, "coding agent"))
		}
		try(t, f.RemoveLabel(ctx, key, "no-such-label"))
		want = []string{"by-a-person", "made-when-needed-" + string(key.Kind)}
		if diff := difference(want, labelsOf(t, f, key)); diff != "" {
			t.Error(diff)
		}
	}
	wantCode(t, f.AddLabel(ctx, s.Issue(t, name, author, "Unlabelled", ""), ""), task.Invalid)
}

func (s *suite) strangeLabels(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "An issue", "")
	plainOne := s.Issue(t, name, author, "Without", "")
	try(t, f.AddLabel(ctx, plainOne, "a"))
	for _, label := range []string{"kind: bug", "a, b", "日本語 👍", "100% & \"more\"", "area/ui"} {
		err := f.AddLabel(ctx, key, label)
		if strings.Contains(label, ",") && task.CodeOf(err) == task.Invalid {
			continue // a forge that cannot hold commas says so
		}
		if err != nil {
			t.Errorf("%q: %v", label, err)
			continue
		}
		if got := labelsOf(t, f, key); !slices.Equal(got, []string{label}) {
			t.Errorf("labels %q, want %q", got, label)
		}
		listed := must[[]forge.Item](t)(f.List(ctx, forge.Query{Repository: name, Labels: []string{label}}))
		if diff := difference([]task.Key{key}, keys(listed)); diff != "" {
			t.Errorf("listed by %q: %s", label, diff)
		}
		try(t, f.RemoveLabel(ctx, key, label))
		if got := labelsOf(t, f, key); len(got) != 0 {
			t.Errorf("labels %q after %q was taken off", got, label)
		}
	}
}

// labelsAtOnce changes labels from several sides at the same time: none may be
// lost, as it would be if the set were read and written.
func (s *suite) labelsAtOnce(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "An issue", "")
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprint("label-", i))
	}
	s.Label(t, s.Issue(t, name, author, "So that the labels exist", ""), author, true, want...)
	var group sync.WaitGroup
	for _, label := range want {
		group.Go(func() {
			// A forge that is busy with another change of the item may say so.
			err := f.AddLabel(ctx, key, label)
			for tries := 0; err != nil && forge.Temporary(err) && tries < 20; tries++ {
				err = f.AddLabel(ctx, key, label)
			}
			if err != nil {
				t.Errorf("%s: %v", label, err)
			}
		})
	}
	group.Wait()
	if diff := difference(want, labelsOf(t, f, key)); diff != "" {
		t.Error(diff)
	}
}

func (s *suite) assignees(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	self := must[string](t)(f.Self(ctx))
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for _, key := range []task.Key{
		s.Issue(t, name, author, "An issue", "Its text"),
		s.Pull(t, name, author, "topic", "main", "A pull request", "Its text"),
	} {
		s.Label(t, key, author, true, "stays")
		before := must[forge.Item](t)(f.Item(ctx, key))
		s.Assign(t, key, author, author)
		for range 2 {
			try(t, f.Assign(ctx, key, strings.ToUpper(self)))
		}
		got := must[forge.Item](t)(f.Item(ctx, key))
		if len(got.Assignees) != 2 || !got.AssignedTo(author) || !got.AssignedTo(self) {
			t.Errorf("assigned to %q, want %q and %q", got.Assignees, author, self)
		}
		got.Assignees, got.UpdatedAt = before.Assignees, before.UpdatedAt
		if diff := difference(before, got); diff != "" {
			t.Errorf("something else changed: %s", diff)
		}
		wantCode(t, f.Assign(ctx, key, "no-such-person-here"), task.Invalid, task.NotFound)
	}
}

func (s *suite) reactions(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	self := must[string](t)(f.Self(ctx))
	key := s.Issue(t, name, author, "An issue", "")
	item := forge.Target{Key: key}
	comment := forge.Target{Key: key, Comment: s.Comment(t, key, author, "Please start.")}

	s.React(t, key, author, forge.Heart)
	for _, reaction := range forge.ReactionKinds {
		for range 2 {
			try(t, f.React(ctx, comment, reaction))
		}
	}
	try(t, f.React(ctx, item, forge.Eyes))
	got := must[[]forge.ReactionBy](t)(f.Reactions(ctx, item))
	if diff := difference([]forge.ReactionBy{{Reaction: forge.Heart, Login: author}, {Reaction: forge.Eyes, Login: self}}, got); diff != "" {
		t.Error(diff)
	}
	on := must[[]forge.ReactionBy](t)(f.Reactions(ctx, comment))
	if len(on) != len(forge.ReactionKinds) {
		t.Errorf("%d reactions on the comment, want %d: %v", len(on), len(forge.ReactionKinds), on)
	}
	for range 2 {
		try(t, f.Unreact(ctx, item, forge.Eyes))
		try(t, f.Unreact(ctx, comment, forge.Rocket))
	}
	got = must[[]forge.ReactionBy](t)(f.Reactions(ctx, item))
	if diff := difference([]forge.ReactionBy{{Reaction: forge.Heart, Login: author}}, got); diff != "" {
		t.Error(diff)
	}
	on = must[[]forge.ReactionBy](t)(f.Reactions(ctx, comment))
	if slices.Contains(on, forge.ReactionBy{Reaction: forge.Rocket, Login: self}) || len(on) != len(forge.ReactionKinds)-1 {
		t.Errorf("reactions on the comment: %v", on)
	}
	wantCode(t, f.React(ctx, forge.Target{Key: key, Comment: "no-such-id"}, forge.Eyes), task.NotFound)
	wantCode(t, f.React(ctx, item, "no-such-reaction"), task.Invalid, task.Forbidden)
}

func (s *suite) statuses(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	head := s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	if got := must[[]forge.Check](t)(f.Checks(ctx, name, head)); len(got) != 0 {
		t.Errorf("statuses from the start: %v", got)
	}
	review := forge.CommitStatus{Commit: head, Context: "toryo/review", State: forge.StatusPending, Description: "at work", URL: "https://toryo.example/tasks/1"}
	tests := forge.CommitStatus{Commit: head, Context: "toryo/tests", State: forge.StatusFailure, Description: "two failed"}
	try(t, f.SetStatus(ctx, name, tests))
	try(t, f.SetStatus(ctx, name, review))
	review.State, review.Description = forge.StatusSuccess, "approved"
	try(t, f.SetStatus(ctx, name, review))
	got := must[[]forge.Check](t)(f.Checks(ctx, name, head))
	for at := range got {
		got[at].ID, got[at].At = "", time.Time{}
	}
	want := []forge.Check{
		{Name: review.Context, State: review.State, Description: review.Description, URL: review.URL},
		{Name: tests.Context, State: tests.State, Description: tests.Description},
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
	long := forge.CommitStatus{Commit: head, Context: "toryo/long", State: forge.StatusError, Description: strings.Repeat("é\n", 300)}
	try(t, f.SetStatus(ctx, name, long))
	for _, one := range must[[]forge.Check](t)(f.Checks(ctx, name, head)) {
		if one.Name == long.Context && one.Description != long.ShortDescription() {
			t.Errorf("description %q, want %q", one.Description, long.ShortDescription())
		}
	}
	review.Commit = strings.Repeat("0", 39) + "1"
	wantCode(t, f.SetStatus(ctx, name, review), task.NotFound, task.Invalid)
}
