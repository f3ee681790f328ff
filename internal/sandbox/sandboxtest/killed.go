package sandboxtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// childVariable tells a test binary that it is the program to be killed. It has
// the engine's folder, the workspace and the mark, with spaces between.
const childVariable = "TORYO_SUITE_CHILD"

const killedOwner = owner + "-killed"

// Child has to be called by a test named TestChild of every adapter. Only in the
// process that is to be killed does it do anything.
func Child(t *testing.T, h Harness) {
	dir, rest, _ := strings.Cut(os.Getenv(childVariable), " ")
	workspace, mark, is := strings.Cut(rest, " ")
	if !is {
		return
	}
	box := startWith(t, h.New(t, dir, NoGate), sandbox.Spec{Owner: killedOwner, Image: h.Image, Workspace: workspace})
	run(t, box, "(setsid sleep "+mark+" &)")
	_, err := box.Run(t.Context(), sandbox.Command{Text: "echo; sleep " + mark, Output: func(sandbox.Stream, []byte) {
		_, _ = os.Stdout.WriteString("\nbegun\n") // the parent waits for this and then kills us
	}})
	t.Fatalf("the program was not killed: %v", err)
}

func testKilledProgram(t *testing.T, h Harness) {
	dir, workspace := t.TempDir(), t.TempDir()
	t.Cleanup(func() {
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	mark := fmt.Sprintf("%d.%d", 50000+os.Getpid()%1000, time.Now().UnixNano()%1_000_000_000)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestChild$", "-test.v")
	child.Env = append(os.Environ(), childVariable+"="+dir+" "+workspace+" "+mark)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	begun := false
	for scanner := bufio.NewScanner(output); !begun && scanner.Scan(); {
		printed.WriteString(scanner.Text() + "\n")
		begun = scanner.Text() == "begun"
	}
	if !begun {
		t.Fatalf("the program did not begin:\n%s", printed.String())
	}
	waitUntil(t, "the commands run", func() bool { return processesNamed(t, mark) == 2 })
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	waitUntil(t, "what ran in the sandbox is gone", func() bool { return processesNamed(t, mark) == 0 })
	engine := h.New(t, dir, NoGate)
	waitUntil(t, "the sandbox does not run any more", func() bool {
		left, err := engine.List(t.Context(), killedOwner)
		return err == nil && len(left) == 1 && !left[0].Running
	})
	if count, err := engine.Reap(t.Context(), killedOwner, func(sandbox.Info) bool { return true }); err != nil || count != 0 {
		t.Errorf("%d were reaped though all are to be kept, %v", count, err)
	}
	if count, err := engine.Reap(t.Context(), killedOwner, func(sandbox.Info) bool { return false }); err != nil || count != 1 {
		t.Errorf("%d were reaped, %v", count, err)
	}
	if left, err := engine.List(t.Context(), killedOwner); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
