package forgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func (s *suite) repositories(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	got := must[forge.Repository](t)(f.Repository(ctx, name))
	if got.Name != name || got.DefaultBranch != "main" || got.URL == "" || !got.Private || got.Archived {
		t.Errorf("repository %+v, want the private %s with branch main", got, name)
	}
	if got.Lacks != (forge.Rights{}) {
		t.Errorf("the bot, which may write, lacks %+v", got.Lacks)
	}
	all := must[[]forge.Repository](t)(f.Repositories(ctx))
	if !slices.ContainsFunc(all, func(r forge.Repository) bool { return r.Name == name }) {
		t.Errorf("%s is not among the %d repositories", name, len(all))
	}
	_, err := f.Repository(ctx, name+"-not")
	wantCode(t, err, task.NotFound)
	_, err = f.Repository(ctx, "nonsense")
	wantCode(t, err, task.Invalid)
}

func (s *suite) access(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	for _, want := range []forge.Access{forge.NoAccess, forge.ReadAccess, forge.WriteAccess} {
		login := s.Person(t, name, want)
		for _, spelling := range []string{login, strings.ToUpper(login), strings.ToLower(login)} {
			if got := must[forge.Access](t)(f.Access(ctx, name, spelling)); got != want {
				t.Errorf("access of %s is %s, want %s", spelling, got, want)
			}
		}
	}
	admin := s.Person(t, name, forge.AdminAccess)
	if got := must[forge.Access](t)(f.Access(ctx, name, admin)); !got.CanWrite() {
		t.Errorf("access of an administrator is %s", got)
	}
	self := must[string](t)(f.Self(ctx))
	if got := must[forge.Access](t)(f.Access(ctx, name, self)); got != forge.WriteAccess {
		t.Errorf("our own access is %s, want write", got)
	}
	for _, nobody := range []string{"no-such-person-here", forge.Ghost} {
		if got := must[forge.Access](t)(f.Access(ctx, name, nobody)); got != forge.NoAccess {
			t.Errorf("access of %s, who does not exist, is %s", nobody, got)
		}
	}
	_, err := f.Access(ctx, name+"-not", admin)
	wantCode(t, err, task.NotFound)
}

func (s *suite) item(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "The *title*", "First line\n\nSecond line")
	s.Label(t, key, author, true, "b-label", "a-label")
	s.Assign(t, key, author, author)

	got := must[forge.Item](t)(f.Item(ctx, key))
	if age := time.Since(got.CreatedAt); age < -time.Minute || age > time.Hour || got.UpdatedAt.Before(got.CreatedAt) {
		t.Errorf("created at %v, updated at %v", got.CreatedAt, got.UpdatedAt)
	}
	if !strings.HasPrefix(got.URL, "http") && !strings.HasPrefix(got.URL, "/") {
		t.Errorf("address %q", got.URL)
	}
	slices.Sort(got.Labels)
	want := forge.Item{
		Key: key, Title: "The *title*", Body: "First line\n\nSecond line", State: forge.Open, Author: author,
		Labels: []string{"a-label", "b-label"}, Assignees: []string{author},
		URL: got.URL, CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}

	head := s.Commit(t, name, "topic", map[string]string{"new.txt": "new\n"})
	pull := s.Pull(t, name, author, "topic", "main", "A change", "About it")
	got = must[forge.Item](t)(f.Item(ctx, pull))
	want = forge.Item{
		Key: pull, Title: "A change", Body: "About it", State: forge.Open, Author: author,
		Head: "topic", HeadCommit: head, Base: "main",
		URL: got.URL, CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
}

