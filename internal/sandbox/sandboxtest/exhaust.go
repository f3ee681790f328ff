package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// slack is what a sandbox may take above its limit.
const slack = 64 << 20

// held is how many megabytes a probe says that it has.
func held(t *testing.T, box sandbox.Sandbox, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(box.Workspace(), file))
	if err != nil {
		return 0
	}
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil && len(text) > 0 {
		t.Fatal(err)
	}
	return number
}

// testSharedMemory takes memory that is no process's own: files in memory with and
// without a name, and memory that processes share.
func testSharedMemory(t *testing.T, h Harness) {
	for _, kind := range []string{"files", "memfd", "anonymous"} {
		if kind == "files" && h.Weak {
			continue // it has none
		}
		box := start(t, h)
		putProbe(t, box)
		const most = 1000
		alive := survives(t, h, box, fmt.Sprintf("./%s %s '%s=held,%d'", probeFile, probeName, kind, most))
		if got := held(t, box, "held") << 20; got > limits.Memory+slack {
			t.Errorf("%s: %d MB were held with a limit of %d MB", kind, got>>20, limits.Memory>>20)
		}
		if alive {
			survives(t, h, box, "echo alive")
		}
		if err := box.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// testBackgroundMemory has a process grow that no command waits for.
func testBackgroundMemory(t *testing.T, h Harness) {
	box := start(t, h)
	putProbe(t, box)
	mark := fmt.Sprintf("held-%d-%d", os.Getpid(), time.Now().UnixNano())
	alive := survives(t, h, box, fmt.Sprintf("(setsid ./%s %s 'anonymous=%s,1000' >/dev/null 2>&1 &)", probeFile, probeName, mark)) &&
		survives(t, h, box, "until [ -s "+mark+" ]; do sleep 0.02; done") // it takes memory
	waitUntil(t, "the process is gone", func() bool { return processesWith(t, mark) == 0 })
	alive = alive && survives(t, h, box, "echo") // after which the workspace has what was written meanwhile
	if got := held(t, box, mark) << 20; got > limits.Memory+slack {
		t.Errorf("%d MB were held with a limit of %d MB", got>>20, limits.Memory>>20)
	}
	if alive {
		survives(t, h, box, "echo alive")
	}
}

// survives runs a command beside one that takes memory that processes share. The kernel
// takes its time to give such memory back when it ends a process, and ends the next one if
// it is short of memory meanwhile. If no other is left, the sandbox ends, and says why.
func survives(t *testing.T, h Harness, box sandbox.Sandbox, text string) bool {
	t.Helper()
	result, err := box.Run(t.Context(), sandbox.Command{Text: text, Timeout: time.Minute})
	if err != nil && !h.Weak && !errors.Is(err, sandbox.ErrOutOfMemory) {
		t.Fatalf("run %.80q: %q, %v", text, result.Log, err)
	}
	if alive := "echo alive"; err == nil && text == alive && result.Exceeded == sandbox.NoLimit && (result.ExitCode != 0 || string(result.Stdout) != "alive\n") {
		t.Errorf("%q printed %q and ended with %d", alive, result.Log, result.ExitCode)
	}
	return err == nil
}

// testMemoryAtOnce takes memory that processes share faster than it can be counted, while
// commands run.
func testMemoryAtOnce(t *testing.T, h Harness) {
	box := start(t, h)
	putProbe(t, box)
	take := fmt.Sprintf("./%s %s 'at once=1000'", probeFile, probeName)
	result, err := box.Run(t.Context(), sandbox.Command{Text: take, Timeout: time.Minute})
	switch {
	case errors.Is(err, sandbox.ErrOutOfMemory):
		return // it ended with the command
	case err != nil:
		t.Fatal(err)
	case result.ExitCode == 0 || result.Exceeded != sandbox.MemoryLimit:
		t.Errorf("taking memory at once ended with %q, exit %d: %.300q", result.Exceeded, result.ExitCode, result.Log)
	}
	mark := fmt.Sprintf("at-once-%d-%d", os.Getpid(), time.Now().UnixNano())
	for range 10 {
		alive := survives(t, h, box, fmt.Sprintf(`(setsid bash -c "for i in 1 2 3; do %s; done; : %s" >/dev/null 2>&1 &)`, take, mark))
		waitUntil(t, "the processes are gone", func() bool {
			alive = alive && survives(t, h, box, "echo")
			return processesWith(t, mark) == 0
		})
		if !alive || !survives(t, h, box, "echo alive") {
			return
		}
	}
}

// processesWith counts the processes of the whole machine with the text in their
// command line.
func processesWith(t *testing.T, text string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, line := range lines {
		if content, err := os.ReadFile(line); err == nil && strings.Contains(string(content), text) {
			count++
		}
	}
	return count
}

// testDiskOverCommands writes a little by each of many commands.
func testDiskOverCommands(t *testing.T, h Harness) {
	box := start(t, h)
	exceeded := 0
	for i := range 12 {
		result, err := box.Run(t.Context(), sandbox.Command{Text: fmt.Sprintf("head -c 6000000 /dev/zero > part%d", i), Timeout: time.Minute})
		if err != nil {
			break // it was ended for it
		}
		if result.Exceeded == sandbox.DiskLimit {
			exceeded++
			run(t, box, fmt.Sprintf("rm -f part%[1]d part%[2]d", i-1, i)) // the one before may have been found too late to be told
		}
	}
	if exceeded == 0 {
		t.Error("no command was told that the disk is full")
	}
	if used := workdir.TreeSize(box.Workspace()); used > limits.Disk+slack/4 {
		t.Errorf("%d MB are there with a limit of %d MB", used>>20, limits.Disk>>20)
	}
	run(t, box, "rm -f part*")
	if result := run(t, box, "head -c 6000000 /dev/zero > again"); result.ExitCode != 0 || result.Exceeded != sandbox.NoLimit {
		t.Errorf("with room again a file ends with %d, %q", result.ExitCode, result.Exceeded)
	}
}

// testBackgroundDisk has a process write that no command waits for.
func testBackgroundDisk(t *testing.T, h Harness) {
	box := start(t, h)
	mark := fmt.Sprintf("fill-%d-%d", os.Getpid(), time.Now().UnixNano())
	run(t, box, "(setsid bash -c 'mkdir "+mark+"; i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > "+mark+"/$i || exit; sleep 0.01; done' >/dev/null 2>&1 &)")
	run(t, box, "until [ -s "+mark+"/2 ]; do sleep 0.02; done") // it writes
	waitUntil(t, "the process is gone", func() bool { return processesWith(t, mark) == 0 })
	run(t, box, "echo") // after which the workspace has what was written meanwhile
	if used := workdir.TreeSize(box.Workspace()); used < limits.Disk/2 {
		t.Errorf("%d MB are there with a limit of %d MB: something else has ended it", used>>20, limits.Disk>>20)
	}
	if used := workdir.TreeSize(box.Workspace()); used > limits.Disk+slack {
		t.Errorf("%d MB are there with a limit of %d MB", used>>20, limits.Disk>>20)
	}
	run(t, box, "rm -rf "+mark)
	wantOutput(t, box, "echo alive", "alive\n")
}

// testEmptyFiles makes files without content, which take the disk's nodes.
func testEmptyFiles(t *testing.T, h Harness) {
	// Little, so that it is soon reached: 4 kB count for each file.
	small := limits
	small.Disk = 8 << 20
	box := startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(), Limits: small})
	result := runCommand(t, box, sandbox.Command{Timeout: 10 * time.Minute,
		Text: "mkdir many && cd many && i=0; while [ $i -lt 200000 ]; do i=$((i+1)); : > $i; done"})
	if result.Exceeded != sandbox.DiskLimit {
		t.Errorf("200,000 empty files ended with %q, exit %d: %.300q", result.Exceeded, result.ExitCode, result.Log)
	}
	run(t, box, "cd; rm -rf \"$OLDPWD/many\"")
}

