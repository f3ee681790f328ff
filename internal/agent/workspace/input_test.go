package workspace_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/task"
)

func remarks(w *workspace.Workspace) string { return strings.Join(w.Remarks(), "\n") }

func commitAll(t *testing.T, w *workspace.Workspace) string {
	t.Helper()
	commit, _, err := w.Commit(t.Context(), "work", "")
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// names lists the files of a commit in the mirror, as they are.
func (s *site) names(t *testing.T, commit string) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(s.Mirrored(t, "ls-tree", "-r", "-z", "--name-only", commit), "\x00"), "\x00")
}

func TestNoBranchToStartFrom(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	run(t, empty, "init", "--quiet", "--initial-branch=main")
	for name, options := range map[string]workspace.Options{
		"an empty repository":            {URL: empty, Branch: "toryo/1"},
		"an empty repository and a base": {URL: empty, Branch: "toryo/1", Base: "main"},
		"a folder that is no repository": {URL: t.TempDir(), Branch: "toryo/1"},
		"a folder that is not there":     {URL: filepath.Join(empty, "nothing"), Branch: "toryo/1"},
	} {
		options.Dir = filepath.Join(t.TempDir(), "run")
		if _, err := workspace.Local(t.Context(), options); task.CodeOf(err) != task.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	s.Seed(t)
	for change, want := range map[string]task.Code{"base": task.NotFound, "branch": task.Invalid, "start": task.NotFound} {
		options := s.options(t)
		switch change {
		case "base":
			options.Base = "nothing"
		case "branch":
			options.Branch = "bad..name"
		case "start":
			options.Start = "refs/pull/9/head"
		}
		if _, err := workspace.Prepare(t.Context(), options); task.CodeOf(err) != want {
			t.Errorf("a wrong %s: %v", change, err)
		}
	}
	// Without a base it is the default branch.
	w := s.prepare(t, func(o *workspace.Options) { o.Base = "" })
	if read(t, w.Workspace(), "a.txt") != "a\n" {
		t.Error("the default branch is not checked out")
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	odd := []string{"new\nline.txt", "tab\t.txt", "quote\".txt", "back\\slash.txt", "bytes\xff\xfe.txt", "日本語.txt", "Case.txt", "case.txt", "-dash", "sp ace", "dir with\nline/x", ":colon", "*star"}
	files := map[string]string{}
	for _, name := range odd {
		files[name] = "old " + strconv.Quote(name) + "\n"
	}
	s := newSite(t, files)
	w := s.prepare(t, nil)
	for _, name := range odd {
		if got := read(t, w.Workspace(), name); got != files[name] {
			t.Errorf("%q has %q", name, got)
		}
	}
	put(t, w.Workspace(), odd[0], "new\n")
	put(t, w.Workspace(), "bytes\xff\xfe.txt", "")
	put(t, w.Workspace(), "more\nlines\xf0\"\\", "more\n")
	commit := commitAll(t, w)
	want := slices.Clone(odd)
	want = append(slices.DeleteFunc(want, func(name string) bool { return strings.Contains(name, "\xff") }), "more\nlines\xf0\"\\")
	slices.Sort(want)
	got := s.names(t, commit)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the commit has %q, want %q", got, want)
	}
	diff, err := w.Diff(t.Context(), "")
	if err != nil || len(diff.Files) != 3 || !strings.Contains(diff.Text, `new\nline.txt`) {
		t.Errorf("%q %v\n%s", diff.Files, err, diff.Text)
	}
	if text, err := w.Base(t.Context(), odd[0]); err != nil || string(text) != files[odd[0]] {
		t.Errorf("%q, %v", text, err)
	}
}

// Links are kept as links; nothing is read or written through them.
func TestLinksOutOfTheTree(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, "secret.txt", "the host's\n")
	put(t, outside, "dir/also.txt", "the host's\n")
	origin := newSite(t, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", "AGENTS.md": "rules\n"})
	w := origin.prepare(t, nil)
	dir := w.Workspace()
	link := func(target, name string) {
		t.Helper()
		_ = os.RemoveAll(filepath.Join(dir, name))
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "secret.txt"), "a.txt")     // in place of a file
	link(filepath.Join(outside, "dir"), "dir")              // in place of a folder
	link("../../../../../../../../etc/passwd", "passwd")    // a new one
	link(filepath.Join(outside, "secret.txt"), "CLAUDE.md") // that rules are read from
	commit := commitAll(t, w)
	got := origin.Mirrored(t, "ls-tree", "-r", commit)
	for _, name := range []string{"a.txt", "dir", "passwd", "CLAUDE.md"} {
		if !strings.Contains(got, "\t"+name) {
			t.Errorf("%s is not in the commit:\n%s", name, got)
		}
	}
	if strings.Count(got, "120000 ") != 4 || strings.Contains(got, "b.txt") {
		t.Errorf("the commit has\n%s", got)
	}
	if text := origin.Mirrored(t, "cat-file", "blob", commit+":a.txt"); text != filepath.Join(outside, "secret.txt") {
		t.Errorf("the content of a link is %q", text)
	}
	// A merge writes to the place of the link, not through it.
	origin.Commit(t, "main", "theirs", map[string]string{"dir/new.txt": "theirs\n"})
	origin.Seed(t)
	if _, err := w.Merge(t.Context()); err != nil {
		t.Logf("the merge of a folder with a link: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(outside, "dir")); len(entries) != 1 {
		t.Errorf("something was written outside: %v", entries)
	}
	if read(t, outside, "secret.txt") != "the host's\n" {
		t.Error("a file outside was changed")
	}
}

// A link of the base branch is followed in the repository only.
func TestRulesBehindALink(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.Origin, work)
	run(t, work, "checkout", "--quiet", "-b", "main")
	put(t, work, "AGENTS.md", "rules\n")
	for name, target := range map[string]string{"CLAUDE.md": "AGENTS.md", "out.md": "/etc/passwd", "up.md": "../../x", "loop.md": "loop.md", "gone.md": "gone"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, work, "add", "--all")
	run(t, work, "commit", "--quiet", "-m", "links")
	run(t, work, "push", "--quiet", "origin", "main")
	w := s.prepare(t, nil)
	if text, err := w.Base(t.Context(), "CLAUDE.md"); err != nil || string(text) != "rules\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"out.md", "up.md", "loop.md", "gone.md", "", ".", "/etc/passwd", "../AGENTS.md", "AGENTS.md/x"} {
		if text, err := w.Base(t.Context(), name); task.CodeOf(err) != task.NotFound {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
}

func TestSubmodulesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.Origin, work)
	run(t, work, "checkout", "--quiet", "-b", "main")
	put(t, work, "a.txt", "a\n")
	run(t, work, "add", "--all")
	run(t, work, "commit", "--quiet", "-m", "first")
	pinned := run(t, work, "rev-parse", "HEAD")
	put(t, work, ".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.org/lib.git\n")
	run(t, work, "update-index", "--add", "--cacheinfo", "160000,"+pinned+",lib")
	run(t, work, "add", ".gitmodules")
	run(t, work, "commit", "--quiet", "-m", "submodule")
	run(t, work, "push", "--quiet", "origin", "main")
	w := s.prepare(t, nil)
	if !strings.Contains(remarks(w), "Submodules are not fetched and are left as they are: lib.") {
		t.Errorf("it says %q", remarks(w))
	}
	put(t, w.Workspace(), "a.txt", "b\n")
	put(t, w.Workspace(), "lib/file.txt", "fetched by the sandbox\n") // is not ours to commit
	if got := s.Mirrored(t, "ls-tree", "-r", commitAll(t, w)); !strings.Contains(got, "160000 commit "+pinned+"\tlib") || strings.Contains(got, "lib/file.txt") {
		t.Errorf("the commit has\n%s", got)
	}
	if err := os.RemoveAll(filepath.Join(w.Workspace(), "lib")); err != nil {
		t.Fatal(err)
	}
	if got := s.Mirrored(t, "ls-tree", "-r", commitAll(t, w)); !strings.Contains(got, "160000 commit "+pinned+"\tlib") {
		t.Errorf("the submodule is gone:\n%s", got)
	}
	if names, err := w.BaseFiles(t.Context()); err != nil || slices.Contains(names, "lib") {
		t.Errorf("%q, %v", names, err)
	}
}

func TestPointersOfLargeFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 12345\n"
	s := newSite(t, map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "big.bin": pointer, "a.txt": "a\n"})
	w := s.prepare(t, nil)
	if got := read(t, w.Workspace(), "big.bin"); got != pointer {
		t.Errorf("the pointer is %q", got)
	}
	if !strings.Contains(remarks(w), "Git LFS") {
		t.Errorf("it says %q", remarks(w))
	}
	put(t, w.Workspace(), "a.txt", "b\n")
	if got := s.Mirrored(t, "diff", "--name-only", "main", commitAll(t, w)); got != "a.txt" {
		t.Errorf("the commit changes %q", got)
	}
}

func TestRemarksInJapanese(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{".gitattributes": "*.bin filter=lfs\n"})
	w := s.prepare(t, func(o *workspace.Options) { o.Language = task.Japanese })
	put(t, w.Workspace(), "git~1", "x")
	save(t, w)
	if text := remarks(w); task.Automatic.Of(text) != task.Japanese || !strings.Contains(text, "ポインターのまま") || !strings.Contains(text, "git~1") {
		t.Errorf("it says %q", text)
	}
}

// Attributes of the repository change nothing: bytes go in and come out.
func TestContentIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	text := "one\r\ntwo\n$Id$\r\n"
	s := newSite(t, nil)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.Origin, work)
	run(t, work, "checkout", "--quiet", "-b", "main")
	put(t, work, "mixed.txt", text)
	run(t, work, "-c", "core.autocrlf=false", "add", "--all")
	put(t, work, ".gitattributes", "*.txt text eol=crlf ident working-tree-encoding=UTF-16\n* filter=evil\n")
	run(t, work, "update-index", "--add", ".gitattributes")
	run(t, work, "commit", "--quiet", "-m", "mixed")
	run(t, work, "push", "--quiet", "origin", "main")
	w := s.prepare(t, nil)
	if got := read(t, w.Workspace(), "mixed.txt"); got != text {
		t.Errorf("checked out as %q", got)
	}
	if _, changed, err := w.Commit(t.Context(), "nothing", ""); err != nil || changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestFilesOverTheLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n", "grows.bin": "small\n"})
	w := s.prepare(t, func(o *workspace.Options) { o.MaxFile = 1 << 20 })
	put(t, w.Workspace(), "huge.bin", strings.Repeat("x", 1<<20+1))
	put(t, w.Workspace(), "grows.bin", strings.Repeat("x", 1<<20+1))
	put(t, w.Workspace(), "just.bin", strings.Repeat("x", 1<<20))
	put(t, w.Workspace(), "a.txt", "b\n")
	saved := save(t, w) // the rest is not lost for them
	if got := s.Mirrored(t, "diff", "--name-status", "main", saved); got != "M\ta.txt\nA\tjust.bin" {
		t.Errorf("saved is %q", got)
	}
	if !strings.Contains(remarks(w), "grows.bin, huge.bin") {
		t.Errorf("it says %q", remarks(w))
	}
	_, _, err := w.Commit(t.Context(), "work", "")
	if task.CodeOf(err) != task.TooLarge || !strings.Contains(err.Error(), "larger than the 1 MB that a file may have in the history: grows.bin, huge.bin; remove it") {
		t.Errorf("a commit with huge files: %v", err)
	}
	put(t, w.Workspace(), "huge.bin", "")
	put(t, w.Workspace(), "grows.bin", "small again\n")
	commitAll(t, w)
}

