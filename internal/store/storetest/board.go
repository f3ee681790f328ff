package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var boardChecks = []check{
	{"a repository is kept under its name", boardRepositories},
	{"issues and pull requests share numbers", boardNumbers},
	{"many that add items at once get numbers without gaps", boardTogether},
	{"an item is kept as it was", boardItem},
	{"items are listed by what they have", boardList},
	{"labels go on and off, in order", boardLabels},
	{"logins are compared without regard to case", boardAssignees},
	{"edits change what they name", boardEdits},
	{"only pull requests are merged, and stay so", boardMerged},
	{"bad items are refused", badBoardItems},
	{"many changes at once are all in the timeline", boardTimelineTogether},
}

func boardRepository(t testing.TB, s store.Store) string {
	t.Helper()
	name := "board/" + newName()[len("name "):]
	got[store.BoardRepository](t)(s.AddBoardRepository(t.Context(), store.BoardRepository{Name: name, DefaultBranch: "main"}))
	return name
}

func boardAdd(t testing.TB, s store.Store, repository string, kind task.ItemKind) store.BoardItem {
	t.Helper()
	return got[store.BoardItem](t)(s.AddBoardItem(t.Context(), store.BoardItem{Repository: repository, Kind: kind, Title: "title", Author: "alice"}))
}

func boardNow(t testing.TB, s store.Store, x store.BoardItem) store.BoardItem {
	t.Helper()
	return got[store.BoardItem](t)(s.BoardItem(t.Context(), x.Repository, x.Number))
}

func boardRepositories(t *testing.T, s store.Store) {
	first := got[store.BoardRepository](t)(s.AddBoardRepository(t.Context(), store.BoardRepository{Name: "z/z", DefaultBranch: "main", CreatedAt: noon}))
	equal(t, first, store.BoardRepository{Name: "z/z", DefaultBranch: "main", CreatedAt: noon})
	second := got[store.BoardRepository](t)(s.AddBoardRepository(t.Context(), store.BoardRepository{Name: "a/a", DefaultBranch: "trunk"}))
	_, err := s.AddBoardRepository(t.Context(), store.BoardRepository{Name: "z/z"})
	wantCode(t, err, task.Conflict)
	for _, bad := range []string{"", "name", "a/../b", "a/b c"} {
		_, err = s.AddBoardRepository(t.Context(), store.BoardRepository{Name: bad})
		wantCode(t, err, task.Invalid)
	}
	equal(t, got[store.BoardRepository](t)(s.BoardRepository(t.Context(), "z/z")), first)
	_, err = s.BoardRepository(t.Context(), "b/b")
	wantCode(t, err, task.NotFound)
	equal(t, got[[]store.BoardRepository](t)(s.ListBoardRepositories(t.Context())), []store.BoardRepository{first, second})
}

func boardNumbers(t *testing.T, s store.Store) {
	one, two := boardRepository(t, s), boardRepository(t, s)
	equal(t, boardAdd(t, s, one, task.Issue).Number, int64(1))
	equal(t, boardAdd(t, s, one, task.Pull).Number, int64(2))
	equal(t, boardAdd(t, s, two, task.Issue).Number, int64(1))
	_, err := s.AddBoardItem(t.Context(), store.BoardItem{Repository: "no/body", Kind: task.Issue})
	wantCode(t, err, task.NotFound)
	equal(t, boardAdd(t, s, one, task.Issue).Number, int64(3))
}

func boardTogether(t *testing.T, s store.Store) {
	repository := boardRepository(t, s)
	var guard sync.Mutex
	seen := map[int64]bool{}
	together(8, func(int) {
		for range 5 {
			x, err := s.AddBoardItem(t.Context(), store.BoardItem{Repository: repository, Kind: task.Issue})
			if err != nil {
				t.Error(err)
			}
			guard.Lock()
			seen[x.Number] = true
			guard.Unlock()
		}
	})
	for n := int64(1); n <= 40; n++ {
		equal(t, seen[n], true)
	}
	all := got[[]store.BoardItem](t)(s.ListBoardItems(t.Context(), store.BoardFilter{Repository: repository}))
	for i, x := range all {
		equal(t, x.Number, int64(i+1))
	}
}

