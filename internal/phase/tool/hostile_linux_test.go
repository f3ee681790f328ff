package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// hostile is a workspace in which code of the sandbox has put pipes and large files
// where tools look. A tool that waits for a pipe never returns.
func hostile(t *testing.T) (tool.Workspace, string) {
	t.Helper()
	w, dir := workspace(t, map[string]string{"a.txt": "needle\n", "sub/b.txt": "needle\n"})
	for _, name := range []string{".gitignore", "sub/.ignore", "pipe.txt"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sub/.gitignore", "large.txt", ".rgignore"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 3<<30)); err != nil {
			t.Fatal(err)
		}
	}
	return w, dir
}

//nolint:paralleltest // it measures memory
func TestToolsDoNotWaitForPipesNorReadLargeFiles(t *testing.T) {
	w, _ := hostile(t)
	taken := testkit.MemoryTaken(t, func() {
		wantText(t, use(t, tool.List(w), map[string]any{}), false, "a.txt", "sub/b.txt")
		wantText(t, use(t, tool.Search(w), map[string]any{"pattern": "needle"}), false, "a.txt:1", "sub/b.txt:1", "1 files were too large")
		wantText(t, use(t, tool.Search(w), map[string]any{"pattern": "x", "path": "pipe.txt"}), false, "no match")
		wantText(t, use(t, tool.Search(w), map[string]any{"pattern": "x", "path": "large.txt"}), false, "no match")
		wantText(t, use(t, tool.Read(w), map[string]any{"path": "pipe.txt"}), true, "not a regular file")
		wantText(t, use(t, tool.Read(w), map[string]any{"path": "large.txt"}), true, "too many to read")
		wantText(t, use(t, tool.Edit(w), map[string]any{"command": "create", "path": "pipe.txt", "new": "x", "overwrite": true}), true)
		wantText(t, use(t, tool.Edit(w), map[string]any{"command": "replace", "path": "pipe.txt", "old": "x", "new": "y"}), true)
		wantText(t, use(t, tool.Edit(w), map[string]any{"command": "replace", "path": "large.txt", "old": "x", "new": "y"}), true)
	})
	if taken > 64<<20 {
		t.Errorf("it took %d MB", taken>>20)
	}
}
