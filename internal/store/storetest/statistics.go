package storetest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var statisticsChecks = []check{
	{"nothing is counted where nothing has happened", countNothing},
	{"a run is counted when it has ended, by how it ended", countRuns},
	{"one repository is counted by itself", countOneRepository},
	{"a first attempt is the first run of an issue that was done or failed", countAttempts},
	{"changes and failed checks later make a first attempt wrong, a changed base does not", countCorrections},
	{"the first pull request of an issue is counted once, with its rounds", countPulls},
	{"the wait begins when a task can be handed out", countWaits},
	{"costs are told by day and repository, and the lowest together", countCosts},
	{"an agent is busy from the beginning of a run to its end", countBusy},
	{"what is counted outlasts journals and calls, and goes by its own age", pruneStatistics},
	{"the repositories that have tasks are listed", listRepositories},
	{"what cannot be counted is refused", countWrongly},
}

// today is the time around everything that a test does.
func today() store.StatisticsFilter {
	return store.StatisticsFilter{From: time.Now().Add(-time.Hour), To: far()}
}

func statistics(t testing.TB, s store.Store, filter store.StatisticsFilter) store.Statistics {
	t.Helper()
	return got[store.Statistics](t)(s.Statistics(t.Context(), filter))
}

func runsOf(found store.Statistics) map[store.RunResult]int64 {
	all := map[store.RunResult]int64{}
	for _, one := range found.Runs {
		all[one.Result] += one.Runs
	}
	return all
}

func attemptsOf(found store.Statistics) map[store.AttemptResult]int64 {
	all := map[store.AttemptResult]int64{}
	for _, one := range found.Attempts {
		all[one.Result] += one.Tasks
	}
	return all
}

func roundsOf(found store.Statistics) map[int]int64 {
	all := map[int]int64{}
	for _, one := range found.Rounds {
		all[one.Rounds] += one.Pulls
	}
	return all
}

// runningOn makes a task of what is wanted that an agent holds.
func runningOn(t testing.TB, s store.Store, want store.NewTask) task.Task {
	t.Helper()
	x, queued, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	equal(t, queued, true)
	return claimed(t, s, x)
}

func claimed(t testing.TB, s store.Store, x task.Task) task.Task {
	t.Helper()
	held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(x)}, nil))
	equal(t, len(held), 1)
	return held[0]
}

// openPull has a run open its pull request.
func openPull(t testing.TB, s store.Store, x task.Task) {
	t.Helper()
	action, put, err := s.Put(t.Context(), actionOf(x, store.OpenPullKind))
	must(t, err)
	equal(t, put, true)
	must(t, s.Deliver(t.Context(), action.ID, json.RawMessage(`{"number": 7}`)))
}

// withPull is the task of an issue that was done with a pull request from a branch of its own.
func withPull(t testing.TB, s store.Store) task.Task {
	t.Helper()
	want := newTaskOn(newKey())
	want.Branch = "toryo/" + want.Key.String()
	x := runningOn(t, s, want)
	openPull(t, s, x)
	return moved(t, s, x, task.Finished)
}

// fixUpOf is what is wanted when the pull request of a task is to be changed.
func fixUpOf(x task.Task, reason task.Reason) store.NewTask {
	key := newKey()
	key.Kind = task.Pull
	want := newTaskOn(key)
	want.Branch, want.Reason = x.Branch, reason
	return want
}

func countNothing(t *testing.T, s store.Store) {
	equal(t, statistics(t, s, today()), store.Statistics{})
	filter := today()
	filter.Forge, filter.Repository = task.Gitea, "no/such"
	assigned(t, s)
	equal(t, statistics(t, s, filter), store.Statistics{})
}

func countRuns(t *testing.T, s store.Store) {
	for _, trigger := range []task.Trigger{task.Finished, task.Finished, task.GaveUp, task.Withdrawn, task.PauseSet, task.Returned, task.Lost} {
		moved(t, s, running(t, s), trigger)
	}
	got[task.Task](t)(s.EndRun(t.Context(), endOf(running(t, s), "done", task.Finished)))
	running(t, s)                              // goes on
	moved(t, s, assigned(t, s), task.GaveUp)   // was no run
	moved(t, s, assigned(t, s), task.PauseSet) // nor this
	equal(t, runsOf(statistics(t, s, today())), map[store.RunResult]int64{
		store.RunDone: 3, store.RunFailed: 1, store.RunStopped: 1, store.RunPaused: 1, store.RunReturned: 2,
	})
	earlier := store.StatisticsFilter{From: time.Now().Add(-100 * 24 * time.Hour), To: time.Now().Add(-2 * 24 * time.Hour)}
	equal(t, statistics(t, s, earlier), store.Statistics{})
}

