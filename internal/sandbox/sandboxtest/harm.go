package sandboxtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

func testForkBomb(t *testing.T, h Harness) {
	box := start(t, h)
	result := runCommand(t, box, sandbox.Command{Text: "bomb() { bomb | bomb & }; bomb; sleep 600", Timeout: 20 * time.Second})
	if result.Exceeded != sandbox.ProcessesLimit && result.Exceeded != sandbox.TimeLimit {
		t.Errorf("a fork bomb ended with %q, exit %d: %.300q", result.Exceeded, result.ExitCode, result.Log)
	}
	wantOutput(t, box, "echo alive", "alive\n")
}

func testMemory(t *testing.T, h Harness) {
	box := start(t, h)
	result := runCommand(t, box, sandbox.Command{Text: "a=0123456789abcdef; while :; do a=$a$a; done", Timeout: time.Minute})
	if result.Exceeded != sandbox.MemoryLimit && result.ExitCode != 137 {
		t.Errorf("a memory eater ended with %q, exit %d: %.300q", result.Exceeded, result.ExitCode, result.Log)
	}
	wantOutput(t, box, "echo alive", "alive\n")
}

func testDisk(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, "mkdir dir; echo before > dir/kept")
	one := runCommand(t, box, sandbox.Command{Text: "cat /dev/zero > big", Timeout: time.Minute})
	if one.Exceeded != sandbox.DiskLimit {
		t.Errorf("one large file ended with %q, exit %d: %.300q", one.Exceeded, one.ExitCode, one.Log)
	}
	run(t, box, "rm -f big")
	// Several at once write much more than the limit between two looks at the disk.
	several := runCommand(t, box, sandbox.Command{Text: "mkdir fill; for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero > fill/$i & done; wait", Timeout: time.Minute})
	if several.Exceeded != sandbox.DiskLimit {
		t.Errorf("several large files ended with %q, exit %d: %.300q", several.Exceeded, several.ExitCode, several.Log)
	}
	if text, err := os.ReadFile(filepath.Join(box.Workspace(), "dir", "kept")); err != nil || string(text) != "before\n" {
		t.Errorf("what was there before is %q, %v", text, err)
	}
	if removed := run(t, box, "rm -rf fill"); removed.ExitCode != 0 {
		t.Errorf("removing them ended with %q, exit %d: %.300q", removed.Exceeded, removed.ExitCode, removed.Log)
	}
	if _, err := os.Lstat(filepath.Join(box.Workspace(), "fill")); err == nil {
		t.Error("what was removed inside is still in the workspace")
	}
	for _, where := range []string{".", "$HOME", "${TMPDIR}"} {
		many := runCommand(t, box, sandbox.Command{Timeout: time.Minute,
			Text: `d="` + where + `/fill"; mkdir -p "$d"; i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > "$d/$i" || exit 1; done`})
		if many.Exceeded != sandbox.DiskLimit {
			t.Errorf("many files in %s ended with %q, exit %d: %.300q", where, many.Exceeded, many.ExitCode, many.Log)
		}
		run(t, box, `rm -rf "`+where+`/fill"`)
	}
	wantOutput(t, box, "echo alive", "alive\n")
}

func testLeftBehind(t *testing.T, h Harness) {
	box := start(t, h)
	mark := fmt.Sprintf("%d.%d", 30000+os.Getpid()%1000, time.Now().UnixNano()%1_000_000_000)
	result := run(t, box, "(setsid sleep "+mark+" &) ; sleep "+mark+" & echo left")
	if string(result.Stdout) != "left\n" || result.Duration > 2*time.Minute {
		t.Errorf("leaving daemons behind gave %+v", result)
	}
	waitUntil(t, "the daemons run", func() bool { return processesNamed(t, mark) == 2 })
	if err := box.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the daemons are gone", func() bool { return processesNamed(t, mark) == 0 })
}

// waitUntil looks again and again until something is so: the kernel takes its
// time to end processes and tells nobody.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		if is() {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// processesNamed counts the processes of the whole machine with the text in
// their command line.
func processesNamed(t *testing.T, text string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, line := range lines {
		content, err := os.ReadFile(line)
		if err == nil && bytes.HasPrefix(content, []byte("sleep\x00")) && bytes.Contains(content, []byte(text)) {
			count++
		}
	}
	return count
}

