package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var notificationChecks = []check{
	{"a target is told of each thing once", notifyOnce},
	{"what one server sends no other does", takeOnce},
	{"an attempt that failed is made again when it is due", notifyAgain},
	{"what is over is not sent, and forgotten after a while", forgetOver},
	{"what is back and was not sent is like new", noteAgain},
	{"what came back after it was sent is sent again", sendAgain},
	{"each target is told by itself", targetsApart},
}

const notified = "team"

func notifications(t *testing.T, s store.Store) []store.Notification {
	t.Helper()
	return got[[]store.Notification](t)(s.ListNotifications(t.Context(), notified))
}

func note(t *testing.T, s store.Store, minutes int, change store.NotificationChange) {
	t.Helper()
	change.At = noon.Add(time.Duration(minutes) * time.Minute)
	must(t, s.NoteNotifications(t.Context(), notified, change))
}

// takeNotifications takes at a time, some minutes after noon, for a minute.
func takeNotifications(t *testing.T, s store.Store, minutes int, keys ...string) []string {
	t.Helper()
	at := noon.Add(time.Duration(minutes) * time.Minute)
	return got[[]string](t)(s.TakeNotifications(t.Context(), notified, keys, at, at.Add(time.Minute)))
}

func notifyOnce(t *testing.T, s store.Store) {
	equal(t, notifications(t, s), nil)
	note(t, s, 0, store.NotificationChange{New: []string{"b", "a", "a"}})
	equal(t, notifications(t, s), []store.Notification{{Target: notified, Key: "a", NotedAt: noon, DueAt: noon}, {Target: notified, Key: "b", NotedAt: noon, DueAt: noon}})
	equal(t, takeNotifications(t, s, 1, "a", "none"), []string{"a"})
	sent := noon.Add(time.Minute)
	must(t, s.EndNotifications(t.Context(), notified, []string{"a"}, store.NotificationEnd{SentAt: sent, DueAt: sent}))
	note(t, s, 2, store.NotificationChange{New: []string{"a", "b"}})
	equal(t, notifications(t, s)[0], store.Notification{Target: notified, Key: "a", NotedAt: noon, Attempts: 1, DueAt: sent, SentAt: sent})
	equal(t, takeNotifications(t, s, 10, "a", "b"), []string{"b"})
	wantCode(t, s.NoteNotifications(t.Context(), "", store.NotificationChange{}), task.Invalid)
	wantCode(t, s.NoteNotifications(t.Context(), notified, store.NotificationChange{New: []string{""}}), task.Invalid)
}

func takeOnce(t *testing.T, s store.Store) {
	note(t, s, 0, store.NotificationChange{New: []string{"a", "b", "c"}})
	var count atomic.Int64
	together(8, func(int) {
		taken, err := s.TakeNotifications(t.Context(), notified, []string{"c", "a", "b"}, noon, noon.Add(time.Minute))
		if err != nil {
			t.Error(err)
		}
		count.Add(int64(len(taken)))
	})
	equal(t, count.Load(), 3)
}

func notifyAgain(t *testing.T, s store.Store) {
	note(t, s, 0, store.NotificationChange{New: []string{"a"}})
	equal(t, takeNotifications(t, s, 0, "a"), []string{"a"})
	must(t, s.EndNotifications(t.Context(), notified, []string{"a"}, store.NotificationEnd{DueAt: noon.Add(5 * time.Minute), Problem: "the door is closed"}))
	equal(t, takeNotifications(t, s, 4, "a"), nil)
	equal(t, notifications(t, s)[0].Problem, "the door is closed")
	equal(t, takeNotifications(t, s, 5, "a"), []string{"a"})
	// Whoever took it is gone; it is due again after a minute.
	equal(t, takeNotifications(t, s, 5, "a"), nil)
	equal(t, takeNotifications(t, s, 6, "a"), []string{"a"})
	equal(t, notifications(t, s)[0].Attempts, 3)
}

func forgetOver(t *testing.T, s store.Store) {
	note(t, s, 0, store.NotificationChange{New: []string{"a", "b"}})
	note(t, s, 1, store.NotificationChange{Over: []string{"a", "b"}})
	note(t, s, 2, store.NotificationChange{Over: []string{"a"}, Back: []string{"b"}})
	equal(t, notifications(t, s)[0].OverAt, noon.Add(time.Minute))
	equal(t, takeNotifications(t, s, 3, "a", "b"), []string{"b"})
	must(t, s.ForgetNotifications(t.Context(), noon.Add(time.Minute), []string{notified}))
	equal(t, len(notifications(t, s)), 2)
	must(t, s.ForgetNotifications(t.Context(), noon.Add(2*time.Minute), []string{notified}))
	equal(t, len(notifications(t, s)), 1)
	equal(t, notifications(t, s)[0].Key, "b")
}

