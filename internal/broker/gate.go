package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// Gate is what the work of a run passes before it is published. It is in the server:
// what the agent or the model says about the work is of no account. Inspect and Retract
// have to be set.
type Gate struct {
	// Inspect looks at what a publication would bring to the forge; see package
	// inspect.
	Inspect func(ctx context.Context, p outbox.Publication) ([]inspect.Found, error)
	// Retract takes the task's branch back to what the forge has, if it is at the
	// commit.
	Retract func(ctx context.Context, p outbox.Publication) error
	// Refuse says that what nobody asked for is not even published as a draft.
	Refuse bool
}

// pass decides whether the work may be published. The decision about a commit stays the
// same when it is asked for again. Withheld is once for each assignment of the task, which
// the journal shows: runs cannot write such entries.
func (r *Runs) pass(ctx context.Context, held Lease, wish PullWish) (task.Inspection, error) {
	earlier, err := r.inspections(ctx, held)
	if err != nil {
		return task.Inspection{}, err
	}
	publication := outbox.Publication{Item: held.Key, Task: held.ID, Generation: held.Generation, Branch: held.Branch, Commit: wish.Commit}
	for _, one := range earlier {
		if one.Commit == wish.Commit && (one.Outcome != task.Withheld || !wish.Again) {
			return one, r.conclude(ctx, publication, one)
		}
	}
	publication.CoAuthors = r.coAuthors(ctx, held) // the commits are made before they are looked at
	findings, err := r.unasked(ctx, held, publication)
	if task.CodeOf(err) == task.Unsafe {
		// A later run that began with it could never publish anything.
		return task.Inspection{}, errors.Join(err, r.options.Gate.Retract(ctx, publication))
	}
	if err != nil || len(findings) == 0 {
		return task.Inspection{}, err
	}
	decided := task.Inspection{Commit: wish.Commit, Outcome: task.PublishedAsDraft, Findings: findings, Text: notice.Notice{Findings: findings}.Found(task.English)}
	switch {
	case len(earlier) == 0:
		decided.Outcome = task.Withheld
	case slices.ContainsFunc(findings, task.Finding.Blocks) || r.options.Gate.Refuse:
		decided.Outcome = task.PublishRefused
	}
	if err := r.note(ctx, held, decided); err != nil {
		return task.Inspection{}, err
	}
	r.options.Log.WarnContext(ctx, "findings in what was to be published", "task", held.ID, "commit", wish.Commit,
		"outcome", decided.Outcome, "findings", places(findings))
	return decided, r.conclude(ctx, publication, decided)
}

// conclude does what follows from a decision. It is nil unless the work is not published
// at all.
func (r *Runs) conclude(ctx context.Context, publication outbox.Publication, decided task.Inspection) error {
	if slices.ContainsFunc(decided.Findings, task.Finding.Blocks) {
		// A later run that began with it could never publish anything.
		if err := r.options.Gate.Retract(ctx, publication); err != nil {
			return err
		}
	}
	if decided.Outcome != task.PublishRefused {
		return nil
	}
	return task.Errorf(task.Unsafe, "the work is not published: %s", places(decided.Findings))
}

// places tells findings in one line.
func places(findings []task.Finding) string {
	var all []string
	for _, finding := range findings {
		all = append(all, strings.TrimSpace(string(finding.Kind)+" "+finding.Place()))
	}
	return strings.Join(all, ", ")
}

// inspections are what was decided since the task was last assigned, oldest first.
func (r *Runs) inspections(ctx context.Context, held Lease) ([]task.Inspection, error) {
	events, err := r.options.Store.EventsOf(ctx, held.ID, task.Inspected)
	if err != nil {
		return nil, err
	}
	var all []task.Inspection
	for _, event := range events {
		if event.Source != task.FromServer || event.Generation < held.FirstGeneration {
			continue
		}
		var one task.Inspection
		if err := json.Unmarshal(event.Data, &one); err != nil {
			return nil, task.Wrap(task.Internal, err, "what was found in earlier work cannot be read")
		}
		all = append(all, one)
	}
	return all, nil
}

// note writes a decision to the journal before anybody is told of it.
func (r *Runs) note(ctx context.Context, held Lease, decided task.Inspection) error {
	data, err := json.Marshal(decided)
	if err != nil {
		return task.Wrap(task.Internal, err, "what was found cannot be written down")
	}
	_, err = r.options.Store.Append(ctx, []task.Event{{
		Task: held.ID, Generation: held.Generation, Source: task.FromServer, Kind: task.Inspected, At: r.options.Now(), Data: data,
	}})
	return err
}