func (s *suite) itemOfThePast(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	issue := s.Issue(t, name, author, "To be closed", "")
	s.Close(t, issue, author)
	if got := must[forge.Item](t)(f.Item(ctx, issue)); got.State != forge.Closed {
		t.Errorf("a closed issue is %s", got.State)
	}
	s.Commit(t, name, "merged", map[string]string{"m.txt": "m\n"})
	merged := s.Pull(t, name, author, "merged", "main", "To be merged", "")
	s.Merge(t, merged, author)
	s.Commit(t, name, "closed", map[string]string{"c.txt": "c\n"})
	closed := s.Pull(t, name, author, "closed", "main", "To be closed", "")
	s.Close(t, closed, author)
	for key, want := range map[task.Key]forge.ItemState{merged: forge.Merged, closed: forge.Closed} {
		if got := must[forge.Item](t)(f.Item(ctx, key)); got.State != want {
			t.Errorf("%s is %s, want %s", key, got.State, want)
		}
	}
	// A closed item still takes what we have to say about it.
	must[task.Comment](t)(f.CreateComment(ctx, issue, forge.Post{Text: plain("Stopped.")}))
	try(t, f.AddLabel(ctx, issue, "coding agent stopped"))
	if got := must[[]forge.Item](t)(f.List(ctx, forge.Query{Repository: name})); len(got) != 0 {
		t.Errorf("listed %d items that are closed", len(got))
	}
}

func (s *suite) moved(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	old := s.Repository(t)
	author := s.Person(t, old, forge.WriteAccess)
	key := s.Issue(t, old, author, "Moved", "")
	now := s.RenameRepository(t, old)

	_, err := f.Item(ctx, key)
	wantCode(t, err, task.NotFound)
	moved := key
	moved.Repository = now
	_, err = f.Repository(ctx, old)
	wantCode(t, err, task.NotFound)
	_, err = f.Comments(ctx, key)
	wantCode(t, err, task.NotFound)
	_, err = f.CreateComment(ctx, key, forge.Post{Text: plain("lost")})
	wantCode(t, err, task.NotFound)
	wantCode(t, f.AddLabel(ctx, key, "lost"), task.NotFound)

	if got := must[forge.Item](t)(f.Item(ctx, moved)); got.Title != "Moved" {
		t.Errorf("under its new name it is %+v", got)
	}
	if got := must[[]task.Comment](t)(f.Comments(ctx, moved)); len(got) != 0 {
		t.Errorf("a comment followed the item: %v", got)
	}
}

func (s *suite) ghost(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	gone := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, gone, "Left behind", "")
	s.Comment(t, key, gone, "Bye.")
	s.RemovePerson(t, gone)

	item := must[forge.Item](t)(f.Item(ctx, key))
	comments := must[[]task.Comment](t)(f.Comments(ctx, key))
	if item.Author != forge.Ghost || len(comments) != 1 || comments[0].Author != forge.Ghost || comments[0].Body != "Bye." {
		t.Errorf("author %q, comments %+v, want both of %q", item.Author, comments, forge.Ghost)
	}
}

func (s *suite) wrongKeys(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	issue := s.Issue(t, name, author, "An issue", "")
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	pull := s.Pull(t, name, author, "topic", "main", "A pull request", "")

	wrong := func(change func(*task.Key)) task.Key {
		key := issue
		change(&key)
		return key
	}
	tests := []struct {
		name string
		key  task.Key
		code task.Code
	}{
		{"no such number", wrong(func(k *task.Key) { k.Number = 99_999 }), task.NotFound},
		{"no such repository", wrong(func(k *task.Key) { k.Repository += "-not" }), task.NotFound},
		{"another forge", wrong(func(k *task.Key) { k.Forge = "elsewhere" }), task.Invalid},
		{"number 0", wrong(func(k *task.Key) { k.Number = 0 }), task.Invalid},
		{"a repository upwards", wrong(func(k *task.Key) { k.Repository = "../.." }), task.Invalid},
	}
	for _, test := range tests {
		_, err := f.Item(ctx, test.key)
		if got := task.CodeOf(err); got != test.code {
			t.Errorf("%s: Item: %v, want %s", test.name, err, test.code)
		}
		_, err = f.Comments(ctx, test.key)
		if got := task.CodeOf(err); got != test.code {
			t.Errorf("%s: Comments: %v, want %s", test.name, err, test.code)
		}
		_, err = f.CreateComment(ctx, test.key, forge.Post{Text: plain("x")})
		if got := task.CodeOf(err); got != test.code {
			t.Errorf("%s: CreateComment: %v, want %s", test.name, err, test.code)
		}
		if err := f.RemoveLabel(ctx, test.key, "x"); task.CodeOf(err) != test.code {
			t.Errorf("%s: RemoveLabel: %v, want %s", test.name, err, test.code)
		}
	}
	// Only where both kinds draw from one row of numbers is this a test of more
	// than a missing number.
	pull.Kind, issue.Kind = task.Issue, task.Pull
	for _, key := range []task.Key{pull, issue} {
		if _, err := f.Item(ctx, key); task.CodeOf(err) != task.NotFound && !sameNumberOfOtherKind(pull, issue) {
			t.Errorf("%s, which is of the other kind: %v", key, err)
		}
	}
	issue.Kind = task.Issue
	_, err := f.Diff(ctx, issue)
	wantCode(t, err, task.Invalid)
	_, err = f.Reviews(ctx, issue)
	wantCode(t, err, task.Invalid)
}

