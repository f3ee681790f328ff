package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var serverChecks = []check{
	{"an election has one leader, who stays it", leadElection},
	{"another one leads when the leader resigns or is silent for too long", loseElection},
	{"of many who want to lead one does", leadTogether},
	{"the clock goes on", clock},
	{"whoever listens hears what is sent, and anything first", listen},
	{"moves of tasks are heard, and claims apart from them", listenForMoves},
	{"what an agent lacks is heard when it changes", listenForAgents},
	{"what happens on the board is heard", listenForBoard},
	{"a subject that is too long or is not text is refused", badNotice},
}

func leads(t *testing.T, s store.Store, election, server string, lasting time.Duration) bool {
	t.Helper()
	return got[bool](t)(s.Lead(t.Context(), election, server, lasting))
}

func leadElection(t *testing.T, s store.Store) {
	equal(t, leads(t, s, "sync", "a", time.Hour), true)
	equal(t, leads(t, s, "sync", "b", time.Hour), false)
	equal(t, leads(t, s, "sync", "a", time.Hour), true)
	equal(t, leads(t, s, "other", "b", time.Hour), true)
	for _, bad := range [][2]string{{"", "a"}, {"sync", ""}} {
		_, err := s.Lead(t.Context(), bad[0], bad[1], time.Hour)
		wantCode(t, err, task.Invalid)
	}
}

func loseElection(t *testing.T, s store.Store) {
	equal(t, leads(t, s, "sync", "a", time.Hour), true)
	must(t, s.Resign(t.Context(), "sync", "b"))
	equal(t, leads(t, s, "sync", "b", time.Hour), false)
	must(t, s.Resign(t.Context(), "sync", "a"))
	equal(t, leads(t, s, "sync", "b", -time.Second), true) // its term is over as it begins
	equal(t, leads(t, s, "sync", "c", time.Hour), true)
	equal(t, leads(t, s, "sync", "b", time.Hour), false)
}

func leadTogether(t *testing.T, s store.Store) {
	var leaders atomic.Int64
	together(8, func(i int) {
		leads, err := s.Lead(t.Context(), "sync", fmt.Sprint("server ", i), time.Hour)
		if err != nil {
			t.Error(err)
		}
		if leads {
			leaders.Add(1)
		}
	})
	equal(t, leaders.Load(), int64(1))
}

func clock(t *testing.T, s store.Store) {
	first := got[time.Time](t)(s.Time(t.Context()))
	second := got[time.Time](t)(s.Time(t.Context()))
	if second.Before(first) || first.Year() < 2020 || first.Location() != time.UTC {
		t.Fatalf("the time is %s and then %s", first, second)
	}
}

// ears listens and waits for what is heard.
type ears chan store.Notice

func listenTo(t *testing.T, s store.Store) ears {
	t.Helper()
	heard := make(ears, 1000)
	t.Cleanup(s.Listen(func(n store.Notice) { heard <- n }))
	return heard
}

// wait reads until the notice comes, and returns what came before it.
func (e ears) wait(t *testing.T, want store.Notice) (before []store.Notice) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case n := <-e:
			if n == want {
				return before
			}
			before = append(before, n)
		case <-ctx.Done():
			t.Fatalf("%+v was not heard; %+v was", want, before)
		}
	}
}

func listen(t *testing.T, s store.Store) {
	heard, more := listenTo(t, s), listenTo(t, s)
	for _, e := range []ears{heard, more} {
		e.wait(t, store.Notice{})
	}
	sent := store.Notice{Topic: store.BellRung, Subject: "ベル 'quoted'"}
	must(t, s.Notify(t.Context(), sent))
	for _, e := range []ears{heard, more} {
		e.wait(t, sent)
	}
	stopped := make(ears, 10)
	stop := s.Listen(func(n store.Notice) { stopped <- n })
	stopped.wait(t, store.Notice{})
	stop()
	must(t, s.Notify(t.Context(), store.Notice{Topic: store.BellRung, Subject: "later"}))
	heard.wait(t, store.Notice{Topic: store.BellRung, Subject: "later"})
	for len(stopped) > 0 {
		if n := <-stopped; n.Subject == "later" {
			t.Fatal("who has stopped listening hears more")
		}
	}
}

