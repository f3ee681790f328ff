package comments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Store is what the log needs of the database.
type Store interface {
	store.CommentLog
	assignment.Journals
	Append(ctx context.Context, events []task.Event) (added int, err error)
	RunActions(ctx context.Context, id task.ID, first, last int64, kind string) ([]store.Action, error)
	Action(ctx context.Context, idempotencyKey string) (store.Action, error)
}

// Options is what a log needs. Store, Snapshots, Own and Steering have to be
// set.
type Options struct {
	Store     Store
	Snapshots *items.Snapshots
	// Own tells whether a login on a forge is ours: what we say ourselves is no
	// news.
	Own      func(of task.Forge, login string) bool
	Steering *items.Steering
	// Disabled means that runs are told of no comments that come while they work, except for
	// answers to their questions.
	Disabled bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Log keeps the comment logs of tasks: what people said on the items, each
// version of each comment once.
type Log struct{ options Options }

// New returns a log.
func New(options Options) *Log {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{options}
}

// lookTries bounds how often we begin anew because another server has looked at
// the same time.
const lookTries = 10

// Begin is for a task that is handed out without anything to go on from: it
// records the comments that are there as present, each judged as it would be if it
// came now, and returns them, oldest first. The run is told of them with its
// assignment, and of nothing that was logged before.
func (k *Log) Begin(ctx context.Context, t task.Task) ([]task.CommentEntry, error) {
	var seen items.Snapshot
	err := k.update(ctx, t, func(ctx context.Context) (comments []task.Comment, err error) {
		seen, err = k.options.Snapshots.Get(ctx, t.Key, 0)
		return k.ofPeople(t.Key, seen), err
	}, func(ctx context.Context, changes []change) ([]task.CommentEntry, error) {
		var entries []task.CommentEntry
		for _, c := range changes {
			entry := task.CommentEntry{Change: c.kind, Comment: c.comment, At: k.options.Now()}
			if c.kind != task.CommentDeleted {
				entry.Change = task.CommentPresent
			}
			err := k.judge(ctx, seen.Item, c, &entry, func() (bool, error) { return true, nil })
			if err != nil {
				return nil, err
			}
			if c.kind != task.CommentPresent || entry.Access != c.before.Access || entry.Refused != c.before.Refused {
				entries = append(entries, entry)
			}
		}
		return entries, nil
	}, everyComment)
	if err != nil {
		return nil, err
	}
	if err := k.noteRequest(ctx, t, seen.Item); err != nil {
		return nil, err
	}
	known, last, err := k.options.Store.KnownComments(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	return presentIn(known), k.options.Store.StartComments(ctx, t.ID, t.Generation, last)
}

// Present is what a run is told with its assignment: the comments that are there,
// if it begins, and those that were there when it began, if it goes on.
func (k *Log) Present(ctx context.Context, t task.Task, snapshot items.Snapshot) ([]task.CommentEntry, error) {
	last, goesOn, err := store.Optional(k.options.Store.LastFrom(ctx, t.ID, task.FromAgent))
	if err != nil {
		return nil, err
	}
	var present []task.CommentEntry
	if goesOn && last.Generation >= t.FirstGeneration {
		if err := k.noteRequest(ctx, t, snapshot.Item); err != nil {
			return nil, err
		}
		present, err = k.began(ctx, t)
	} else {
		present, err = k.Begin(ctx, t)
	}
	for i := range present { // a run is told at first what there is, not how it changed
		present[i].Change, present[i].Before = "", ""
	}
	return present, err
}

// began returns the comments that were there when the run began, as they were
// then, oldest first.
func (k *Log) began(ctx context.Context, t task.Task) ([]task.CommentEntry, error) {
	start, err := k.options.Store.CommentsStart(ctx, t.ID)
	if err != nil || start == 0 {
		return nil, err
	}
	last := map[task.CommentRef]task.CommentEntry{}
	err = k.upTo(ctx, t.ID, start, func(entry task.CommentEntry) bool {
		last[entry.Ref()] = entry
		return true
	})
	return presentIn(slices.Collect(maps.Values(last))), err
}

// upTo goes through the entries up to a position, in order and by pages, until see says no.
func (k *Log) upTo(ctx context.Context, id task.ID, last int64, see func(task.CommentEntry) bool) error {
	for after := int64(0); after < last; {
		entries, err := k.options.Store.CommentsAfter(ctx, id, after, pageOfLate)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			if entry.Position > last || !see(entry) {
				return nil
			}
			after = entry.Position
		}
	}
	return nil
}

// presentIn returns those of the entries whose comments are there, oldest first.
func presentIn(entries []task.CommentEntry) []task.CommentEntry {
	var present []task.CommentEntry
	for _, entry := range entries {
		if entry.Change != task.CommentDeleted {
			present = append(present, entry)
		}
	}
	slices.SortFunc(present, func(a, b task.CommentEntry) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Position, b.Position))
	})
	return present
}

