package workdir_test

import (
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

func TestWriteTest(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 50)
	if disk == nil {
		return
	}
	good := func() {
		t.Helper()
		if err := workdir.TestWrite(disk.Dir); err != nil {
			t.Error(err)
		}
	}
	bad := func(what string) {
		t.Helper()
		if err := workdir.TestWrite(disk.Dir); task.CodeOf(err) != task.NotReady {
			t.Errorf("%s: %v", what, err)
		}
	}
	good()
	disk.Fill(t)
	bad("full")
	disk.Free(t)
	good()
	free := disk.FillFiles(t)
	bad("no file left")
	free()
	good()
	disk.ReadOnly(t, true)
	bad("read-only")
	disk.ReadOnly(t, false)
	good()
	if left, err := os.ReadDir(disk.Dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// tester is set in a process that only tests a folder, again and again.
const tester = "TORYO_WRITE_TEST_FOLDER"

// A process that is killed while it tests leaves one file at most, and the next test removes it.
func TestKilledWriteTestLeavesNothing(t *testing.T) {
	if dir := os.Getenv(tester); dir != "" {
		for {
			if err := workdir.TestWrite(dir); err != nil {
				t.Fatal(err)
			}
			_, _ = os.Stdout.WriteString("tested\n")
		}
	}
	t.Parallel()
	dir := t.TempDir()
	for range 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriteTestLeavesNothing$")
		cmd.Env = append(os.Environ(), tester+"="+dir)
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(output, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
		t.Errorf("killed processes left %v, %v", left, err)
	}
	if err := workdir.TestWrite(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the next test left %v, %v", left, err)
	}
}
