package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var eventChecks = []check{
	{"events come back as they were, in order and without gaps", appendEvents},
	{"an event that is sent twice is stored once", appendTwice},
	{"sequence 0 is the next of the source", appendUnnumbered},
	{"many that append the same events at once store each once", appendTogether},
	{"events are read from a position on", eventsAfter},
	{"the last sequence is that of the source in the generation", lastSequence},
	{"bad events are refused whole", badEvents},
	{"an event of a generation that is over is refused", staleEvents},
	{"no event of a generation comes behind one of the next", staleEventsTogether},
	{"hundreds of events are one call", appendMany},
}

func eventOf(x task.Task, source task.EventSource, sequence int64) task.Event {
	return task.Event{
		Task: x.ID, Generation: x.Generation, Source: source, Sequence: sequence, Kind: task.NoteTaken,
		At: noon.Add(time.Duration(sequence) * time.Microsecond), Data: json.RawMessage(fmt.Sprintf(`{ "n": %d }`, sequence)),
	}
}

func appendEvents(t *testing.T, s store.Store) {
	x := running(t, s)
	sent := []task.Event{eventOf(x, task.FromAgent, 1), eventOf(x, task.FromAgent, 2)}
	sent[1].Data = nil
	equal(t, got[int](t)(s.Append(t.Context(), sent)), 2)
	events := journal(t, s, x.ID)
	equal(t, len(events), 4)
	for i := range sent {
		sent[i].Position = int64(i + 3)
		equal(t, events[i+2], sent[i])
	}
	equal(t, got[int](t)(s.Append(t.Context(), nil)), 0)
	equal(t, got[int64](t)(s.LastPosition(t.Context(), x.ID)), 4)
	equal(t, got[[]task.Event](t)(s.EventsOf(t.Context(), x.ID, task.NoteTaken)), sent)
	equal(t, got[[]task.Event](t)(s.EventsOf(t.Context(), x.ID, task.NoteTaken, task.StateChanged)), events)
	equal(t, got[[]task.Event](t)(s.EventsOf(t.Context(), x.ID, task.Planned)), nil)
	equal(t, got[[]task.Event](t)(s.EventsOf(t.Context(), x.ID)), nil)
	equal(t, got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 0, 10, task.NoteTaken)), sent)
	equal(t, got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 1, 2, task.NoteTaken, task.StateChanged)), events[1:3])
	equal(t, got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 3, 0, task.NoteTaken)), sent[1:])
	equal(t, len(got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 4, 2, task.NoteTaken))), 0)
	equal(t, len(got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 0, 2))), 0)
	equal(t, got[int64](t)(s.LastPosition(t.Context(), "nothing")), 0)
}

func appendTwice(t *testing.T, s store.Store) {
	x := running(t, s)
	first := eventOf(x, task.FromAgent, 1)
	changed := first
	changed.Data = json.RawMessage(`"changed"`)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{first, changed})), 1)
	second := eventOf(x, task.FromAgent, 2)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{changed, second, second})), 1)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{first, second})), 0)
	// The same sequence of another source or generation is another event.
	other := first
	other.Generation = 2
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{other, eventOf(x, task.FromServer, 1000)})), 2)
	events := journal(t, s, x.ID)
	equal(t, len(events), 6)
	for i, e := range events {
		equal(t, e.Position, int64(i+1))
	}
	equal(t, events[2].Data, first.Data)
}

func appendUnnumbered(t *testing.T, s store.Store) {
	x := running(t, s)
	note := eventOf(x, task.FromServer, 0)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{note, note})), 2)
	moved(t, s, x, task.PauseSet)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{note})), 1)
	for i, e := range journal(t, s, x.ID) {
		equal(t, e.Sequence, int64(i+1))
	}
	// Numbered and unnumbered ones of one call do not collide.
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{note, eventOf(x, task.FromServer, 7)})), 2)
	equal(t, got[int64](t)(s.LastSequence(t.Context(), x.ID, x.Generation, task.FromServer)), int64(8))
}

func appendTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var added atomic.Int64
	together(8, func(int) {
		for sequence := int64(1); sequence <= 10; sequence++ {
			n, err := s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, sequence), eventOf(x, task.FromAgent, sequence+1), eventOf(x, task.FromServer, 0)})
			if err != nil {
				t.Error(err)
			}
			added.Add(int64(n))
		}
	})
	equal(t, added.Load(), int64(11+80))
	events := journal(t, s, x.ID)
	equal(t, len(events), 2+11+80)
	seen := map[string]bool{}
	for i, e := range events {
		equal(t, e.Position, int64(i+1))
		name := fmt.Sprint(e.Source, e.Sequence)
		if seen[name] {
			t.Fatalf("%s is there twice", name)
		}
		seen[name] = true
	}
}

// pageEndsBySize: entries that are large together come in several pages, and one that is larger
// than a page alone. Only who asks without a limit gets all at once.
func pageEndsBySize(t *testing.T, s store.Store) {
	t.Helper()
	x := running(t, s)
	large := func(sequence int64, bytes int) task.Event {
		e := eventOf(x, task.FromAgent, sequence)
		e.Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", bytes))
		return e
	}
	const third = store.MaxEventBytes / 3
	for i, bytes := range []int{third, third, third, store.MaxEventBytes + 1, 1} {
		equal(t, got[int](t)(s.Append(t.Context(), []task.Event{large(int64(i+1), bytes)})), 1)
	}
	var pages []int
	for position := int64(2); ; { // the first two entries are of the server
		page := got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, position, 500))
		if len(page) == 0 {
			break
		}
		pages, position = append(pages, len(page)), page[len(page)-1].Position
	}
	equal(t, pages, []int{2, 1, 1, 1})
	pages = nil
	for position := int64(8); ; { // the other way round
		page := got[[]task.Event](t)(s.EventsBefore(t.Context(), x.ID, position, 500))
		if len(page) == 0 {
			break
		}
		pages, position = append(pages, len(page)), page[0].Position
	}
	equal(t, pages, []int{1, 1, 2, 3})
	equal(t, len(got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 2, 0))), 5)
	equal(t, len(got[[]task.Event](t)(s.EventsOfAfter(t.Context(), x.ID, 0, 500, task.NoteTaken))), 2)
}