func boardItem(t *testing.T, s store.Store) {
	want := store.BoardItem{
		Repository: boardRepository(t, s), Kind: task.Pull, Title: "題", Body: "# b\r\n", Author: "alice", State: store.BoardClosed,
		Labels: []string{"z", "a", "z", "Z"}, Assignees: []string{"Bob", "carol", "BOB"},
		Head: "feature", Base: "main", Draft: true, CreatedAt: noon,
	}
	stored := got[store.BoardItem](t)(s.AddBoardItem(t.Context(), want))
	want.Number, want.State, want.UpdatedAt = 1, store.BoardOpen, noon
	want.Labels, want.Assignees = []string{"z", "a", "Z"}, []string{"Bob", "carol"}
	equal(t, stored, want)
	equal(t, boardNow(t, s, stored), want)
	_, err := s.BoardItem(t.Context(), want.Repository, 2)
	wantCode(t, err, task.NotFound)
	_, err = s.BoardItem(t.Context(), "no/body", 1)
	wantCode(t, err, task.NotFound)
	equal(t, got[[]store.BoardEvent](t)(s.BoardTimeline(t.Context(), want.Repository, 1)), []store.BoardEvent{
		{Actor: "alice", Kind: store.BoardLabeled, Subject: "z", At: noon},
		{Actor: "alice", Kind: store.BoardLabeled, Subject: "a", At: noon},
		{Actor: "alice", Kind: store.BoardLabeled, Subject: "Z", At: noon},
		{Actor: "alice", Kind: store.BoardAssigned, Subject: "Bob", At: noon},
		{Actor: "alice", Kind: store.BoardAssigned, Subject: "carol", At: noon},
	})
}

func boardList(t *testing.T, s store.Store) {
	one, two := boardRepository(t, s), boardRepository(t, s)
	a := got[store.BoardItem](t)(s.AddBoardItem(t.Context(), store.BoardItem{Repository: one, Kind: task.Issue, Labels: []string{"bug", "coding agent"}}))
	b := got[store.BoardItem](t)(s.AddBoardItem(t.Context(), store.BoardItem{Repository: two, Kind: task.Pull, Head: "feature", Assignees: []string{"Toryo"}}))
	c := got[store.BoardItem](t)(s.AddBoardItem(t.Context(), store.BoardItem{Repository: one, Kind: task.Pull, Head: "other", Labels: []string{"Bug"}, Assignees: []string{"toryo", "x"}}))
	closed := store.BoardClosed
	c = got[store.BoardItem](t)(s.EditBoardItem(t.Context(), c.Repository, c.Number, store.BoardEdit{State: &closed}, "x"))
	for _, test := range []struct {
		filter store.BoardFilter
		want   []store.BoardItem
	}{
		{store.BoardFilter{}, []store.BoardItem{a, b, c}},
		{store.BoardFilter{Repository: one}, []store.BoardItem{a, c}},
		{store.BoardFilter{Kind: task.Pull}, []store.BoardItem{b, c}},
		{store.BoardFilter{State: store.BoardOpen}, []store.BoardItem{a, b}},
		{store.BoardFilter{Label: "bug"}, []store.BoardItem{a}},
		{store.BoardFilter{Label: "coding agent", State: store.BoardOpen}, []store.BoardItem{a}},
		{store.BoardFilter{Assignee: "TORYO"}, []store.BoardItem{b, c}},
		{store.BoardFilter{Assignee: "toryo", State: store.BoardClosed}, []store.BoardItem{c}},
		{store.BoardFilter{Head: "feature"}, []store.BoardItem{b}},
		{store.BoardFilter{Repository: one, Head: "feature"}, nil},
	} {
		equal(t, got[[]store.BoardItem](t)(s.ListBoardItems(t.Context(), test.filter)), test.want)
	}
}

func boardLabels(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Issue)
	set := func(label string, on bool) {
		must(t, s.SetBoardLabel(t.Context(), x.Repository, x.Number, label, on, "bob"))
	}
	set("b", true)
	set("a", true)
	before := boardNow(t, s, x)
	equal(t, before.Labels, []string{"b", "a"})
	if !before.UpdatedAt.After(x.UpdatedAt) {
		t.Fatal("the item looks unchanged")
	}
	set("a", true)
	set("c", false)
	equal(t, boardNow(t, s, x), before)
	set("b", false)
	set("b", true)
	equal(t, boardNow(t, s, x).Labels, []string{"a", "b"})
	var happened []store.BoardEvent
	for _, e := range got[[]store.BoardEvent](t)(s.BoardTimeline(t.Context(), x.Repository, x.Number)) {
		equal(t, e.Actor, "bob")
		happened = append(happened, store.BoardEvent{Kind: e.Kind, Subject: e.Subject})
	}
	equal(t, happened, []store.BoardEvent{
		{Kind: store.BoardLabeled, Subject: "b"}, {Kind: store.BoardLabeled, Subject: "a"},
		{Kind: store.BoardUnlabeled, Subject: "b"}, {Kind: store.BoardLabeled, Subject: "b"},
	})
	wantCode(t, s.SetBoardLabel(t.Context(), x.Repository, 99, "a", true, "bob"), task.NotFound)
	wantCode(t, s.SetBoardLabel(t.Context(), x.Repository, x.Number, "", true, "bob"), task.Invalid)
	wantCode(t, s.SetBoardLabel(t.Context(), x.Repository, x.Number, long(2001), true, "bob"), task.TooLarge)
}

