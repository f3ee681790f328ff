package sandboxtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

func testSnapshot(t *testing.T, h Harness) {
	engine := h.engine(t, NoGate)
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "src", "main"), "one")
	before, err := workdir.List(workspace)
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Owner: owner, Image: h.Image, Workspace: workspace}
	first := startWith(t, engine, spec)
	run(t, first, "mkdir -p node_modules/x src/made && echo lib > node_modules/x/index && echo made > src/made/f && echo changed > src/main && ln -s x node_modules/y && chmod 555 node_modules/x")
	run(t, first, "echo cached > $HOME/cache && mkdir $HOME/ro && echo r > $HOME/ro/f && chmod 555 $HOME/ro && export READY=yes && f() { echo from function; }")
	const key = "suite-0123456789abcdef"
	t.Cleanup(func() {
		if err := engine.RemoveSnapshot(context.WithoutCancel(t.Context()), key); err != nil {
			t.Errorf("remove the snapshot: %v", err)
		}
	})
	for range 2 { // the second replaces the first
		made, err := first.Snapshot(t.Context(), key, before)
		if err != nil {
			t.Fatal(err)
		}
		if made.Key != key || made.Bytes == 0 {
			t.Errorf("the snapshot is %+v", made)
		}
	}
	run(t, first, "chmod 755 node_modules/x; rm -rf node_modules")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	fresh := t.TempDir()
	write(t, filepath.Join(fresh, "src", "main"), "two")
	second := startWith(t, engine, sandbox.Spec{Owner: owner, Image: h.Image, Workspace: fresh, Snapshot: key})
	wantOutput(t, second, "cat node_modules/y/index src/made/f $HOME/cache $HOME/ro/f; cat src/main; echo $READY; f", "lib\nmade\ncached\nr\ntwoyes\nfrom function\n")
	all, err := engine.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, snapshot := range all {
		found = found || snapshot.Key == key
	}
	if !found {
		t.Errorf("the snapshot is not among %v", all)
	}
	run(t, second, "chmod -R u+w node_modules $HOME/ro")
	if err := engine.RemoveSnapshot(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := engine.RemoveSnapshot(t.Context(), key); err != nil {
		t.Errorf("remove it again: %v", err)
	}
	if _, err := engine.Start(t.Context(), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: fresh, Snapshot: key}); task.CodeOf(err) != task.NotFound {
		t.Errorf("start from a removed snapshot: %v", err)
	}
	if _, err := second.Snapshot(t.Context(), "../evil", before); task.CodeOf(err) != task.Invalid {
		t.Errorf("a bad key: %v", err)
	}
	identity, err := engine.Identity(t.Context(), h.Image)
	if again, _ := engine.Identity(t.Context(), h.Image); err != nil || identity == "" || again != identity {
		t.Errorf("the identity is %q, then %q: %v", identity, again, err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func testListAndReap(t *testing.T, h Harness) {
	engine := h.engine(t, NoGate)
	box := startWith(t, engine, sandbox.Spec{Owner: owner + "-list", Task: "github:a/b#1", Generation: 7, Image: h.Image, Workspace: t.TempDir()})
	found, err := engine.List(t.Context(), owner+"-list")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].ID != box.Info().ID || found[0].Task != "github:a/b#1" || found[0].Generation != 7 || !found[0].Running || found[0].Engine != engine.Name() {
		t.Errorf("listed are %+v", found)
	}
	if others, err := engine.List(t.Context(), owner+"-nobody"); err != nil || len(others) != 0 {
		t.Errorf("another owner has %v, %v", others, err)
	}
	if count, err := engine.Reap(t.Context(), owner+"-list", func(sandbox.Info) bool { return false }); err != nil || count != 0 {
		t.Errorf("%d sandboxes of this process were reaped, %v", count, err)
	}
	wantOutput(t, box, "echo alive", "alive\n")
	if err := box.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := engine.List(t.Context(), owner+"-list"); err != nil || len(found) != 0 {
		t.Errorf("after the stop there are %v, %v", found, err)
	}
}
