package program

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// slowForge answers as a Gitea does with one issue. It has taken the first comment when
// it begins to wait, as a forge has that answers late.
type slowForge struct {
	writing chan struct{} // is sent to when the first comment has come
	looked  chan struct{} // is sent to when somebody reads the comments after that

	mu       sync.Mutex
	comments []string
}

func (f *slowForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1"); {
	case path == "/version":
		_, _ = fmt.Fprint(w, `{"version": "1.24.0"}`)
	case strings.HasSuffix(path, "/issues/1/comments") && r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body) // what is missing is seen in the test
		f.mu.Lock()
		f.comments = append(f.comments, string(body))
		first := len(f.comments) == 1
		f.mu.Unlock()
		if first {
			f.writing <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"id": 2}`)
	case strings.HasSuffix(path, "/comments"):
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.comments) == 0 || r.URL.Query().Get("page") != "1" {
			_, _ = fmt.Fprint(w, `[]`)
			return
		}
		_, _ = fmt.Fprintf(w, `[{"id": 1, "user": {"id": 7, "login": "bot"}, "created_at": "2026-01-01T00:00:00Z", %s]`, strings.TrimPrefix(f.comments[0], "{"))
		select {
		case f.looked <- struct{}{}:
		default:
		}
	case path == "/user":
		_, _ = fmt.Fprint(w, `{"id": 7, "login": "bot"}`)
	case strings.HasSuffix(path, "/issues/1"):
		_, _ = fmt.Fprint(w, `{"id": 1, "number": 1, "state": "open", "user": {"login": "alice"}}`)
	default:
		_, _ = fmt.Fprint(w, `[]`)
	}
}

// A write to a forge that was under way when its server was killed is looked at soon after
// the server has started again, and is not made twice.
func TestWriteAfterAKill(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			forge := &slowForge{writing: make(chan struct{}, 1), looked: make(chan struct{}, 1)}
			web := httptest.NewServer(forge)
			t.Cleanup(web.Close)
			p := newPlace(t, driver)
			p.environ = append(p.environ, "TORYO_GITEA_URL="+web.URL, "TORYO_GITEA_OWNER=team", "TORYO_GITEA_BOT_NAME=bot", "TORYO_GITEA_TOKEN=none")
			first := p.start(t, "serve")
			database, raw := p.database(t)
			item := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 1}
			action, err := outbox.NewAction(outbox.Write{Item: item, What: "hello"}, outbox.Comment{Text: "Hello."})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := database.Put(t.Context(), action); err != nil {
				t.Fatal(err)
			}
			first.stop(t) // so that it is seen when the next one starts
			second := p.start(t, "serve")
			<-forge.writing
			second.kill(t)
			// Whoever waits until the hold is over waits in vain.
			if _, err := raw.ExecContext(t.Context(), `UPDATE actions SET held_until = held_until + 86400000000 WHERE status = 'pending'`); err != nil {
				t.Fatal(err)
			}
			third := p.start(t, "serve")
			<-forge.looked
			third.stop(t) // which waits for what is under way
			if is, err := database.Action(t.Context(), action.IdempotencyKey); err != nil || is.Status != store.Delivered {
				t.Errorf("the write is %+v, %v", is, err)
			}
			if len(forge.comments) != 1 {
				t.Errorf("the forge was given %q", forge.comments)
			}
		})
	}
}

// database opens the database of a place: as the program does, and as it is.
func (p place) database(t testing.TB) (store.Store, *sql.DB) {
	t.Helper()
	driver, source, open := "sqlite", filepath.Join(p.data, site.DatabaseFile), sqlite.Open
	for _, variable := range p.environ {
		if url, found := strings.CutPrefix(variable, "TORYO_DATABASE_URL="); found {
			driver, source, open = "pgx", url, postgres.Open
		}
	}
	opened, err := open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = raw.Close()
		_ = opened.Close()
	})
	return opened, raw
}