func countOneRepository(t *testing.T, s store.Store) {
	key := newKey()
	key.Repository = "another/one"
	x := runningOn(t, s, newTaskOn(key))
	openPull(t, s, x)
	moved(t, s, x, task.Finished)
	moved(t, s, running(t, s), task.Finished)
	moved(t, s, running(t, s), task.GaveUp)
	filter := today()
	filter.Repository = "another/one"
	for forge, want := range map[task.Forge]int64{"": 1, task.GitHub: 1, task.GitLab: 0} {
		filter.Forge = forge
		found := statistics(t, s, filter)
		equal(t, [4]int64{runsOf(found)[store.RunDone], attemptsOf(found)[store.AttemptRight], found.Pulls.Total.Count, found.Waits.Total.Count}, [4]int64{want, want, want, want})
		equal(t, runsOf(found)[store.RunFailed], 0)
	}
}

func countAttempts(t *testing.T, s store.Store) {
	// Interrupted and then done is right.
	x := running(t, s)
	x = claimed(t, s, moved(t, s, x, task.Lost))
	moved(t, s, x, task.PauseSet)
	x = claimed(t, s, moved(t, s, x, task.Resumed))
	moved(t, s, x, task.Finished)
	// Failed and then done is failed, once.
	x = running(t, s)
	moved(t, s, x, task.GaveUp)
	x = claimed(t, s, moved(t, s, x, task.Assigned))
	moved(t, s, x, task.Finished)
	// Neither a review nor work on a pull request is one.
	key := newKey()
	key.Kind = task.Pull
	review := newTaskOn(key)
	review.Type = task.Review
	moved(t, s, runningOn(t, s, review), task.Finished)
	moved(t, s, runningOn(t, s, newTaskOn(key)), task.Finished)
	moved(t, s, running(t, s), task.Withdrawn)
	equal(t, attemptsOf(statistics(t, s, today())), map[store.AttemptResult]int64{store.AttemptRight: 1, store.AttemptFailed: 1})
}

func countCorrections(t *testing.T, s store.Store) {
	for _, reason := range []task.Reason{task.ReasonChangesRequested, task.ReasonChecksFailed, task.ReasonBaseConflict} {
		runningOn(t, s, fixUpOf(withPull(t, s), reason))
	}
	withPull(t, s)
	elsewhere := fixUpOf(withPull(t, s), task.ReasonChangesRequested)
	elsewhere.Key.Repository = "another/one"
	runningOn(t, s, elsewhere)
	equal(t, attemptsOf(statistics(t, s, today())), map[store.AttemptResult]int64{store.AttemptRight: 3, store.AttemptCorrected: 2})
}

func countPulls(t *testing.T, s store.Store) {
	x := withPull(t, s)
	withPull(t, s)
	fix := fixUpOf(x, task.ReasonChangesRequested)
	for round := range store.MostRounds + 1 {
		fix.Occasion = string(rune('a' + round))
		y := runningOn(t, s, fix)
		openPull(t, s, y) // brings it up to date
		moved(t, s, y, task.GaveUp)
		y = claimed(t, s, moved(t, s, y, task.Assigned)) // retried: the same round
		moved(t, s, y, task.Finished)
	}
	x = claimed(t, s, moved(t, s, x, task.Assigned))
	openPull(t, s, x)
	found := statistics(t, s, today())
	equal(t, found.Pulls.Total.Count, 2)
	equal(t, roundsOf(found), map[int]int64{0: 1, store.MostRounds: 1})
	sum := int64(0)
	for _, one := range found.RoundSums {
		sum += one.Rounds
	}
	equal(t, sum, store.MostRounds+1)
}

func countWaits(t *testing.T, s store.Store) {
	want := newTaskOn(newKey())
	want.BlockedBy = task.KeysOf(newKey())
	x, _, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	free := time.Now()
	must(t, s.Describe(t.Context(), x.ID, store.Description{Role: x.Role, Title: x.Title, URL: x.URL, BlockedBy: want.BlockedBy}))
	must(t, s.Describe(t.Context(), x.ID, store.Description{Role: x.Role, Title: x.Title, URL: x.URL}))
	x = claimed(t, s, x)
	found := statistics(t, s, today()).Waits.Total
	equal(t, found.Count, 1)
	if most := x.UpdatedAt.Sub(free); found.Median > most || found.P90 != found.Median {
		t.Errorf("it waits for %v and %v, but was free for %v", found.Median, found.P90, most)
	}
	filter := today()
	filter.Repository = "another/one"
	later := newTaskOn(newKey())
	later.Key.Repository, later.ReadyAt = "another/one", time.Now()
	x = runningOn(t, s, later)
	found = statistics(t, s, filter).Waits.Total
	if most := x.UpdatedAt.Sub(later.ReadyAt); found.Count != 1 || found.Median > most {
		t.Errorf("%+v, but its time had come %v before", found, most)
	}
}

