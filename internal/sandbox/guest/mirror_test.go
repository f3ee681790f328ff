package guest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// pass sends what has changed at one end to the other.
func pass(t *testing.T, from, to *mirror) int {
	t.Helper()
	said, length, err := passing(from, to, noLimit)
	if err != nil || said.left != 0 || len(said.skipped) != 0 {
		t.Fatal(said, err)
	}
	return length
}

func passing(from, to *mirror, most int64) (said taken, length int, err error) {
	var archive bytes.Buffer
	err = from.send(&archive, most, func() ([]rawString, error) {
		length = archive.Len()
		said, err = to.take(&archive, min(noLimit, most+workdir.MinSize)) // which is for the folder itself
		return said.skipped, err
	})
	return said, length, err
}

// passSome sends what the other end has room for, and returns how many paths were left
// out.
func passSome(t *testing.T, from, to *mirror, most int64) int {
	t.Helper()
	said, _, err := passing(from, to, most)
	if err != nil {
		t.Fatal(err)
	}
	if size := workdir.TreeSize(to.dir); size > most+workdir.MinSize { // and the folder itself
		t.Errorf("the other end has %d bytes and may have %d", size, most)
	}
	return said.left
}

func nobody() ([]rawString, error) { return nil, nil }

func same(t *testing.T, one, other string) {
	t.Helper()
	if diff := cmp.Diff(tree(t, one), tree(t, other)); diff != "" {
		t.Errorf("the folders differ (-one +other):\n%s", diff)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	listing, err := workdir.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for name := range listing {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text += " " + string(content)
		}
		if points, err := os.Readlink(path); err == nil {
			text += " " + points
		}
		if name != "." {
			found[name] = text
		}
	}
	return found
}

func do(t *testing.T, dir string, steps ...func(string) error) {
	t.Helper()
	for i, step := range steps {
		if err := step(dir); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func file(name, content string, mode os.FileMode) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
}

func link(to, name string) func(string) error {
	return func(dir string) error { return os.Symlink(to, filepath.Join(dir, name)) }
}

func gone(name string) func(string) error {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}

func mirrors(t *testing.T) (here, there *mirror) {
	t.Helper()
	made := make([]*mirror, 2)
	for i := range made {
		one, err := newMirror(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = one.root.Close() })
		made[i] = one
	}
	return made[0], made[1]
}

func TestMirrorsStayTheSame(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("a", "1", 0o644), file("dir/sub/b", "2", 0o755), file("empty", "", 0o600), link("dir/sub/b", "l"), link("/etc/passwd", "out"))
	pass(t, here, there)
	same(t, here.dir, there.dir)
	if length := pass(t, here, there) + pass(t, there, here); length != 10 {
		t.Errorf("nothing has changed, and %d bytes were sent", length)
	}
	// Each end changes something of its own.
	do(t, there.dir, file("a", "3", 0o644), gone("dir/sub"), file("dir/new", "x", 0o444), gone("l"), link("a", "l"))
	pass(t, there, here)
	same(t, here.dir, there.dir)
	do(t, here.dir, gone("a"), file("a/now/a/folder", "y", 0o644), gone("dir"), file("dir", "now a file", 0o644), file("empty", "", 0o755))
	pass(t, here, there)
	same(t, here.dir, there.dir)
	do(t, there.dir, gone("a"), gone("dir"), gone("l"), gone("out"), gone("empty"))
	pass(t, there, here)
	same(t, here.dir, there.dir)
}

