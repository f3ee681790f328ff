package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Both scripts start a command in the folder that it names, and leave the session in
// its own. An image may have no bash.
// It is not parallel: tests of the guest kill all processes that come from this one, and
// their reaper takes the status of each.
func TestCommandsStartInTheirFolder(t *testing.T) { //nolint:paralleltest // see above
	for shell, script := range map[string]string{"sh": plainScript, "bash": bashScript} {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Fatal(err)
			}
			top := t.TempDir()
			state, command := filepath.Join(top, "state"), filepath.Join(top, "command")
			for _, name := range []string{"its own", "other's"} {
				if err := os.Mkdir(filepath.Join(top, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			run := func(folder, text string) string {
				t.Helper()
				if err := os.WriteFile(command, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				output, status := runBelowReaper(t, top, program, "-c", script, "toryo", state, command, "0", "0", folder)
				if status != 0 {
					return fmt.Sprintf("failed with %#x: %s", uint32(status), output)
				}
				takeOver(t, state)
				return output
			}
			run("", "cd 'its own'; export A=1")
			for range 2 {
				if got := run(filepath.Join(top, "other's"), `echo "${PWD##*/} $A"; cd /`); got != "other's 1\n" {
					t.Errorf("it started in %q", got)
				}
				if got := run("", `echo "${PWD##*/} $A"`); got != "its own 1\n" {
					t.Errorf("the session is in %q", got)
				}
			}
			if got := run(filepath.Join(top, "nowhere"), "echo ran"); !strings.HasPrefix(got, "failed") {
				t.Errorf("in a folder that is not there it printed %q", got)
			}
		})
	}
}

// Options are kept while they differ from those of a new shell, and do not come back when a
// command has taken them back. The language is kept with its attributes.
func TestOptionsAreKept(t *testing.T) {
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LANG", "C.UTF-8")
	top := t.TempDir()
	state, command := filepath.Join(top, "state"), filepath.Join(top, "command")
	const show = "; declare -p LANG; shopt -q nullglob && echo nullglob; shopt -qo pipefail && echo pipefail; true"
	const utf8 = `declare -x LANG="C.UTF-8"` + "\n"
	for _, one := range []struct{ text, want string }{
		{"true", utf8},
		{"shopt -s nullglob; set -o pipefail; LANG=C", `declare -x LANG="C"` + "\nnullglob\npipefail\n"},
		{"true", `declare -x LANG="C"` + "\nnullglob\npipefail\n"},
		{"shopt -u nullglob", `declare -x LANG="C"` + "\npipefail\n"},
		{"set +o pipefail", `declare -x LANG="C"` + "\n"},
		{"LANG=C.UTF-8", utf8},
		{"true", utf8},
		{"readonly LANG", `declare -rx LANG="C.UTF-8"` + "\n"},
		{"true", `declare -rx LANG="C.UTF-8"` + "\n"},
	} {
		if err := os.WriteFile(command, []byte(one.text+show+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, status := runBelowReaper(t, top, program, "-c", bashScript, "toryo", state, command, "0", "0", ""); got != one.want || status != 0 {
			t.Errorf("after %q it printed %q and ended with %#x", one.text, got, uint32(status))
		}
		takeOver(t, state)
		if text, err := os.ReadFile(state); err != nil || one.text == "LANG=C.UTF-8" && strings.Contains(string(text), "shopt") {
			t.Errorf("what a new shell has is in the state: %s, %v", text, err)
		}
	}
}

// takeOver has the next shell begin with what the last one left.
func takeOver(t *testing.T, state string) {
	t.Helper()
	left, err := os.ReadFile(state + ".new")
	if err == nil {
		err = os.WriteFile(state, withoutOwn(left), 0o600)
	}
	if err = errors.Join(err, os.Remove(state+".new")); err != nil {
		t.Fatal(err)
	}
}

// runBelowReaper runs a program and returns its output and its status.
func runBelowReaper(t *testing.T, folder, program string, arguments ...string) (output string, status syscall.WaitStatus) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	below, stop := newReaper()
	defer stop()
	ended, err := below.start(program, append([]string{program}, arguments...), &syscall.ProcAttr{
		Dir: folder, Env: os.Environ(), Files: []uintptr{null.Fd(), file.Fd(), file.Fd()},
	})
	if err != nil {
		t.Fatal(err)
	}
	status = <-ended
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), status
}