func countCosts(t *testing.T, s store.Store) {
	var tasks []task.Task
	for _, name := range []string{"a/a", "b/b", "c/c"} {
		want := newTaskOn(newKey())
		want.Key.Repository = name
		x, _, err := s.Assign(t.Context(), want, nil)
		must(t, err)
		tasks = append(tasks, x)
	}
	spend := func(call store.Call, used store.Amount) {
		t.Helper()
		id := got[string](t)(s.ReserveSpend(t.Context(), call, anything))
		if used != (store.Amount{}) {
			must(t, s.SettleSpend(t.Context(), id, used))
		}
	}
	spend(callOf(tasks[0], 100, 50), store.Amount{Tokens: 10, Money: 5})
	spend(callOf(tasks[0], 7, 3), store.Amount{}) // its agent has died
	spend(callOf(tasks[1], 20, 9), store.Amount{})
	tomorrow := callOf(tasks[2], 4, 1)
	tomorrow.At = noon.Add(24 * time.Hour)
	spend(tomorrow, store.Amount{})
	spend(store.Call{At: noon, Most: store.Amount{Tokens: 1}}, store.Amount{})
	full := errors.New("full")
	if _, err := s.ReserveSpend(t.Context(), callOf(tasks[1], 9, 9), func(store.Amount, store.Amount) error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
	filter := store.StatisticsFilter{From: noon, To: noon.Add(48 * time.Hour), Repositories: 2}
	first, second := noon.Truncate(24*time.Hour), noon.Add(24*time.Hour).Truncate(24*time.Hour)
	equal(t, statistics(t, s, filter).Costs, []store.Cost{
		{Day: first, Forge: task.GitHub, Repository: "a/a", Amount: store.Amount{Tokens: 17, Money: 8}},
		{Day: first, Forge: task.GitHub, Repository: "b/b", Amount: store.Amount{Tokens: 20, Money: 9}},
		{Day: first, Others: true, Amount: store.Amount{Tokens: 1}},
		{Day: second, Others: true, Amount: store.Amount{Tokens: 4, Money: 1}},
	})
	filter.Repositories, filter.To = 0, noon.Add(time.Hour)
	equal(t, len(statistics(t, s, filter).Costs), 3)
	filter.Repository = "b/b"
	equal(t, len(statistics(t, s, filter).Costs), 1)
}

func countBusy(t *testing.T, s store.Store) {
	before := time.Now()
	x, ended := running(t, s), running(t, s)
	after := moved(t, s, ended, task.Finished)
	filter := today()
	filter.To = time.Now()
	busy := time.Duration(0)
	for _, day := range statistics(t, s, filter).Busy {
		busy += day.Time
	}
	least := after.UpdatedAt.Sub(ended.UpdatedAt) + filter.To.Sub(x.UpdatedAt).Truncate(time.Microsecond)
	if most := 2 * time.Since(before); busy < least-2*time.Microsecond || busy > most {
		t.Errorf("busy for %v, want between %v and %v", busy, least, most)
	}
}

func pruneStatistics(t *testing.T, s store.Store) {
	x := withPull(t, s)
	running(t, s)
	call := callOf(x, 5, 1)
	call.At = time.Now()
	got[string](t)(s.ReserveSpend(t.Context(), call, anything))
	before := statistics(t, s, today())
	pruned(t, s, store.KeptJournals, far())
	pruned(t, s, store.KeptCalls, far())
	equal(t, pruned(t, s, store.KeptStatistics, time.Now().Add(-24*time.Hour)), 0)
	after := statistics(t, s, today())
	before.Busy, after.Busy = nil, nil // one goes on
	equal(t, after, before)
	if n := pruned(t, s, store.KeptStatistics, far().Add(24*time.Hour)); n < 3 {
		t.Errorf("%d rows went", n)
	}
	after = statistics(t, s, today())
	after.Busy = nil
	equal(t, after, store.Statistics{})
}

func listRepositories(t *testing.T, s store.Store) {
	equal(t, got[[]store.RepositoryName](t)(s.TaskRepositories(t.Context(), 0)), nil)
	for range 2 {
		for _, name := range []store.RepositoryName{{Forge: task.GitLab, Name: "a/a"}, {Forge: task.GitHub, Name: "b/b"}, {Forge: task.GitHub, Name: "a/a"}} {
			want := newTaskOn(newKey())
			want.Key.Forge, want.Key.Repository = name.Forge, name.Name
			_, _, err := s.Assign(t.Context(), want, nil)
			must(t, err)
		}
	}
	all := []store.RepositoryName{{Forge: task.GitHub, Name: "a/a"}, {Forge: task.GitHub, Name: "b/b"}, {Forge: task.GitLab, Name: "a/a"}}
	equal(t, got[[]store.RepositoryName](t)(s.TaskRepositories(t.Context(), 0)), all)
	equal(t, got[[]store.RepositoryName](t)(s.TaskRepositories(t.Context(), 2)), all[:2])
	_, err := s.TaskRepositories(t.Context(), -1)
	wantCode(t, err, task.Invalid)
}

func countWrongly(t *testing.T, s store.Store) {
	for _, filter := range []store.StatisticsFilter{
		{}, {From: noon, To: noon.Add(-24 * time.Hour)}, {To: noon}, {From: noon, To: noon.Add(time.Hour), Repositories: -1},
	} {
		_, err := s.Statistics(t.Context(), filter)
		wantCode(t, err, task.Invalid)
	}
}
