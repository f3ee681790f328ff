package store

import (
	"context"
	"time"
)

// What follows is for several servers on one database.

// Topic says what a notice is about.
type Topic string

// The topics.
const (
	// Anything may have happened: listening has begun, or has begun again after
	// the connection was lost, or, on SQLite, another process has written. Its notice
	// has no subject.
	Anything Topic = ""
	// TasksChanged is for every move of a task but a claim, and for what lets a
	// task be handed out. Its subject is the task's id.
	TasksChanged Topic = "tasks"
	// WaitsChanged is for what lets no task be handed out, but changes what is said about
	// tasks and what they wait for: a claim, another title or phase, a pause of everything,
	// what an agent lacks. Its subject is the task's id, or empty if it is about no task.
	WaitsChanged Topic = "waits"
	// BellRung is for what those who wait for news of a task look at. Its subject is
	// the task's id.
	BellRung Topic = "bell"
	// JournalGrew is for new entries in the journal of a task. Its subject is the task's
	// id.
	JournalGrew Topic = "journal"
	// BoardChanged is for what happens on the built-in board. Its subject is the
	// item's key as text.
	BoardChanged Topic = "board"
	// BoardChecked is for the statuses of commits on the built-in board. Its subject is the
	// repository and the commit, with a space between them.
	BoardChecked Topic = "checks"
)

// Notice is a hint that something has happened and is there to be read.
type Notice struct {
	Topic   Topic
	Subject string
}

// Notices carries hints to every server on the database. A hint may come twice,
// and those of the time in which a server was not connected do not come: then
// [Anything] does. On SQLite they stay in the process: of what other processes do,
// [Anything] tells within a second.
type Notices interface {
	// Notify sends a notice. Those about tasks and the board are sent by the
	// store itself, with the change that they are about.
	Notify(ctx context.Context, notice Notice) error
	// Listen has every notice given to hear from now on, until stop is called,
	// and [Anything] first. Hear must be quick and must not call the store; it may
	// be called by several goroutines at once, and, while stop is called, once
	// more.
	Listen(hear func(Notice)) (stop func())
}

// Elections have one server at a time as their leader.
type Elections interface {
	// Lead makes the server the leader if there is none, or if the last one has not
	// renewed its leadership in time, or renews its own, for the given time by the
	// database's clock. It reports whether the server is the leader now.
	Lead(ctx context.Context, election, server string, lasting time.Duration) (leads bool, err error)
	// Resign gives the leadership up, if the server has it.
	Resign(ctx context.Context, election, server string) error
}

// Processes tells what is held by which process, so that nobody has to wait for one
// that is known to have ended.
type Processes interface {
	// ActAs names the process that from now on holds what is taken from the outbox,
	// and the turns that are begun, through this store.
	ActAs(process string)
	// FreeHeld frees what the processes hold, which have ended: the turns at once, as
	// unanswered, and the actions at the given moment, unless they are free sooner. A
	// write may still be on its way to the forge for so long. It returns how many
	// there were of each. What other processes hold, and those without a name, stays.
	FreeHeld(ctx context.Context, processes []string, actionsAt time.Time) (turns, actions int, err error)
}

// Clock is the one clock that all servers share.
type Clock interface {
	// Time is the time on the machine of the database.
	Time(ctx context.Context) (time.Time, error)
}