// A file of the base is as large as it is: only what the work changes counts.
func TestUnchangedFilesOverTheLimit(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1<<20+1)
	s := newSite(t, map[string]string{"a.txt": "a\n", "model.bin": large, "other.bin": large + "y"})
	w := s.prepare(t, func(o *workspace.Options) { o.MaxFile = 1 << 20 })
	put(t, w.Workspace(), "a.txt", "b\n")
	if err := w.Fits(t.Context()); err != nil {
		t.Errorf("before anything large is changed: %v", err)
	}
	save(t, w)
	if got := remarks(w); got != "" {
		t.Errorf("it says %q", got)
	}
	for name, content := range map[string]string{"model.bin": strings.Repeat("z", len(large)), "other.bin": large} {
		put(t, w.Workspace(), name, content)
		if err := w.Fits(t.Context()); task.CodeOf(err) != task.TooLarge || !strings.Contains(err.Error(), name) {
			t.Errorf("with %s changed: %v", name, err)
		}
		put(t, w.Workspace(), name, map[string]string{"model.bin": large, "other.bin": large + "y"}[name])
	}
	commit := commitAll(t, w)
	if got := s.Mirrored(t, "diff", "--name-status", "main", commit); got != "M\ta.txt" {
		t.Errorf("the commit changes %q", got)
	}
}