func eventsAfter(t *testing.T, s store.Store) {
	x := running(t, s)
	other := running(t, s)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 1), eventOf(x, task.FromAgent, 2)})), 2)
	all := journal(t, s, x.ID)
	equal(t, got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 1, 2)), all[1:3])
	equal(t, got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 3, 2)), all[3:])
	equal(t, len(got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 4, 2))), 0)
	equal(t, got[[]task.Event](t)(s.EventsBefore(t.Context(), x.ID, 4, 2)), all[1:3])
	pageEndsBySize(t, s)
	equal(t, got[[]task.Event](t)(s.EventsBefore(t.Context(), x.ID, 9, 9)), all)
	equal(t, len(got[[]task.Event](t)(s.EventsBefore(t.Context(), x.ID, 1, 2))), 0)
	equal(t, len(journal(t, s, other.ID)), 2)
	equal(t, len(journal(t, s, "nobody")), 0)
}

func lastSequence(t *testing.T, s store.Store) {
	x := running(t, s)
	equal(t, got[int64](t)(s.LastSequence(t.Context(), x.ID, 1, task.FromAgent)), int64(0))
	equal(t, got[int64](t)(s.LastSequence(t.Context(), x.ID, 1, task.FromServer)), int64(2))
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 3), eventOf(x, task.FromAgent, 1)})), 2)
	equal(t, got[int64](t)(s.LastSequence(t.Context(), x.ID, 1, task.FromAgent)), int64(3))
	equal(t, got[int64](t)(s.LastSequence(t.Context(), x.ID, 2, task.FromAgent)), int64(0))
	equal(t, got[int64](t)(s.LastSequence(t.Context(), "nobody", 1, task.FromAgent)), int64(0))
}

func staleEvents(t *testing.T, s store.Store) {
	x := running(t, s)
	now := moved(t, s, x, task.Lost)
	if now.Generation <= x.Generation {
		t.Fatalf("the task is in generation %d after generation %d was lost", now.Generation, x.Generation)
	}
	before := journal(t, s, x.ID)
	_, err := s.Append(t.Context(), []task.Event{eventOf(now, task.FromServer, 0), eventOf(x, task.FromServer, 0)})
	wantCode(t, err, task.StaleGeneration)
	equal(t, journal(t, s, x.ID), before)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{eventOf(now, task.FromServer, 0)})), 1)
}

func staleEventsTogether(t *testing.T, s store.Store) {
	for range 10 {
		x := running(t, s)
		together(4, func(i int) {
			if i == 0 {
				if _, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Lost, Reason: task.ReasonLeaseExpired}); err != nil {
					t.Error(err)
				}
				return
			}
			for {
				_, err := s.Append(t.Context(), []task.Event{eventOf(x, task.FromServer, 0)})
				if err == nil {
					continue
				}
				if task.CodeOf(err) != task.StaleGeneration {
					t.Error(err)
				}
				return
			}
		})
		generations := func(a, b task.Event) int { return cmp.Compare(a.Generation, b.Generation) }
		if all := journal(t, s, x.ID); !slices.IsSortedFunc(all, generations) {
			t.Errorf("the journal is %+v", all)
		}
	}
}

func badEvents(t *testing.T, s store.Store) {
	x, y := running(t, s), running(t, s)
	good := eventOf(x, task.FromAgent, 1)
	for _, spoil := range []func(*task.Event){
		func(e *task.Event) { e.Task = y.ID },
		func(e *task.Event) { e.Source = "moon" },
		func(e *task.Event) { e.Sequence = -1 },
		func(e *task.Event) { e.Generation = 0 },
		func(e *task.Event) { e.Kind = "" },
		func(e *task.Event) { e.Data = json.RawMessage(`{`) },
		func(e *task.Event) { e.Data = json.RawMessage("\"\xff\"") },
	} {
		bad := eventOf(x, task.FromAgent, 2)
		spoil(&bad)
		_, err := s.Append(t.Context(), []task.Event{good, bad})
		wantCode(t, err, task.Invalid)
	}
	equal(t, len(journal(t, s, x.ID)), 2)
	good.Task = "nobody"
	_, err := s.Append(t.Context(), []task.Event{good})
	wantCode(t, err, task.NotFound)
}

func appendMany(t *testing.T, s store.Store) {
	x := running(t, s)
	var all []task.Event
	for i := range int64(700) {
		all = append(all, eventOf(x, task.FromAgent, i+1))
	}
	equal(t, got[int](t)(s.Append(t.Context(), all[:300])), 300)
	equal(t, got[int](t)(s.Append(t.Context(), all)), 400)
	for i, e := range journal(t, s, x.ID) {
		equal(t, e.Position, int64(i+1))
	}
	equal(t, len(journal(t, s, x.ID)), 702)
}
