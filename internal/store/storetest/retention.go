package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var retentionChecks = []check{
	{"of a task that ended long ago the moves stay, and of all others everything", pruneJournals},
	{"a task that begins again is trimmed again after its end", pruneJournalsAgain},
	{"a comment that runs were told of stays known as such", pruneComments},
	{"a comment that begins as a hash does loses its text", pruneHashes},
	{"one step removes no more than its limit, whatever there is", pruneLimit},
	{"a write that was made stays known, without its text", pruneWrites},
	{"whoever is cut off in the middle removes the rest the next time", pruneInSteps},
	{"revoked tokens go with their names, valid ones stay", pruneTokens},
	{"the audit goes by its age", pruneAudit},
	{"what a model was sent goes, and the answer stays", pruneSent},
	{"the sums of old days go", pruneDays},
	{"tables are listed with their sizes", tableSizes},
	{"what is not kept cannot be pruned", pruneNothing},
}

// far is after everything that a test does.
func far() time.Time { return time.Now().Add(time.Hour) }

// pruned prunes in small steps and says how many rows went.
func pruned(t testing.TB, s store.Store, what store.Kept, before time.Time) int {
	t.Helper()
	all := 0
	for {
		removed, more, err := s.Prune(t.Context(), what, before, 3)
		must(t, err)
		if all += removed; !more {
			equal(t, got[store.Extent](t)(s.Prunable(t.Context(), what, before)), store.Extent{})
			return all
		}
	}
}

// written fills a task with what is kept of one: entries, comments, writes.
func written(t testing.TB, s store.Store, x task.Task) {
	t.Helper()
	var events []task.Event
	for i := range int64(10) {
		events = append(events, eventOf(x, task.FromAgent, i+1))
	}
	events = append(events, task.Event{
		Task: x.ID, Generation: x.Generation, Source: task.FromAgent, Sequence: 11, Kind: task.SignalTaken, At: noon,
		Data: json.RawMessage(`{"signal": {"signal": "comments", "position": 3, "comments": [{"body": "uno"}]}}`),
	})
	got[int](t)(s.Append(t.Context(), events))
	_, last, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	must(t, s.AppendComments(t.Context(), x.ID, 0, last, []task.CommentEntry{
		commentEntry("1", "one", task.CommentPresent), commentEntry("2", "two", task.CommentNew),
		commentEntry("1", "uno", task.CommentEdited), commentEntry("3", "late", task.CommentNew),
	}))
	must(t, s.StartComments(t.Context(), x.ID, x.Generation, last+1))
}

// contents is all that is kept of a task for a time.
func contents(t testing.TB, s store.Store, id task.ID) string {
	t.Helper()
	data, err := json.Marshal([]any{
		journal(t, s, id), got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), id, 0, 0)),
		got[int64](t)(s.CommentsStart(t.Context(), id)),
	})
	must(t, err)
	return string(data)
}

func ofKind(events []task.Event, kind task.EventKind) (some []task.Event) {
	for _, e := range events {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

func pruneJournals(t *testing.T, s store.Store) {
	old := running(t, s)
	written(t, s, old)
	old = moved(t, s, old, task.Finished)
	young, runs, waits, paused := running(t, s), running(t, s), assigned(t, s), running(t, s)
	others := []task.Task{young, runs, waits, paused}
	for _, x := range others {
		written(t, s, x)
	}
	young = moved(t, s, young, task.GaveUp)
	moved(t, s, paused, task.PauseSet)
	before := map[task.ID]string{}
	for _, x := range others {
		before[x.ID] = contents(t, s, x.ID)
	}
	extent := got[store.Extent](t)(s.Prunable(t.Context(), store.KeptJournals, young.UpdatedAt))
	if extent.Rows < 11 || extent.Bytes < 100 {
		t.Errorf("it would remove %+v", extent)
	}
	if n := pruned(t, s, store.KeptJournals, young.UpdatedAt); n < 11 {
		t.Errorf("%d rows went", n)
	}
	left := journal(t, s, old.ID)
	equal(t, len(ofKind(left, task.StateChanged)), 3)
	equal(t, len(left), 3)
	for _, x := range others {
		equal(t, contents(t, s, x.ID), before[x.ID])
	}
	equal(t, got[task.Task](t)(s.Task(t.Context(), old.ID)), old)
	// Not even when everything is old goes what has not ended.
	pruned(t, s, store.KeptJournals, far())
	for _, x := range []task.Task{runs, waits, paused} {
		equal(t, contents(t, s, x.ID), before[x.ID])
	}
	equal(t, len(journal(t, s, young.ID)), 3)
	// A new entry of the server finds its place.
	note := eventOf(old, task.FromServer, 0)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{note})), 1)
	equal(t, len(journal(t, s, old.ID)), 4)
}

