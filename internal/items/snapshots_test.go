package items_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

const repo = "owner/name"

// pass lets time pass in the bubble that a test runs in. It costs no real time.
func pass(d time.Duration) {
	<-time.After(d)
}

// newForge returns a forge with one issue.
func newForge() (*dummy.Forge, task.Key) {
	d := dummy.New(task.Gitea, "toryo-bot")
	d.AddRepository(repo, forge.Remote{})
	issue := d.AddItem(repo, task.Issue, "alice", "Fix the roof")
	return d, issue
}

func newSnapshots(t *testing.T, d *dummy.Forge) *items.Snapshots {
	t.Helper()
	s := items.NewSnapshots(map[task.Forge]forge.Reader{task.Gitea: d}, items.DefaultAges, nil)
	t.Cleanup(s.Stop)
	return s
}

func get(t *testing.T, s *items.Snapshots, key task.Key, maxAge time.Duration) items.Snapshot {
	t.Helper()
	snapshot, err := s.Get(t.Context(), key, maxAge)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestSnapshotIsReadOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		d.AddComment(key, "alice", "please")
		s := newSnapshots(t, d)
		slow := make(chan struct{})
		d.SetFaults(func(dummy.Call) dummy.Fault {
			<-slow
			return dummy.None
		})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if got := get(t, s, key, time.Minute); len(got.Comments) != 1 || got.Item.Title != "Fix the roof" {
					t.Errorf("got %+v", got)
				}
			})
		}
		pass(time.Second) // everyone has asked by now
		close(slow)
		all.Wait()
		if got := len(d.Calls()); got != 2 {
			t.Errorf("%d requests for 50 callers, want one for the item and one for its comments", got)
		}
	})
}

// An item that does not change costs one request each time it grows too old, and
// none before that.
func TestSnapshotOfAQuietItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		pass(time.Minute)
		get(t, s, key, 0)
		pass(10 * time.Second)
		get(t, s, key, 0) // the item has settled by now
		before := len(d.Calls())
		for range 11 {
			pass(10 * time.Second)
			get(t, s, key, 30*time.Second)
		}
		if got := len(d.Calls()) - before; got != 2 {
			t.Errorf("%d requests in 110 seconds, want 2: it may be 30 seconds old", got)
		}
	})
}

func TestSnapshotSeesChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		get(t, s, key, time.Hour)
		d.AddComment(key, "alice", "stop!")
		if got := get(t, s, key, time.Hour); len(got.Comments) != 0 {
			t.Fatal("nobody said that it changed, and it was not old, but it was read")
		}
		s.Changed(key)
		if got := get(t, s, key, time.Hour); len(got.Comments) != 1 {
			t.Fatalf("it was said to have changed, but has %d comments", len(got.Comments))
		}
		// Within the second of the last comment there comes another: the item
		// looks the same as before.
		d.AddComment(key, "alice", "go on")
		pass(3 * time.Second)
		if got := get(t, s, key, time.Second); len(got.Comments) != 2 {
			t.Fatalf("the second comment of the same second is missing: %d", len(got.Comments))
		}
		// An edit does not move the item; it is seen when all is read anew, and
		// after two minutes in any case.
		comment := get(t, s, key, time.Second).Comments[0]
		for _, age := range []time.Duration{0, time.Minute} {
			pass(3 * time.Minute)
			d.Edit(key, comment.ID, "go on: "+age.String())
			if got := get(t, s, key, age).Comments[0]; got.Body != "go on: "+age.String() {
				t.Errorf("the comment is %q", got.Body)
			}
		}
		calls := len(d.Calls())
		s.ChangedAll(task.Gitea, repo)
		s.ChangedAll(task.Gitea, "someone/else")
		get(t, s, key, time.Hour)
		if got := len(d.Calls()) - calls; got != 2 {
			t.Errorf("%d requests after a change somewhere in the repository, want 2", got)
		}
	})
}

// A change that is told while the item is being read may have missed the reading.
func TestChangeDuringReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		reading, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		d.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "Comments" {
				once.Do(func() {
					close(reading)
					<-goOn
				})
			}
			return dummy.None
		})
		first := make(chan items.Snapshot)
		go func() { first <- get(t, s, key, time.Hour) }()
		<-reading
		s.Changed(key)
		second := make(chan items.Snapshot)
		go func() { second <- get(t, s, key, time.Hour) }()
		synctest.Wait()
		close(goOn)
		<-first
		<-second
		if got := d.Count("Comments"); got != 2 {
			t.Errorf("the comments were read %d times, want again for who asked after the change", got)
		}
	})
}

func TestSnapshotFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		d.SetFaults(func(dummy.Call) dummy.Fault { return dummy.Refuse })
		if _, err := s.Get(t.Context(), key, 0); task.CodeOf(err) != task.Unavailable {
			t.Errorf("error %v", err)
		}
		d.SetFaults(nil)
		get(t, s, key, 0)
		pass(time.Minute)
		d.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "Comments" {
				return dummy.Refuse
			}
			return dummy.None
		})
		s.Changed(key)
		got, err := s.Get(t.Context(), key, 0)
		if err == nil || got.Item.Title != "Fix the roof" {
			t.Errorf("a failed reading gave %+v, %v; want the last snapshot with the error", got, err)
		}
		d.SetFaults(nil)
		d.AddComment(key, "alice", "hello")
		if got := get(t, s, key, time.Hour); len(got.Comments) != 1 {
			t.Error("a failed reading counted as one")
		}
		if _, err := s.Get(t.Context(), task.Key{Forge: task.Gitea, Repository: repo, Kind: task.Issue, Number: 99}, 0); task.CodeOf(err) != task.NotFound {
			t.Errorf("an item that is gone: %v", err)
		}
		if _, err := s.Get(t.Context(), task.Key{Forge: task.GitHub, Repository: repo, Kind: task.Issue, Number: 1}, 0); task.CodeOf(err) != task.Unsupported {
			t.Errorf("an unknown forge: %v", err)
		}
	})
}

// The first caller goes away; the others still get what it had begun to read.
func TestReadingOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		goOn := make(chan struct{})
		d.SetFaults(func(dummy.Call) dummy.Fault {
			<-goOn
			return dummy.None
		})
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := make(chan error), make(chan error)
		go func() { _, err := s.Get(ctx, key, time.Hour); gone <- err }()
		synctest.Wait()
		go func() { _, err := s.Get(t.Context(), key, time.Hour); stays <- err }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left got %v", err)
		}
		close(goOn)
		if err := <-stays; err != nil {
			t.Errorf("the one who stayed got %v", err)
		}
		if got := d.Count("Item"); got != 1 {
			t.Errorf("the item was read %d times", got)
		}
	})
}

func TestStopEndsReadings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		d.SetFaults(func(dummy.Call) dummy.Fault { return dummy.Hang })
		result := make(chan error)
		go func() { _, err := s.Get(t.Context(), key, 0); result <- err }()
		synctest.Wait()
		s.Stop()
		if err := <-result; err == nil {
			t.Error("a reading that hangs ended well")
		}
		if _, err := s.Get(t.Context(), key, 0); task.CodeOf(err) != task.Interrupted {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// Room for other items is made while an item is read: whoever waits for it gets it all the
// same, from a reading that began after the call.
func TestItemIsForgottenWhileItIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, key := newForge()
		s := newSnapshots(t, d)
		get(t, s, key, time.Hour)
		s.Changed(key)
		reads := 0
		d.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Key != key || call.Method != "Item" {
				return dummy.None
			}
			if reads++; reads > 5 {
				return dummy.Refuse
			}
			if reads > 1 {
				return dummy.None
			}
			pass(time.Second) // the item is the one that was asked for the longest ago
			for n := range int64(5000) {
				_, _ = s.Get(t.Context(), task.Key{Forge: task.GitHub, Repository: repo, Kind: task.Issue, Number: 1000 + n}, time.Hour)
			}
			return dummy.None
		})
		before := time.Now()
		if got := get(t, s, key, time.Hour); got.ReadAt.Before(before) || got.Item.Title != "Fix the roof" {
			t.Errorf("it was read at %v: %+v", got.ReadAt, got.Item)
		}
	})
}

func TestMentionsAreBounded(t *testing.T) {
	t.Parallel()
	_, key := newForge()
	text := "Depends on #100000"
	for n := range 5000 {
		text += fmt.Sprintf(", #%d", 200000+n)
	}
	if got := items.Mentioned(forge.Item{Key: key, Body: text}, items.BlockingWords); len(got) != 100 || got[0].Number != 100000 {
		t.Errorf("%d items are mentioned", len(got))
	}
}