// testOddTree leaves names that are no text and folders that no path can name. The
// sandbox ends all the same, and what is in the workspace can be listed and copied.
func testOddTree(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, `echo x > $'new\nline'; echo x > $'\xff\xfe'; mkdir -p $'odd\r\n[x]*/\xff'; ln -s loop loop; truncate -s 20M holes; mkfifo pipe`)
	run(t, box, `cd "$HOME" && for i in $(seq 400); do mkdir deepfolder && cd deepfolder || break; done; cd /`)
	names, err := workdir.List(box.Workspace())
	if err != nil || !names["new\nline"] || !names["\xff\xfe"] {
		t.Errorf("listed were %v, %v", names, err)
	}
	to := t.TempDir()
	if _, err := workdir.CopyTree(t.Context(), box.Workspace(), to, workdir.CopyOptions{}); err != nil {
		t.Errorf("copy the workspace: %v", err)
	}
	if text, err := os.ReadFile(to + "/new\nline"); err != nil || string(text) != "x\n" {
		t.Errorf("a copy has %q, %v", text, err)
	}
	wantOutput(t, box, "echo alive", "alive\n")
	if err := box.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// testHostileState has commands spoil the files by which one shell goes on where
// the last one ended.
func testHostileState(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, "export KEPT=1")
	for _, spoil := range []string{
		`s=$HOME/.toryo; rm -rf $s; mkfifo $s`,
		`s=$HOME/.toryo; rm -rf $s; ln -s /proc/1/fd $s`,
		`s=$HOME/.toryo; rm -rf $s/*; mkfifo $s/shell $s/command`,
		`s=$HOME/.toryo; trap - EXIT; rm -rf $s/*; mkfifo $s/shell.new $s/shell`,
		`s=$HOME/.toryo; trap - EXIT; rm -rf $s/*; truncate -s 30M $s/shell.new; truncate -s 30M $s/shell`,
		`s=$HOME/.toryo; trap - EXIT; rm -rf $s/*; mkdir $s/shell.new $s/shell $s/command`,
		`trap - EXIT; rm -rf $HOME/.toryo; ln -s /etc/passwd $HOME/.toryo`,
	} {
		begun := runCommand(t, box, sandbox.Command{Text: spoil, Timeout: 20 * time.Second})
		if begun.Exceeded == sandbox.TimeLimit {
			t.Errorf("%s took its whole time", spoil)
		}
		next := runCommand(t, box, sandbox.Command{Text: "echo alive", Timeout: 20 * time.Second})
		if string(next.Stdout) != "alive\n" || next.Exceeded != sandbox.NoLimit {
			t.Errorf("after %s: %q, %q", spoil, next.Log, next.Exceeded)
		}
	}
	run(t, box, "export LATER=2")
	wantOutput(t, box, "echo $LATER", "2\n")
}

// testArguments looks for a variable's value in what every user of the machine can
// read of processes.
func testArguments(t *testing.T, h Harness) {
	secret := fmt.Sprintf("secret-%d-value", time.Now().UnixNano())
	box := startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(), Env: map[string]string{"GIVEN": secret}})
	wantOutput(t, box, `printf %s "$GIVEN"`, secret)
	run(t, box, "(setsid sleep 60 >/dev/null 2>&1 &)")
	if found := processesWith(t, secret); found != 0 {
		t.Errorf("%d processes have the variable's value among their arguments", found)
	}
}