func TestMirrorLeavesFoldersThatOnlyOneEndHas(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	there.leave = []string{"node_modules"}
	do(t, here.dir, file("kept/node_modules/x", "the project's", 0o644))
	pass(t, here, there)
	do(t, there.dir, file("node_modules/y", "installed", 0o644), file("kept/node_modules/x", "changed", 0o644))
	pass(t, there, here)
	want := map[string]string{"kept": "drwxr-xr-x", "kept/node_modules": "drwxr-xr-x", "kept/node_modules/x": "-rw-r--r-- changed"}
	if diff := cmp.Diff(want, tree(t, here.dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// And what this end sends does not take them away.
	do(t, here.dir, file("new", "", 0o644))
	pass(t, here, there)
	if _, err := os.Stat(filepath.Join(there.dir, "node_modules", "y")); err != nil {
		t.Error(err)
	}
}

// A guest can send what it likes; nothing of it may leave the folder.
func TestMirrorTakesNothingOutside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	do(t, outside, file("precious", "data", 0o644))
	for _, entries := range [][]archiveEntry{
		{{Path: "../x", Kind: isFile}}, {{Path: "/x", Kind: isFile}}, {{Path: "a/../../x", Kind: isFile}}, {{Path: "a//b", Kind: isFolder}}, {{Path: "", Kind: isFile}},
		{{Path: "l", Kind: isLink, Link: rawString(outside)}, {Path: "l/precious", Kind: isFile}},
		{{Path: "l", Kind: isLink, Link: rawString(outside)}, {Path: "l/precious", Kind: isGone}},
		{{Path: "l", Kind: isLink, Link: rawString(outside)}, {Path: "l/new", Kind: isFolder}},
		{{Path: "x", Kind: "device"}},
	} {
		_, there := mirrors(t)
		var archive bytes.Buffer
		for _, entry := range entries {
			if err := writeMessage(&archive, frameEntry, entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeFrame(&archive, frameDone, nil); err != nil {
			t.Fatal(err)
		}
		there.skip = true
		said, err := there.take(&archive, 1<<20)
		if last := entries[len(entries)-1]; err == nil && len(said.skipped) == 0 && last.Kind != isGone {
			t.Errorf("%v was taken", entries)
		}
		if diff := cmp.Diff(map[string]string{"precious": "-rw-r--r-- data"}, tree(t, outside)); diff != "" {
			t.Fatalf("%v changed what is outside:\n%s", entries, diff)
		}
	}
}

func TestMirrorTakesNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("large", string(make([]byte, 20_000)), 0o644))
	var archive bytes.Buffer
	if err := here.send(&archive, noLimit, nobody); err != nil {
		t.Fatal(err)
	}
	if _, err := there.take(&archive, 10_000); task.CodeOf(err) != task.TooLarge {
		t.Errorf("got %v", err)
	}
}

func TestMirrorCountsWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("one", string(make([]byte, 50_000)), 0o644), file("dir/two", string(make([]byte, 30_000)), 0o644))
	pass(t, here, there)
	do(t, here.dir, file("three", string(make([]byte, 40_000)), 0o644))
	var archive bytes.Buffer
	if err := here.send(&archive, noLimit, nobody); err != nil {
		t.Fatal(err)
	}
	if _, err := there.take(&archive, 100_000); task.CodeOf(err) != task.TooLarge {
		t.Errorf("120,000 bytes were taken where 100,000 may be: %v", err)
	}
	// What takes the place of something else, or goes, gives room.
	here, there = mirrors(t)
	do(t, here.dir, file("one", string(make([]byte, 50_000)), 0o644), file("dir/two", string(make([]byte, 30_000)), 0o644))
	pass(t, here, there)
	do(t, here.dir, file("one", string(make([]byte, 40_000)), 0o644), gone("dir"), file("three", string(make([]byte, 50_000)), 0o644))
	if left := passSome(t, here, there, 100_000); left != 0 {
		t.Errorf("%d were left out", left)
	}
	same(t, here.dir, there.dir)
}

func TestMirrorLeavesOutWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("kept", "before", 0o644), file("grows", "small", 0o644))
	pass(t, here, there)
	do(t, here.dir, file("a/large", string(make([]byte, 90_000)), 0o644), file("b/large", string(make([]byte, 90_000)), 0o644),
		file("c/small", "x", 0o644), file("grows", string(make([]byte, 160_000)), 0o644))
	if left := passSome(t, here, there, 150_000); left != 2 {
		t.Errorf("%d were left out", left)
	}
	got := tree(t, there.dir)
	if got["kept"] != "-rw-r--r-- before" || got["grows"] != "-rw-r--r-- small" || got["c/small"] != "-rw-r--r-- x" || got["a/large"] == "" || got["b/large"] != "" {
		t.Errorf("there are %.300q", got)
	}
	// They come when there is room, and nothing that was left out is taken for gone.
	pass(t, there, here)
	do(t, here.dir, gone("a"))
	if left := passSome(t, here, there, 300_000); left != 0 {
		t.Errorf("then %d were left out", left)
	}
	same(t, here.dir, there.dir)
	// Many files without content take the disk too.
	for i := range 100 {
		do(t, here.dir, file(fmt.Sprintf("many/%d", i), "", 0o644))
	}
	if left := passSome(t, here, there, 450_000); left == 0 {
		t.Error("100 files fit into where there is room for few")
	}
	do(t, here.dir, gone("many"))
	if left := passSome(t, here, there, 450_000); left != 0 {
		t.Errorf("in the end %d were left out", left)
	}
	same(t, here.dir, there.dir)
}

