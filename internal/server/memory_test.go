package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Viewers read notes, operators change them, agents do neither; what people change is in the audit log.
func TestMemoryOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pull := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 7}
	must(t, h.store.Learn(t.Context(), store.Lesson{Pull: pull, Present: []string{"a"}, Most: 500, Learned: []store.Learned{{Source: "a", Note: store.Note{
		Repository: pull.Repo(), Text: "Wrap errors.", Path: "gate.go", Ending: store.NoteDone, Author: "ann", URL: "https://forge.example/7", Pull: 7, AskedAt: time.Now(),
	}}}}))
	viewer, operator, agent := h.client(h.token(t, access.Viewer)), h.client(h.token(t, access.Operator)), h.client(h.token(t, access.Agent))
	added, err := operator.AddNote(t.Context(), wire.NewNote{Repository: "board:team/other", Text: "We write British English."})
	if err != nil || added.Repository != "board:team/other" || added.Author == "" || added.ID == "" || added.Ending != "" {
		t.Fatalf("added %+v, %v", added, err)
	}
	texts := func(repository, search string, limit int) string {
		t.Helper()
		var texts []string
		for before := ""; ; {
			found, err := viewer.Notes(t.Context(), repository, search, before, limit)
			if err != nil || !found.Enabled {
				t.Fatalf("found %+v, %v", found, err)
			}
			for _, note := range found.Notes {
				texts = append(texts, note.Text)
			}
			if before = found.Before; before == "" {
				return strings.Join(texts, "|")
			}
		}
	}
	for _, c := range []struct {
		repository, search string
		limit              int
		want               string
	}{
		{"", "", 0, "We write British English.|Wrap errors."}, {"", "", 1, "We write British English.|Wrap errors."}, {"gitea:team/app", "", 0, "Wrap errors."},
		{"gitea:team/other", "", 0, ""}, {"", "GATE.go", 1, "Wrap errors."}, {"", "wrap ann", 0, "Wrap errors."}, {"", "nothing", 0, ""},
	} {
		if got := texts(c.repository, c.search, c.limit); got != c.want {
			t.Errorf("%q, %q, %d finds %q, want %q", c.repository, c.search, c.limit, got, c.want)
		}
	}
	if strange, err := operator.AddNote(t.Context(), wire.NewNote{Repository: "board:team/other", Text: "A\x00B", Path: "a\x00b.go"}); err != nil || strange.Text != "AB" || strange.Path != "ab.go" {
		t.Errorf("added %+v, %v", strange, err)
	} else {
		must(t, operator.ForgetNote(t.Context(), strange.ID))
	}
	edited, err := operator.EditNote(t.Context(), added.ID, "  We write American English. ")
	if err != nil || edited.Text != "We write American English." || edited.EditedBy == "" || edited.EditedAt.IsZero() {
		t.Errorf("edited %+v, %v", edited, err)
	}
	for _, wrong := range []error{
		failure(operator.EditNote(t.Context(), added.ID, strings.Repeat("x", 501))), failure(operator.EditNote(t.Context(), "none", "x")), failure(operator.EditNote(t.Context(), added.ID, " \n ")),
		failure(operator.AddNote(t.Context(), wire.NewNote{Repository: "team/app", Text: "x"})), failure(operator.AddNote(t.Context(), wire.NewNote{Repository: "gitea:../x y", Text: "x"})),
		failure(viewer.EditNote(t.Context(), added.ID, "x")), viewer.ForgetNote(t.Context(), added.ID), failure(viewer.AddNote(t.Context(), wire.NewNote{Repository: "gitea:a/b", Text: "x"})),
		failure(agent.Notes(t.Context(), "", "", "", 0)), agent.ForgetNote(t.Context(), added.ID),
	} {
		if wrong == nil {
			t.Error("something was allowed that is not")
		}
	}
	must(t, operator.ForgetNote(t.Context(), added.ID))
	if err := operator.ForgetNote(t.Context(), added.ID); task.CodeOf(err) != task.NotFound {
		t.Errorf("forgetting again is %v", err)
	}
	if got := texts("", "", 0); got != "Wrap errors." {
		t.Errorf("left is %q", got)
	}
	log, err := h.store.ListAudit(t.Context(), "", 0)
	must(t, err)
	if all := fmt.Sprint(log); !strings.Contains(all, "api.forget-note") || !strings.Contains(all, added.ID) || strings.Contains(all, "American") {
		t.Errorf("the audit log is %s", all)
	}
	if status, _, body := h.get(t, "/v1/memory?repository=nonsense", h.token(t, access.Viewer)); status != http.StatusUnprocessableEntity {
		t.Errorf("a repository without a forge answers %d: %s", status, body)
	}
}

func failure[T any](_ T, err error) error { return err }

// A pull request is watched from its opening, also if nobody looks at it before it has ended.
func TestAnOpenedPullIsWatched(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the sum")
		held, running := w.claim(t, made.ID)
		opened, err := offer(t, held, running.Branch, "c1", false)
		must(t, err)
		watched, err := database.WatchedPulls(t.Context(), made.Key.Repo())
		if err != nil || len(watched) != 1 || watched[0].Number != opened.Number {
			t.Errorf("pull request %d was opened, watched are %v, %v", opened.Number, watched, err)
		}
	})
}
