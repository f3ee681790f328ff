package web

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// learned makes notes: from a pull request, and by hand.
func (h *house) learned(t testing.TB, pull task.Key) {
	t.Helper()
	must(t, h.store.Learn(t.Context(), store.Lesson{Pull: pull, Present: []string{"a"}, Most: 500, Learned: []store.Learned{{Source: "a", Note: store.Note{
		Repository: pull.Repo(), Text: "Wrap <b>errors</b> with the name of the gate.", Path: "gate.go", Ending: store.NoteDone, Author: "bob", URL: "https://forge.example/7", Pull: pull.Number,
		AskedAt: time.Now().Add(-time.Hour), UsedAt: time.Now(),
	}}}}))
	_, err := h.store.AddNote(t.Context(), store.Note{Repository: task.Repository{Forge: task.Gitea, Name: "team/other"}, Text: "We write British English.", Author: "root", EditedBy: "root", AskedAt: time.Now(), EditedAt: time.Now()}, 500)
	must(t, err)
}

func (h *house) notes(t testing.TB) []store.Note {
	t.Helper()
	notes, err := h.store.ListNotes(t.Context(), store.NoteFilter{})
	must(t, err)
	return notes
}

// The page shows notes with who asked, how it ended and where, and narrows them. Operators edit, delete
// and write them, and the audit log has who did, without the texts.
func TestMemoryPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) { o.Settings.Memory = true })
	h.learned(t, task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Pull, Number: 7})
	vera, root := h.visitor(t, "vera"), h.visitor(t, "root")
	status, page := vera.get(memoryPath)
	for _, text := range []string{
		"Wrap &lt;b&gt;errors&lt;/b&gt; with the name of the gate.", "<strong>bob</strong>", "<code>gate.go</code>", "changed and merged", `href="https://forge.example/7"`,
		"board:team/app", "We write British English.", "written by hand",
	} {
		if status != 200 || !strings.Contains(page, text) {
			t.Errorf("%q is not on the page, which answers %d", text, status)
		}
	}
	if strings.Contains(page, "/settings/memory/forget") || strings.Contains(page, "memory.enabled") {
		t.Error("a viewer can delete notes, or it is off")
	}
	for path, want := range map[string]string{"?q=ERRORS": "gate", "?q=none-such": "", "?repository=gitea%3Ateam%2Fother": "British", "?note=" + h.notes(t)[0].ID: "British", "?sort=author": "gate British"} {
		_, page := vera.get(memoryPath + path)
		_, page, _ = strings.Cut(page, "</form>")
		for _, word := range []string{"gate.", "British"} {
			if wanted := strings.Contains(want, strings.TrimSuffix(word, ".")); strings.Contains(page, word) != wanted {
				t.Errorf("%s: %q is on the page: %v", path, word, !wanted)
			}
		}
	}
	if status, _ := vera.get(memoryPath + "?repository=nonsense"); status != 422 {
		t.Errorf("a repository without a forge answers %d", status)
	}
	if _, page := vera.get(memoryPath + "?note=gone"); !strings.Contains(page, "This note was deleted.") {
		t.Error("it is not said that the note is gone")
	}

	id := h.notes(t)[1].ID
	edit := url.Values{"id": {id}, "text": {"Errors have names."}, "next": {memoryPath}}
	if status, _ := vera.post(memoryPath+"/edit", edit); status != 403 {
		t.Errorf("the edit of a viewer answers %d", status)
	}
	root.post(memoryPath+"/edit", edit)
	if note := h.notes(t)[1]; note.Text != "Errors have names." || note.EditedBy != "root" || note.Author != "bob" {
		t.Errorf("after the edit it is %+v", note)
	}
	root.post(memoryPath+"/add", url.Values{"repository": {"gitea:team/app"}, "text": {"Locks have owners."}, "path": {"lock.go"}, "next": {memoryPath}})
	if note := h.notes(t)[0]; note.Text != "Locks have owners." || note.Author != "root" || note.Path != "lock.go" || note.Repository.String() != "gitea:team/app" {
		t.Errorf("the new note is %+v", note)
	}
	root.post(memoryPath+"/forget", url.Values{"id": {id}, "next": {memoryPath}})
	if notes := h.notes(t); len(notes) != 2 || slices.ContainsFunc(notes, func(n store.Note) bool { return n.ID == id }) {
		t.Errorf("left are %+v", notes)
	}
	for _, wrong := range []url.Values{{"id": {id}, "text": {"x"}}, {"id": {h.notes(t)[0].ID}, "text": {strings.Repeat("x", 501)}}, {"id": {h.notes(t)[0].ID}, "text": {" "}}} {
		if status, _ := root.post(memoryPath+"/edit", wrong); status < 400 {
			t.Errorf("%.40v answers %d", wrong, status)
		}
	}
	log := strings.Join(h.audit(t), "\n")
	for _, entry := range []string{"memory.edit", "memory.add", "memory.forget", id} {
		if !strings.Contains(log, entry) {
			t.Errorf("the audit log has no %s:\n%s", entry, log)
		}
	}
	if strings.Contains(log, "Errors have names") {
		t.Errorf("the audit log has the text:\n%s", log)
	}
}

func TestMemoryPageWhenItIsOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, page := h.visitor(t, "vera").get(memoryPath); !strings.Contains(page, "Off (memory.enabled)") {
		t.Error("the page does not say that it is off")
	}
}

// The journal on the page of a task leads to the notes that its run was given.
func TestNotesOfATask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "Fix the gate")
	_, err := h.store.Append(t.Context(), []task.Event{{Task: one.ID, Generation: one.Generation, Source: task.FromServer, Kind: task.Remembered, At: time.Now(), Data: []byte(`{"notes":["n1","n\"2"]}`)}})
	must(t, err)
	_, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	if !strings.Contains(page, `href="/settings/memory?note=n1"`) || !strings.Contains(page, `href="/settings/memory?note=n%222"`) || !strings.Contains(page, "Given notes from past reviews") {
		t.Errorf("the page has no notes: %s", page)
	}
}
