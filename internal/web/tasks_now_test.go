package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Who asks while something is read gets what is read after that, and all who wait share it.
func TestSharedReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads int
		get := func(ctx context.Context) (int, error) {
			reads++
			mine := reads
			<-time.After(time.Second)
			return mine, ctx.Err()
		}
		var one shared[int]
		var all sync.WaitGroup
		ask := func(ctx context.Context, want int, wantErr error) {
			all.Go(func() {
				if got, err := one.read(ctx, get); got != want || !errors.Is(err, wantErr) {
					t.Errorf("it is %d, %v; want %d, %v", got, err, want, wantErr)
				}
			})
			synctest.Wait()
		}
		ask(t.Context(), 1, nil)
		gone, leave := context.WithCancel(t.Context())
		ask(gone, 2, nil) // reads it for the others
		for range 99 {
			ask(t.Context(), 2, nil)
		}
		impatient, end := context.WithCancel(t.Context())
		ask(impatient, 0, context.Canceled)
		leave()
		end()
		all.Wait()
		if reads != 2 {
			t.Errorf("it was read %d times", reads)
		}
	})
}

// A reading that panics leaves nobody waiting, and the next one begins.
func TestSharedReadingThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var one shared[int]
		go func() {
			defer func() { _ = recover() }()
			_, _ = one.read(t.Context(), func(context.Context) (int, error) {
				<-time.After(time.Second)
				panic("broken")
			})
		}()
		synctest.Wait()
		failed := make(chan error, 1)
		one.mutex.Lock()
		reading := one.next
		one.mutex.Unlock()
		if reading != nil {
			t.Fatal("the first reading has not begun")
		}
		go func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_, _ = one.read(t.Context(), func(context.Context) (int, error) { panic("broken") })
		}()
		synctest.Wait()
		go func() {
			_, err := one.read(t.Context(), nil)
			failed <- err
		}()
		if err := <-failed; !errors.Is(err, errNotRead) {
			t.Errorf("who waited for it is told %v", err)
		}
		if got, err := one.read(t.Context(), func(context.Context) (int, error) { return 1, nil }); got != 1 || err != nil {
			t.Errorf("the next reading is %d, %v", got, err)
		}
	})
}

// A reading that does not end is given up: it does not stop those that come after it.
func TestSharedReadingThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var one shared[int]
		var all sync.WaitGroup
		all.Go(func() {
			_, err := one.read(t.Context(), func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
		synctest.Wait()
		if got, err := one.read(t.Context(), func(context.Context) (int, error) { return 1, nil }); got != 1 || err != nil {
			t.Errorf("the next reading is %d, %v", got, err)
		}
		all.Wait()
	})
}

// What happens soon after a look is seen when the pause after that look is over, however seldom
// there is a look without an event.
func TestLookAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var happened int64
		p := &Pages{Options: Options{Happened: func() (int64, int64) { return happened, 0 }}}
		looks := 0
		see := p.whenHappened(func(context.Context) (string, error) {
			looks++
			<-time.After(10 * time.Millisecond) // how long a look takes
			return time.Now().String(), nil
		}, false)
		first, err := see(t.Context())
		must(t, err)
		if again, err := see(t.Context()); again != first || err != nil || looks != 1 {
			t.Errorf("nothing has happened, but there were %d looks: %v", looks, err)
		}
		happened++
		begun := time.Now()
		next, err := see(t.Context())
		must(t, err)
		if took := time.Since(begun); next == first || looks != 2 || took != (lookShare+1)*10*time.Millisecond {
			t.Errorf("after %v there were %d looks", took, looks)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		happened++
		if _, err := see(gone); !errors.Is(err, context.Canceled) || looks != 2 {
			t.Errorf("a look that nobody waits for: %d looks, %v", looks, err)
		}
	})
}

// Those who look at the same list share its rows, and nobody sees those of another list or in another language.
func TestSharedRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	h.assignOne(t, 1, "Beta")
	h.assignOne(t, 2, "Alpha")
	now, err := h.pages.tasksForPage(t.Context())
	must(t, err)
	rows := func(language task.Language, address string) []queueRow {
		t.Helper()
		view := queueView{listing: readListing(httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil), stateName, typeName, repositoryName, reasonName, beforeName)}
		rows, err := h.pages.queueRows(t.Context(), visit{language: language}, &view, now)
		must(t, err)
		if len(rows) == 0 {
			t.Fatalf("%s has no rows", address)
		}
		return rows
	}
	titles := rows(task.English, "/queue?sort=title")
	if again := rows(task.English, "/queue?sort=title&page=2"); &again[0] != &titles[0] {
		t.Error("the rows were made again for another reader of the list")
	}
	if titles[0].Title != "Alpha" {
		t.Errorf("the first is %q", titles[0].Title)
	}
	if reverse := rows(task.English, "/queue?sort=-title"); reverse[0].Title != "Beta" {
		t.Errorf("in the other order the first is %q", reverse[0].Title)
	}
	if found := rows(task.English, "/queue?sort=title&q=beta"); len(found) != 1 {
		t.Errorf("a search finds %d", len(found))
	}
	if other := rows(task.Japanese, "/queue?sort=title"); other[0].why.reason == titles[0].why.reason {
		t.Errorf("in both languages the reason is %q", other[0].why.reason)
	}
}
