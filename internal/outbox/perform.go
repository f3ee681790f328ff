package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Publication is a branch of a task that is to be published to the forge.
type Publication struct {
	Item       task.Key // names the forge and the repository
	Task       task.ID
	Generation int64
	Branch     string
	Commit     string
	CoAuthors  []string // people for the message of the commit, as "Name <address>"
}

// Publish publishes a branch and returns the commit that the forge has then, which is
// another than the agent's: it is the server's own. Publishing again what is there
// already succeeds. Its errors have the codes of package forge.
type Publish func(ctx context.Context, p Publication) (Published, error)

// delivery is one attempt to perform an action.
type delivery struct {
	store.Action
	on     forge.Forge
	sender *Sender
	of     task.Task // zero for what the server does of its own accord
	// text makes text safe: see neutraliser.
	text forge.Neutraliser
}

// repeat reports whether an earlier attempt may have succeeded unseen, or one of the time
// between a backup and its restore.
func (d delivery) repeat() bool { return d.Attempts > 1 || d.Restored }

func (d delivery) marker() forge.Marker { return forge.MarkerOf(d.IdempotencyKey) }

func (d delivery) post(text string) forge.Post {
	return forge.Post{Text: d.text.Text(text), Marker: d.marker(), Repeat: d.repeat()}
}

// performer does what an action says and returns what the forge answered.
type performer func(ctx context.Context, d delivery) (any, error)

// as makes a performer of a function for one type of payload.
func as[P Payload](perform func(ctx context.Context, d delivery, p P) (any, error)) (string, performer) {
	var kind P
	return kind.Kind(), func(ctx context.Context, d delivery) (any, error) {
		var payload P
		decoder := json.NewDecoder(bytes.NewReader(d.Payload))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&payload); err != nil {
			return nil, task.Wrap(task.Invalid, err, "the payload of the action cannot be read")
		}
		return perform(ctx, d, payload)
	}
}

// errExpired is the error of a write that could not be made in time.
var errExpired = task.Errorf(task.Conflict, "the forge did not take it in time")

// errChangesRequested is the error of a merge when somebody has requested changes since it was
// decided to merge.
var errChangesRequested = task.Errorf(task.Conflict, "a review requests changes that was not there when the merge was decided")

// performers has one performer for each kind of action.
var performers = func() map[string]performer {
	all := map[string]performer{}
	add := func(kind string, perform performer) { all[kind] = perform }
	add(as(performComment))
	add(as(performEditComment))
	add(as(performProgress))
	add(as(performProgressState))
	add(as(func(ctx context.Context, d delivery, p AddLabel) (any, error) {
		return nil, d.on.AddLabel(ctx, d.Item, p.Label)
	}))
	add(as(func(ctx context.Context, d delivery, p RemoveLabel) (any, error) {
		return nil, d.on.RemoveLabel(ctx, d.Item, p.Label)
	}))
	add(as(performReviewAnswered))
	add(as(performStateLabel))
	add(as(func(ctx context.Context, d delivery, p Assign) (any, error) {
		return nil, d.on.Assign(ctx, d.Item, p.Login)
	}))
	add(as(performOpenPull))
	add(as(performEditPull))
	add(as(performSubmitReview))
	add(as(func(ctx context.Context, d delivery, p Reply) (any, error) {
		comment, err := d.on.Reply(ctx, d.Item, p.Thread, d.post(p.Text))
		return Written{comment.ID}, err
	}))
	add(as(performResolveThread))
	add(as(performMergePull))
	add(as(func(ctx context.Context, d delivery, p React) (any, error) {
		return nil, d.on.React(ctx, forge.Target{Key: d.Item, Comment: p.Comment}, p.Reaction)
	}))
	add(as(func(ctx context.Context, d delivery, p Unreact) (any, error) {
		return nil, d.on.Unreact(ctx, forge.Target{Key: d.Item, Comment: p.Comment}, p.Reaction)
	}))
	add(as(performSetStatus))
	add(as(performPublish))
	return all
}()