func pruneJournalsAgain(t *testing.T, s store.Store) {
	x := running(t, s)
	written(t, s, x)
	moved(t, s, x, task.Finished)
	pruned(t, s, store.KeptJournals, far())
	again := moved(t, s, x, task.Assigned)
	held, err := s.Claim(t.Context(), []store.Claim{claimOf(again)}, nil)
	must(t, err)
	written(t, s, held[0])
	equal(t, pruned(t, s, store.KeptJournals, far()), 0)
	equal(t, len(ofKind(journal(t, s, x.ID), task.NoteTaken)), 10)
	moved(t, s, held[0], task.Finished)
	pruned(t, s, store.KeptJournals, far())
	equal(t, len(ofKind(journal(t, s, x.ID), task.NoteTaken)), 0)
}

func pruneComments(t *testing.T, s store.Store) {
	x := running(t, s)
	written(t, s, x)
	moved(t, s, x, task.Finished)
	pruned(t, s, store.KeptJournals, far())
	known, last, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	var bodies []string
	for _, entry := range known {
		bodies = append(bodies, fmt.Sprint(entry.Position, entry.ID, entry.Change, entry.Before, entry.About, " ", entry.Body))
	}
	equal(t, bodies, []string{"22new " + task.MarkOf("two"), "31edited " + task.MarkOf("uno"), "43new " + task.MarkOf("late")})
	equal(t, last, 4)
	equal(t, len(got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), x.ID, 0, 0))), 3)
	// Up to here a run had taken them up, as its journal said.
	equal(t, got[int64](t)(s.CommentsStart(t.Context(), x.ID)), 3)
	must(t, s.AppendComments(t.Context(), x.ID, 0, 4, []task.CommentEntry{commentEntry("4", "more", task.CommentNew)}))
}

func pruneHashes(t *testing.T, s store.Store) {
	x := running(t, s)
	mark := task.MarkOf("x")
	texts := []string{"sha256: the password is 1234", "sha256:" + strings.Repeat("z", 64), strings.ToUpper(mark), mark + "0", mark}
	var entries []task.CommentEntry
	for i, text := range texts {
		entries = append(entries, commentEntry(fmt.Sprint(i), text, task.CommentNew))
	}
	must(t, s.AppendComments(t.Context(), x.ID, 0, 0, entries))
	moved(t, s, x, task.Finished)
	pruned(t, s, store.KeptJournals, far())
	known, _, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	var bodies []string
	for _, entry := range known {
		bodies = append(bodies, entry.Body)
	}
	want := []string{mark} // it tells nothing
	for i := range texts[:4] {
		want = slices.Insert(want, i, task.MarkOf(texts[i]))
	}
	equal(t, bodies, want)
}

