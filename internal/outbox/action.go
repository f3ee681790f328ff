package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Payload is what an action does. Each kind of action has one type of payload,
// which is kept as JSON in the outbox. All text in it is raw: it is made safe
// when it is written to the forge.
type Payload interface{ Kind() string }

// Write says on whose behalf an action is done, and on which item.
type Write struct {
	Item       task.Key
	Task       task.ID // empty for what the server does of its own accord
	Generation int64
	// Began, unless zero, is the generation in which the run began: a write that it makes
	// again after a loss is the same one.
	Began int64
	// What tells the writes of one run apart, for example "started" or
	// "progress/7". The same what is the same write: it happens once.
	What  string
	DueAt time.Time // not before; zero means at once
	// Lasting is for what is true whatever becomes of the run: it is written even if the
	// run is over by then.
	Lasting bool
}

// NewAction makes an action for the outbox.
func NewAction(write Write, payload Payload) (store.Action, error) {
	encoded, err := json.Marshal(payload)
	if err != nil {
		return store.Action{}, task.Wrap(task.Invalid, err, "cannot write down the action "+write.What)
	}
	action := store.Action{
		Item: write.Item, Task: write.Task, Generation: write.Generation, Lasting: write.Lasting,
		IdempotencyKey: write.IdempotencyKey(),
		Lane:           laneOf(payload), Kind: payload.Kind(), Payload: encoded, DueAt: write.DueAt,
	}
	if progress, ok := payload.(Progress); ok {
		action.Coalesce = progressComment(write.Task, progress.Name)
	}
	return action, nil
}

// laneOf is what a write keeps its order with when the forge does not take it. What is said
// and published is in one order. What is only nice to have beside it, such as labels, does
// not hold it up, and the other way round.
//
// An example. A run that ends well puts into the outbox, for one item: the branch, the pull
// request, the comment about it, and the label "done". They are sent in this order, each
// after the one before it. If the forge refuses connections when the pull request is to be
// opened, it and the comment wait, because the comment names the pull request. The label is
// in another lane, and is tried meanwhile. Writes to other items are never held up.
func laneOf(payload Payload) string {
	switch payload.(type) {
	case AddLabel, RemoveLabel, ReviewAnswered, StateLabel:
		return "labels"
	case Progress, ProgressState:
		return "progress"
	case React, Unreact:
		return "reactions"
	case SetStatus:
		return "statuses"
	case Assign:
		return "assignees"
	case MergePull:
		return "merges"
	default:
		return ""
	}
}

// IdempotencyKey tells the write from every other, so that it is made once.
func (w Write) IdempotencyKey() string {
	if w.Task == "" {
		return "server/" + w.Item.String() + "/" + w.What
	}
	return string(w.Task) + "/" + strconv.FormatInt(cmp.Or(w.Began, w.Generation), 10) + "/" + w.What
}

// Comment writes a comment. Its result is a [Written].
type Comment struct {
	Text string `json:"text"`
	// About is the task whose page is linked to, if the action is not one of a task.
	About task.ID `json:"about,omitempty"`
}

// EditComment replaces the text of a comment of ours.
type EditComment struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Progress keeps one comment up to date: it is written the first time and edited
// after that. Of several that wait, only the last is written. Its result is a
// [Written].
type Progress struct {
	Name string `json:"name"` // tells the progress comments of an item apart
	Text string `json:"text"`
}

// ProgressState shows the state of the task in the heading of its progress comment and
// leaves the rest of it as it is. Without such a comment it does nothing.
type ProgressState struct {
	Name  string     `json:"name"` // as in [Progress]
	State task.State `json:"state"`
}

// progressComment names a progress comment. The generation is no part of it: a run that
// goes on keeps its comment.
func progressComment(of task.ID, name string) string {
	return fmt.Sprintf("progress/%s/%s", of, name)
}

// AddLabel puts a label on the item.
type AddLabel struct {
	Label string `json:"label"`
}

// RemoveLabel takes a label off the item.
type RemoveLabel struct {
	Label string `json:"label"`
}

// ReviewAnswered takes the label off an item that asked for reviews of pull requests, unless
// one of them has another head by now than the one that was reviewed. So a label that is put
// on with a publication is not taken off for a review of what was there before. Its result is
// an [Answered].
type ReviewAnswered struct {
	Label string     `json:"label"`
	PutOn time.Time  `json:"put_on"` // when it was put on; one that was put on later stays
	Pulls []PullHead `json:"pulls"`
}

// PullHead is a commit that was the head of a pull request of the item's repository.
type PullHead struct {
	Number int64  `json:"number"`
	Commit string `json:"commit"`
}

// StateLabel puts one label on the item and takes those of the others off that
// are there.
type StateLabel struct {
	Label  string   `json:"label"`
	Others []string `json:"others"`
}

// Assign adds an assignee.
type Assign struct {
	Login string `json:"login"`
}

// OpenPull opens a pull request in the item's repository, or finds the one that
// is open between the branches. Its result is a [Pulled].
type OpenPull struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Head  string `json:"head"`
	Base  string `json:"base"`
	Draft bool   `json:"draft,omitempty"`
}

// EditPull changes those fields of the pull request that are not nil.
type EditPull struct {
	Title *string `json:"title,omitempty"`
	Text  *string `json:"text,omitempty"`
	Draft *bool   `json:"draft,omitempty"`
}

