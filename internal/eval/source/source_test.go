package source_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/task"
)

// project is a repository with two commits, a tag and a branch after the first one.
type project struct {
	t          *testing.T
	dir        string
	base, next string
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *project) write(name, text string) {
	p.t.Helper()
	at := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	p.git("init", "--quiet")
	p.write("sum.txt", "one\n")
	p.write("tests/sum_test.txt", "old\n")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "first")
	p.base = p.git("rev-parse", "HEAD")
	p.write("sum.txt", "the answer\n")
	p.write("tests/sum_test.txt", "hidden\n")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "second")
	p.git("tag", "v2")
	p.git("branch", "later")
	p.next = p.git("rev-parse", "HEAD")
	return p
}

func strip(t *testing.T, p *project) *source.Repository {
	t.Helper()
	made, err := source.Strip(t.Context(), p.dir, p.base, filepath.Join(t.TempDir(), "made.git"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Nothing of what came after the base can be read, by any name, and there is no way to it.
func TestTheFutureIsNotThere(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	made := &project{t: t, dir: strip(t, p).Dir}
	for _, object := range []string{p.next, p.git("rev-parse", p.next+"^{tree}"), p.git("rev-parse", p.next+":sum.txt"), "v2", "later"} {
		if exec.CommandContext(t.Context(), "git", "-C", made.dir, "cat-file", "-e", object).Run() == nil {
			t.Errorf("%s can be read", object)
		}
	}
	if objects := made.git("cat-file", "--batch-all-objects", "--batch-check"); strings.Count(objects, "\n") != 4 { // a commit, two trees, two files
		t.Errorf("the objects are\n%s", objects)
	}
	if refs := made.git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("the refs are %q", refs)
	}
	if remotes := made.git("remote"); remotes != "" {
		t.Errorf("there are remotes: %s", remotes)
	}
	for _, name := range []string{"logs", "objects/info/alternates", "FETCH_HEAD", "packed-refs"} {
		if _, err := os.Stat(filepath.Join(made.dir, name)); err == nil {
			t.Errorf("there is %s", name)
		}
	}
	if text := made.git("show", "HEAD:sum.txt"); text != "one" {
		t.Errorf("the base has %q", text)
	}
	if _, err := source.Strip(t.Context(), p.dir, strings.Repeat("1", 40), filepath.Join(t.TempDir(), "x.git")); task.CodeOf(err) != task.NotFound {
		t.Errorf("a commit that is not there: %v", err)
	}
}

// A shallow clone can be used as far as it goes.
func TestStripAShallowClone(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	clone := filepath.Join(t.TempDir(), "clone")
	p.git("clone", "--quiet", "--depth=1", "file://"+p.dir, clone)
	made, err := source.Strip(t.Context(), clone, p.next, filepath.Join(t.TempDir(), "made.git"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := made.File(t.Context(), p.next, "sum.txt"); err != nil || string(content) != "the answer\n" {
		t.Errorf("it has %q, %v", content, err)
	}
}

// The configuration and the hooks of the repository that is read have no say.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "core.alternateRefsCommand", "uploadpack.packObjectsHook", "filter.x.smudge", "filter.x.clean", "diff.x.textconv", "diff.x.command"} {
		p.git("config", key, "touch "+ran)
	}
	made := strip(t, p)
	patch := "diff --git a/.gitattributes b/.gitattributes\nnew file mode 100644\n--- /dev/null\n+++ b/.gitattributes\n@@ -0,0 +1 @@\n+* filter=x diff=x\n"
	commit, err := made.Apply(t.Context(), p.base, patch)
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := made.Diff(t.Context(), p.base, commit); err != nil || !strings.Contains(diff, "+* filter=x diff=x") {
		t.Errorf("the difference is %q, %v", diff, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command of the repository was run")
	}
}

func TestHostilePatches(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	made := strip(t, p)
	file := func(name string) string {
		return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"
	}
	for name, patch := range map[string]string{
		"up":          file("../up.txt"),
		"absolute":    file("/../../tmp/absolute.txt"),
		"git":         file(".git/hooks/post-checkout"),
		"git in case": file("a/.GIT/config"),
		"submodule":   "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit " + strings.Repeat("1", 40) + "\n",
		"no patch":    "I have changed the file as you asked.\n",
		"other":       "diff --git a/sum.txt b/sum.txt\n--- a/sum.txt\n+++ b/sum.txt\n@@ -1 +1 @@\n-something else\n+x\n",
	} {
		if commit, err := made.Apply(t.Context(), p.base, patch); err == nil || task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %s, %v", name, commit, err)
		}
	}
}

// The hidden tests win over whatever the work has made of their files.
func TestHiddenTestsWin(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	made := strip(t, p)
	tests, err := made.Apply(t.Context(), p.base, "diff --git a/tests/sum_test.txt b/tests/sum_test.txt\n--- a/tests/sum_test.txt\n+++ b/tests/sum_test.txt\n@@ -1 +1 @@\n-old\n+hidden\n")
	if err != nil {
		t.Fatal(err)
	}
	work := "diff --git a/sum.txt b/sum.txt\n--- a/sum.txt\n+++ b/sum.txt\n@@ -1 +1 @@\n-one\n+mine\n"
	deleted := "diff --git a/tests/sum_test.txt b/tests/sum_test.txt\ndeleted file mode 100644\n--- a/tests/sum_test.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
	for name, patch := range map[string]string{
		"left alone": work,
		"edited":     work + "diff --git a/tests/sum_test.txt b/tests/sum_test.txt\n--- a/tests/sum_test.txt\n+++ b/tests/sum_test.txt\n@@ -1 +1 @@\n-old\n+easy\n",
		"deleted":    work + deleted,
		"a link":     work + deleted + "diff --git a/tests b/tests\nnew file mode 120000\n--- /dev/null\n+++ b/tests\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n",
	} {
		commit, err := made.Apply(t.Context(), p.base, patch)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		both, err := made.With(t.Context(), commit, tests)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for file, want := range map[string]string{"sum.txt": "mine\n", "tests/sum_test.txt": "hidden\n"} {
			if content, err := made.File(t.Context(), both, file); err != nil || string(content) != want {
				t.Errorf("%s: %s is %q, %v", name, file, content, err)
			}
		}
	}
}

// A patch that is written as JSON has the same bytes when it is read, whatever the files are
// encoded in.
func TestOtherEncodings(t *testing.T) {
	t.Parallel()
	p := &project{t: t, dir: t.TempDir()}
	p.git("init", "--quiet")
	const odd = `a [1]"*\.txt`
	lines := strings.Repeat("\n\n\n\n\n", 3)
	heading := "func " + strings.Repeat("日本", 30) + "() {"
	p.write(odd, "\x82\xa0\nsame\n")
	p.write("gone.txt", "\x82\xa4\n")
	p.write("utf8.txt", heading+lines+"一\n")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "first")
	base := p.git("rev-parse", "HEAD")
	p.write(odd, "\x82\xa2\nsame\n")
	p.write("new/latin.txt", "\xe9\n")
	p.write("utf8.txt", heading+lines+"二\n")
	p.git("rm", "--quiet", "gone.txt")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "second")
	from, err := source.Strip(t.Context(), p.dir, p.git("rev-parse", "HEAD"), filepath.Join(t.TempDir(), "copy.git"))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := from.Diff(t.Context(), base, from.Base)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	var read string
	if err := json.Unmarshal(data, &read); err != nil || read != patch || !strings.Contains(read, "+二\n") {
		t.Errorf("read back it is %q, %v", read, err)
	}
	made, err := from.Apply(t.Context(), base, read)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := from.Changes(t.Context(), made, from.Base); err != nil || len(changes) > 0 {
		t.Errorf("the files differ: %+v, %v", changes, err)
	}
}