func boardAssignees(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Issue)
	set := func(login string, on bool) {
		must(t, s.SetBoardAssignee(t.Context(), x.Repository, x.Number, login, on, "bob"))
	}
	set("Alice", true)
	set("ÉMILE", true)
	before := boardNow(t, s, x)
	set("aLICE", true)
	equal(t, boardNow(t, s, x), before)
	equal(t, before.Assignees, []string{"Alice", "ÉMILE"})
	set("ALICE", false)
	set("émile", false) // another login: only A to Z have another case
	equal(t, boardNow(t, s, x).Assignees, []string{"ÉMILE"})
	events := got[[]store.BoardEvent](t)(s.BoardTimeline(t.Context(), x.Repository, x.Number))
	equal(t, len(events), 3)
	equal(t, events[2].Kind, store.BoardUnassigned)
	wantCode(t, s.SetBoardAssignee(t.Context(), "no/body", 1, "a", true, "bob"), task.NotFound)
}

func boardEdits(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Pull)
	edit := func(e store.BoardEdit) store.BoardItem {
		return got[store.BoardItem](t)(s.EditBoardItem(t.Context(), x.Repository, x.Number, e, "carol"))
	}
	title, body, closed, draft := "new", "text", store.BoardClosed, true
	same := edit(store.BoardEdit{Title: &x.Title})
	equal(t, same, x)
	after := edit(store.BoardEdit{Title: &title, Body: &body, State: &closed, Draft: &draft})
	want := x
	want.Title, want.Body, want.State, want.Draft, want.UpdatedAt = title, body, closed, draft, after.UpdatedAt
	equal(t, after, want)
	if !after.UpdatedAt.After(x.UpdatedAt) {
		t.Fatal("the item looks unchanged")
	}
	equal(t, boardNow(t, s, x), after)
	open := store.BoardOpen
	equal(t, edit(store.BoardEdit{State: &open}).State, open)
	var happened []string
	for _, e := range got[[]store.BoardEvent](t)(s.BoardTimeline(t.Context(), x.Repository, x.Number)) {
		equal(t, e.Actor, "carol")
		happened = append(happened, string(e.Kind)+" "+e.Subject)
	}
	equal(t, happened, []string{"edited title", "edited body", "edited draft", "state closed", "state open"})
	_, err := s.EditBoardItem(t.Context(), x.Repository, 99, store.BoardEdit{}, "carol")
	wantCode(t, err, task.NotFound)
	_, err = s.BoardTimeline(t.Context(), x.Repository, 99)
	wantCode(t, err, task.NotFound)
}

func boardMerged(t *testing.T, s store.Store) {
	repository := boardRepository(t, s)
	issue, pull := boardAdd(t, s, repository, task.Issue), boardAdd(t, s, repository, task.Pull)
	merged, open, bad := store.BoardMerged, store.BoardOpen, store.BoardState("burnt")
	title := "changed"
	_, err := s.EditBoardItem(t.Context(), repository, issue.Number, store.BoardEdit{Title: &title, State: &merged}, "x")
	wantCode(t, err, task.Invalid)
	equal(t, boardNow(t, s, issue), issue)
	_, err = s.EditBoardItem(t.Context(), repository, pull.Number, store.BoardEdit{State: &bad}, "x")
	wantCode(t, err, task.Invalid)
	got[store.BoardItem](t)(s.EditBoardItem(t.Context(), repository, pull.Number, store.BoardEdit{State: &merged}, "x"))
	_, err = s.EditBoardItem(t.Context(), repository, pull.Number, store.BoardEdit{State: &open}, "x")
	wantCode(t, err, task.Conflict)
}

func badBoardItems(t *testing.T, s store.Store) {
	repository := boardRepository(t, s)
	for _, bad := range []store.BoardItem{
		{Repository: repository, Kind: "epic"},
		{Repository: repository, Kind: task.Issue, Body: "\x00"},
		{Repository: repository, Kind: task.Issue, Labels: []string{""}},
	} {
		_, err := s.AddBoardItem(t.Context(), bad)
		wantCode(t, err, task.Invalid)
	}
	equal(t, boardAdd(t, s, repository, task.Issue).Number, int64(1))
}

func boardTimelineTogether(t *testing.T, s store.Store) {
	x := boardAdd(t, s, boardRepository(t, s), task.Issue)
	together(8, func(i int) {
		label := string(rune('a' + i))
		for on := range 4 {
			if err := s.SetBoardLabel(t.Context(), x.Repository, x.Number, label, on%2 == 0, label); err != nil {
				t.Error(err)
			}
			if _, err := s.AddBoardComment(t.Context(), store.BoardComment{Repository: x.Repository, Number: x.Number, Body: label}); err != nil {
				t.Error(err)
			}
		}
	})
	equal(t, len(got[[]store.BoardEvent](t)(s.BoardTimeline(t.Context(), x.Repository, x.Number))), 32)
	equal(t, len(got[[]store.BoardComment](t)(s.BoardComments(t.Context(), x.Repository, x.Number))), 32)
	now := boardNow(t, s, x)
	equal(t, now.Labels, nil)
	if now.UpdatedAt.Before(x.UpdatedAt.Add(64 * time.Microsecond)) {
		t.Fatal("some changes left no trace in the time of the last change")
	}
}
