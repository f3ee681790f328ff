package tool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/tool"
)

type args = map[string]any

func TestRead(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	w, _ := workspace(t, map[string]string{
		"main.go": "package main\n\nfunc main() {}\n", "empty": "", "blob": "a\x00b", "long.txt": long.String(),
		"wide": strings.Repeat("w", 9000), "odd.txt": "caf\xe9 \x1b[31mred\x1b[0m\r\nend", "dir/x.md": "x",
	})
	read := tool.Read(w)
	wantText(t, use(t, read, args{"path": "main.go"}), false, "1\tpackage main\n2\t\n3\tfunc main() {}\n", `source="file main.go"`)
	wantText(t, use(t, read, args{"path": "/workspace/main.go"}), false, "1\tpackage main")
	wantText(t, use(t, read, args{"path": "./dir/../main.go", "offset": 3, "limit": 1}), false, "3\tfunc main")
	wantText(t, use(t, read, args{"path": "long.txt"}), false, "1000\tline 1000", "[lines 1 to 1000 of 3000; go on with offset 1001]")
	wantText(t, use(t, read, args{"path": "long.txt", "offset": 2999}), false, "3000\tline 3000")
	wantText(t, use(t, read, args{"path": "long.txt", "offset": 3001}), true, "has 3000 lines only")
	wantText(t, use(t, read, args{"path": "empty"}), false, "(the file is empty)")
	wantText(t, use(t, read, args{"path": "blob"}), true, "binary file of 3 bytes")
	wantText(t, use(t, read, args{"path": "wide"}), false, "[… 7000 bytes more]")
	wantText(t, use(t, read, args{"path": "odd.txt"}), false, "1\tcaf\uFFFD red\n2\tend")
	wantText(t, use(t, read, args{"path": "main.py"}), true, "there is no file main.py; there is main.go")
	wantText(t, use(t, read, args{"path": "dir"}), true, "is a directory")
}

