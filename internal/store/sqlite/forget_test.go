package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What people have deleted is not in the file any more.
func TestForgottenTextsLeaveTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	s := opened(t, path)
	const text = "Never write the number 4711 anywhere."
	note, err := s.AddNote(t.Context(), store.Note{Repository: task.Repository{Forge: task.Gitea, Name: "team/app"}, Text: text, Author: "ann", AskedAt: time.Now()}, 500)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	inFile := func() bool {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(content, []byte(text))
	}
	if !inFile() {
		t.Fatal("the text was never in the file")
	}
	s = opened(t, path)
	if err := s.ForgetNote(t.Context(), note.ID); err != nil {
		t.Fatal(err)
	}
	closed(t, s) // the log is written into the file, and removed
	if inFile() {
		t.Error("the text is still in the file")
	}
	if left, err := filepath.Glob(path + "-wal"); err != nil || len(left) > 0 {
		t.Errorf("there is still %v, %v", left, err)
	}
}