func listenForMoves(t *testing.T, s store.Store) {
	heard := listenTo(t, s)
	x := assigned(t, s)
	changed := store.Notice{Topic: store.TasksChanged, Subject: string(x.ID)}
	heard.wait(t, changed)
	got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(x)}, nil))
	waits := store.Notice{Topic: store.WaitsChanged, Subject: string(x.ID)}
	if before := heard.wait(t, waits); slices.Contains(before, changed) {
		t.Fatal("a claim was heard as if it let something be handed out")
	}
	moved(t, s, x, task.Lost)
	heard.wait(t, changed)
	_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished})
	wantIllegal(t, err)
	must(t, s.Describe(t.Context(), x.ID, store.Description{Role: "OTHER"}))
	heard.wait(t, changed)
	got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "operator"}))
	heard.wait(t, store.Notice{Topic: store.WaitsChanged})
}

// listenForAgents checks that what an agent lacks is heard of when it changes.
func listenForAgents(t *testing.T, s store.Store) {
	heard := listenTo(t, s)
	token := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "first", Role: "agent", Hash: []byte("first")}))
	is := func(unable task.Reason) {
		t.Helper()
		must(t, s.AgentIs(t.Context(), token.ID, store.Condition{Unable: unable}, time.Now()))
	}
	waits, end := store.Notice{Topic: store.WaitsChanged}, store.Notice{Topic: store.BellRung, Subject: "end"}
	is(task.ReasonNoSandbox)
	heard.wait(t, waits)
	is(task.ReasonNoSandbox)
	must(t, s.Notify(t.Context(), end))
	if before := heard.wait(t, end); slices.Contains(before, waits) {
		t.Error("what an agent says again is heard")
	}
	is("")
	heard.wait(t, waits)
}

func listenForBoard(t *testing.T, s store.Store) {
	heard := listenTo(t, s)
	_, err := s.AddBoardRepository(t.Context(), store.BoardRepository{Name: "team/app", DefaultBranch: "main"})
	must(t, err)
	item := got[store.BoardItem](t)(s.AddBoardItem(t.Context(), store.BoardItem{Repository: "team/app", Kind: task.Issue, Title: "x", Author: "a"}))
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: item.Number}
	changed := store.Notice{Topic: store.BoardChanged, Subject: key.String()}
	heard.wait(t, changed)
	must(t, s.SetBoardAssignee(t.Context(), "team/app", item.Number, "bot", true, "a"))
	heard.wait(t, changed)
	got[store.BoardComment](t)(s.AddBoardComment(t.Context(), store.BoardComment{Repository: "team/app", Number: item.Number, Author: "a", Body: "hello"}))
	heard.wait(t, changed)
	must(t, s.SetBoardStatus(t.Context(), store.BoardStatus{Repository: "team/app", Commit: "abc", Context: "tests", State: "success"}))
	heard.wait(t, store.Notice{Topic: store.BoardChecked, Subject: "team/app abc"})
}

func badNotice(t *testing.T, s store.Store) {
	wantCode(t, s.Notify(t.Context(), store.Notice{Topic: store.BellRung, Subject: string(make([]byte, 3000))}), task.TooLarge)
	wantCode(t, s.Notify(t.Context(), store.Notice{Topic: store.BellRung, Subject: "a\x00b"}), task.Invalid)
}

// elsewhere: what one process does is heard in another, also by one that listens
// later, and whose connection is its own.
func elsewhere(t *testing.T, open func() store.Store) {
	here, there := opened(t, open), opened(t, open)
	heard := listenTo(t, there)
	heard.wait(t, store.Notice{}) // at once
	heard.wait(t, store.Notice{}) // the connection stands
	x := assigned(t, here)
	heard.wait(t, store.Notice{Topic: store.TasksChanged, Subject: string(x.ID)})
	_, _, err := here.Assign(t.Context(), newTaskOn(newKey()), func(task.Task, task.Task) []store.Action {
		return []store.Action{{}} // cannot be stored: nothing happens
	})
	if err == nil {
		t.Fatal("an action of nothing was stored")
	}
	y := assigned(t, here)
	if before := heard.wait(t, store.Notice{Topic: store.TasksChanged, Subject: string(y.ID)}); len(before) > 0 {
		t.Fatalf("what did not happen was heard: %+v", before)
	}
}

// Elsewhere checks that notices reach other processes; for adapters that can.
func Elsewhere(t *testing.T, fresh Fresh) { elsewhere(t, fresh(t)) }