func TestNoPathLeadsOut(t *testing.T) {
	t.Parallel()
	w, dir := workspace(t, map[string]string{"in.txt": "in", ".git/config": "[core]"})
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": outside, "dirlink": filepath.Dir(outside), "inside": "in.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	read, edit, patch, search, list := tool.Read(w), tool.Edit(w), tool.Patch(w), tool.Search(w), tool.List(w)
	for _, path := range []string{"../secret", "/etc/passwd", "a/../../x", "link", "dirlink/secret", ".git/config", "\x00", `..\secret`} {
		for _, done := range []tool.Done{
			use(t, read, args{"path": path}),
			use(t, edit, args{"command": "create", "path": path, "new": "overwritten", "overwrite": true}),
			use(t, edit, args{"command": "replace", "path": path, "old": "secret", "new": "x"}),
			use(t, search, args{"pattern": "secret", "path": path}),
		} {
			if !done.Result.Error || strings.Contains(done.Result.Text, "secret\n") {
				t.Errorf("%q: %s", path, done.Result.Text)
			}
		}
		useRaw(t, patch, `{"patch":"--- a/`+strings.ReplaceAll(path, `\`, `/`)+`\n+++ b/x\n@@ -1 +1 @@\n-secret\n+x\n"}`)
	}
	if got := content(t, filepath.Dir(outside), "secret"); got != "secret" {
		t.Errorf("the file outside is now %q", got)
	}
	wantText(t, use(t, read, args{"path": "inside"}), false, "1\tin")
	if text := use(t, list, args{"depth": 5}).Result.Text; strings.Contains(text, "dirlink/secret") {
		t.Errorf("a link was followed:\n%s", text)
	}
	if text := use(t, search, args{"pattern": "secret"}).Result.Text; !strings.Contains(text, "(no match)") {
		t.Errorf("a link was followed:\n%s", text)
	}
}

var ignoring = map[string]string{
	".gitignore": "*.log\n/build/\nnode_modules\n!keep.log\n# note\n\n", "a.go": "needle one\nother\nNeedle two\n", "b.log": "needle", "keep.log": "needle kept",
	"build/out.txt": "needle", "src/build/in.txt": "needle deep", "node_modules/m/x.js": "needle", "src/node_modules/y.js": "needle",
	"src/.gitignore": "gen_*\n", "src/gen_x.go": "needle", "gen_y.go": "needle top", ".hidden/z": "needle", "bin": "needle\x00", ".rgignore": "skipped.txt\n", "skipped.txt": "needle",
}

func TestListHonoursIgnores(t *testing.T) {
	t.Parallel()
	w, _ := workspace(t, ignoring)
	done := use(t, tool.List(w), args{"depth": 9})
	wantText(t, done, false, "a.go\n", "keep.log\n", "src/\n", "src/build/in.txt\n", "gen_y.go\n")
	for _, hidden := range []string{"b.log", "build/out.txt\n", "node_modules", "gen_x", ".hidden", "skipped", ".gitignore"} {
		if strings.Contains(done.Result.Text, hidden) && hidden != "build/out.txt\n" {
			t.Errorf("%s is listed:\n%s", hidden, done.Result.Text)
		}
	}
	wantText(t, use(t, tool.List(w), args{"depth": 1}), false, "src/\n")
	if text := use(t, tool.List(w), args{"depth": 1}).Result.Text; strings.Contains(text, "src/build") {
		t.Errorf("too deep:\n%s", text)
	}
	wantText(t, use(t, tool.List(w), args{"path": "src"}), false, "src/build/")
	wantText(t, use(t, tool.List(w), args{"path": "node_modules/m"}), false, "node_modules/m/x.js") // it was asked for
	wantText(t, use(t, tool.List(w), args{"path": "nowhere"}), true, "cannot be listed")
	many := map[string]string{}
	for i := range 600 {
		many[fmt.Sprintf("f%03d", i)] = ""
	}
	crowded, _ := workspace(t, many)
	wantText(t, use(t, tool.List(crowded), nil), false, "f499\n", "only the first 500 entries")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	w, _ := workspace(t, ignoring)
	search := tool.Search(w)
	done := use(t, search, args{"pattern": "needle"})
	wantText(t, done, false, "a.go:1: needle one\n", "keep.log:1: needle kept", "src/build/in.txt:1: needle deep", "gen_y.go:1: needle top")
	if got := strings.Count(done.Result.Text, "needle"); got != 4 {
		t.Errorf("%d matches, want 4:\n%s", got, done.Result.Text)
	}
	wantText(t, use(t, search, args{"pattern": "^needle", "ignore_case": true, "glob": "*.go", "path": "a.go"}), false, "a.go:1:", "a.go:3: Needle two")
	wantText(t, use(t, search, args{"pattern": "other", "context": 1}), false, "a.go-1- needle one\na.go:2: other\na.go-3- Needle two\n")
	wantText(t, use(t, search, args{"pattern": "nothing like it"}), false, "(no match)")
	wantText(t, use(t, search, args{"pattern": "a("}), true, "not a regular expression", `a\\(`)
	wantText(t, use(t, search, args{"pattern": "x", "glob": "["}), true, "not valid")
	wantText(t, use(t, search, args{"pattern": ""}), true, "empty")
	wantText(t, use(t, search, args{"pattern": "x", "path": "nowhere"}), true, "there is no nowhere")
	crowded, _ := workspace(t, map[string]string{"big.txt": strings.Repeat("hit\n", 500)})
	wantText(t, use(t, tool.Search(crowded), args{"pattern": "hit"}), false, "big.txt:200: hit", "only the first 200 matches")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	w, dir := workspace(t, map[string]string{"a.go": "one\ntwo\nthree\ntwo\n", "dos.txt": "a\r\nb\r\nc\r\n", "bin": "\x00"})
	edit := tool.Edit(w)
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "one\ntwo", "new": "1\n2"}), false, "1\t1\n2\t2\n3\tthree")
	if got := content(t, dir, "a.go"); got != "1\n2\nthree\ntwo\n" {
		t.Errorf("got %q", got)
	}
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "t", "new": "T"}), true, "occurs 2 times in a.go, at lines 3, 4")
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "t", "new": "T", "all": true}), false, "Replaced 2")
	wantText(t, use(t, edit, args{"command": "insert", "path": "a.go", "line": 0, "new": "zero"}), false, "1\tzero")
	wantText(t, use(t, edit, args{"command": "insert", "path": "a.go", "line": 5, "new": "last\n"}), false, "6\tlast")
	if got := content(t, dir, "a.go"); got != "zero\n1\n2\nThree\nTwo\nlast\n" {
		t.Errorf("got %q", got)
	}
	for _, line := range []any{-1, 7, nil} {
		wantText(t, use(t, edit, args{"command": "insert", "path": "a.go", "line": line, "new": "x"}), true)
	}
	for range 4 {
		wantText(t, use(t, edit, args{"command": "undo", "path": "a.go"}), false, "Took back")
	}
	if got := content(t, dir, "a.go"); got != "one\ntwo\nthree\ntwo\n" {
		t.Errorf("after undoing it all: %q", got)
	}
	wantText(t, use(t, edit, args{"command": "undo", "path": "a.go"}), true, "no change")
	wantText(t, use(t, edit, args{"command": "create", "path": "new/deep/b.txt", "new": "b\n"}), false, "Wrote new/deep/b.txt: 2 bytes, 1 lines")
	wantText(t, use(t, edit, args{"command": "create", "path": "new/deep/b.txt", "new": "c"}), true, "exists")
	wantText(t, use(t, edit, args{"command": "create", "path": "new/deep/b.txt", "new": "c", "overwrite": true}), false)
	use(t, edit, args{"command": "undo", "path": "new/deep/b.txt"})
	wantText(t, use(t, edit, args{"command": "undo", "path": "new/deep/b.txt"}), false)
	if _, err := os.Stat(filepath.Join(dir, "new", "deep", "b.txt")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	wantText(t, use(t, edit, args{"command": "replace", "path": "dos.txt", "old": "a\nb", "new": "x\ny"}), false)
	if got := content(t, dir, "dos.txt"); got != "x\r\ny\r\nc\r\n" {
		t.Errorf("line ends: %q", got)
	}
	wantText(t, use(t, edit, args{"command": "replace", "path": "bin", "old": "a", "new": "b"}), true, "binary")
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "", "new": "b"}), true, "old is empty")
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "one", "new": "one"}), true, "the same")
	wantText(t, use(t, edit, args{"command": "dance", "path": "a.go"}), true, "no command")
	wantText(t, use(t, edit, args{"command": "create", "path": ".", "new": "x"}), true)
	wantText(t, use(t, edit, args{"command": "create", "path": "new", "new": "x"}), true, "directory")
}

