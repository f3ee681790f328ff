package processes_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	ended, err := of.Ended(t.Context(), slog.New(slog.DiscardHandler))
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

// folderOfServer is a folder in the data directory of a server that is another user, which
// everybody may write to.
func folderOfServer(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	err := errors.Join(os.Mkdir(data, 0o700), os.Chmod(data, 0o777), os.Chown(data, server, server), os.Chmod(filepath.Dir(filepath.Dir(data)), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(data, "processes")
}

// server is the number of the user that the server is.
const server = 61000

// onThread does something in a thread of its own, with other rights, which ends with it.
func onThread(t *testing.T, rights, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := rights()
		if err == nil {
			err = do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func asServer() error { return errors.Join(unix.Setfsgid(server), unix.Setfsuid(server)) }

// withoutChown takes the right to give files away from root.
func withoutChown() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&header, &rights[0]); err != nil {
		return err
	}
	rights[0].Effective &^= 1 << unix.CAP_CHOWN
	return unix.Capset(&header, &rights[0])
}

// withOwnUmask lets nobody else read what is written, unless that is asked for.
func withOwnUmask() error {
	err := unix.Unshare(unix.CLONE_FS) // other threads keep theirs
	if err == nil {
		unix.Umask(0o077)
	}
	return err
}

// TestRoot is about commands of root in the folder of a server that is another user. Other
// users cannot work there. The tests are run by root too, see scripts/fresh.
func TestRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return
	}
	t.Run("the server sees that a command has ended", seesCommandsOfRoot)
	t.Run("a file that cannot be read", keepsUnreadable)
	t.Run("root that cannot give files away", startsWithoutChown)
}

// A server sees that a command of root has ended, and removes what is left of it.
func seesCommandsOfRoot(t *testing.T) {
	t.Parallel()
	folder := folderOfServer(t)
	var command *processes.Process
	onThread(t, withOwnUmask, func() (err error) {
		command, err = processes.Start(folder)
		return err
	})
	if err := command.Stop(); err != nil {
		t.Fatal(err)
	}
	onThread(t, asServer, func() error {
		here, err := processes.Start(folder)
		if err != nil {
			return err
		}
		want(t, here, command.ID())
		return errors.Join(here.Forget([]string{command.ID()}), here.Stop())
	})
	if _, err := os.Stat(filepath.Join(folder, command.ID())); !os.IsNotExist(err) {
		t.Errorf("the file of the command is still there: %v", err)
	}
}

// A file that may not be read stays, since its process may live. That is logged once.
func keepsUnreadable(t *testing.T) {
	t.Parallel()
	folder := folderOfServer(t)
	command := start(t, folder)
	if err := errors.Join(command.Stop(), os.Chmod(filepath.Join(folder, command.ID()), 0o600)); err != nil {
		t.Fatal(err)
	}
	onThread(t, asServer, func() error {
		here, err := processes.Start(folder)
		if err != nil {
			return err
		}
		var logged bytes.Buffer
		for range 2 {
			if ended, err := here.Ended(t.Context(), slog.New(slog.NewTextHandler(&logged, nil))); err != nil || len(ended) > 0 {
				return fmt.Errorf("ended are %v, %w", ended, err)
			}
		}
		if strings.Count(logged.String(), command.ID()) != 2 || strings.Count(logged.String(), "level=WARN") != 1 {
			t.Errorf("logged is %q", logged.String())
		}
		return here.Stop()
	})
	if _, err := os.Stat(filepath.Join(folder, command.ID())); err != nil {
		t.Error(err)
	}
}

// Root may lack the right to give files away, as in a container without capabilities.
// It works all the same.
func startsWithoutChown(t *testing.T) {
	t.Parallel()
	folder := folderOfServer(t)
	onThread(t, withoutChown, func() error {
		process, err := processes.Start(folder)
		if err != nil {
			return err
		}
		want(t, process)
		return process.Stop()
	})
}

// A process registers in the folder that is in the data directory and in no other, so that
// the server's user cannot have root write elsewhere.
func TestFolderThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	folder, elsewhere := filepath.Join(t.TempDir(), "processes"), t.TempDir()
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Fatal(err)
	}
	if process, err := processes.Start(folder); err == nil {
		t.Errorf("it was registered: %v", process.Stop())
	}
	if files, err := os.ReadDir(elsewhere); err != nil || len(files) > 0 {
		t.Errorf("there is %v, %v", files, err)
	}
}
