package processes_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/processes"
)

const folderVariable = "TORYO_TEST_PROCESSES"

// TestMain is also another process that registers itself and lives until its input ends.
func TestMain(m *testing.M) {
	if folder := os.Getenv(folderVariable); folder != "" {
		process, err := processes.Start(folder)
		if err != nil {
			panic(err)
		}
		fmt.Println(process.ID())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// other starts another process that is registered in the folder.
func other(t *testing.T, folder string) (id string, kill func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), folderVariable+"="+folder)
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	}
}

func start(t *testing.T, folder string) *processes.Process {
	t.Helper()
	process, err := processes.Start(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop() })
	return process
}

func want(t *testing.T, of *processes.Process, ids ...string) {
	t.Helper()
	ended, err := of.Ended()
	slices.Sort(ended)
	slices.Sort(ids)
	if err != nil || !slices.Equal(ended, ids) {
		t.Errorf("ended are %v, %v; want %v", ended, err, ids)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "processes")
	here := start(t, folder)
	first, killFirst := other(t, folder)
	second, killSecond := other(t, folder)
	defer killSecond()
	want(t, here) // all live, and one that has just begun to look does not count itself
	killFirst()
	want(t, here, first)
	want(t, here, first) // until it is forgotten
	killSecond()
	want(t, start(t, folder), first, second)
	if err := here.Forget([]string{first}); err != nil {
		t.Fatal(err)
	}
	want(t, here, second)
	stopped := start(t, folder)
	if err := stopped.Stop(); err != nil {
		t.Fatal(err)
	}
	want(t, here, second, stopped.ID())
}

// A folder that was copied while its process lives says nothing of that process.
func TestCopiedFolder(t *testing.T) {
	t.Parallel()
	folder, copied := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	living, kill := other(t, folder)
	defer kill()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(copied, living)); err != nil {
		t.Fatal(err)
	}
	want(t, start(t, copied))
	want(t, start(t, folder))
}

// What was registered before the machine started anew, or on another one, says nothing.
func TestOtherBoot(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "one")
	id, kill := other(t, folder)
	kill()
	file := filepath.Join(folder, id)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Fields(string(text))
	was[1] = "00000000-0000-0000-0000-000000000000"
	if err := os.WriteFile(file, []byte(strings.Join(was, " ")), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, start(t, folder))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a process of which nothing can be known is still there: %v", err)
	}
}

// TestCommandsOfRoot registers a process of root in the folder of a server that is
// another user.
func TestCommandsOfRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // another user cannot give files away, and needs not to
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chown(data, 61000, 61001)); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(data, "processes")
	process := start(t, folder)
	for _, name := range []string{folder, filepath.Join(folder, process.ID())} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 61000 || owner.Gid != 61001 {
			t.Errorf("%s is of %d:%d", name, owner.Uid, owner.Gid)
		}
	}
}