func TestAFailedMatchSaysWhatIsNear(t *testing.T) {
	t.Parallel()
	w, _ := workspace(t, map[string]string{"a.go": "package a\n\nfunc add(a, b int) int {\n\treturn a + b\n}\n\nfunc sub(a, b int) int {\n\treturn a - b\n}\n"})
	edit := tool.Edit(w)
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "func sub(a, b int) int {\n    return a - b\n}", "new": "x"}),
		true, "old does not occur in a.go", "The nearest is at line 7, and differs in white space only:\n7\tfunc sub(a, b int) int {\n8\t\treturn a - b\n")
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "func add(x, y int) int {", "new": "x"}), true, "The nearest is at line 3:\n3\tfunc add(a, b int) int {")
	wantText(t, use(t, edit, args{"command": "replace", "path": "a.go", "old": "zzz qqq", "new": "x"}), true, "Nothing in the file is like it")
}

func TestPatch(t *testing.T) {
	t.Parallel()
	w, dir := workspace(t, map[string]string{"a.txt": "1\n2\n3\n4\n5\n", "gone.txt": "bye\n", "old.txt": "same\n", "c.txt": "c\n"})
	patch := tool.Patch(w)
	whole := `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 1
-2
+two
 3
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/new/n.txt b/new/n.txt
new file mode 100644
--- /dev/null
+++ b/new/n.txt
@@ -0,0 +1 @@
+hello
diff --git a/old.txt b/moved.txt
similarity index 100%
rename from old.txt
rename to moved.txt
`
	wantText(t, use(t, patch, args{"patch": whole}), false, "changed a.txt, deleted gone.txt, created new/n.txt, renamed old.txt to moved.txt")
	if content(t, dir, "a.txt") != "1\ntwo\n3\n4\n5\n" || content(t, dir, "new/n.txt") != "hello\n" || content(t, dir, "moved.txt") != "same\n" {
		t.Error("the patch was not applied as it says")
	}
	for _, name := range []string{"gone.txt", "old.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there", name)
		}
	}
	// The second file does not fit, so that the first is left alone.
	half := "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-c\n+C\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-nothing like it\n+x\n"
	wantText(t, use(t, patch, args{"patch": half}), true, "does not fit a.txt", "Nothing was changed")
	if content(t, dir, "c.txt") != "c\n" {
		t.Error("half of the patch was applied")
	}
	for text, want := range map[string]string{
		"hello":                           "no files",
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n": "cannot be read",
		"--- a/no.txt\n+++ b/no.txt\n@@ -1 +1 @@\n-a\n+b\n": "there is no file no.txt",
		"--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+x\n":   "exists",
	} {
		wantText(t, use(t, patch, args{"patch": text}), true, want)
	}
}
