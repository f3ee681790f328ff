package program

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// withoutLandlock runs the program that its arguments name on what looks to it like a
// kernel without Landlock: a filter answers the calls of Landlock as such a kernel
// does.
func withoutLandlock() (exit int) {
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: equal, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jt: 2},
		{Code: equal, K: unix.SYS_LANDLOCK_ADD_RULE, Jt: 1},
		{Code: equal, K: unix.SYS_LANDLOCK_RESTRICT_SELF, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		_, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
		if failed != 0 {
			err = failed
		}
	}
	path, notFound := exec.LookPath(os.Args[1])
	if err = errors.Join(err, notFound); err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	_, _ = os.Stderr.WriteString(err.Error() + "\n")
	return 1
}

// onlyGit makes a folder for a search path on which there is git and this program,
// but no bubblewrap, and returns the variables with it and with no Docker Engine. Go
// is on the path too if it is wanted.
func onlyGit(folder string, environ []string, withGo bool) ([]string, error) {
	for _, name := range []string{"git", "toryo", "without-landlock"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			return nil, err
		}
	}
	path := folder
	if withGo {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, err
		}
		path += ":" + filepath.Join(strings.TrimSpace(string(root)), "bin")
	}
	return append(environ, "PATH="+path, "TORYO_SANDBOX_CONTAINER_ENGINE=unix:///nowhere"), nil
}

// The scripts in testdata/alone are for machines without Docker and bubblewrap: they begin with
// git and Go, and no others, on the search path. The demo itself is tried so by scripts/fresh.
func TestAlone(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/alone",
		Setup: func(e *testscript.Env) (err error) {
			folder := filepath.Join(e.WorkDir, "path")
			if err = os.Mkdir(folder, 0o700); err == nil {
				e.Vars, err = onlyGit(folder, e.Vars, true)
			}
			return err
		},
		Condition: func(condition string) (bool, error) {
			_, err := site.LandlockVersion()
			return condition == "landlock" && err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"bare": func(ts *testscript.TestScript, _ bool, args []string) {
				exitsOf(ts, []string{"without-landlock", "toryo"}, args)
			},
		},
	})
}

// Without any sandbox toryo up serves its pages, and says on the terminal which tasks
// wait and why, once for each change.
func TestUpSaysWhyTasksWait(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("model: none\nrules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "Begin"},
	} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = project
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s", args, said)
		}
	}
	here.output(t, "board", "import", project, "--name", "team/app")
	here.output(t, "board", "user", "add", "alice", "--access", "write")
	var err error
	if here.environ, err = onlyGit(t.TempDir(), append(here.environ, "TORYO_LLM_PROVIDER=script", "TORYO_LLM_SCRIPT="+script), false); err != nil {
		t.Fatal(err)
	}
	here.before = []string{"without-landlock"}
	up := here.start(t, "up")
	until := func(want string) {
		t.Helper()
		var said bytes.Buffer
		for {
			line, err := up.stdout.ReadString('\n')
			said.WriteString(line)
			if strings.Contains(line, want) {
				return
			}
			if err != nil {
				t.Fatalf("it does not come to say %q but\n%s\n%s", want, said.String(), up.stderr)
			}
		}
	}
	until("the agent is connected, but does not accept tasks: no sandbox works here (docker: the Docker Engine does not answer; bubblewrap: bubblewrap is not installed); install bubblewrap")
	here.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Oil the gate", "--assign", "toryo", "--as", "alice")
	until("1 task is waiting: " + messages.Reason(task.English, task.ReasonNoSandbox) + " (no sandbox works here (docker")
	until("→ install bubblewrap there")
	until("board:team/app#1  Oil the gate")
	explained := here.output(t, "tasks", "next", "--explain")
	if !strings.Contains(explained, "1 task is waiting: "+messages.Reason(task.English, task.ReasonNoSandbox)) || !strings.Contains(explained, "→ install bubblewrap there") {
		t.Errorf("tasks next --explain says\n%s", explained)
	}
	here.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Paint it", "--assign", "toryo", "--as", "alice")
	until("2 tasks are waiting: ")
	if rest := up.stop(t); strings.Count(rest, "wait") > 0 {
		t.Errorf("what has not changed is said again: %s", rest)
	}
}
