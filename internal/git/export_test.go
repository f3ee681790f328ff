package git_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// A repository comes back with its refs, HEAD and all that they lead to, and without the rest.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		said, err := program.Run(t.Context(), git.Command{Dir: dir, Args: args})
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(said)
	}
	from, to := filepath.Join(t.TempDir(), "from.git"), filepath.Join(t.TempDir(), "to.git")
	for _, dir := range []string{from, to} {
		if err := program.Init(t.Context(), dir, "sha1"); err != nil {
			t.Fatal(err)
		}
	}
	program.Settings = []string{"user.name=A", "user.email=a@example.com"}
	tree := run(from, "write-tree")
	first := run(from, "commit-tree", "-m", "first", tree)
	second := run(from, "commit-tree", "-m", "second", "-p", first, tree)
	other := run(from, "commit-tree", "-m", "other", tree)
	run(from, "update-ref", "refs/heads/trunk", second)
	run(from, "tag", "-a", "-m", "one", "v1", first)
	run(from, "symbolic-ref", "HEAD", "refs/heads/trunk")
	run(from, "update-ref", "refs/namespaces/t1/refs/heads/main", first)
	run(from, "symbolic-ref", "refs/namespaces/t1/HEAD", "refs/namespaces/t1/refs/heads/main")
	run(from, "update-ref", "refs/other/x", other)

	var pack bytes.Buffer
	refs, err := program.Export(t.Context(), from, []string{"refs/heads/", "refs/tags/", "refs/namespaces/"}, &pack)
	if err != nil {
		t.Fatal(err)
	}
	whole := pack.Bytes()
	if err := program.Import(t.Context(), to, refs, bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	again, err := program.Export(t.Context(), to, []string{"refs/"}, &bytes.Buffer{})
	if err != nil || !cmp.Equal(refs, again) {
		t.Errorf("it comes back as %s, %v", cmp.Diff(refs, again), err)
	}
	if is := run(to, "rev-parse", "HEAD", "v1^{}"); is != second+"\n"+first {
		t.Errorf("HEAD and v1 are %s", is)
	}
	if _, err := program.Run(t.Context(), git.Command{Dir: to, Args: []string{"cat-file", "-e", other}}); err == nil {
		t.Error("what was not asked for came too")
	}
	run(to, "fsck", "--strict")

	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		missing := refs
		missing.Objects = map[string]string{"refs/heads/trunk": other}
		for name, bad := range map[string]struct {
			refs git.Refs
			pack []byte
		}{
			"cut pack":       {refs, whole[:len(whole)-1]},
			"no pack":        {refs, nil},
			"missing commit": {missing, whole},
			"bad name":       {git.Refs{Format: "sha1", Objects: map[string]string{"refs/heads/a\ndelete refs/heads/b": second}}, whole},
			"bad hash":       {git.Refs{Format: "sha1", Objects: map[string]string{"refs/heads/a": "HEAD"}}, whole},
			"bad target":     {git.Refs{Format: "sha1", Symbolic: map[string]string{"HEAD": "../../x"}}, nil},
			"an option":      {git.Refs{Format: "sha1", Symbolic: map[string]string{"--delete": "refs/heads/x"}}, nil},
			"bad format":     {git.Refs{Format: "--x"}, nil},
		} {
			dir := filepath.Join(t.TempDir(), "to.git")
			if err := program.Init(t.Context(), dir, "sha1"); err != nil {
				t.Fatal(err)
			}
			if err := program.Import(t.Context(), dir, bad.refs, bytes.NewReader(bad.pack)); task.CodeOf(err) != task.Invalid {
				t.Errorf("%s: %v", name, err)
			}
			if left, err := os.ReadDir(filepath.Join(dir, "refs", "heads")); err != nil || len(left) > 0 {
				t.Errorf("%s: there are refs: %v, %v", name, left, err)
			}
		}
	})
}

