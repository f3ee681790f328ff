package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Both scripts start a command in the folder that it names, and leave the session in
// its own. An image may have no bash.
// It is not parallel: tests of the guest kill all processes that come from this one.
func TestCommandsStartInTheirFolder(t *testing.T) { //nolint:paralleltest // see above
	for shell, script := range map[string]string{"sh": plainScript, "bash": bashScript} {
		t.Run(shell, func(t *testing.T) {
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
				process := exec.CommandContext(t.Context(), shell, "-c", script, "toryo", state, command, "0", "0", folder)
				process.Dir = top
				output, err := process.Output()
				if err != nil {
					return "failed"
				}
				if err := os.Rename(state+".new", state); err != nil {
					t.Fatal(err)
				}
				return string(output)
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
			if got := run(filepath.Join(top, "nowhere"), "echo ran"); got != "failed" {
				t.Errorf("in a folder that is not there it printed %q", got)
			}
		})
	}
}