func pruneLimit(t *testing.T, s store.Store) {
	x := running(t, s)
	var entries []task.CommentEntry
	for i := range 20 {
		entries = append(entries, commentEntry("1", fmt.Sprint("version ", i), task.CommentEdited))
	}
	must(t, s.AppendComments(t.Context(), x.ID, 0, 0, entries))
	moved(t, s, x, task.Finished)
	for more, steps := true, 0; more; steps++ {
		var removed int
		var err error
		if removed, more, err = s.Prune(t.Context(), store.KeptJournals, far(), 3); err != nil || removed > 3 {
			t.Fatalf("step %d removes %d, %v", steps, removed, err)
		}
	}
	known, _, err := s.KnownComments(t.Context(), x.ID)
	must(t, err)
	equal(t, len(known), 1)
	equal(t, known[0].Body, task.MarkOf("version 19"))
}

func pruneWrites(t *testing.T, s store.Store) {
	x := running(t, s)
	kinds := []string{"comment", "set_status", "progress", "open_pull"}
	stored := map[string]store.Action{}
	for _, kind := range kinds {
		stored[kind], _ = put(t, s, actionOf(x, kind))
		must(t, s.Deliver(t.Context(), stored[kind].ID, json.RawMessage(`{"id": "1"}`)))
	}
	free, _ := put(t, s, own(x.Key, "comment"))
	text := own(x.Key, "reply")
	text.Payload = json.RawMessage(`{"text": "yes"}`)
	text, _ = put(t, s, text)
	must(t, s.Refuse(t.Context(), text.ID, task.ReasonStaleGeneration, "no"))
	waits, _ := put(t, s, actionOf(x, "comment"))
	moved(t, s, x, task.Finished)
	pruned(t, s, store.KeptJournals, far())
	action := func(a store.Action) store.Action {
		return got[store.Action](t)(s.Action(t.Context(), a.IdempotencyKey))
	}
	equal(t, action(stored["comment"]).Payload, nil)
	equal(t, action(stored["comment"]).Result, json.RawMessage(`{"id": "1"}`))
	equal(t, action(stored["open_pull"]).Payload, nil)
	equal(t, action(stored["set_status"]).Payload, stored["set_status"].Payload)
	equal(t, action(text).Payload, nil)
	equal(t, action(text).Status, store.Refused)
	equal(t, action(waits).Payload, waits.Payload)
	equal(t, action(free).Status, store.Pending)
	_, err := s.Action(t.Context(), stored["progress"].IdempotencyKey)
	wantCode(t, err, task.NotFound)
	_, isNew := put(t, s, store.Action{Item: x.Key, Task: x.ID, Generation: x.Generation, IdempotencyKey: stored["comment"].IdempotencyKey, Kind: "comment"})
	equal(t, isNew, false)
}

func pruneInSteps(t *testing.T, s store.Store) {
	x, same := running(t, s), running(t, s)
	for _, one := range []task.Task{x, same} {
		written(t, s, one)
		moved(t, s, one, task.Finished)
	}
	for {
		ctx, cut := context.WithCancel(t.Context())
		_, more, err := s.Prune(ctx, store.KeptJournals, far(), 1)
		must(t, err)
		cut()
		if _, _, err := s.Prune(ctx, store.KeptJournals, far(), 1); err == nil {
			t.Fatal("it goes on after its end")
		}
		if !more {
			break
		}
	}
	equal(t, pruned(t, s, store.KeptJournals, far()), 0)
	for _, one := range []task.Task{x, same} {
		equal(t, len(journal(t, s, one.ID)), 3)
		equal(t, got[int64](t)(s.CommentsStart(t.Context(), one.ID)), 3)
		equal(t, len(got[[]task.CommentEntry](t)(s.CommentsAfter(t.Context(), one.ID, 0, 0))), 3)
	}
}

