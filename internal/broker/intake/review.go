package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// pullAge is how old the snapshot of a pull request may be that an issue links to.
const pullAge = 30 * time.Second

// The label review.label asks for a review. Its life is a table in docs/state_machine.md:
// people put it on, and we put it on pull requests of ours each time that we have published
// something; it is taken off when it was answered. That is so when we have reviewed the head
// of every pull request that it asks about, or somebody who may steer has approved or
// requested changes since it was put on.

// pullView is a pull request in one look at it. Its reviews and its comments are read once,
// when they are needed.
type pullView struct {
	forge.Item
	reviews  func() ([]forge.Review, error)
	comments func() (items.Snapshot, error)
}

// view is a pull request as it was read.
func (i *Intake) view(ctx context.Context, pull forge.Item) pullView {
	return pullView{
		Item: pull,
		reviews: sync.OnceValues(func() ([]forge.Review, error) {
			return i.options.Verdicts.Of(ctx, i.options.Forges[pull.Key.Forge], pull.Key)
		}),
		comments: sync.OnceValues(func() (items.Snapshot, error) { return i.options.Snapshots.Get(ctx, pull.Key, lookAge) }),
	}
}

// viewNow is a pull request as it is now: nothing of it was read before.
func (i *Intake) viewNow(ctx context.Context, key task.Key) (pullView, error) {
	snapshot, err := i.options.Snapshots.Get(ctx, key, 0)
	if err != nil {
		return pullView{}, err
	}
	now := i.view(ctx, snapshot.Item)
	now.comments = func() (items.Snapshot, error) { return snapshot, nil }
	return now, nil
}

// reviews makes review tasks of the pull requests of an item with the label, if they are
// due, and takes the label off when it was answered. A pull request is looked at in its view.
func (i *Intake) reviews(ctx context.Context, item pullView) error {
	pulls, err := i.pullsOf(ctx, item.Item)
	if err != nil || len(pulls) == 0 {
		return err
	}
	asked, on, err := i.label(ctx, item.Item)
	if err != nil || !on {
		return err
	}
	if !asked.due {
		i.lookAt(item.Key, asked.at.Add(i.options.Rules.ReviewDelay))
	}
	var answered []outbox.PullHead
	waiting := 0
	for _, key := range pulls {
		is, head, failed := i.review(ctx, item, key, asked)
		err = errors.Join(err, failed)
		switch is {
		case reviewAnswered:
			answered = append(answered, outbox.PullHead{Number: key.Number, Commit: head})
		case reviewWaits:
			waiting++
		}
	}
	if err != nil || waiting > 0 || len(answered) == 0 {
		return err
	}
	heads := sha256.New()
	for _, one := range answered {
		fmt.Fprintln(heads, one.Number, one.Commit)
	}
	write := outbox.Write{Item: item.Key, What: fmt.Sprintf("reviewed/%s/%x", asked.moment(), heads.Sum(nil)[:16])}
	return i.takeOff(ctx, write, outbox.ReviewAnswered{Label: i.options.Rules.ReviewLabel, PutOn: asked.at, Pulls: answered})
}

// mostReturns is how often the label is taken off for the same heads.
const mostReturns = 100

// takeOff takes the label off. When it was left on because a pull request had another head at
// that moment, and has the one again that was reviewed, that is another write: the first one
// is used up.
func (i *Intake) takeOff(ctx context.Context, write outbox.Write, payload outbox.ReviewAnswered) error {
	what := write.What
	for again := 1; again <= mostReturns; again++ {
		stored, err := i.put(ctx, write, payload)
		if err != nil || stored.Status != store.Delivered || len(stored.Result) == 0 {
			return err
		}
		var answered outbox.Answered
		if err := json.Unmarshal(stored.Result, &answered); err != nil || !answered.Stale {
			return err
		}
		write.What = fmt.Sprint(what, "/", again)
	}
	return nil
}

// pullsOf lists the open pull requests that the label on an item asks about.
func (i *Intake) pullsOf(ctx context.Context, item forge.Item) ([]task.Key, error) {
	if item.Key.Kind == task.Pull {
		return []task.Key{item.Key}, nil
	}
	linked, err := i.options.Forges[item.Key.Forge].LinkedPulls(ctx, item.Key)
	if err != nil {
		return nil, fmt.Errorf("read the linked pull requests: %w", err)
	}
	var pulls []task.Key
	for _, one := range linked {
		// A label says something about the repository in which it was put on.
		if one.State == forge.Open && one.Key.Repository == item.Key.Repository {
			pulls = append(pulls, one.Key)
		}
	}
	return pulls, nil
}