func TestALongHistoryIsNotFetched(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.Origin, work)
	for i := range 12 {
		// Old content that does not compress, which nobody needs any more.
		put(t, work, "big.bin", randomText(int64(i), 200_000))
		run(t, work, "add", "--all")
		run(t, work, "commit", "--quiet", "-m", "big")
	}
	put(t, work, "big.bin", "")
	run(t, work, "add", "--all")
	run(t, work, "commit", "--quiet", "-m", "gone")
	run(t, work, "push", "--quiet", "origin", "main")
	var dir string
	w := s.prepare(t, func(o *workspace.Options) { dir = o.Dir })
	put(t, w.Workspace(), "b.txt", "b\n")
	save(t, w)
	isSmall(t, dir)
}

// isSmall fails if a folder has as much as one of the old files takes.
func isSmall(t *testing.T, dir string) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	})
	if err != nil || size > 200_000 {
		t.Errorf("%d bytes are here, of a history of 2 MB (%v)", size, err)
	}
}

// What is in the way of being a file, or of being read, or named like git's own.
func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a.txt", "")
	if err := syscall.Mkfifo(filepath.Join(dir, "a.txt"), 0o600); err != nil { // in place of a file
		t.Fatal(err)
	}
	put(t, dir, "empty-folder/x", "x")
	put(t, dir, "empty-folder/x", "")
	put(t, dir, ".GIT/config", "[core]\n")
	put(t, dir, "sub/git~1", "x")
	put(t, dir, "sub/.git /x", "x")
	put(t, dir, "sub/.g\u200cit/x", "x")
	put(t, dir, "good.txt", "good\n")
	commit := commitAll(t, w) // the mirror checks what is pushed
	if got := s.names(t, commit); !slices.Equal(got, []string{"b.txt", "good.txt"}) {
		t.Errorf("the commit has %q", got)
	}
	if text := remarks(w); !strings.Contains(text, "git~1") || !strings.Contains(text, "neither a file nor a link") {
		t.Errorf("it says %q", text)
	}
}

func TestWhatSetUpMadeIsNoPartOfTheWork(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n", "vendor/kept.txt": "k\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "node_modules/x/index.js", "x\n")
	put(t, w.Workspace(), "vendor/new.txt", "x\n")
	put(t, w.Workspace(), "vendor/kept.txt", "changed\n")
	put(t, w.Workspace(), "node_modules.txt", "mine\n")
	if err := w.Exclude(t.Context(), []string{"node_modules", "vendor/"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Mirrored(t, "diff", "--name-status", "main", commitAll(t, w)); got != "A\tnode_modules.txt\nM\tvendor/kept.txt" {
		t.Errorf("the commit changes %q", got)
	}
	for _, path := range []string{"../x", "/etc", ".", ""} {
		if err := w.Exclude(t.Context(), []string{path}); task.CodeOf(err) != task.Invalid {
			t.Errorf("%q was excluded: %v", path, err)
		}
	}
}

// A file that changes without changing its size or its time is seen all the same.
func TestEveryChangeIsSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "aaaa\n"})
	w := s.prepare(t, nil)
	name := filepath.Join(w.Workspace(), "a.txt")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	last := save(t, w)
	for _, text := range []string{"bbbb\n", "cccc\n", "dddd\n"} {
		put(t, w.Workspace(), "a.txt", text)
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		commit := save(t, w)
		if commit == last || s.Mirrored(t, "cat-file", "blob", commit+":a.txt")+"\n" != text {
			t.Errorf("%q was not seen", text)
		}
		last = commit
	}
}

func TestAnEndedRunCutsGitShort(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "a.txt", "b\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := task.Errorf(task.Interrupted, "the agent is shutting down")
	cancel(cause)
	if _, err := w.Save(ctx, "x"); err == nil {
		t.Error("a save went on after the end")
	}
	save(t, w) // with a context of its own
}

// Neither the token nor what it opens is left on the disk.
func TestTheTokenIsNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	var dir string
	w := s.prepare(t, func(o *workspace.Options) { dir = o.Dir })
	put(t, w.Workspace(), "a.txt", "b\n")
	save(t, w)
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte(token)) || bytes.Contains(text, []byte(s.CloneURL())) {
			t.Errorf("%s has it", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Take(token)
	if _, err := w.Save(t.Context(), "again"); err != nil {
		t.Error("a save without changes asked the server")
	}
	put(t, w.Workspace(), "a.txt", "c\n")
	if _, err := w.Save(t.Context(), "again"); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("the error is %v", err)
	}
	if err := w.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func randomText(seed int64, size int) string {
	state := uint64(seed)*2862933555777941757 + 3037000493
	text := make([]byte, size)
	for i := range text {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		text[i] = byte(state)
	}
	return string(text)
}