// sameNumberOfOtherKind is true on forges that number issues and merge requests
// apart: there the two can have the same number.
func sameNumberOfOtherKind(a, b task.Key) bool { return a.Number == b.Number }

func (s *suite) list(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	self := must[string](t)(f.Self(ctx))
	author := s.Person(t, name, forge.WriteAccess)
	first := s.Issue(t, name, author, "first", "")
	second := s.Issue(t, name, author, "second", "")
	closed := s.Issue(t, name, author, "closed", "")
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	pull := s.Pull(t, name, author, "topic", "main", "pull", "")
	s.Label(t, first, author, true, "needs-review", "other")
	s.Label(t, pull, author, true, "needs-review")
	s.Label(t, closed, author, true, "needs-review")
	s.Assign(t, second, author, self)
	s.Assign(t, closed, author, self)
	s.Close(t, closed, author)

	tests := []struct {
		name  string
		query forge.Query
		want  []task.Key
	}{
		{"all that is open", forge.Query{}, []task.Key{first, second, pull}},
		{"issues", forge.Query{Kind: task.Issue}, []task.Key{first, second}},
		{"pull requests", forge.Query{Kind: task.Pull}, []task.Key{pull}},
		{"with a label", forge.Query{Labels: []string{"needs-review"}}, []task.Key{first, pull}},
		{"with two labels", forge.Query{Labels: []string{"needs-review", "other"}}, []task.Key{first}},
		{"with a label that nobody knows", forge.Query{Labels: []string{"no-such-label"}}, nil},
		{"with one that nobody knows and one that is there", forge.Query{Labels: []string{"other", "no-such-label"}}, nil},
		{"assigned to the bot", forge.Query{Assignee: self}, []task.Key{second}},
		{"assigned to the bot, in another spelling", forge.Query{Assignee: strings.ToUpper(self)}, []task.Key{second}},
		{"assigned to someone else", forge.Query{Assignee: author}, nil},
		{"assigned to nobody who exists", forge.Query{Assignee: "no-such-person-here"}, nil},
		{"since tomorrow", forge.Query{UpdatedSince: time.Now().Add(24 * time.Hour)}, nil},
		{"since yesterday", forge.Query{UpdatedSince: time.Now().Add(-24 * time.Hour)}, []task.Key{first, second, pull}},
	}
	for _, test := range tests {
		test.query.Repository = name
		items, err := f.List(ctx, test.query)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := difference(test.want, keys(items)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	_, err := f.List(ctx, forge.Query{Repository: name + "-not"})
	wantCode(t, err, task.NotFound)
	_, err = f.List(ctx, forge.Query{Repository: name + "-not", Assignee: self})
	wantCode(t, err, task.NotFound)
}

func keys(items []forge.Item) []task.Key {
	var found []task.Key
	for _, item := range items {
		found = append(found, item.Key)
	}
	return found
}

func (s *suite) listIsComplete(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	var want []task.Key
	for i := range s.Items {
		want = append(want, s.Issue(t, name, author, fmt.Sprint("Number ", i), ""))
	}
	got := must[[]forge.Item](t)(f.List(ctx, forge.Query{Repository: name}))
	if diff := difference(want, keys(got)); diff != "" {
		t.Errorf("listed %d of %d: %s", len(got), len(want), diff)
	}
}

func (s *suite) labelEvents(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	s.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	for _, key := range []task.Key{
		s.Issue(t, name, author, "An issue", ""),
		s.Pull(t, name, author, "topic", "main", "A pull request", ""),
	} {
		if got := must[[]forge.LabelEvent](t)(f.LabelEvents(ctx, key)); len(got) != 0 {
			t.Errorf("%s has label events from the start: %v", key, got)
		}
		s.Label(t, key, author, true, "needs-review")
		s.Label(t, key, author, true, "other")
		s.Comment(t, key, author, "in between")
		s.Label(t, key, author, false, "needs-review")
		try(t, f.AddLabel(ctx, key, "needs-review"))

		events := must[[]forge.LabelEvent](t)(f.LabelEvents(ctx, key))
		self := must[string](t)(f.Self(ctx))
		want := []forge.LabelEvent{
			{Label: "needs-review", On: true, Actor: author}, {Label: "other", On: true, Actor: author},
			{Label: "needs-review", On: false, Actor: author}, {Label: "needs-review", On: true, Actor: self},
		}
		if len(events) != len(want) {
			t.Fatalf("%d events, want %d: %+v", len(events), len(want), events)
		}
		for i := range want {
			want[i].At = events[i].At
			if diff := difference(want[i], events[i]); diff != "" {
				t.Errorf("event %d: %s", i, diff)
			}
		}
		at, on := forge.LabeledAt(events, "needs-review")
		if age := time.Since(at); !on || age < -time.Minute || age > time.Hour {
			t.Errorf("needs-review was put on at %v, and is on: %v", at, on)
		}
	}
}

func (s *suite) linkedPulls(t *testing.T) {
	ctx, f := t.Context(), s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	issue := s.Issue(t, name, author, "The issue", "")
	other := s.Issue(t, name, author, "Another", fmt.Sprintf("see #%d", issue.Number))
	s.Commit(t, name, "one", map[string]string{"one": "1\n"})
	s.Commit(t, name, "two", map[string]string{"two": "2\n"})
	closes := s.Pull(t, name, author, "one", "main", "One", fmt.Sprintf("Closes #%d", issue.Number))
	refers := s.Pull(t, name, author, "two", "main", "Two", fmt.Sprintf("About #%d, and again #%d", issue.Number, issue.Number))
	s.Close(t, refers, author)

	got := must[[]forge.LinkedPull](t)(f.LinkedPulls(ctx, issue))
	for i := range got {
		if got[i].URL == "" {
			t.Error("a linked pull request without an address")
		}
		got[i].URL = ""
	}
	want := []forge.LinkedPull{{Key: closes, State: forge.Open}, {Key: refers, State: forge.Closed}}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
	if got := must[[]forge.LinkedPull](t)(f.LinkedPulls(ctx, other)); len(got) != 0 {
		t.Errorf("linked with another issue: %+v", got)
	}
	if got := must[[]forge.LinkedPull](t)(f.LinkedPulls(ctx, closes)); len(got) != 0 {
		t.Errorf("a pull request is linked with: %+v", got)
	}
}

func (s *suite) context(t *testing.T) {
	f := s.Forge()
	name := s.Repository(t)
	author := s.Person(t, name, forge.WriteAccess)
	key := s.Issue(t, name, author, "An issue", "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Item(ended, key)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Item with a context that has ended: %v", err)
	}
	_, err = f.CreateComment(ended, key, forge.Post{Text: plain("late")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("CreateComment with a context that has ended: %v", err)
	}
}
