package forge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestLabeledAt(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC) }
	tests := []struct {
		name   string
		events []forge.LabelEvent
		want   time.Time
		on     bool
	}{
		{"never", nil, time.Time{}, false},
		{"another label", []forge.LabelEvent{{Label: "x", On: true, At: at(1)}}, time.Time{}, false},
		{"once", []forge.LabelEvent{{Label: "needs-review", On: true, At: at(1)}}, at(1), true},
		{"taken off", []forge.LabelEvent{{Label: "needs-review", On: true, At: at(1)}, {Label: "needs-review", At: at(2)}}, at(1), false},
		{"put on again", []forge.LabelEvent{
			{Label: "needs-review", On: true, At: at(1)}, {Label: "needs-review", At: at(2)},
			{Label: "needs-review", On: true, At: at(3)},
		}, at(3), true},
		{"told twice", []forge.LabelEvent{{Label: "needs-review", On: true, At: at(1)}, {Label: "needs-review", On: true, At: at(2)}}, at(1), true},
	}
	for _, test := range tests {
		got, on := forge.LabeledAt(test.events, "needs-review")
		if !got.Equal(test.want) || on != test.on {
			t.Errorf("%s: %v %v, want %v %v", test.name, got, on, test.want, test.on)
		}
	}
}

func TestItem(t *testing.T) {
	t.Parallel()
	item := forge.Item{Labels: []string{"a:b", "c, d"}, Assignees: []string{"Toryo-Bot"}}
	if !item.HasLabel("c, d") || item.HasLabel("c") {
		t.Error("a label with a comma is not told apart")
	}
	if !item.AssignedTo("toryo-BOT") || item.AssignedTo("") {
		t.Error("assignees are not compared as logins")
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	diff := forge.Diff{Patch: strings.Join([]string{
		"diff --git a/a.txt b/b.txt", "similarity index 50%", "rename from a.txt", "rename to b.txt",
		"--- a/a.txt", "+++ b/b.txt", "@@ -3,3 +3,3 @@", " three", "-four", "+FOUR", " five",
		"diff --git a/gone b/gone", "deleted file mode 100644", "--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-x", "",
	}, "\n")}
	got, err := diff.Anchors()
	if err != nil {
		t.Fatal(err)
	}
	want := map[forge.Anchor]bool{
		{"b.txt", forge.NewSide, 3}: true, {"b.txt", forge.NewSide, 4}: true, {"b.txt", forge.NewSide, 5}: true,
		{"b.txt", forge.OldSide, 3}: true, {"b.txt", forge.OldSide, 4}: true, {"b.txt", forge.OldSide, 5}: true,
		{"gone", forge.OldSide, 1}: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := (forge.Diff{Patch: "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,5 +1,5 @@\n a\n"}).Anchors(); task.CodeOf(err) != task.Invalid {
		t.Errorf("a broken patch: %v", err)
	}
}

func TestReviewComments(t *testing.T) {
	t.Parallel()
	at := func(id string, minute int) task.Comment {
		return task.Comment{ID: id, CreatedAt: time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC)}
	}
	threads := []forge.ReviewThread{{Comments: []task.Comment{at("1", 1), at("4", 4)}}, {Comments: []task.Comment{at("2", 2), at("3", 3)}}}
	var ids []string
	for _, comment := range forge.ReviewComments(threads) {
		ids = append(ids, comment.ID)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestSameLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		on         task.Forge
		one, other string
		same       bool
	}{
		{task.GitHub, "toryo", "Toryo", true},
		{task.GitHub, "toryo", "toryo:done", false},
		{task.GitLab, "toryo", "toryo", true},
		{task.GitLab, "toryo", "Toryo", false},
		{task.Gitea, "toryo", "Toryo", false},
	} {
		if got := forge.SameLabel(c.on, c.one, c.other); got != c.same {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