// Update compares an item as it was read with the task's log and appends what is
// new, edited or deleted.
func (k *Log) Update(ctx context.Context, t task.Task, seen items.Snapshot) error {
	if !k.options.Disabled {
		return k.updateAfter(ctx, t, question{}, seen)
	}
	if !t.AwaitsPeople() {
		return nil
	}
	open, err := k.questionOf(ctx, t)
	if err != nil {
		return err
	}
	return k.updateAfter(ctx, t, open, seen)
}

// UpdateAfterPlan is Update, and where comments are not taken up, also for a task that does not
// wait any more: it appends what came after the plan then.
func (k *Log) UpdateAfterPlan(ctx context.Context, t task.Task, plan Proposal, seen items.Snapshot) error {
	return k.updateAfter(ctx, t, plan.question(t), seen)
}

// updateAfter is Update. Where comments are not taken up, it appends what came after a question.
func (k *Log) updateAfter(ctx context.Context, t task.Task, open question, seen items.Snapshot) error {
	if k.options.Disabled && !open.asked {
		return nil
	}
	first := true
	return k.update(ctx, t, func(ctx context.Context) ([]task.Comment, error) {
		if first {
			first = false
			return k.ofPeople(t.Key, seen), nil
		}
		var err error
		seen, err = k.options.Snapshots.Get(ctx, t.Key, 0)
		return k.ofPeople(t.Key, seen), err
	}, func(ctx context.Context, changes []change) ([]task.CommentEntry, error) {
		entries := make([]task.CommentEntry, 0, len(changes))
		for _, c := range changes {
			if k.options.Disabled && !open.answeredBy(c, seen) {
				continue
			}
			entry := task.CommentEntry{Change: c.kind, Comment: c.comment, At: k.options.Now()}
			earlier := func() (bool, error) { return k.CommentedBefore(ctx, t, c.comment.Author) }
			if err := k.judge(ctx, seen.Item, c, &entry, earlier); err != nil {
				return nil, err
			}
			compareVersions(c, &entry)
			entries = append(entries, entry)
		}
		return entries, nil
	}, whatChanged)
}

