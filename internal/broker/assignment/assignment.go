package assignment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Assignment is a task with everything that its agent has to know. The broker begins it
// with the first three fields, and [Preparer.Prepare] fills in the others.
type Assignment struct {
	Task  task.Task
	Token string      // of the lease
	Was   task.Reason // for which the task was in the queue

	Item         forge.Item
	AuthorAccess forge.Access
	Comments     []task.CommentEntry
	Prompt       string
	Branch       string
	Base         string
	BaseCommit   string // that the base has for this run
	StartCommit  string // that is checked out
	Approval     task.PlanApproval
	Pull         *PullBrief
	Resume       *Resume
	Earlier      string
	Notes        []store.Note // from past reviews of the repository
}

// PullBrief is the pull request that a task is about.
type PullBrief struct {
	Item      forge.Item
	HeadRef   string // where the head is in the repository that is cloned
	Diff      string
	CutFiles  []string
	Threads   []forge.ReviewThread
	Summaries []task.CommentEntry // what the reviews that ask for changes say as a whole
	Issues    []forge.Item
	Checks    []FailedCheck // that the task is for
}

// Resume says where an earlier run of the task was.
type Resume struct {
	Generation int64
	Reason     task.Reason
	Phase      task.Phase
	WIPRef     string
	WIPCommit  string // that it has
	Events     int64
	Comments   int64
}

// Repositories prepares the repository that a run clones.
type Repositories interface {
	// Prepare brings the copy of the repository up to date, and lets the task see
	// what it needs. It returns the commits that the task sees, by the full names of
	// their refs. Errors have the codes of package forge; it fails with NotFound if there
	// is no base, with Conflict if the forge has a ref at another commit than the one that
	// is needed, and with a [task.NoCommitError] if it says that it does not have that one.
	Prepare(ctx context.Context, t task.Task, needs Needs) (commits map[string]string, err error)
}

// Needs is what a run has to find in the repository that it clones.
type Needs struct {
	Base     string   // the branch that the work starts from
	Branches []string // more branches, if they are there
	Refs     []string // further refs, such as the head of a pull request from a fork
	// Commits are those that the assignment names, by the full name of the ref that
	// has to be there.
	Commits map[string]string
	// Anew says that no earlier run goes on: what the task has pushed to the refs of
	// Commits is of no use.
	Anew bool
}

// Journals tells what is in the journals of tasks.
type Journals interface {
	LastFrom(ctx context.Context, id task.ID, source task.EventSource) (task.Event, error)
	LastEvent(ctx context.Context, id task.ID, kind task.EventKind) (task.Event, error)
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
}

// Preparer makes assignments.
type Preparer struct {
	Snapshots    *items.Snapshots
	Forges       map[task.Forge]forge.Forge
	Verdicts     verdicts.Reader
	Tasks        store.Tasks
	Events       Journals
	Repositories Repositories
	// Comments returns what the task is told at its first hand-out: the comments
	// that are there, each with its place in the task's log; see Log.Present in package comments.
	Comments func(ctx context.Context, t task.Task, snapshot items.Snapshot) ([]task.CommentEntry, error)
	// Approval says what the run is told about the approval of its plan; nil means that no
	// plan has to be approved.
	Approval func(ctx context.Context, t task.Task, snapshot items.Snapshot) (task.PlanApproval, error)
	// Memory has the notes from past reviews; nil means that none are given.
	Memory   Memory
	Steering *items.Steering
	Roles    map[task.Role]string // what each is, in words for the model
	Now      func() time.Time
	// Again is how long to wait before an item is read again that changed while it
	// was read; 0 means a second.
	Again time.Duration
}

// headTries is how often an item is read whose head changes meanwhile.
const headTries = 4

// Prepare reads what there is to know about a task, and prepares its repository.
// The commits that the assignment names are those that the repository has: when
// somebody pushes in between, or a forge's API and its git do not agree yet,
// everything is read again. It fails with a [task.NoCommitError] if they still do not agree
// then, and at once if the forge does not have the commit. Other conflicts that do not end are
// Unavailable.
func (p *Preparer) Prepare(ctx context.Context, given Assignment) (made Assignment, err error) {
	for try := range headTries {
		if try > 0 && lifecycle.Sleep(ctx, cmp.Or(p.Again, time.Second)) != nil {
			return Assignment{}, context.Cause(ctx)
		}
		if made, err = p.prepare(ctx, given); task.CodeOf(err) != task.Conflict {
			return made, err
		}
	}
	if made.Item.HeadCommit == "" { // it is not about a commit: somebody else was quicker, each time
		return Assignment{}, &forge.Error{Err: task.Wrap(task.Unavailable, err, "the item does not stay the same")}
	}
	return Assignment{}, task.NoCommit(made.Item.HeadCommit, err)
}

