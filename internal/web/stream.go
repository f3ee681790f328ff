package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// aliveEvery is how often a connection on which nothing happens shows that it is
// there, and how long someone who was signed out still sees a live page.
const aliveEvery = 15 * time.Second

// stream is a connection over which a page hears what happens (server-sent
// events). A browser that lost it comes back by itself, says which event it saw
// last, and goes on from there.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes one event. Data has no line ends.
func (s stream) send(event, id, data string) error {
	if _, err := fmt.Fprintf(s.w, "event: %s\nid: %s\ndata: %s\n\n", event, id, strings.ReplaceAll(data, "\n", " ")); err != nil {
		return err
	}
	return s.control.Flush()
}

// listen keeps a connection until the reader goes, is signed out, or the server
// stops. Tell is called with each revision that differs from the one before, and
// returns the id of what it sent last.
func (p *Pages) listen(w http.ResponseWriter, r *http.Request, name string, see look, wake Wake, tell func(to stream, last, revision string) (string, error)) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // or a proxy would keep events back
	to := stream{w, http.NewResponseController(w)}
	if _, err := fmt.Fprint(w, "retry: 1500\n\n"); err != nil || to.control.Flush() != nil {
		return
	}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = r.URL.Query().Get("since")
	}
	topic, leave := p.live.join(r.Context(), name, see, wake)
	defer leave()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	told := ""
	for {
		revision, changed := topic.now()
		if revision != "" && revision != told {
			next, err := tell(to, last, revision)
			if err != nil {
				return // the browser comes back and asks for the rest
			}
			last, told = next, revision
		}
		select {
		case <-changed:
		case <-alive.C:
			if _, err := fmt.Fprint(w, ": alive\n\n"); err != nil || to.control.Flush() != nil || !p.stillSignedIn(r) {
				return
			}
		case <-r.Context().Done():
			return
		case <-p.live.stopped:
			return
		}
	}
}

// wakeOf wakes when something happens to the task, or to any for "".
func (p *Pages) wakeOf(id task.ID) Wake {
	if p.Listen == nil {
		return nil
	}
	return func() (<-chan struct{}, func()) { return p.Listen(id) }
}

func (p *Pages) stillSignedIn(r *http.Request) bool {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return false
	}
	_, err = p.accounts.Check(r.Context(), cookie.Value)
	return err == nil
}

// changes is a connection that says only that the page is out of date.
func (p *Pages) changes(name func(*http.Request) (string, look, error)) http.HandlerFunc {
	return p.changesFor(access.Viewer, name)
}

// changesFor is changes for those who have the role.
func (p *Pages) changesFor(role access.Role, name func(*http.Request) (string, look, error)) http.HandlerFunc {
	return p.signedIn(role, func(w http.ResponseWriter, r *http.Request, v visit) {
		topic, see, err := name(r)
		if err != nil {
			p.fail(w, r, v, err)
			return
		}
		p.listen(w, r, topic, see, p.wakeOf(""), func(to stream, last, revision string) (string, error) {
			if last == revision {
				return revision, nil
			}
			return revision, to.send("changed", revision, "{}")
		})
	})
}

// itemRevision changes with an item of the board and the tasks for it.
func (p *Pages) itemRevision(key task.Key) look {
	return func(ctx context.Context) (string, error) {
		item, err := p.Store.BoardItem(ctx, key.Repository, key.Number)
		if err != nil {
			return "", err
		}
		parts := []string{fmt.Sprint(item.UpdatedAt.UnixMicro())}
		tasks, err := p.tasksOf(ctx, key)
		for _, one := range tasks {
			parts = append(parts, fmt.Sprint(one.Generation, one.State, one.Phase))
		}
		if err != nil || key.Kind == task.Pull {
			return strings.Join(parts, "-"), err
		}
		// A pull request that names the issue shows on its page.
		pulls, err := p.listingRevision(key.Repository, task.Pull)(ctx)
		return strings.Join(append(parts, pulls), "-"), err
	}
}

// listingRevision changes with every item of a kind in a repository.
func (p *Pages) listingRevision(repository string, kind task.ItemKind) look {
	return func(ctx context.Context) (string, error) {
		items, err := p.Store.ListBoardItems(ctx, store.BoardFilter{Repository: repository, Kind: kind})
		newest := int64(0)
		for _, item := range items {
			newest = max(newest, item.UpdatedAt.UnixMicro())
		}
		return fmt.Sprint(len(items), "-", newest), err
	}
}

func (p *Pages) registerBoardLive(mux *http.ServeMux) {
	mux.HandleFunc("GET /live/board/{owner}/{name}/{kind}", p.changes(func(r *http.Request) (string, look, error) {
		kind, err := kindOf(r)
		return "listing " + repositoryOf(r) + " " + string(kind), p.whenHappened(p.listingRevision(repositoryOf(r), kind), true), err
	}))
	mux.HandleFunc("GET /live/board/{owner}/{name}/{kind}/{number}", p.changes(func(r *http.Request) (string, look, error) {
		key, err := keyOf(r)
		return "item " + key.String(), p.whenHappened(p.itemRevision(key), true), err
	}))
}