// SubmitReview submits a review of the pull request. Its result is a [Written].
type SubmitReview struct {
	Verdict  forge.Verdict `json:"verdict"`
	Text     string        `json:"text"`
	Commit   string        `json:"commit"`
	Comments []LineComment `json:"comments,omitempty"`
}

// LineComment is a comment on a line in a review.
type LineComment struct {
	Path string     `json:"path"`
	Side forge.Side `json:"side"`
	Line int        `json:"line"`
	Text string     `json:"text"`
}

// Reply answers in a review thread. Its result is a [Written].
type Reply struct {
	Thread string `json:"thread"`
	Text   string `json:"text"`
}

// ResolveThread marks a review thread as resolved, if the reply that was put before it is the
// last word there: what somebody said since is not dealt with. A forge that cannot do that, or
// does not let us, leaves the thread as it is.
type ResolveThread struct {
	Thread string `json:"thread"`
	Reply  string `json:"reply"` // idempotency key of the reply
}

// MergePull merges the pull request, unless it has another head by now. What spoke for it
// may not any more when the forge was away for long: it is refused after Until, unless zero.
// It is also refused when a review requests changes that is not among Requests: those were
// known when it was decided to merge.
type MergePull struct {
	Head     string    `json:"head"`
	Until    time.Time `json:"until,omitzero"`
	Requests []string  `json:"requests,omitempty"` // ids of reviews
}

// React adds a reaction to the item or, if Comment is set, to a comment.
type React struct {
	Comment  string         `json:"comment,omitempty"`
	Reaction forge.Reaction `json:"reaction"`
}

// Unreact takes a reaction of ours away.
type Unreact struct {
	Comment  string         `json:"comment,omitempty"`
	Reaction forge.Reaction `json:"reaction"`
}

// SetStatus sets the state of a commit.
type SetStatus struct {
	Commit      string            `json:"commit"`
	Context     string            `json:"context"`
	State       forge.StatusState `json:"state"` // empty if the forge is told nothing
	Description string            `json:"description,omitempty"`
	URL         string            `json:"url,omitempty"`
	// Of is known of the commit besides. The forge is not told.
	Of *PublishedCommit `json:"of,omitempty"`
}

// PublishBranch makes the forge's branch what the task's namespace has under that
// name. Its result is a [Published].
type PublishBranch struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"` // that the task has there; another one is a Conflict
	// Draft makes an open pull request from the branch a draft before anything is
	// published.
	Draft bool `json:"draft,omitempty"`
	// CoAuthors are people for the message of the commit, as "Name <address>".
	CoAuthors []string `json:"co_authors,omitempty"`
}

// Answered is the result of [ReviewAnswered].
type Answered struct {
	Stale bool `json:"stale,omitempty"` // a pull request had another head: the label stayed
}

// Written is the result of what has an id on the forge.
type Written struct {
	ID string `json:"id"`
}

// Pulled is the result of [OpenPull].
type Pulled struct {
	Number int64  `json:"number"`
	URL    string `json:"url"`
	Opened bool   `json:"opened"` // false if it was there
}

// Published is the result of [PublishBranch].
type Published struct {
	Commit string `json:"commit"`         // that the forge has
	Own    bool   `json:"own,omitempty"`  // it was made for the task, and is not somebody else's
	Tree   string `json:"tree,omitempty"` // its files
	Base   string `json:"base,omitempty"` // the commit of the base branch that it stands on
	// Moved is a commit that others have pushed to the branch, if nothing was published
	// because of that.
	Moved string `json:"moved,omitempty"`
}

// The kinds of action, as they stand in the outbox.

// Kind implements Payload.
func (Comment) Kind() string { return "comment" }

// Kind implements Payload.
func (EditComment) Kind() string { return "edit_comment" }

// Kind implements Payload.
func (Progress) Kind() string { return "progress" }

// Kind implements Payload.
func (ProgressState) Kind() string { return "progress_state" }

// Kind implements Payload.
func (AddLabel) Kind() string { return "add_label" }

// Kind implements Payload.
func (RemoveLabel) Kind() string { return "remove_label" }

// Kind implements Payload.
func (StateLabel) Kind() string { return "state_label" }

// Kind implements Payload.
func (Assign) Kind() string { return "assign" }

// Kind implements Payload.
func (OpenPull) Kind() string { return store.OpenPullKind }

// Kind implements Payload.
func (EditPull) Kind() string { return "edit_pull" }

// Kind implements Payload.
func (SubmitReview) Kind() string { return "submit_review" }

// Kind implements Payload.
func (ReviewAnswered) Kind() string { return "review_answered" }

// Kind implements Payload.
func (Reply) Kind() string { return "reply" }

// Kind implements Payload.
func (ResolveThread) Kind() string { return "resolve_thread" }

// Kind implements Payload.
func (MergePull) Kind() string { return "merge_pull" }

// Kind implements Payload.
func (React) Kind() string { return "react" }

// Kind implements Payload.
func (Unreact) Kind() string { return "unreact" }

// Kind implements Payload.
func (SetStatus) Kind() string { return "set_status" }

// Kind implements Payload.
func (PublishBranch) Kind() string { return "publish_branch" }
