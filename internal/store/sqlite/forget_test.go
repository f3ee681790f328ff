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

// What people have deleted or edited is in no file any more, while the server goes on.
func TestForgottenTextsLeaveTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	s := opened(t, path)
	const text, other = "Never write the number 4711 anywhere.", "Never write the number 4712 anywhere."
	var ids []string
	for _, one := range []string{text, other} {
		note, err := s.AddNote(t.Context(), store.Note{Repository: task.Repository{Forge: task.Gitea, Name: "team/app"}, Text: one, Author: "ann", AskedAt: time.Now()}, 500)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, note.ID)
	}
	inFiles := func(text string) bool {
		t.Helper()
		for _, name := range []string{path, path + "-wal"} {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(text)) {
				return true
			}
		}
		return false
	}
	if !inFiles(text) || !inFiles(other) {
		t.Fatal("the texts were never in the files")
	}
	if err := s.ForgetNote(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	if inFiles(text) || !inFiles(other) {
		t.Error("the text is still in the files, or the other is not")
	}
	if _, err := s.EditNote(t.Context(), ids[1], "Short.", "ann", time.Now()); err != nil {
		t.Fatal(err)
	}
	if inFiles(other) {
		t.Error("the text before the edit is still in the files")
	}
	if err := s.ForgetNote(t.Context(), "none"); task.CodeOf(err) != task.NotFound {
		t.Errorf("forgetting nothing is %v", err)
	}
	closed(t, s)
}
