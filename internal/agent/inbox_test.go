package agent

import (
	"fmt"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// Of several versions of a comment that a run has not taken up yet it gets one: what it
// comes to for a run that knows the comment as it was before, or not at all.
func TestInboxFoldsVersions(t *testing.T) {
	t.Parallel()
	one := func(position int64, id, change, body, before string) task.CommentEntry {
		return task.CommentEntry{Comment: task.Comment{ID: id, Kind: "item", Author: "bob", Body: body}, Position: position, Change: task.CommentChange(change), Before: before}
	}
	refused := func(position int64) task.CommentEntry {
		return task.CommentEntry{Comment: task.Comment{ID: "r", Kind: "item", Author: "mallory"}, Position: position, Change: "edited", Refused: "no_write_access"}
	}
	thousand := []task.CommentEntry{one(1, "a", "new", "0", "")}
	for i := range int64(1000) {
		thousand = append(thousand, one(i+2, "a", "edited", fmt.Sprint(i+1), fmt.Sprint(i)))
	}
	for name, test := range map[string]struct {
		told  []task.CommentEntry
		after int64
		want  []string
	}{
		"apart":                       {[]task.CommentEntry{one(1, "a", "new", "x", ""), one(2, "b", "new", "y", "")}, 0, []string{"1 new x", "2 new y"}},
		"written and edited":          {[]task.CommentEntry{one(1, "a", "new", "x", ""), one(2, "b", "new", "y", ""), one(3, "a", "edited", "z", "x")}, 0, []string{"2 new y", "3 new z"}},
		"the edit alone":              {[]task.CommentEntry{one(1, "a", "new", "x", ""), one(2, "b", "new", "y", ""), one(3, "a", "edited", "z", "x")}, 2, []string{"3 edited z was x"}},
		"written and deleted":         {[]task.CommentEntry{one(1, "a", "new", "x", ""), one(2, "a", "deleted", "x", "")}, 0, nil},
		"a known one deleted":         {[]task.CommentEntry{one(1, "a", "new", "x", ""), one(2, "a", "deleted", "x", "")}, 1, []string{"2 deleted x"}},
		"edited twice":                {[]task.CommentEntry{one(4, "a", "edited", "y", "x"), one(5, "a", "edited", "z", "y")}, 3, []string{"5 edited z was x"}},
		"edited and back":             {[]task.CommentEntry{one(4, "a", "edited", "y", "x"), one(5, "a", "edited", "x", "y")}, 3, nil},
		"edited and deleted":          {[]task.CommentEntry{one(4, "a", "edited", "y", "x"), one(5, "a", "deleted", "y", "")}, 3, []string{"5 deleted x"}},
		"deleted and there again":     {[]task.CommentEntry{one(4, "a", "deleted", "x", ""), one(5, "a", "new", "x", "")}, 3, nil},
		"deleted and another there":   {[]task.CommentEntry{one(4, "a", "deleted", "x", ""), one(5, "a", "new", "y", "")}, 3, []string{"5 edited y was x"}},
		"deleted and written anew":    {[]task.CommentEntry{one(4, "a", "deleted", "x", ""), one(5, "b", "new", "x", "")}, 3, []string{"4 deleted x", "5 new x"}},
		"one of another kind":         {[]task.CommentEntry{one(1, "a", "new", "x", ""), {Comment: task.Comment{ID: "a", Kind: "summary", Body: "y"}, Position: 2, Change: "new"}}, 0, []string{"1 new x", "2 new y"}},
		"refused ones are noted once": {[]task.CommentEntry{refused(1), refused(2), refused(3)}, 0, []string{"3 edited "}},
		"a thousand edits":            {thousand, 0, []string{"1001 new 1000"}},
		"a thousand edits of a known": {thousand, 1, []string{"1001 edited 1000 was 0"}},
	} {
		box := newInbox()
		box.add(test.told)
		var got []string
		for _, c := range box.after(test.after) {
			line := fmt.Sprintf("%d %s %s", c.Position, c.Change, c.Body)
			if c.Before != "" {
				line += " was " + c.Before
			}
			got = append(got, line)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the run gets %q, want %q", name, got, test.want)
		}
	}
}

// To look changes nothing. Whoever takes up what is returned has passed what was taken back
// too, and that does not turn up later, also when another machine goes on from there.
func TestInboxPassesWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	told := []task.CommentEntry{
		{Comment: task.Comment{ID: "a", Body: "x"}, Position: 1, Change: "new"}, {Comment: task.Comment{ID: "b", Body: "y"}, Position: 2, Change: "new"}, {Comment: task.Comment{ID: "a", Body: "x"}, Position: 3, Change: "deleted"},
	}
	box := newInbox()
	box.add(told)
	for range 2 {
		if got := box.after(0); len(got) != 1 || got[0].ID != "b" || got[0].Position != 3 {
			t.Fatalf("the run gets %+v", got)
		}
	}
	if got := box.after(1); len(got) != 2 || got[0].ID != "b" || got[1].Change != "deleted" {
		t.Errorf("a run that knows the comment gets %+v", got)
	}
	if got := box.after(3); len(got) != 0 {
		t.Errorf("the run then gets %+v", got)
	}
}
