package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// sparse makes a file of zeros that takes no disk.
func sparse(t *testing.T, name string, size int64) {
	t.Helper()
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
		t.Fatal(err)
	}
}

// Git waits for ever for the other end of a pipe, and reads a file of patterns
// whole.
//
//nolint:paralleltest // it measures memory
func TestIgnoreFilesThatAreNone(t *testing.T) {
	s := newSite(t, map[string]string{"a.txt": "a\n", ".gitignore": "*.log\n", "sub/.gitignore": "*.tmp\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	for _, name := range []string{".gitignore", "sub/.gitignore"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600), os.Mkdir(filepath.Join(dir, "new"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, ".gitattributes"), 0o600), syscall.Mkfifo(filepath.Join(dir, ".gitmodules"), 0o600),
		os.WriteFile(filepath.Join(dir, "b.txt"), []byte("b\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	sparse(t, filepath.Join(dir, "sub", ".gitignore"), 90<<20) // no more than may be committed
	sparse(t, filepath.Join(dir, "new", ".gitignore"), 3<<30)
	taken := testkit.MemoryTaken(t, func() {
		diff, err := w.Diff(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{".gitignore", "b.txt", "sub/.gitignore"}; !slices.Equal(diff.Files, want) {
			t.Errorf("changed are %q, want %q", diff.Files, want)
		}
	})
	if taken > 64<<20 {
		t.Errorf("it took %d MB", taken>>20)
	}
}

//nolint:paralleltest // it measures memory
func TestALongFileOfRulesIsNotRead(t *testing.T) {
	s := newSite(t, map[string]string{"AGENTS.md": strings.Repeat("be careful\n", 20<<20), "a.txt": "a\n"})
	w := s.prepare(t, nil)
	taken := testkit.MemoryTaken(t, func() {
		if _, err := w.Base(t.Context(), "AGENTS.md"); task.CodeOf(err) != task.TooLarge {
			t.Errorf("rules of 220 MB: %v", err)
		}
	})
	if taken > 32<<20 {
		t.Errorf("it took %d MB", taken>>20)
	}
	if !strings.Contains(remarks(w), "AGENTS.md") {
		t.Errorf("the remarks do not say so: %s", remarks(w))
	}
	if text, err := w.Base(t.Context(), "a.txt"); err != nil || string(text) != "a\n" {
		t.Errorf("a short file: %q, %v", text, err)
	}
}

//nolint:paralleltest // it measures memory
func TestALargeFileIsCommittedInParts(t *testing.T) {
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	w := s.prepare(t, nil)
	sparse(t, filepath.Join(w.Workspace(), "large.bin"), 95<<20)
	var commit string
	taken := testkit.MemoryTaken(t, func() { commit = commitAll(t, w) })
	if taken > 32<<20 {
		t.Errorf("it took %d MB", taken>>20)
	}
	if size := strings.TrimSpace(s.Mirrored(t, "cat-file", "-s", commit+":large.bin")); size != "99614720" {
		t.Errorf("the file has %s bytes in the commit", size)
	}
}

// What is ignored is what git itself ignores, wherever the patterns are.
func TestPatternsMeanWhatTheyMeanToGit(t *testing.T) {
	t.Parallel()
	ignore := map[string]string{
		".gitignore":          "*.log\n/top\nbuild/\n!keep.log\n# comment\n\\#hash\n\\!bang\ntrailing \ndoc/*.txt\n**/deep/x\n",
		"sub/.gitignore":      "*.tmp\n/anchored\n!important.log\nout/\na/b\r\n!\n/\n",
		"sub/a/.gitignore":    "!b\n*\n!.gitignore\n",
		"odd [x]*/.gitignore": "y?\n\\[z]\n",
		"self/.gitignore":     "*\n",
		"build/.gitignore":    "!*\n",
		"bom/.gitignore":      "\ufefffirst\nsecond\n",
	}
	s := newSite(t, map[string]string{"a.txt": "a\n", ".gitignore": ignore[".gitignore"], "sub/.gitignore": ignore["sub/.gitignore"]})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	for name, text := range ignore {
		write(t, filepath.Join(dir, name), text)
	}
	for _, name := range []string{"x.log", "keep.log", "top", "sub/top", "build/x", "sub/build/y", "sub/important.log", "sub/n.tmp", "n.tmp", "sub/anchored",
		"sub/c/anchored", "sub/out/x", "sub/c/out/y", "out/z", "#hash", "!bang", "trailing", "doc/a.txt", "sub/doc/a.txt", "q/deep/x", "deep/x", "sub/a/b", "sub/a/c",
		"sub/c/a/b", "odd [x]*/y1", "odd [x]*/yy", "odd [x]*/[z]", "odd [x]*/z", "odd x/y1", "self/x", "self/y/z", "bom/first", "bom/second", "bom/third"} {
		write(t, filepath.Join(dir, name), "content\n")
	}
	git := exec.CommandContext(t.Context(), "git", "ls-files", "--others", "--exclude-standard", "-z")
	git.Dir = dir
	output, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
	slices.Sort(want)
	for range 2 { // the second time with what the first has found
		diff, err := w.Diff(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(diff.Files, want) {
			t.Errorf("changed are\n%q, git has\n%q", diff.Files, want)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