// ofPeople is what others than we have written on an item, oldest first.
func (k *Log) ofPeople(item task.Key, seen items.Snapshot) []task.Comment {
	var all []task.Comment
	for _, comment := range slices.Concat(seen.Comments, seen.ReviewComments) {
		if !k.options.Own(item.Forge, comment.Author) {
			comment.Body = bounded(comment.Body)
			all = append(all, comment)
		}
	}
	slices.SortStableFunc(all, func(a, b task.Comment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

const (
	// longestText is how many bytes of a comment are kept, and longestBefore how many of
	// what it said before an edit.
	longestText   = 64 << 10
	longestBefore = 2 << 10
)

// bounded is a text of which the log keeps all versions. What is cut off is replaced by
// its hash, so that an edit of it is still seen as one.
func bounded(text string) string {
	if len(text) <= longestText {
		return text
	}
	return fmt.Sprintf("%s\n[%d bytes in all; SHA-256 %x]", textfmt.Cut(text, longestText), len(text), sha256.Sum256([]byte(text)))
}

// compareVersions adds to an edit what the comment said before. A run was not told of
// what was refused then, so that a comment which no longer is refused is new to it.
func compareVersions(c change, entry *task.CommentEntry) {
	switch {
	case c.kind != task.CommentEdited || entry.Refused != "":
	case c.before.Refused != "":
		entry.Change = task.CommentNew
	default:
		entry.Before = textfmt.Cut(c.before.Body, longestBefore)
	}
}

// change is how a comment differs from what the log says.
type change struct {
	kind    task.CommentChange
	comment task.Comment
	before  *task.CommentEntry // nil if it is not in the log
}

// update appends the difference between what is read and what the log says. What
// is read may be older than the log. That shows as something other than a new
// comment, and then it is read anew, after the log: nothing in the log can be
// newer than that.
func (k *Log) update(ctx context.Context, t task.Task, read func(context.Context) ([]task.Comment, error),
	enter func(ctx context.Context, changes []change) ([]task.CommentEntry, error), of which,
) error {
	comments, err := read(ctx)
	if err != nil {
		return err
	}
	for range lookTries {
		known, last, err := k.options.Store.KnownComments(ctx, t.ID)
		if err != nil {
			return err
		}
		changes, certain := compare(known, comments, of)
		if !certain {
			if comments, err = read(ctx); err != nil {
				return err
			}
			changes, _ = compare(known, comments, of)
		}
		entries, err := enter(ctx, changes)
		if err != nil || len(entries) == 0 {
			return err
		}
		var generation int64
		if of == everyComment { // a server that is late must not say what the next run was told
			generation = t.Generation
		}
		err = k.options.Store.AppendComments(ctx, t.ID, generation, last, entries)
		if task.CodeOf(err) != task.Conflict {
			return err
		}
	}
	return task.Errorf(task.Unavailable, "the comments of task %s change too fast", t.ID)
}

// which says which comments are compared: those that differ from the log, or, as
// present, the others too.
type which bool

const (
	whatChanged  which = false
	everyComment which = true
)

// compare returns how the comments differ from what the log says: new and edited
// ones in the order in which that was done, then deleted ones. It is certain
// if all of them are new to the log: an older reading shows no others.
func compare(known []task.CommentEntry, comments []task.Comment, of which) (changes []change, certain bool) {
	logged := make(map[task.CommentRef]*task.CommentEntry, len(known))
	for i := range known {
		logged[known[i].Ref()] = &known[i]
	}
	certain = true
	there := make(map[task.CommentRef]bool, len(comments))
	for _, comment := range comments {
		id := comment.Ref()
		there[id] = true
		before := logged[id]
		switch {
		case before == nil:
			changes = append(changes, change{task.CommentNew, comment, nil})
		case before.Change == task.CommentDeleted:
			changes, certain = append(changes, change{task.CommentNew, comment, before}), false
		case before.Body != comment.Body:
			changes, certain = append(changes, change{task.CommentEdited, comment, before}), false
		case of == everyComment:
			changes = append(changes, change{task.CommentPresent, comment, before})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at().Compare(b.at()) })
	for i := range known {
		if entry := &known[i]; entry.Change != task.CommentDeleted && !there[entry.Ref()] {
			changes, certain = append(changes, change{task.CommentDeleted, entry.Comment, entry}), false
		}
	}
	return changes, certain
}

// at is when the comment was written, or edited.
func (c change) at() time.Time {
	if c.kind == task.CommentEdited && c.comment.Edited() {
		return c.comment.UpdatedAt
	}
	return c.comment.CreatedAt
}

// judge decides whether a run is told of a comment. Of one that was deleted it is told
// as it was of the comment.
func (k *Log) judge(ctx context.Context, item forge.Item, c change, entry *task.CommentEntry, earlier func() (bool, error)) error {
	if c.kind == task.CommentDeleted {
		entry.Access, entry.Refused = c.before.Access, c.before.Refused
		return nil
	}
	standing, err := k.options.Steering.Of(ctx, item, c.comment.Author, earlier)
	entry.Access, entry.Refused = standing.Access, standing.Refused
	return err
}

// CommentedBefore reports whether someone had commented before the task began.
func (k *Log) CommentedBefore(ctx context.Context, t task.Task, login string) (bool, error) {
	start, err := k.options.Store.CommentsStart(ctx, t.ID)
	if err != nil {
		return false, err
	}
	found := false
	err = k.upTo(ctx, t.ID, start, func(entry task.CommentEntry) bool {
		found = entry.By(login)
		return !found
	})
	return found, err
}

// TakenUp reports whether the runs of a task were told of a comment, or of the text of a
// review, as it was last seen: with the assignment, or while they worked. Of a review without a
// text that is not known.
func (k *Log) TakenUp(ctx context.Context, t task.Task, comment task.Comment) (bool, error) {
	known, _, err := k.options.Store.KnownComments(ctx, t.ID)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(known, func(entry task.CommentEntry) bool { return entry.Ref() == comment.Ref() })
	text := bounded(comment.Body)
	if at < 0 || known[at].Refused != "" || known[at].Body != text && known[at].Body != task.MarkOf(text) {
		return false, nil
	}
	start, err := k.options.Store.CommentsStart(ctx, t.ID)
	if err != nil || known[at].Position <= start {
		return err == nil, err
	}
	taken, err := assignment.TakenUpTo(ctx, k.options.Store, t)
	return err == nil && known[at].Position <= taken, err
}

// Answered reports whether people have said something that the task's runs have not
// taken up yet.
func (k *Log) Answered(ctx context.Context, t task.Task) (bool, error) {
	start, err := k.options.Store.CommentsStart(ctx, t.ID)
	if err != nil {
		return false, err
	}
	taken, err := assignment.TakenUpTo(ctx, k.options.Store, t)
	if err != nil {
		return false, err
	}
	entries, err := k.options.Store.CommentsAfter(ctx, t.ID, max(start, taken), 0)
	return slices.ContainsFunc(entries, func(entry task.CommentEntry) bool {
		return entry.Refused == "" && (entry.Change == task.CommentNew || entry.Change == task.CommentEdited)
	}), err
}