func noteAgain(t *testing.T, s store.Store) {
	note(t, s, 0, store.NotificationChange{New: []string{"failed", "sent", "waits"}})
	equal(t, takeNotifications(t, s, 0, "failed", "sent"), []string{"failed", "sent"})
	must(t, s.EndNotifications(t.Context(), notified, []string{"sent"}, store.NotificationEnd{SentAt: noon, DueAt: noon}))
	must(t, s.EndNotifications(t.Context(), notified, []string{"failed"}, store.NotificationEnd{DueAt: noon.Add(5 * time.Minute), Problem: "closed"}))
	all := []string{"failed", "sent", "waits"}
	note(t, s, 1, store.NotificationChange{Over: all})
	note(t, s, 2, store.NotificationChange{Back: all})
	note(t, s, 3, store.NotificationChange{Back: all}) // another server says so too
	back := noon.Add(2 * time.Minute)
	equal(t, notifications(t, s), []store.Notification{
		{Target: notified, Key: "failed", NotedAt: back, Attempts: 1, DueAt: noon.Add(5 * time.Minute), Problem: "closed"},
		{Target: notified, Key: "sent", NotedAt: back, Attempts: 1, DueAt: noon, SentAt: noon},
		{Target: notified, Key: "waits", NotedAt: back, DueAt: back},
	})
}

func sendAgain(t *testing.T, s store.Store) {
	all := []string{"back", "over", "there", "unsent"}
	note(t, s, 0, store.NotificationChange{New: all})
	equal(t, takeNotifications(t, s, 0, "back", "over", "there"), []string{"back", "over", "there"})
	must(t, s.EndNotifications(t.Context(), notified, []string{"back", "over", "there"}, store.NotificationEnd{SentAt: noon, DueAt: noon}))
	must(t, s.EndNotifications(t.Context(), notified, []string{"unsent"}, store.NotificationEnd{DueAt: noon, Problem: "closed"}))
	note(t, s, 1, store.NotificationChange{Over: []string{"back", "over"}})
	note(t, s, 2, store.NotificationChange{Back: []string{"back"}})
	equal(t, takeNotifications(t, s, 3, "back"), nil)
	note(t, s, 60, store.NotificationChange{Again: append(all, "none")})
	back := noon.Add(2 * time.Minute)
	equal(t, notifications(t, s), []store.Notification{
		{Target: notified, Key: "back", NotedAt: back, DueAt: noon},
		{Target: notified, Key: "over", NotedAt: noon, Attempts: 1, DueAt: noon, SentAt: noon, OverAt: noon.Add(time.Minute)},
		{Target: notified, Key: "there", NotedAt: noon, Attempts: 1, DueAt: noon, SentAt: noon},
		{Target: notified, Key: "unsent", NotedAt: noon, DueAt: noon, Problem: "closed"},
	})
	equal(t, takeNotifications(t, s, 60, "back", "over", "there"), []string{"back"})
	sent := noon.Add(time.Hour)
	must(t, s.EndNotifications(t.Context(), notified, []string{"back"}, store.NotificationEnd{SentAt: sent, DueAt: sent}))
	note(t, s, 61, store.NotificationChange{Again: all}) // another server has read it before that
	equal(t, takeNotifications(t, s, 61, "back"), nil)
	// What is back just now is sent again at once.
	note(t, s, 70, store.NotificationChange{Back: []string{"over"}, Again: []string{"over"}})
	equal(t, takeNotifications(t, s, 70, "over"), []string{"over"})
}

func targetsApart(t *testing.T, s store.Store) {
	note(t, s, 0, store.NotificationChange{New: []string{"a"}})
	must(t, s.NoteNotifications(t.Context(), "others", store.NotificationChange{At: noon, New: []string{"a"}}))
	equal(t, takeNotifications(t, s, 0, "a"), []string{"a"})
	others := got[[]store.Notification](t)(s.ListNotifications(t.Context(), "others"))
	equal(t, others, []store.Notification{{Target: "others", Key: "a", NotedAt: noon, DueAt: noon}})
	must(t, s.ForgetNotifications(t.Context(), noon, []string{notified, "team-2"}))
	equal(t, len(got[[]store.Notification](t)(s.ListNotifications(t.Context(), "others"))), 0)
	equal(t, len(notifications(t, s)), 1)
	must(t, s.ForgetNotifications(t.Context(), noon, nil))
	equal(t, len(notifications(t, s)), 0)
}
