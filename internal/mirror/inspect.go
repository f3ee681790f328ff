package mirror

import (
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/task"
)

// Inspect looks at what a publication would bring to the forge. It makes the commits that
// Publish brings there and looks at these. It fails as Publish does if the task has not
// pushed it.
//
// New is what the commit has besides the branch that it is to be merged into and, for a
// task on a pull request, besides that pull request as the forge has it. For a task on an
// issue that is so with its branch if somebody else has pushed to it last. What a run has
// pushed itself decides nothing: the commits to compare with are those that were fetched
// from the forge.
func (m *Mirrors) Inspect(ctx context.Context, p Publication, by *inspect.Inspector) ([]inspect.Found, error) {
	release := m.use(p.Item.Repo())
	defer release()
	ctx, cancel := context.WithTimeout(ctx, longestFetch)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return nil, errStopped
	}
	defer m.running.Done()
	at, err := m.placeOf(ctx, p.Item.Repo(), p.Task)
	if err != nil {
		return nil, err
	}
	if err := m.bringIn(ctx, at); err != nil {
		return nil, err
	}
	if err := m.checkPublication(ctx, at, p); err != nil {
		return nil, err
	}
	made, err := m.made(ctx, at, p)
	if task.CodeOf(err) == task.TooLarge {
		return []inspect.Found{{Finding: task.Finding{Kind: task.FindingTooLarge}}}, nil
	}
	if err != nil {
		return nil, err
	}
	change := inspect.Change{Git: m.git.Program, Dir: at.dir, Commit: made, Public: publicRefs(p.Task)}
	if change.Names, err = m.pushedAs(ctx, at); err != nil {
		return nil, err
	}
	if err := m.compareWith(ctx, at, p, &change); err != nil {
		return nil, err
	}
	return by.Inspect(ctx, change)
}

// compareWith adds what the forge has to a change.
func (m *Mirrors) compareWith(ctx context.Context, at place, p Publication, change *inspect.Change) error {
	heads, err := m.foreign(ctx, at)
	if err != nil {
		return err
	}
	change.Public = append(change.Public, heads...)
	head, err := m.commit(ctx, at.dir, "refs/heads/"+p.Branch)
	if err != nil {
		return err
	}
	base, err := m.forkOf(ctx, at, change.Commit)
	if err != nil {
		return err
	}
	if p.Item.Kind == task.Pull {
		if head != "" {
			heads = append(heads, head)
		}
		change.Bases = slices.Concat(heads, []string{base})
		return nil
	}
	change.Bases = []string{base}
	if head == "" {
		return nil
	}
	own, err := m.isOwn(ctx, at.dir, head)
	if err == nil && !own {
		change.Bases = append(change.Bases, head)
	}
	return err
}

// foreign are the commits that a task was given of the forge besides branches, such as
// the head of a pull request from a fork. A run can move none of their refs.
func (m *Mirrors) foreign(ctx context.Context, at place) ([]string, error) {
	has, err := m.state(ctx, at)
	if err != nil {
		return nil, err
	}
	var commits []string
	for ref, commit := range has.refs {
		name, own := strings.CutPrefix(ref, at.space())
		if own && name != "HEAD" && !mayMove(name) {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

// forkOf is where a commit has left the branch that it is to be merged into, as the
// forge has that branch; without a common past, the branch itself.
func (m *Mirrors) forkOf(ctx context.Context, at place, commit string) (string, error) {
	branch, err := m.base(ctx, at)
	if err != nil {
		return "", err
	}
	base, err := m.commit(ctx, at.dir, "refs/heads/"+branch)
	if err != nil {
		return "", err
	}
	if base == "" {
		return "", task.Errorf(task.NotFound, "the forge has no branch %q any more", branch)
	}
	output, err := m.git.run(ctx, command{dir: at.dir, args: []string{"merge-base", base, commit}})
	if fork := strings.TrimSpace(output); err == nil && fork != "" {
		return fork, nil
	}
	return base, ctx.Err()
}

// Retract takes the branch of a task back to what the forge has, if it is at the commit:
// a later run must not build on what may not be published.
func (m *Mirrors) Retract(ctx context.Context, p Publication) error {
	release := m.use(p.Item.Repo())
	defer release()
	at, err := m.placeOf(ctx, p.Item.Repo(), p.Task)
	if err != nil {
		return err
	}
	return m.change(ctx, at, p.Generation, func() (string, error) {
		ref := at.space() + "refs/heads/" + p.Branch
		own, err := m.commit(ctx, at.dir, ref)
		if err != nil || own != p.Commit {
			return "", err
		}
		there, err := m.commit(ctx, at.dir, "refs/heads/"+p.Branch)
		if err != nil {
			return "", err
		}
		if there == "" {
			return "", m.update(ctx, at.dir, "delete "+ref+" "+own+"\n")
		}
		return "", m.update(ctx, at.dir, "update "+ref+" "+there+" "+own+"\n")
	})
}