// reviewLabel is the label on an item.
type reviewLabel struct {
	on  task.Key
	at  time.Time // when it was put on
	own bool      // by us
	due bool      // it has been on for long enough
}

func (l reviewLabel) moment() string { return l.at.UTC().Format(time.RFC3339Nano) }

// occasion is what a review task is for: a commit, and the label that asked for its review.
// Number tells apart the tasks for one label, of which the first ones were withdrawn before
// they were carried out.
//
// For example "1f3870be 2026-11-16T09:30:00Z 0 github:team/app#3": the label was put on issue
// 3 at half past nine, when the head of the pull request was 1f3870be.
type occasion struct {
	commit string
	label  time.Time
	number int64
	on     string // key of the item with the label
}

func (o occasion) String() string {
	return fmt.Sprintf("%s %s %d %s", o.commit, o.label.UTC().Format(time.RFC3339Nano), o.number, o.on)
}

// occasionIn reads the occasion of a review task. Older ones had only the commit and the
// moment, to the second.
func occasionIn(t task.Task) occasion {
	fields := strings.Fields(t.Occasion)
	if len(fields) < 2 {
		return occasion{}
	}
	read := occasion{commit: fields[0]}
	read.label, _ = time.Parse(time.RFC3339, fields[1])
	if len(fields) == 4 {
		read.on = fields[3]
	} else {
		read.label = read.label.Add(time.Second - 1)
	}
	return read
}

// withdrawn are the reasons for which a review ends that was not carried out, and that is
// due again when the reason is gone.
var withdrawn = map[task.Reason]bool{
	task.ReasonReviewNotNeeded: true, task.ReasonItemClosed: true, task.ReasonUnlabeled: true, task.ReasonDraft: true,
}

// next is the occasion of a review of a commit, if there is one after the last task: once for
// each commit and each time that the label was put on, on whichever item.
func (l reviewLabel) next(last task.Task, commit string) (next occasion, found bool) {
	next = occasion{commit: commit, label: l.at, on: l.on.String()}
	before := occasionIn(last)
	if before.commit != commit || l.at.After(before.label) {
		return next, true
	}
	next.number = last.Generation
	return next, last.State == task.Stopped && withdrawn[last.Reason]
}

// label reads when the label was put on an item. It is not on if it was taken off a moment
// ago, or if whoever put it on was not entitled to it.
func (i *Intake) label(ctx context.Context, item forge.Item) (label reviewLabel, on bool, err error) {
	from := i.options.Forges[item.Key.Forge]
	events, err := from.LabelEvents(ctx, item.Key)
	if err != nil {
		return reviewLabel{}, false, fmt.Errorf("read when the label was put on: %w", err)
	}
	at, on := forge.LabeledAt(events, i.options.Rules.ReviewLabel)
	if !on {
		return reviewLabel{}, false, nil
	}
	by := forge.LabeledBy(events, i.options.Rules.ReviewLabel)
	if entitled, err := i.asked(ctx, item.Key, by, "labeled"); err != nil || !entitled {
		return reviewLabel{}, false, err
	}
	self, err := from.Self(ctx)
	due := !at.Add(i.options.Rules.ReviewDelay).After(i.options.Now())
	return reviewLabel{on: item.Key, at: at, own: task.SameLogin(by, self), due: due}, err == nil, err
}

// reviewStatus says what became of the wish for a review of one pull request.
type reviewStatus int

const (
	reviewIgnored  reviewStatus = iota // the label does not count for it
	reviewWaits                        // it was not reviewed yet
	reviewAnswered                     // its head was reviewed
)

