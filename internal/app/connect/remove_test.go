package connect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
)

// killedAfter runs until so many steps were reported, and reports whether there were more.
func killedAfter(t *testing.T, installer *connect.Installer, steps int, run func() error) (killed bool) {
	t.Helper()
	report := installer.Report
	installer.Report = func(step connect.Step) {
		if steps--; steps < 0 {
			panic(errKilled)
		}
		report(step)
	}
	defer func() {
		switch recover() {
		case nil:
		case errKilled:
			killed = true
		default:
			t.Error("it ended otherwise")
		}
	}()
	if err := run(); err != nil {
		t.Error(err)
	}
	return killed
}

// Killed anywhere, the next --remove goes on: while a secret is left, the configuration says where
// the data directory is that it lies in.
func TestRemoveIsKilledAnywhere(t *testing.T) {
	t.Parallel()
	for at, killed := 0, true; killed; at++ {
		h := newInstallation(t)
		answers := h.answers()
		answers.DataDir = filepath.Join(h.folder, "data")
		if err := h.installer().Apply(t.Context(), answers); err != nil {
			t.Fatal(err)
		}
		removing := h.installer()
		killed = killedAfter(t, removing, at, func() error { return removing.Remove(t.Context()) })
		left := h.content()
		_, secret := left["data/secrets/gitea-token"]
		if secret && !strings.Contains(left["toryo.yaml"], "data_dir: ") {
			t.Fatalf("after %d steps the secret is left, and nobody knows where", at)
		}
		if err := h.installer().Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
			t.Errorf("after %d steps and another run: %s", at, diff)
		}
		if hooks := h.forge.HookURLs("team/app"); len(hooks) > 0 {
			t.Errorf("after %d steps and another run there are the webhooks %v", at, hooks)
		}
	}
}

// A configuration that has got another name, or has been moved together with its data, is found.
func TestRemoveAfterMoving(t *testing.T) {
	t.Parallel()
	t.Run("the file", func(t *testing.T) {
		t.Parallel()
		h := newInstallation(t)
		h.apply()
		removing := h.installer()
		removing.ConfigFile = filepath.Join(h.folder, "conf.yaml")
		if err := os.Rename(h.file(), removing.ConfigFile); err != nil {
			t.Fatal(err)
		}
		if err := removing.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the folder", func(t *testing.T) {
		t.Parallel()
		h := newInstallation(t)
		h.apply()
		moved := h.folder + "-moved"
		if err := os.Rename(h.folder, moved); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(moved) })
		h.folder = moved
		if err := h.installer().Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
			t.Error(diff)
		}
	})
}

// A forge that is gone for good keeps nobody from undoing the rest; one that may come back keeps
// everything that the next run needs.
func TestRemoveWithoutTheForge(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	before := h.content()
	removing := h.installer()
	removing.Open = func(connect.Target) (connect.Forge, error) {
		return nil, task.Errorf(task.Unavailable, "nobody answers")
	}
	if err := removing.Remove(t.Context()); task.CodeOf(err) != task.Unavailable {
		t.Errorf("it ended with %v", err)
	}
	if diff := cmp.Diff(before, h.content()); diff != "" {
		t.Errorf("changed: %s", diff)
	}
	removing.Local = true
	if err := removing.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
		t.Error(diff)
	}
	h.wantStep("webhook of team/app", connect.LeftOut, "by hand")
	h.wantStep(fmt.Sprintf("label %q", "coding agent"), connect.LeftOut, "http://127.0.0.1:3000 is not asked")
}

// A file that cannot be edited any more is said before anything is undone.
func TestRemoveRefusesFirst(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	text, err := os.ReadFile(h.file())
	if err != nil {
		t.Fatal(err)
	}
	h.write("toryo.yaml", strings.Replace(string(text), "gitea:", "gitea: [", 1))
	before, written := h.content(), len(h.forge.Written())
	if err := h.installer().Remove(t.Context()); err == nil {
		t.Error("it has not failed")
	}
	if diff := cmp.Diff(before, h.content()); diff != "" || len(h.forge.Written()) > written {
		t.Errorf("changed: %s, %v", diff, h.forge.Written()[written:])
	}
}