// An empty repository has nothing to export, and comes back as one. A shallow one comes back
// as shallow.
func TestExportOddRepositories(t *testing.T) {
	t.Parallel()
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	empty, to := filepath.Join(t.TempDir(), "empty.git"), filepath.Join(t.TempDir(), "to.git")
	if err := program.Init(t.Context(), empty, "sha256"); err != nil {
		t.Fatal(err)
	}
	var pack bytes.Buffer
	refs, err := program.Export(t.Context(), empty, []string{"refs/"}, &pack)
	if err != nil || pack.Len() > 0 || refs.Format != "sha256" || len(refs.Objects) > 0 {
		t.Fatalf("of an empty one: %+v, %d bytes, %v", refs, pack.Len(), err)
	}
	if err := program.Init(t.Context(), to, refs.Format); err != nil {
		t.Fatal(err)
	}
	if err := program.Import(t.Context(), to, refs, &pack); err != nil {
		t.Fatal(err)
	}
	if again, err := program.Export(t.Context(), to, []string{"refs/"}, &pack); err != nil || !cmp.Equal(refs, again) {
		t.Errorf("it comes back as %s, %v", cmp.Diff(refs, again), err)
	}

	run := func(dir string, args ...string) string {
		t.Helper()
		said, err := program.Run(t.Context(), git.Command{Dir: dir, Args: args, Remote: &git.Remote{URL: "/"}})
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(said)
	}
	source, shallow, back := filepath.Join(t.TempDir(), "source.git"), filepath.Join(t.TempDir(), "shallow.git"), filepath.Join(t.TempDir(), "back.git")
	program.Settings = []string{"user.name=A", "user.email=a@example.com"}
	for _, dir := range []string{source, back} {
		if err := program.Init(t.Context(), dir, "sha1"); err != nil {
			t.Fatal(err)
		}
	}
	tree := run(source, "write-tree")
	first := run(source, "commit-tree", "-m", "first", tree)
	second := run(source, "commit-tree", "-m", "second", "-p", first, tree)
	run(source, "update-ref", "refs/heads/main", second)
	run("", "clone", "--quiet", "--bare", "--depth=1", "file://"+source, shallow)
	pack.Reset()
	if refs, err = program.Export(t.Context(), shallow, []string{"refs/"}, &pack); err != nil || !cmp.Equal(refs.Shallow, []string{second}) {
		t.Fatalf("of a shallow one: %+v, %v", refs, err)
	}
	if err := program.Import(t.Context(), back, refs, &pack); err != nil {
		t.Fatal(err)
	}
	if is := run(back, "log", "--format=%s", "main"); is != "second" {
		t.Errorf("its history is %q", is)
	}
}

// Names may have spaces that are not ASCII, and bytes that are not UTF-8. They come back as they were.
func TestExportOddNames(t *testing.T) {
	t.Parallel()
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(t.TempDir(), "from.git"), filepath.Join(t.TempDir(), "to.git")
	for _, dir := range []string{from, to} {
		if err := program.Init(t.Context(), dir, "sha1"); err != nil {
			t.Fatal(err)
		}
	}
	program.Settings = []string{"user.name=A", "user.email=a@example.com"}
	tree, err := program.Run(t.Context(), git.Command{Dir: from, Args: []string{"write-tree"}})
	if err != nil {
		t.Fatal(err)
	}
	commit, err := program.Run(t.Context(), git.Command{Dir: from, Args: []string{"commit-tree", "-m", "one", strings.TrimSpace(tree)}})
	if err != nil {
		t.Fatal(err)
	}
	commit = strings.TrimSpace(commit)
	want := git.Refs{Format: "sha1", Objects: map[string]string{}, Symbolic: map[string]string{"HEAD": "refs/heads/\u00a0main\u3000", "refs/heads/by\u3000name": "refs/heads/\u6a5f\u80fd\u3000\u8ffd\u52a0"}}
	for _, name := range []string{"\u6a5f\u80fd\u3000\u8ffd\u52a0", "\u00a0main\u3000", "a\u0085b", "latin-\xe9"} {
		want.Objects["refs/heads/"+name] = commit
	}
	made := strings.Builder{}
	for name := range want.Objects {
		made.WriteString("create " + name + " " + commit + "\n")
	}
	if _, err := program.Run(t.Context(), git.Command{Dir: from, Args: []string{"update-ref", "--stdin"}, Input: strings.NewReader(made.String())}); err != nil {
		t.Fatal(err)
	}
	for name, target := range want.Symbolic {
		if _, err := program.Run(t.Context(), git.Command{Dir: from, Args: []string{"symbolic-ref", name, target}}); err != nil {
			t.Fatal(err)
		}
	}
	var pack bytes.Buffer
	refs, err := program.Export(t.Context(), from, []string{"refs/"}, &pack)
	if err != nil || !cmp.Equal(refs, want, cmpopts.EquateEmpty()) {
		t.Fatalf("exported: %s, %v", cmp.Diff(want, refs, cmpopts.EquateEmpty()), err)
	}
	read, err := git.ParseRefs(refs.Text())
	if err != nil || !cmp.Equal(read, want, cmpopts.EquateEmpty()) {
		t.Fatalf("read: %s, %v", cmp.Diff(want, read, cmpopts.EquateEmpty()), err)
	}
	if err := program.Import(t.Context(), to, read, &pack); err != nil {
		t.Fatal(err)
	}
	if again, err := program.Export(t.Context(), to, []string{"refs/"}, &bytes.Buffer{}); err != nil || !cmp.Equal(again, want, cmpopts.EquateEmpty()) {
		t.Errorf("it comes back as %s, %v", cmp.Diff(want, again, cmpopts.EquateEmpty()), err)
	}
}

// Whatever is not what Text writes is refused.
func TestParseRefsRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "format sha1 x\n", "format sha1\nref x refs/heads/a\n", "format sha1\nsymref refs/heads/a --delete\n", "format sha1\nshallow x\n", "format sha1\n\n"} {
		if _, err := git.ParseRefs([]byte(text)); task.CodeOf(err) != task.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
