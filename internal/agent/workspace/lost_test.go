package workspace

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SetClock sets what the time is.
func (w *Workspace) SetClock(now func() time.Time) { w.now = now }

// BeginRemoval begins with a removal of files of a commit.
func (w *Workspace) BeginRemoval(remove func()) { w.removals.begin(remove) }

// WithoutPlain lets no repository be made for the sandbox, until undo is called.
func (w *Workspace) WithoutPlain() (undo func()) {
	dir := w.options.Dir
	w.options.Dir = filepath.Join(dir, "missing")
	return func() { w.options.Dir = dir }
}

// Lines about files are left out if what they name is no content: git would be given it.
func TestReadTaken(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("a", 40)
	var got taken
	for _, line := range []string{
		"Toryo-Taken: " + hash,
		"Toryo-Ours: 100644 " + hash + ` "a.txt"`,
		`Toryo-Ours: - - "gone.txt"`,
		`Toryo-Ours: 100644 --batch "option.txt"`,
		`Toryo-Made: 100644 main "ref.txt"`,
		`Toryo-Made: 100644 - "odd.txt"`,
		"Toryo-Made: 100755 " + hash + ` "b.sh"`,
	} {
		got.read(line)
	}
	want := taken{from: hash, ours: listing{"a.txt": {"100644", hash}, "gone.txt": {}}, made: listing{"odd.txt": {}, "b.sh": {"100755", hash}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(taken{}, file{})); diff != "" {
		t.Error(diff)
	}
}