func pruneTokens(t *testing.T, s store.Store) {
	leave(t, s, "one")
	agent := got[store.Token](t)(s.Enrol(t.Context(), []byte("one"), agentToken("a", "h1"), noon))
	must(t, s.AgentsSeen(t.Context(), map[string]time.Time{agent.ID: noon}))
	valid := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "b", Role: "viewer", Hash: []byte("h2"), CreatedAt: noon}))
	must(t, s.RevokeToken(t.Context(), agent.ID, noon))
	equal(t, pruned(t, s, store.KeptTokens, noon), 0)
	equal(t, pruned(t, s, store.KeptTokens, noon.Add(time.Second)), 1)
	tokens := got[[]store.Token](t)(s.ListTokens(t.Context()))
	equal(t, len(tokens), 1)
	equal(t, tokens[0].ID, valid.ID)
	leave(t, s, "two")
	got[store.Token](t)(s.Enrol(t.Context(), []byte("two"), agentToken("a", "h3"), noon))
}

func pruneAudit(t *testing.T, s store.Store) {
	for i := range 5 {
		got[store.AuditEntry](t)(s.AddAudit(t.Context(), store.AuditEntry{At: noon.Add(time.Duration(i) * time.Hour), Actor: "alice", Action: "task.stop", Subject: fmt.Sprint(i)}))
	}
	equal(t, pruned(t, s, store.KeptAudit, noon.Add(4*time.Hour)), 4)
	left := got[[]store.AuditEntry](t)(s.ListAudit(t.Context(), "", 0))
	equal(t, len(left), 1)
	equal(t, left[0].Subject, "4")
}

func pruneSent(t *testing.T, s store.Store) {
	thread := newThread(t, s)
	turn := begin(t, s, store.Ask{ThreadID: thread.ID, Content: "why?"})
	answer := got[store.Message](t)(s.EndTurn(t.Context(), store.Ended{MessageID: turn.Message.ID, Claim: "me", Content: "so", Sent: json.RawMessage(`{"system": "be kind"}`)}))
	got[json.RawMessage](t)(s.Sent(t.Context(), answer.ID))
	equal(t, pruned(t, s, store.KeptSent, answer.CreatedAt), 0)
	equal(t, pruned(t, s, store.KeptSent, answer.CreatedAt.Add(time.Second)), 1)
	_, err := s.Sent(t.Context(), answer.ID)
	wantCode(t, err, task.NotFound)
	messages := got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))
	if !slices.ContainsFunc(messages, func(m store.Message) bool { return m.ID == answer.ID }) {
		t.Error("the answer is gone")
	}
}

func pruneDays(t *testing.T, s store.Store) {
	x := assigned(t, s)
	for range 3 { // as many as one step removes
		got[string](t)(s.ReserveSpend(t.Context(), callOf(x, 3, 0), anything))
	}
	pruned(t, s, store.KeptCalls, noon.Add(time.Minute))
	wantSpent(t, s, x.ID, noon, store.Amount{Tokens: 9}, store.Amount{Tokens: 9})
	pruned(t, s, store.KeptCalls, noon.Add(48*time.Hour))
	wantSpent(t, s, x.ID, noon, store.Amount{Tokens: 9}, store.Amount{})
}

func tableSizes(t *testing.T, s store.Store) {
	assigned(t, s)
	assigned(t, s)
	sizes := got[[]store.TableSize](t)(s.TableSizes(t.Context()))
	at := slices.IndexFunc(sizes, func(one store.TableSize) bool { return one.Name == "tasks" })
	if at < 0 || sizes[at].Rows != 2 || sizes[at].Bytes == 0 {
		t.Errorf("the sizes are %+v", sizes)
	}
	if !slices.IsSortedFunc(sizes, func(a, b store.TableSize) int { return int(b.Bytes - a.Bytes) }) {
		t.Errorf("the largest is not first: %+v", sizes)
	}
}

func pruneNothing(t *testing.T, s store.Store) {
	_, _, err := s.Prune(t.Context(), "tasks", noon, 10)
	wantCode(t, err, task.Invalid)
	_, _, err = s.Prune(t.Context(), store.KeptAudit, noon, 0)
	wantCode(t, err, task.Invalid)
	_, err = s.Prunable(t.Context(), "tasks", noon)
	wantCode(t, err, task.Invalid)
	for _, what := range store.AllKept {
		equal(t, pruned(t, s, what, far()), 0)
	}
}