// TestMirrorSendsWhatIsKnownFirst: a file of the project comes before what is new,
// whatever their names are.
func TestMirrorSendsWhatIsKnownFirst(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("z/work", "before", 0o644))
	pass(t, here, there)
	do(t, here.dir, file("a/cache", string(make([]byte, 90_000)), 0o644), file("z/work", string(make([]byte, 50_000)), 0o644))
	if left := passSome(t, here, there, 100_000); left != 1 {
		t.Errorf("%d were left out", left)
	}
	if got := len(tree(t, there.dir)["z/work"]); got < 50_000 {
		t.Errorf("what was known has %d bytes", got)
	}
}

func TestMirrorSendsAgainWhatWasNotTaken(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("kept", "1", 0o644), file("gone", "1", 0o644))
	pass(t, here, there)
	do(t, here.dir, file("kept", "2", 0o644), file("new", "3", 0o644), gone("gone"))
	var archive bytes.Buffer
	if err := here.send(&archive, noLimit, func() ([]rawString, error) { return nil, os.ErrClosed }); err == nil {
		t.Fatal("it did not fail")
	}
	pass(t, here, there)
	same(t, here.dir, there.dir)
}

// TestMirrorLeavesOutWhatCannotBeMade: one path that the other end cannot make keeps
// none of the others from coming.
func TestMirrorLeavesOutWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	there.skip = true
	do(t, here.dir, file("a", "1", 0o644), file("dir/b", "2", 0o644), file("z", "3", 0o644))
	pass(t, here, there)
	do(t, there.dir, gone("dir"), link("a", "dir")) // as it were by somebody else
	do(t, here.dir, file("dir/b", "4", 0o644), file("dir/c", "5", 0o644), file("z", "6", 0o644))
	said, _, err := passing(here, there, noLimit)
	if err != nil || len(said.skipped) != 2 {
		t.Errorf("%q were left out: %v", said.skipped, err)
	}
	if got := tree(t, there.dir); got["z"] != "-rw-r--r-- 6" {
		t.Errorf("there are %q", got)
	}
	do(t, there.dir, gone("dir"), file("dir/x", "", 0o644))
	if said, _, err := passing(here, there, noLimit); err != nil || len(said.skipped) != 0 {
		t.Errorf("then %q were left out: %v", said.skipped, err)
	}
	if got := tree(t, there.dir); got["dir/b"] != "-rw-r--r-- 4" || got["dir/c"] != "-rw-r--r-- 5" {
		t.Errorf("then there are %q", got)
	}
}

func TestMirrorCarriesNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("\xff\xfe", "1", 0o644), file("\xfe\xff", "2", 0o644), file("odd\r\n[x]*/\x80/new\nline", "3", 0o644), link("\xff\xfe", "\xc0"), link("\xf0/\x01", "l"))
	pass(t, here, there)
	same(t, here.dir, there.dir)
	do(t, here.dir, gone("\xff\xfe"), gone("odd\r\n[x]*/\x80"))
	pass(t, here, there)
	same(t, here.dir, there.dir)
}

func TestMirrorSendsAgainWhatDidNotArrive(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("a", "1", 0o644))
	if err := here.send(failing{}, noLimit, nobody); err == nil {
		t.Fatal("it did not fail")
	}
	pass(t, here, there)
	same(t, here.dir, there.dir)
	if !slices.Contains([]string{"-rw-r--r-- 1"}, tree(t, there.dir)["a"]) {
		t.Error("the file did not come")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