func performComment(ctx context.Context, d delivery, p Comment) (any, error) {
	comment, err := d.on.CreateComment(ctx, d.Item, d.post(notice.WithLink(p.Text, d.page(cmp.Or(d.Task, p.About)))))
	return Written{comment.ID}, err
}

func performEditComment(ctx context.Context, d delivery, p EditComment) (any, error) {
	comment, err := d.on.EditComment(ctx, d.Item, p.ID, d.post(p.Text))
	return Written{comment.ID}, err
}

// page is the address of the page of a task, empty if nobody knows it.
func (d delivery) page(of task.ID) string {
	if d.sender.options.Pages == "" || of == "" {
		return ""
	}
	return d.sender.options.Pages + "/tasks/" + url.PathEscape(string(of))
}

// performProgress edits the progress comment, or writes it if there is none. A
// comment that we do not know of, because we were started anew, is found by its
// marker, which does not depend on the action.
func performProgress(ctx context.Context, d delivery, p Progress) (any, error) {
	name := d.Coalesce
	post := forge.Post{Text: d.text.Text(notice.WithLink(p.Text, d.page(d.Task))), Marker: progressMarker(d.Item, name), Repeat: true}
	if id := d.sender.progress.get(name); id != "" {
		_, err := d.on.EditComment(ctx, d.Item, id, post)
		if task.CodeOf(err) != task.NotFound {
			return Written{id}, err
		}
		d.sender.progress.set(name, "") // someone has deleted it
	}
	comment, err := d.on.CreateComment(ctx, d.Item, post)
	if err != nil {
		return nil, err
	}
	d.sender.progress.set(name, comment.ID)
	if forge.StripMarker(comment.Body) != post.Text.String() {
		_, err = d.on.EditComment(ctx, d.Item, comment.ID, post)
	}
	return Written{comment.ID}, err
}

// performProgressState replaces the first line of the progress comment, in the language
// that it is written in.
func performProgressState(ctx context.Context, d delivery, p ProgressState) (any, error) {
	marker := progressMarker(d.Item, progressComment(d.Task, p.Name))
	comment, found, err := d.on.FindComment(ctx, d.Item, marker)
	if err != nil || !found {
		return nil, err
	}
	before := forge.StripMarker(comment.Body)
	after := notice.WithHeading(before, p.State)
	if after == before {
		return Written{comment.ID}, nil
	}
	_, err = d.on.EditComment(ctx, d.Item, comment.ID, forge.Post{Text: d.text.Text(after), Marker: marker})
	return Written{comment.ID}, err
}

// progressMarker is how a progress comment is found again.
func progressMarker(on task.Key, comment string) forge.Marker {
	return forge.MarkerOf(on.String() + "/" + comment)
}

func performReviewAnswered(ctx context.Context, d delivery, p ReviewAnswered) (any, error) {
	events, err := d.on.LabelEvents(ctx, d.Item)
	if err != nil {
		return nil, err
	}
	if at, on := forge.LabeledAt(events, p.Label); on && at.After(p.PutOn) {
		return nil, nil
	}
	for _, reviewed := range p.Pulls {
		key := d.Item
		key.Kind, key.Number = task.Pull, reviewed.Number
		pull, err := d.on.Item(ctx, key)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return nil, err
		}
		if err == nil && pull.HeadCommit != reviewed.Commit {
			return Answered{Stale: true}, nil
		}
	}
	return Answered{}, d.on.RemoveLabel(ctx, d.Item, p.Label)
}

func performMergePull(ctx context.Context, d delivery, p MergePull) (any, error) {
	if !p.Until.IsZero() && d.sender.options.Now().After(p.Until) {
		return nil, errExpired
	}
	reviews, err := d.on.Reviews(ctx, d.Item)
	if err != nil {
		return nil, err
	}
	for _, review := range forge.OpenRequests(reviews) {
		if !slices.Contains(p.Requests, review.ID) {
			return nil, errChangesRequested
		}
	}
	return nil, d.on.MergePull(ctx, d.Item, p.Head)
}