// review does what the label on an item asks for about one pull request. If it was
// answered, head is the commit for which that is so.
func (i *Intake) review(ctx context.Context, item pullView, key task.Key, label reviewLabel) (status reviewStatus, head string, err error) {
	pull := item
	if key != item.Key {
		read, err := i.read(ctx, key, pullAge)
		if err != nil || read.State != forge.Open {
			return reviewIgnored, "", err
		}
		pull = i.view(ctx, read)
	}
	if entitled, err := i.mayUseLabelOf(ctx, item.Item, pull.Item); err != nil || !entitled {
		return reviewIgnored, "", err
	}
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, key, task.Review))
	if err != nil {
		return reviewWaits, "", err
	}
	if pull.Draft || pull.HeadCommit == "" {
		if pull.Draft && last.State == task.Queued {
			err = i.withdraw(ctx, last, task.ReasonDraft)
		}
		return reviewWaits, "", err
	}
	return i.reviewHead(ctx, item.Item, pull, last, label)
}

// reviewHead is review for a pull request that is ready. Last is its last review task.
func (i *Intake) reviewHead(ctx context.Context, item forge.Item, pull pullView, last task.Task, label reviewLabel) (status reviewStatus, head string, err error) {
	is, err := i.reviewed(ctx, pull, label.at)
	if err != nil {
		return reviewWaits, "", err
	}
	if last.State.Active() {
		return reviewWaits, "", i.underWay(ctx, last, is, item.Key)
	}
	next, again := label.next(last, pull.HeadCommit)
	switch {
	case is.kept && again && !label.own && is.own.Before(label.at):
		err = i.comment(ctx, pull.Item, "reviewed_before/"+label.moment(), notice.Notice{Commit: pull.HeadCommit}.ReviewedBefore)
		return reviewAnswered, pull.HeadCommit, err
	case is.kept || is.decided:
		return reviewAnswered, pull.HeadCommit, nil
	case again && label.due && !is.looked:
		err = i.assignReview(ctx, item, pull.Item, next)
	}
	return reviewWaits, "", err
}

// underWay does what there is to do about a review that goes on: one that nobody needs is
// withdrawn. What people said since the label of this item was put on does not concern a
// review that another label asked for. When one is about to end, because its result came to the forge a moment ago, the
// item with the label is looked at again: nobody tells of the end of the task.
func (i *Intake) underWay(ctx context.Context, t task.Task, is reviewState, item task.Key) error {
	now := i.options.Now()
	ending := t.State == task.Running && now.Sub(is.own) < longestEnding
	ours := occasionIn(t).on == item.String() || occasionIn(t).on == ""
	unneeded := t.State == task.Queued && (is.kept || ours && (is.decided || is.looked))
	if ending || unneeded {
		i.lookAt(item, now.Add(2*time.Second))
	}
	if unneeded {
		return i.withdraw(ctx, t, task.ReasonReviewNotNeeded)
	}
	return nil
}

// longestEnding is how long a run goes on at most after its review came to the forge, unless
// its agent was lost.
const longestEnding = 10 * time.Second

// reviewState is what reviews have said about the head commit of a pull request.
type reviewState struct {
	kept    bool      // we have reviewed it; the forge may not have the review yet, or any more
	own     time.Time // when our review of it came to the forge; zero if it is not there
	decided bool      // somebody has approved or requested changes
	looked  bool      // somebody has reviewed it without deciding
}

// reviewed finds out what reviews have said about the head commit of a pull request since
// the label was put on, and when we have reviewed it. What the author says about their own
// work is no review of it, and one of a stranger does not relieve us of ours. We cannot
// tell other programs from people.
//
// A review of an older commit says nothing about this one. Where the forge does not name
// the commit, a decision counts until the label is put on again, which we do when we
// publish; a remark does not count.
func (i *Intake) reviewed(ctx context.Context, pull pullView, since time.Time) (is reviewState, err error) {
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return reviewState{}, err
	}
	reviews, err := pull.reviews()
	if err != nil {
		return reviewState{}, err
	}
	for _, review := range reviews {
		ofHead := review.Commit == pull.HeadCommit
		switch {
		case task.SameLogin(review.Author, self):
			if ofHead {
				is.own, is.kept = review.At, true
			}
			continue
		case review.At.Before(since), task.SameLogin(review.Author, pull.Author), review.Dismissed:
			continue
		case review.Verdict == forge.Remark && !ofHead, !ofHead && review.Commit != "":
			continue
		}
		standing, err := i.options.Steering.Of(ctx, pull.Item, review.Author, nil)
		if err != nil {
			return reviewState{}, fmt.Errorf("read what a reviewer may do: %w", err)
		}
		if standing.MaySteer() {
			is.decided = is.decided || review.Verdict != forge.Remark
			is.looked = true
		}
	}
	if !is.kept {
		is.kept, err = i.options.Verdicts.Reviewed(ctx, pull.Key, pull.HeadCommit)
	}
	return is, err
}

