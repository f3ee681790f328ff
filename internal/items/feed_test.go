package items_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// notices is what the database tells of.
type notices struct {
	store.Notices
	listeners []func(store.Notice)
}

func (n *notices) Listen(do func(store.Notice)) func() {
	n.listeners = append(n.listeners, do)
	return func() { n.listeners = nil }
}

func (n *notices) notify(topic store.Topic, subject string) {
	for _, do := range n.listeners {
		do(store.Notice{Topic: topic, Subject: subject})
	}
}

// A subscriber that asks for the item when it is told of a change gets the item as it is
// after that, whoever told of it.
func TestFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testFeed)
}

func testFeed(t *testing.T) {
	t.Helper()
	d, key := newForge()
	s := newSnapshots(t, d)
	feed, board := items.NewFeed(s), &notices{}
	stopFollowing := feed.Follow(board)
	var bodies []string
	var told []items.Change
	stop := feed.Subscribe(func(change items.Change) {
		told = append(told, change)
		bodies = nil
		for _, comment := range get(t, s, key, time.Hour).Comments {
			bodies = append(bodies, comment.Body)
		}
	})
	d.AddComment(key, "alice", "one")
	get(t, s, key, time.Hour) // nobody has told of it: the reading may be as old
	want := func(why string, comments ...string) {
		t.Helper()
		if !slices.Equal(bodies, comments) {
			t.Errorf("%s: the subscriber read %q, want %q", why, bodies, comments)
		}
	}
	d.AddComment(key, "alice", "two")
	feed.Publish(items.Change{Repository: key.Repo(), Items: []task.Key{key}})
	want("an item changed", "one", "two")
	d.AddComment(key, "alice", "three")
	feed.Publish(items.Change{Repository: key.Repo(), All: true})
	want("any item may have changed", "one", "two", "three")
	d.AddComment(key, "alice", "four")
	board.notify(store.TasksChanged, key.String())
	want("a notice that is not about items", "one", "two", "three")
	board.notify(store.BoardChanged, "nonsense")
	want("a notice that cannot be read", "one", "two", "three")
	board.notify(store.BoardChanged, key.String())
	want("a notice of the board", "one", "two", "three", "four")
	board.notify(store.BoardChecked, "team/app c1")
	checked := items.Change{Repository: task.Repository{Forge: task.Board, Name: "team/app"}, Checked: "c1"}
	if last := told[len(told)-1]; !reflect.DeepEqual(last, checked) {
		t.Errorf("a notice of checks on the board: %+v", last)
	}

	pass(time.Minute) // forges keep seconds
	d.AddComment(key, "alice", "five")
	listed, err := d.List(t.Context(), forge.Query{Repository: repo})
	if err != nil {
		t.Fatal(err)
	}
	feed.Listed(key.Repo(), listed)
	want("a newer item in a listing", "one", "two", "three", "four", "five")
	if last := told[len(told)-1]; !last.Listed {
		t.Errorf("it does not say that it was listed: %+v", last)
	}
	before := len(told)
	feed.Listed(key.Repo(), listed)
	pass(2 * time.Second)
	d.AddComment(key, "toryo-bot", "progress")
	soon, err := d.List(t.Context(), forge.Query{Repository: repo})
	if err != nil {
		t.Fatal(err)
	}
	feed.Listed(key.Repo(), soon) // it was read a moment ago
	other := d.AddItem(repo, task.Issue, "alice", "Nobody has read it")
	feed.Listed(key.Repo(), []forge.Item{{Key: other, UpdatedAt: time.Now()}})
	if len(told) != before {
		t.Errorf("a listing without news told of %+v", told[before:])
	}
	stop()
	stopFollowing()
	feed.Publish(items.Change{Items: []task.Key{key}})
	if len(told) != before || len(board.listeners) != 0 {
		t.Error("it goes on after it was stopped")
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := items.NewQueue()
	at := func(number int64) task.Key {
		return task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}
	}
	q.Add()
	select {
	case <-q.Ready():
		t.Error("an empty queue is ready")
	default:
	}
	q.Add(at(1), at(2), at(1))
	q.Add(at(2), at(3))
	if key, found := q.Next(t.Context()); !found || key != at(1) {
		t.Errorf("the first is %v", key)
	}
	q.Add(at(1)) // while it is looked at
	<-q.Ready()
	if all := q.Take(); !slices.Equal(all, []task.Key{at(2), at(3), at(1)}) {
		t.Errorf("there were %v", all)
	}
	q.Return(at(4), at(4))
	select {
	case <-q.Ready():
		t.Error("what was returned wakes")
	default:
	}
	if all := q.Take(); !slices.Equal(all, []task.Key{at(4)}) {
		t.Errorf("returned: %v", all)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, found := q.Next(ended); found {
		t.Error("something was found in an empty queue")
	}
	// Several take what is added, and nothing is left behind.
	const many = 100
	var got sync.Map
	var all sync.WaitGroup
	taking, done := context.WithCancel(t.Context())
	left := make(chan struct{}, many)
	for range 4 {
		all.Go(func() {
			for key, found := q.Next(taking); found; key, found = q.Next(taking) {
				got.Store(key, true)
				left <- struct{}{}
			}
		})
	}
	for number := range int64(many) {
		q.Add(at(number + 1))
	}
	for range many {
		<-left
	}
	done()
	all.Wait()
	for number := range int64(many) {
		if _, found := got.Load(at(number + 1)); !found {
			t.Errorf("%d was lost", number+1)
		}
	}
}
