package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// NoteEnding says how it ended what a reviewer asked for.
type NoteEnding string

// The endings. A note that a person wrote by hand has none.
const (
	NoteDone     NoteEnding = "done"     // a task changed the place afterwards, and the pull request was merged
	NoteResolved NoteEnding = "resolved" // the thread was resolved, and the pull request was merged
	NoteMerged   NoteEnding = "merged"   // the pull request was merged; whether it was changed is not known
	NoteClosed   NoteEnding = "closed"   // the pull request was closed without being merged
)

// NoteEndings are the endings, the best first. A note that several comments asked for has the best of theirs.
var NoteEndings = []NoteEnding{NoteDone, NoteResolved, NoteMerged, NoteClosed}

// Note is something that a reviewer asked for, or that a person wrote by hand, kept for later tasks
// of the repository.
type Note struct {
	ID         string
	Repository task.Repository
	Text       string
	Path       string // of the file that it is about; empty if it is about none
	Ending     NoteEnding
	Author     string // who asked for it, or wrote it
	URL        string // of the pull request; empty if a person wrote it by hand
	Pull       int64  // its number
	Asked      int    // on how many pull requests the same was asked for
	AskedAt    time.Time
	CreatedAt  time.Time
	EditedBy   string // who changed the text last; empty if nobody did
	EditedAt   time.Time
	UsedAt     time.Time // when it was last given to a task
}

// Learned is what is kept of one comment of a review.
type Learned struct {
	// Source is the hash of where it comes from; the same source is learned from once.
	Source string
	// Into is the id of the note that says the same, or the source that it was made of; empty means that
	// Note is new.
	Into string
	Note Note
}

// Lesson is what is learned from the reviews of a pull request that has ended.
type Lesson struct {
	Pull task.Key
	// Present are the hashes of all comments that ask for something, whoever wrote them. Other comments
	// of this pull request count no more: a note that is left without any is removed unless a person has
	// edited it, and a comment that is there again is learned again. One that is present and not learned
	// keeps a note only while the comment whose words the note has is there.
	Present []string
	Learned []Learned
	// Most is how many notes a repository keeps. Those go first that were made or last given to a task
	// the longest time ago.
	Most int
}

// NoteFilter says which notes are wanted, the newest first. Zero fields do not narrow.
type NoteFilter struct {
	Forge      task.Forge
	Repository string
	Before     string   // an id: older ones than this
	IDs        []string // only these
	Pull       int64    // only those that comments of this pull request asked for; needs Forge and Repository
	Limit      int
}

// Memory keeps notes from reviews. See docs/memory.md.
type Memory interface {
	// WatchPull remembers an open pull request of ours, until something is learned from it.
	WatchPull(ctx context.Context, pull task.Key) error
	// WatchedPulls returns those of a repository, by number.
	WatchedPulls(ctx context.Context, in task.Repository) ([]task.Key, error)
	// UnwatchPull ends the watch of a pull request from which nothing can be learned.
	UnwatchPull(ctx context.Context, pull task.Key) error
	// ForgetWatched forgets the pull requests that are watched on a forge, or on all of them if it is
	// empty, in other repositories than these.
	ForgetWatched(ctx context.Context, of task.Forge, except []string) error
	// Learn keeps a lesson in one transaction, and ends the watch of its pull request. What comes from a
	// source that is known changes its note, if that is there and was not edited by a person. If the
	// note has other sources too, what says something else leaves it.
	Learn(ctx context.Context, lesson Lesson) error

	// AddNote keeps a note that a person wrote. The store gives it its id. It fails with TooLarge if
	// the repository has as many as most, and all of them were written or edited by people.
	AddNote(ctx context.Context, note Note, most int) (Note, error)
	// ListNotes returns notes, the newest first.
	ListNotes(ctx context.Context, filter NoteFilter) ([]Note, error)
	// EditNote changes the text of a note. NotFound if there is none.
	EditNote(ctx context.Context, id, text, by string, at time.Time) (Note, error)
	// ForgetNote removes a note for good. Nothing is learned from its sources again. NotFound if there
	// is none.
	ForgetNote(ctx context.Context, id string) error
	// UseNotes says that notes were given to a task.
	UseNotes(ctx context.Context, ids []string, at time.Time) error
}