func testBadSpec(t *testing.T, h Harness) {
	engine := h.engine(t, NoGate)
	good := sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir()}
	file := filepath.Join(good.Workspace, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*sandbox.Spec){
		"no owner":           func(s *sandbox.Spec) { s.Owner = "" },
		"bad owner":          func(s *sandbox.Spec) { s.Owner = "a b\n" },
		"no workspace":       func(s *sandbox.Spec) { s.Workspace = "" },
		"missing workspace":  func(s *sandbox.Spec) { s.Workspace = file + "/none" },
		"workspace a file":   func(s *sandbox.Spec) { s.Workspace = file },
		"bad policy":         func(s *sandbox.Spec) { s.Network = "some" },
		"bad variable":       func(s *sandbox.Spec) { s.Env = map[string]string{"A B": "x"} },
		"snapshot elsewhere": func(s *sandbox.Spec) { s.Snapshot = "../../etc" },
		"unknown snapshot":   func(s *sandbox.Spec) { s.Snapshot = "0123456789abcdef" },
	}
	for name, change := range cases {
		spec := good
		change(&spec)
		box, err := engine.Start(t.Context(), spec)
		if code := task.CodeOf(err); code != task.Invalid && code != task.NotFound && code != task.Unsupported {
			t.Errorf("%s: started with %v", name, err)
		}
		if box != nil {
			_ = box.Stop(t.Context())
		}
	}
	left, err := engine.List(t.Context(), owner)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
}

// SecretVariable is set in the environment of the test's process by TestMain, and
// must not be seen inside.
const SecretVariable = "TORYO_SUITE_SECRET"

func testNothingSecret(t *testing.T, h Harness) {
	if os.Getenv(SecretVariable) == "" {
		t.Fatalf("TestMain has to set %s", SecretVariable)
	}
	box := startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(),
		Env: map[string]string{"GIVEN": "this one"}})
	result := run(t, box, "env; cat /proc/1/environ /proc/self/environ 2>/dev/null; true")
	if bytes.Contains(result.Log, []byte(os.Getenv(SecretVariable))) {
		t.Error("a variable of the host came in")
	}
	wantOutput(t, box, "echo $GIVEN", "this one\n")
	wantOutput(t, box, `touch "$HOME/x" && ls "$HOME"`, "x\n")
}

func testHostUnharmed(t *testing.T, h Harness) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), []byte("data"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	box := start(t, h)
	run(t, box, "rm -rf "+outside+"/* 2>/dev/null; echo bad > "+outside+"/precious; echo bad > /usr/bin/toryo-was-here; echo bad > /etc/toryo-was-here")
	if text, err := os.ReadFile(filepath.Join(outside, "precious")); err != nil || string(text) != "data" {
		t.Errorf("a file outside is now %q, %v", text, err)
	}
	for _, file := range []string{"/usr/bin/toryo-was-here", "/etc/toryo-was-here"} {
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("%s was written on the host", file)
		}
	}
	wantOutput(t, box, "echo alive", "alive\n")
	if h.Weak {
		return // it sees the host's files and processes, and has to leave them alone
	}
	run(t, box, "kill -9 -1; kill -9 1; kill -STOP 1")
	wantOutput(t, box, "echo alive", "alive\n")
	wantOutput(t, box, "cat /etc/shadow /root/.ssh/* "+outside+"/precious 2>/dev/null; echo none", "none\n")
}

func testPrivileges(t *testing.T, h Harness) {
	box := start(t, h)
	result := run(t, box, "grep -E '^(Uid|CapEff|CapBnd|CapPrm|NoNewPrivs)' /proc/self/status")
	for line := range strings.Lines(string(result.Stdout)) {
		fields := strings.Fields(line)
		number, err := strconv.ParseUint(fields[1], 16, 64)
		switch {
		case err != nil:
			t.Errorf("cannot read %q", line)
		case fields[0] == "Uid:" && number == 0:
			t.Error("commands run as the superuser")
		case strings.HasPrefix(fields[0], "Cap") && number != 0:
			t.Errorf("commands have capabilities: %s", line)
		case fields[0] == "NoNewPrivs:" && number != 1:
			t.Error("commands can gain privileges")
		}
	}
	if result.ExitCode != 0 {
		t.Errorf("the status cannot be read: %q", result.Log)
	}
	if result := run(t, box, "unshare -Ur true || mount -t tmpfs x /tmp || mknod dev b 8 0"); result.ExitCode == 0 {
		t.Error("a command could make a namespace, a mount or a device")
	}
}
