package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// pass sends what has changed at one end to the other.
func pass(t *testing.T, from, to *mirror) int {
	t.Helper()
	var parcel bytes.Buffer
	if err := from.send(&parcel); err != nil {
		t.Fatal(err)
	}
	length := parcel.Len()
	if err := to.take(&parcel, 1<<30); err != nil {
		t.Fatal(err)
	}
	return length
}

func same(t *testing.T, one, other string) {
	t.Helper()
	if diff := cmp.Diff(tree(t, one), tree(t, other)); diff != "" {
		t.Errorf("the folders differ (-one +other):\n%s", diff)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	listing, err := sandbox.List(dir)
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
	for _, entries := range [][]parcelEntry{
		{{Path: "../x", Kind: isFile}}, {{Path: "/x", Kind: isFile}}, {{Path: "a/../../x", Kind: isFile}}, {{Path: "a//b", Kind: isFolder}}, {{Path: "", Kind: isFile}},
		{{Path: "l", Kind: isLink, Link: outside}, {Path: "l/precious", Kind: isFile}},
		{{Path: "l", Kind: isLink, Link: outside}, {Path: "l/precious", Kind: isGone}},
		{{Path: "l", Kind: isLink, Link: outside}, {Path: "l/new", Kind: isFolder}},
		{{Path: "x", Kind: "device"}},
	} {
		_, there := mirrors(t)
		var parcel bytes.Buffer
		for _, entry := range entries {
			if err := writeMessage(&parcel, frameEntry, entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeFrame(&parcel, frameDone, nil); err != nil {
			t.Fatal(err)
		}
		err := there.take(&parcel, 1<<20)
		if last := entries[len(entries)-1]; err == nil && last.Kind != isGone {
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
	do(t, here.dir, file("large", string(make([]byte, 2000)), 0o644))
	var parcel bytes.Buffer
	if err := here.send(&parcel); err != nil {
		t.Fatal(err)
	}
	if err := there.take(&parcel, 1000); task.CodeOf(err) != task.TooLarge {
		t.Errorf("got %v", err)
	}
}

func TestMirrorSendsAgainWhatDidNotArrive(t *testing.T) {
	t.Parallel()
	here, there := mirrors(t)
	do(t, here.dir, file("a", "1", 0o644))
	if err := here.send(failing{}); err == nil {
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
