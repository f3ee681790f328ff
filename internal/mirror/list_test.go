package mirror_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/mirror"
)

// Only where a mirror would be there is one.
func TestList(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, path := range []string{"gitea/team%2Fapp.git", "gitea/team%2fother.git", "gitea/alone.git", "hooks/team%2Fapp.git", "gitea/team%zz.git", "gitea/removing-1"} {
		must(t, os.MkdirAll(filepath.Join(root, filepath.FromSlash(path)), 0o700))
	}
	got, err := mirror.List(root)
	if err != nil || !slices.Equal(got, []string{filepath.Join("gitea", "team%2Fapp.git")}) {
		t.Errorf("the mirrors are in %q, %v", got, err)
	}
}