// unasked is what the work has in it that the request does not ask for.
func (r *Runs) unasked(ctx context.Context, held Lease, publication outbox.Publication) ([]task.Finding, error) {
	found, err := r.options.Gate.Inspect(ctx, publication)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	request, err := r.request(ctx, held.Task)
	if err != nil {
		return nil, fmt.Errorf("read what was asked for: %w", err)
	}
	return request.Unasked(found), nil
}

// request is what people ask for with a task: the text of its item, and what those said
// who may steer. What we have written ourselves is left out, as a model may have made it
// up: the description of a pull request of ours, and our own reviews. For work on a pull
// request of ours, the issue counts that its branch was made for.
func (r *Runs) request(ctx context.Context, t task.Task) (inspect.Request, error) {
	var asked inspect.Request
	if err := r.addItem(ctx, t, &asked); err != nil || t.Key.Kind != task.Pull {
		return asked, err
	}
	first, err := r.options.Store.TaskOfBranch(ctx, t.Key.Forge, t.Key.Repository, t.Branch)
	if err == nil && first.Key.Kind == task.Issue {
		err = r.addItem(ctx, first, &asked)
	}
	if err != nil && task.CodeOf(err) != task.NotFound {
		return asked, err
	}
	err = r.addReviews(ctx, t, &asked)
	return asked, err
}

// addItem adds the text of a task's item and the comments that count.
func (r *Runs) addItem(ctx context.Context, t task.Task, to *inspect.Request) error {
	snapshot, err := r.options.Snapshots.Get(ctx, t.Key, items.ParticipantsAge)
	if err != nil {
		return err
	}
	said, found, err := comments.Requested(ctx, r.options.Store, t.ID)
	if err != nil {
		return err
	}
	if !found { // it was handed out before this was kept
		said = task.Requesting{Title: snapshot.Item.Title, Body: snapshot.Item.Body}
	}
	if !r.options.Own(t.Key.Forge, snapshot.Item.Author) {
		to.Texts = append(to.Texts, said.Title, said.Body)
	}
	known, _, err := r.options.Store.KnownComments(ctx, t.ID)
	for _, entry := range known {
		if entry.Refused == "" && entry.Change != task.CommentDeleted && !r.options.Own(t.Key.Forge, entry.Author) {
			to.Texts = append(to.Texts, entry.Body)
		}
	}
	return err
}

// addReviews adds what reviewers who may steer say, and the files that they say it about.
func (r *Runs) addReviews(ctx context.Context, t task.Task, to *inspect.Request) error {
	from, found := r.options.Reviews[t.Key.Forge]
	if !found {
		return nil
	}
	snapshot, err := r.options.Snapshots.Get(ctx, t.Key, items.ParticipantsAge)
	if err != nil {
		return err
	}
	counts := func(login string) (bool, error) {
		if r.options.Own(t.Key.Forge, login) {
			return false, nil
		}
		standing, err := r.options.Steering.Of(ctx, snapshot.Item, login, nil)
		return standing.MaySteer(), err
	}
	reviews, err := from.Reviews(ctx, t.Key)
	if err != nil {
		return err
	}
	for _, review := range reviews {
		steers, err := counts(review.Author)
		if err != nil {
			return err
		}
		if steers {
			to.Texts = append(to.Texts, review.Body)
		}
	}
	threads, err := from.ReviewThreads(ctx, t.Key)
	for _, thread := range threads {
		for _, comment := range thread.Comments {
			steers, wrong := counts(comment.Author)
			if wrong != nil {
				return errors.Join(err, wrong)
			}
			if steers {
				to.Texts, to.Files = append(to.Texts, comment.Body), append(to.Files, thread.Anchor.Path)
			}
		}
	}
	return err
}

// asDraft is the wish for work that has something in it that nobody asked for.
func (r *Runs) asDraft(ctx context.Context, held Lease, wish PullWish, findings []task.Finding) PullWish {
	in := r.options.Status.LanguageOf(ctx, held.Task)
	wish.Draft, wish.unasked = true, true
	wish.Text = notice.Notice{Findings: findings}.Unasked(in) + "\n\n" + wish.Text
	return wish
}

// explainDraft tells people on the item why the pull request is a draft.
func (r *Runs) explainDraft(ctx context.Context, held Lease, wish PullWish, pulled outbox.Pulled, findings []task.Finding) error {
	in := r.options.Status.LanguageOf(ctx, held.Task)
	text := notice.Notice{Findings: findings, Pull: pulled.URL}.Drafted(in)
	return r.put(ctx, held.write("unasked/"+wish.Commit), outbox.Comment{Text: text})
}
