package environment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
)

// cargo stands for the program: it says where the target folder is, and notes what it compiles.
const cargo = `#!/bin/sh
case "$1" in
metadata) printf '{"packages":[],"target_directory":"%s/target","version":1}' "$TOP" ;;
*)
  echo "$*" >>"$TOP/compiled"
  mkdir -p "$TOP/target/debug/.fingerprint/app-1" "$TOP/target/debug/deps"
  touch "$TOP/target/debug/.fingerprint/app-1/dep-lib-app" "$TOP/target/debug/deps/app.d" ;;
esac
`

// What Cargo has compiled is kept with times of long ago, by which it takes no package of the
// project for fresh, and once for all members of a workspace.
func TestWhatCargoCompiledIsNotTakenForTheProjectsOwn(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "bin", "cargo"), []byte(cargo), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	entry, _ := environment.BuiltIn().Find("rust")
	for range 2 { // the root of the workspace, and a member
		for _, text := range entry.Caches {
			command := exec.CommandContext(t.Context(), "sh", "-c", text)
			command.Dir, command.Env = top, []string{"TOP=" + top, "PATH=" + filepath.Join(top, "bin") + ":" + os.Getenv("PATH")}
			_ = command.Run() // it may fail
		}
	}
	compiled, err := os.ReadFile(filepath.Join(top, "compiled"))
	if want := "build --workspace\ntest --workspace --no-run\n"; err != nil || string(compiled) != want {
		t.Errorf("compiled were %q, %v; want %q", compiled, err, want)
	}
	for name, old := range map[string]bool{"target/debug/.fingerprint/app-1/dep-lib-app": true, "target/debug/deps/app.d": false} {
		info, err := os.Stat(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if is := time.Since(info.ModTime()) > 24*time.Hour; is != old {
			t.Errorf("%s is of %s", name, info.ModTime())
		}
	}
}