// Whether a file is there is one thing, and that nobody can tell is another: a repository that
// cannot be read must not look like one without the file.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	made := strip(t, p)
	if content, err := made.File(t.Context(), p.base, "./sum.txt"); err != nil || string(content) != "one\n" {
		t.Errorf("a file: %q, %v", content, err)
	}
	for _, name := range []string{"none.txt", "tests", "sum.txt/below", "*.txt"} {
		if _, err := made.File(t.Context(), p.base, name); task.CodeOf(err) != task.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(made.Dir, "objects", "pack")); err != nil {
		t.Fatal(err)
	}
	if _, err := made.File(t.Context(), p.base, "sum.txt"); err == nil || task.CodeOf(err) == task.NotFound {
		t.Errorf("a repository without its objects: %v", err)
	}
}

// An archive becomes one commit, the same each time, of what git can have. Git's own files are
// left out, and nothing of it is written anywhere else.
func TestArchives(t *testing.T) {
	t.Parallel()
	archive := func(headers ...*tar.Header) *bytes.Buffer {
		var out bytes.Buffer
		to := tar.NewWriter(&out)
		for _, header := range headers {
			content := []byte("content of " + header.Name)
			if header.Typeflag == tar.TypeReg {
				header.Size = int64(len(content))
			}
			if err := to.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if header.Typeflag == tar.TypeReg {
				if _, err := to.Write(content); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		return &out
	}
	files := func() *bytes.Buffer {
		return archive(&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
			&tar.Header{Name: "./run.sh", Typeflag: tar.TypeReg, Mode: 0o755, ModTime: time.Now()}, &tar.Header{Name: "./a \"b\"\nü", Typeflag: tar.TypeReg, Mode: 0o600},
			&tar.Header{Name: "./hard", Typeflag: tar.TypeLink, Linkname: "./run.sh"}, &tar.Header{Name: "./link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
			&tar.Header{Name: "../../up", Typeflag: tar.TypeReg}, &tar.Header{Name: "./pipe", Typeflag: tar.TypeFifo},
			&tar.Header{Name: "./.git/config", Typeflag: tar.TypeReg}, &tar.Header{Name: "./sub/.GIT/hooks/x", Typeflag: tar.TypeReg})
	}
	one, err := source.FromArchive(t.Context(), files(), filepath.Join(t.TempDir(), "one"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := source.FromArchive(t.Context(), files(), filepath.Join(t.TempDir(), "other"))
	if err != nil || other.Base != one.Base {
		t.Errorf("the same files: %v, %s and %s", err, one.Base, other.Base)
	}
	names, err := one.Files(t.Context(), one.Base)
	if want := []string{"a \"b\"\nü", "hard", "link", "run.sh", "up"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the files are %q, %v", names, err)
	}
	stripped, err := source.Strip(t.Context(), one.Dir, one.Base, filepath.Join(t.TempDir(), "stripped"))
	if err != nil {
		t.Fatal(err)
	}
	later, err := stripped.Import(t.Context(), archive(&tar.Header{Name: "run.sh", Typeflag: tar.TypeReg, Mode: 0o644}), one.Base)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := stripped.Changes(t.Context(), one.Base, later); err != nil || len(changes) != 5 {
		t.Errorf("what changed: %v, %v", changes, err)
	}
	if empty, err := source.FromArchive(t.Context(), archive(), filepath.Join(t.TempDir(), "empty")); err != nil || empty.Base == "" {
		t.Errorf("no files: %v", err)
	}
	if _, err := source.FromArchive(t.Context(), strings.NewReader("no archive"), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no archive was taken for one")
	}
}