func performResolveThread(ctx context.Context, d delivery, p ResolveThread) (any, error) {
	threads, err := d.on.ReviewThreads(ctx, d.Item)
	if err != nil {
		return nil, err
	}
	self, err := d.on.Self(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(threads, func(t forge.ReviewThread) bool { return t.ID == p.Thread })
	if at < 0 || threads[at].Resolved || len(threads[at].Comments) == 0 {
		return nil, nil
	}
	last := threads[at].Comments[len(threads[at].Comments)-1]
	if !last.By(self) || !forge.MarkerOf(p.Reply).In(last.Body) {
		return nil, nil
	}
	err = d.on.ResolveThread(ctx, d.Item, p.Thread)
	switch task.CodeOf(err) {
	case task.Unsupported, task.Forbidden, task.NotFound:
		d.sender.options.Log.DebugContext(ctx, "a review thread stays open", "item", d.Item.String(), "thread", p.Thread, "error", err)
		return nil, nil
	default:
		return nil, err
	}
}

// performStateLabel adds before it removes, so that the item shows a state at
// every moment.
func performStateLabel(ctx context.Context, d delivery, p StateLabel) (any, error) {
	item, err := d.on.Item(ctx, d.Item)
	if err != nil {
		return nil, err
	}
	if !item.HasLabel(p.Label) {
		if err := d.on.AddLabel(ctx, d.Item, p.Label); err != nil {
			return nil, err
		}
	}
	for _, other := range p.Others {
		if other == p.Label || !item.HasLabel(other) {
			continue
		}
		if err := d.on.RemoveLabel(ctx, d.Item, other); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func performOpenPull(ctx context.Context, d delivery, p OpenPull) (any, error) {
	if err := d.of.CheckBranch(p.Head); err != nil {
		return nil, err
	}
	if item, own, err := d.pullOf(ctx, p.Head); err != nil || own {
		return Pulled{item.Key.Number, item.URL, false}, err
	}
	safe := d.text
	safe.Closes = []task.Key{d.Item} // the task's own item, nothing else
	item, opened, err := d.on.OpenPull(ctx, d.Item.Repository, forge.PullPost{
		Title: safe.Title(p.Title), Text: safe.Text(p.Text), Head: p.Head, Base: p.Base, Draft: p.Draft,
	})
	return Pulled{item.Key.Number, item.URL, opened}, err
}

// pullOf reads the item if it is a pull request from the branch. People may have retargeted
// or closed it since the work began: it stays so, and no other one is opened beside it.
func (d delivery) pullOf(ctx context.Context, branch string) (forge.Item, bool, error) {
	if d.Item.Kind != task.Pull {
		return forge.Item{}, false, nil
	}
	item, err := d.on.Item(ctx, d.Item)
	return item, !item.Fork && item.Head == branch, err
}

func performEditPull(ctx context.Context, d delivery, p EditPull) (any, error) {
	edit := forge.PullEdit{Draft: p.Draft}
	if p.Title != nil {
		title := d.text.Title(*p.Title)
		edit.Title = &title
	}
	if p.Text != nil {
		text := d.text.Text(*p.Text)
		edit.Text = &text
	}
	_, err := d.on.EditPull(ctx, d.Item, edit)
	return nil, err
}

func performSubmitReview(ctx context.Context, d delivery, p SubmitReview) (any, error) {
	post := forge.ReviewPost{Verdict: p.Verdict, Text: d.text.Text(p.Text), Commit: p.Commit, Marker: d.marker(), Repeat: d.repeat()}
	for _, c := range p.Comments {
		post.Comments = append(post.Comments, forge.LineComment{
			Anchor: forge.Anchor{Path: c.Path, Side: c.Side, Line: c.Line}, Text: d.text.Text(c.Text),
		})
	}
	own, err := d.ownPull(ctx, p.Verdict)
	if err != nil {
		return nil, err
	}
	if own {
		post.Verdict = forge.Remark
	}
	review, err := d.on.SubmitReview(ctx, d.Item, post)
	return Written{review.ID}, err
}

// ownPull reports whether a verdict would be on a pull request of our own, which
// forges refuse. The text of the review still says what the verdict is.
func (d delivery) ownPull(ctx context.Context, verdict forge.Verdict) (bool, error) {
	if verdict == forge.Remark {
		return false, nil
	}
	item, err := d.on.Item(ctx, d.Item)
	if err != nil {
		return false, err
	}
	self, err := d.on.Self(ctx)
	return task.SameLogin(item.Author, self), err
}

func performSetStatus(ctx context.Context, d delivery, p SetStatus) (any, error) {
	if p.State == "" {
		return nil, nil
	}
	return nil, d.on.SetStatus(ctx, d.Item.Repository, forge.CommitStatus{
		Commit: p.Commit, Context: p.Context, State: p.State, Description: d.text.Title(p.Description).String(), URL: p.URL,
	})
}

func performPublish(ctx context.Context, d delivery, p PublishBranch) (any, error) {
	if d.sender.options.Publish == nil {
		return nil, task.Errorf(task.Unsupported, "this server publishes no branches")
	}
	if err := d.ownBranch(ctx, p.Branch); err != nil {
		return nil, err
	}
	if p.Draft {
		if err := d.makeDraft(ctx, p.Branch); err != nil {
			return nil, err
		}
	}
	published, err := d.sender.options.Publish(ctx, Publication{
		Item: d.Item, Task: d.Task, Generation: d.Generation, Branch: p.Branch, Commit: p.Commit, CoAuthors: p.CoAuthors,
	})
	if moved, is := errors.AsType[*task.MovedError](err); is {
		return Published{Moved: moved.Commit}, nil
	}
	return published, err
}

// makeDraft makes the pull request that is open from a branch a draft, if there is one.
func (d delivery) makeDraft(ctx context.Context, branch string) error {
	pull, found, err := d.on.FindPull(ctx, d.Item.Repository, branch, "")
	if err != nil || !found || pull.Draft {
		return err
	}
	draft := true
	_, err = d.on.EditPull(ctx, pull.Key, forge.PullEdit{Draft: &draft})
	return err
}

// ownBranch refuses to publish anything but the branch of the task, and that too if it
// is the one that the repository is about: a pull request may be from there.
func (d delivery) ownBranch(ctx context.Context, branch string) error {
	if err := d.of.CheckBranch(branch); err != nil {
		return err
	}
	repository, err := d.on.Repository(ctx, d.Item.Repository)
	if err != nil {
		return err
	}
	if branch == repository.DefaultBranch {
		return task.Errorf(task.Forbidden, "%q is the default branch of %s", branch, repository.Name)
	}
	return nil
}

// neutraliser lets text mention those who take part in the item's conversation.
// If they cannot be had, nobody is mentioned.
func (s *Sender) neutraliser(ctx context.Context, item task.Key) forge.Neutraliser {
	safe := forge.Neutraliser{Repository: item.Repository, Mask: s.options.Mask}
	if s.options.Snapshots == nil {
		return safe
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	snapshot, err := s.options.Snapshots.Get(ctx, item, items.ParticipantsAge)
	if err != nil {
		s.options.Log.DebugContext(ctx, "who takes part is not known", "item", item.String(), "error", err)
	}
	safe.Participants = append(safe.Participants, snapshot.Item.Author)
	safe.Participants = append(safe.Participants, snapshot.Item.Assignees...)
	for _, comment := range snapshot.Comments {
		safe.Participants = append(safe.Participants, comment.Author)
	}
	return safe
}
