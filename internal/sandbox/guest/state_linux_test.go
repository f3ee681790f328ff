package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStateIsKept: what a shell leaves is taken over if it is whole, the file of one that was
// killed is not, and links in place of our files change nothing else.
func TestStateIsKept(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := &server{options: Options{State: filepath.Join(home, ".toryo")}}
	state, next := filepath.Join(home, ".toryo", "shell"), filepath.Join(home, ".toryo", "shell.new")
	run := func(leaves string) {
		t.Helper()
		command, err := s.prepareState(request{Command: "do " + rawString(leaves)})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(command); err != nil || string(text) != "do "+leaves+"\n" {
			t.Fatalf("the command is %q, %v", text, err)
		}
		file, err := os.OpenFile(next, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(leaves); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		s.keepState("")
	}
	has := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(state); err != nil || string(text) != want {
			t.Errorf("the state is %q, %v, want %q", text, err, want)
		}
	}
	const one, two = "A=1; B=longer than the other\n" + stateMark + "\n", "A=2\n" + stateMark + "\n"
	for _, leaves := range []string{one, one, two, two} {
		run(leaves)
		has(leaves)
	}
	run(two)
	run("A=3; the shell was kil")
	has(two)
	run("") // and this one wrote nothing
	has(two)

	other := filepath.Join(home, "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]func(from, to string) error{"symbolic": os.Symlink, "hard": os.Link} {
		for _, target := range []string{other, state} {
			for _, at := range []string{next, filepath.Join(home, ".toryo", commandFile)} {
				if err := os.Remove(at); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				if err := link(target, at); err != nil {
					t.Fatal(err)
				}
				run("killed")
				has(two)
				if text, err := os.ReadFile(other); err != nil || string(text) != "mine" {
					t.Errorf("a %s link at %s: another file has %q now, %v", name, filepath.Base(at), strings.TrimSpace(string(text)), err)
				}
			}
		}
	}
}

// TestStateFilesThatCannotBeRead: a file of ours whose mode a command has changed is made anew.
func TestStateFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), ".toryo")
	s := &server{options: Options{State: folder}}
	files := []string{filepath.Join(folder, commandFile), filepath.Join(folder, stateFile+".new")}
	for _, mode := range []os.FileMode{0o600, 0o200, 0o400, 0o666} {
		if _, err := s.prepareState(request{Command: "true"}); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.prepareState(request{Command: "true"}); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if info, err := os.Lstat(file); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s, which had the mode %s, is %v, %v", filepath.Base(file), mode, info, err)
			}
		}
	}
}