// prepare does it once. It fails with Conflict if the item has changed meanwhile; what is
// returned has the item then.
func (p *Preparer) prepare(ctx context.Context, given Assignment) (Assignment, error) {
	t := given.Task
	from, found := p.Forges[t.Key.Forge]
	if !found {
		return Assignment{}, task.Errorf(task.Unsupported, "no forge %s is configured", t.Key.Forge)
	}
	if err := p.rights(ctx, from, t); err != nil {
		return Assignment{}, err
	}
	snapshot, err := p.Snapshots.Get(ctx, t.Key, 0)
	if err != nil {
		return Assignment{}, fmt.Errorf("read the item: %w", err)
	}
	made := given
	made.Item, made.Branch = snapshot.Item, t.Branch
	if err := p.describe(ctx, from, snapshot, &made); err != nil {
		return Assignment{}, err
	}
	if p.Approval != nil {
		if made.Approval, err = p.Approval(ctx, t, snapshot); err != nil {
			return Assignment{}, fmt.Errorf("read the approval of the plan: %w", err)
		}
	}
	if err := p.past(ctx, &made); err != nil {
		return Assignment{}, err
	}
	if err := p.checks(ctx, from, &made); err != nil {
		return Assignment{}, err
	}
	if err := p.notes(ctx, &made); err != nil {
		return Assignment{}, err
	}
	if err := p.repository(ctx, from, &made); err != nil {
		return made, err
	}
	made.Prompt = prompt(made, p.Roles[t.Role])
	return made, errors.Join(p.noteGiven(ctx, made), p.noteCommit(ctx, made))
}

// noteCommit makes the commit that a review is given the one that it is for. It was queued for
// the head of that time, and somebody may have pushed since. The occasion of a review begins
// with the commit.
func (p *Preparer) noteCommit(ctx context.Context, made Assignment) error {
	t := made.Task
	queued, label, found := strings.Cut(t.Occasion, " ")
	if t.Type != task.Review || !found || made.Item.HeadCommit == "" || queued == made.Item.HeadCommit {
		return nil
	}
	return p.Tasks.SetOccasion(ctx, t.ID, t.Generation, made.Item.HeadCommit+" "+label)
}

// describe reads what people said.
func (p *Preparer) describe(ctx context.Context, from forge.Forge, snapshot items.Snapshot, made *Assignment) (err error) {
	if author := made.Item.Author; author != "" && author != forge.Ghost {
		if made.AuthorAccess, err = from.Access(ctx, made.Item.Key.Repository, author); err != nil {
			return fmt.Errorf("read what the author may do: %w", err)
		}
	}
	made.Comments, err = p.Comments(ctx, made.Task, snapshot)
	if err != nil {
		return fmt.Errorf("note the comments that are there: %w", err)
	}
	if made.Item.Key.Kind == task.Pull {
		if made.Pull, err = p.pull(ctx, from, *made); err == nil {
			made.Comments = made.Pull.without(made.Comments)
		}
	}
	return err
}

// repository finds the branches and prepares the repository.
func (p *Preparer) repository(ctx context.Context, from forge.Forge, made *Assignment) error {
	var needs Needs
	if made.Pull != nil {
		made.Base, needs = made.Item.Base, needsOf(*made.Pull, made.Item)
	} else {
		repository, err := from.Repository(ctx, made.Item.Key.Repository)
		if err == nil && repository.DefaultBranch == "" && lifecycle.Sleep(ctx, baseAgain) == nil {
			repository, err = from.Repository(ctx, made.Item.Key.Repository) // as below
		}
		if err != nil {
			return fmt.Errorf("read the repository: %w", err)
		}
		made.Base = repository.DefaultBranch
	}
	if made.Branch == "" {
		made.Branch = BranchOf(made.Item)
	}
	if made.Base == "" {
		return &NoBaseError{task.Errorf(task.Invalid, "%s has no commit yet: there is nothing to start from", made.Item.Key.Repository)}
	}
	if needs.Base = made.Base; !slices.Contains(needs.Branches, made.Branch) {
		needs.Branches = append(needs.Branches, made.Branch)
	}
	needs.Anew = made.Resume == nil
	commits, err := p.Repositories.Prepare(ctx, made.Task, needs)
	if task.CodeOf(err) == task.NotFound && lifecycle.Sleep(ctx, baseAgain) == nil {
		commits, err = p.Repositories.Prepare(ctx, made.Task, needs) // a forge shows what was just pushed a moment later
	}
	if task.CodeOf(err) == task.NotFound {
		return &NoBaseError{err} // a forge may name a branch that is not there yet
	}
	if err != nil {
		return fmt.Errorf("prepare the repository: %w", err)
	}
	made.name(commits)
	return nil
}

// name names the commits that the run is to find, of those that the task sees.
func (a *Assignment) name(commits map[string]string) {
	const heads = "refs/heads/"
	a.BaseCommit = commits[heads+a.Base]
	a.StartCommit = cmp.Or(commits[heads+a.Branch], a.BaseCommit)
	if a.Pull != nil {
		a.StartCommit = commits[a.Pull.HeadRef]
	}
	if a.Resume != nil {
		a.Resume.WIPCommit = commits[a.Resume.WIPRef]
	}
}

// baseAgain is how long it takes until a base branch that is not there is looked for once
// more. Without one the task fails for good.
const baseAgain = 2 * time.Second

// needsOf is what work on a pull request needs of it: its head, at the commit that the
// forge names.
func needsOf(pull PullBrief, item forge.Item) Needs {
	needs := Needs{Branches: []string{item.Head}}
	if item.Fork {
		needs = Needs{Refs: []string{pull.HeadRef}}
	}
	if item.HeadCommit != "" {
		needs.Commits = map[string]string{pull.HeadRef: item.HeadCommit}
	}
	return needs
}

// NoBaseError says that there is nothing in the repository to start from, which
// is for people to change.
type NoBaseError struct{ error }

func (e *NoBaseError) Unwrap() error { return e.error }
