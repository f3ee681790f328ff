package store

import (
	"context"
	"time"
)

// Notifications remembers of what each target, such as a webhook, has to be told and was
// told, so that it is told of each thing once: whichever server does it, and however often
// it begins anew. There is a row for what people have to see to now, and for some time after.
type Notifications interface {
	// ListNotifications returns what is remembered for a target, in the order of the keys.
	ListNotifications(ctx context.Context, target string) ([]Notification, error)
	// NoteNotifications says what is new, what is over, what is back that was over, and what has
	// to be sent again. What is new and known already stays as it is. What is back and was not
	// sent is like new, but waits until it is due. What was sent is sent again only if it came
	// back after that.
	NoteNotifications(ctx context.Context, target string, change NotificationChange) error
	// TakeNotifications makes those of the keys the caller's that are not sent, not over, and
	// due at a time, and returns them. Nobody else gets them before they are due again.
	TakeNotifications(ctx context.Context, target string, keys []string, at, until time.Time) ([]string, error)
	// EndNotifications says what became of those that the caller has taken.
	EndNotifications(ctx context.Context, target string, keys []string, end NotificationEnd) error
	// ForgetNotifications removes what has been over since before a time, and all of targets
	// that are none of those given.
	ForgetNotifications(ctx context.Context, before time.Time, targets []string) error
}

// Notification is something that a target has to be told of, or was.
type Notification struct {
	Target   string
	Key      string
	NotedAt  time.Time // since when there is a reason for it: it was new then, or back
	Attempts int
	DueAt    time.Time // when it may be sent; not before
	SentAt   time.Time // zero if it is not sent
	OverAt   time.Time // since when there is no reason for it any more; zero if there is
	Problem  string    // why the last attempt failed
}

// NotificationChange is what has changed at a moment, as keys.
type NotificationChange struct {
	At                     time.Time
	New, Over, Back, Again []string
}

// NotificationEnd is what became of an attempt: it is sent, or it is tried again.
type NotificationEnd struct {
	SentAt  time.Time // zero if it is not sent
	DueAt   time.Time // when it is tried again
	Problem string
}
