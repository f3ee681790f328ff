package forge_test

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
)

func TestCloses(t *testing.T) {
	t.Parallel()
	text := "Fixes #3, resolved: #12\ncloses #3 and #4; unfixed #5, fix owner/name#6, closes #99999999999999999999"
	if got := forge.Closes(text); !slices.Equal(got, []int64{3, 12, 3}) {
		t.Errorf("it closes %v", got)
	}
}