// activeReviews returns the reviews that go on and that the label on an item asked for. On a
// pull request it asks about nothing else.
func (i *Intake) activeReviews(ctx context.Context, item task.Key) ([]task.Task, error) {
	var active []task.Task
	var err error
	if item.Kind == task.Pull {
		t, _, failed := store.Optional(i.options.Tasks.TaskOf(ctx, item, task.Review))
		active, err = []task.Task{t}, failed
	} else {
		active, err = i.options.Tasks.ListTasks(ctx, store.TaskFilter{
			Forge: item.Forge, Repository: item.Repository, Type: task.Review, States: []task.State{task.Queued, task.Running, task.Paused},
			OccasionEnd: " " + item.String(),
		})
	}
	return slices.DeleteFunc(active, func(t task.Task) bool { return !t.State.Active() || occasionIn(t).on != item.String() }), err
}

// unlabeled withdraws the reviews that the label on an item asked for, when it is not there
// any more.
func (i *Intake) unlabeled(ctx context.Context, item forge.Item) error {
	active, err := i.activeReviews(ctx, item.Key)
	if err != nil || len(active) == 0 {
		return err
	}
	again, err := i.read(ctx, item.Key, 0) // a forge may show an item in two states for a while
	if err != nil || again.State != forge.Open || again.HasLabel(i.options.Rules.ReviewLabel) {
		return err
	}
	for _, t := range active {
		err = errors.Join(err, i.withdraw(ctx, t, task.ReasonUnlabeled))
	}
	return err
}

// assignReview makes the review task of a pull request, for the label on an item.
func (i *Intake) assignReview(ctx context.Context, item, pull forge.Item, what occasion) error {
	role, err := i.reviewRole(ctx, item, pull)
	if err != nil {
		return err
	}
	author, err := i.author(ctx, pull)
	if err != nil {
		return err
	}
	on, err := i.assignedOn(ctx, pull, item.Key)
	if err != nil {
		return err
	}
	return i.assign(ctx, store.NewTask{
		Key: pull.Key, Type: task.Review, Role: role, Title: pull.Title, URL: pull.URL, Priority: i.options.Rules.priority(item),
		Reason: task.ReasonReviewDue, Occasion: what.String(), Branch: assignment.BranchOf(pull), Author: author, AssignedOn: on,
	})
}

// mayUseLabelOf reports whether the label of an item holds for a pull request: its own
// does, and that of an issue for those of people who may steer the issue, and for ours.
// Everyone can open a pull request that names an issue, any number of them.
func (i *Intake) mayUseLabelOf(ctx context.Context, item, pull forge.Item) (bool, error) {
	if item.Key == pull.Key {
		return true, nil
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil || task.SameLogin(pull.Author, self) {
		return err == nil, err
	}
	standing, err := i.options.Steering.Of(ctx, item, pull.Author, nil)
	if err != nil {
		return false, fmt.Errorf("read what the author of a pull request may do: %w", err)
	}
	return standing.MaySteer(), nil
}

// author is the agent that wrote the pull request, if it is the work of a task.
func (i *Intake) author(ctx context.Context, pull forge.Item) (string, error) {
	origin, found, err := i.origin(ctx, pull)
	if err != nil || !found {
		return "", err
	}
	own, err := i.options.Tasks.TaskOf(ctx, pull.Key, task.Development)
	if err == nil && own.LastAgent != "" {
		return own.LastAgent, nil // it has worked on it since
	}
	return origin.LastAgent, nil
}

// origin is the task that the branch of a pull request is the work of.
func (i *Intake) origin(ctx context.Context, pull forge.Item) (origin task.Task, found bool, err error) {
	if pull.Head == "" {
		return task.Task{}, false, nil
	}
	return store.Optional(i.options.Tasks.TaskOfBranch(ctx, pull.Key.Forge, pull.Key.Repository, pull.Head))
}
