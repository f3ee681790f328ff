package phase

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// A run knows the commits that it is to merge.
func TestNames(t *testing.T) {
	t.Parallel()
	work := Work{Cause: task.ReasonBaseConflict, Occasion: "2026-11-16T09:30:00Z review 5 base 1f38 head 9c56 round 2"}
	if !work.Names("1f38", "9c56") || work.Names("1f38", "9c5") || work.Names("2f38", "9c56") {
		t.Error("the commits are not told apart")
	}
}

// A diff that is cut says nothing of the files in which there were conflicts.
func TestUnresolvedInACutDiff(t *testing.T) {
	t.Parallel()
	diff := Diff{Text: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+<<<<<<< ours\n"}
	if got := Unresolved(diff, []string{"x", "y"}); !slices.Equal(got, []string{"x"}) {
		t.Errorf("whole: %q", got)
	}
	diff.Cut = true
	if got := Unresolved(diff, []string{"y", "x"}); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("cut: %q", got)
	}
}
