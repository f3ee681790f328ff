package sqlite

import (
	"bytes"
	"context"
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

// The log is emptied if a text has left the database, and not for every pull request that has ended.
func TestLearningEmptiesTheLogIfATextIsGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	s := opened(t, path)
	learn := func(present []string, text string) (emptied bool) {
		t.Helper()
		lesson := store.Lesson{Pull: task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 7}, Present: present, Most: 500}
		if text != "" {
			lesson.Learned = []store.Learned{{Source: "a", Note: store.Note{Repository: lesson.Pull.Repo(), Text: text, URL: "https://forge.example/7", Pull: 7}}}
		}
		if err := s.WatchPull(t.Context(), lesson.Pull); err != nil {
			t.Fatal(err)
		}
		if err := s.Learn(t.Context(), lesson); err != nil {
			t.Fatal(err)
		}
		log, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return log.Size() == 0
	}
	if learn(nil, "") || learn([]string{"a"}, "Close the gate.") || learn([]string{"a"}, "Close the gate.") {
		t.Error("the log was emptied for nothing")
	}
	if !learn([]string{"a"}, "removed by its author") || !learn(nil, "") {
		t.Error("the log was not emptied")
	}
	closed(t, s)
}

// Somebody who is reading the database, such as a backup, holds nobody up who deletes a note.
func TestForgettingDoesNotWaitForReaders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	s := opened(t, path)
	note, err := s.AddNote(t.Context(), store.Note{Repository: task.Repository{Forge: task.Gitea, Name: "team/app"}, Text: "Close the gate.", Author: "ann", AskedAt: time.Now()}, 500)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := connect(path, 1, "deferred")
	if err != nil {
		t.Fatal(err)
	}
	reading, err := reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var count int
	if err := reading.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM memory_notes`).Scan(&count); err != nil || count != 1 {
		t.Fatal(count, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), busyTimeout-time.Second)
	defer cancel()
	if err := s.ForgetNote(ctx, note.ID); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
	if err := reading.Rollback(); err != nil {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	closed(t, s)
}

// The connection waits for others again afterwards.
func TestEmptyingTheLogKeepsTheWaitingTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	closed(t, opened(t, path))
	writes, err := writer(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := emptyLog(t.Context(), writes); err != nil {
		t.Error(err)
	}
	var waits int64
	if err := writes.QueryRowContext(t.Context(), `PRAGMA busy_timeout`).Scan(&waits); err != nil || waits != busyTimeout.Milliseconds() {
		t.Errorf("it waits %d ms, %v", waits, err)
	}
	if err := writes.Close(); err != nil {
		t.Error(err)
	}
}
