package site

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestASecondServerIsKeptOutOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, unlock, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := lockDataDir(dir); task.CodeOf(err) != task.DataDir {
		t.Errorf("the second: %v, want %s", err, task.DataDir)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	_, again, err := lockDataDir(dir)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}
