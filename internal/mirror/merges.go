package mirror

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Merge is what merging a commit into a branch comes to.
type Merge struct {
	Base, Head string // the commits
	Conflicts  bool
	// Own says that the head was made by us, for a task. It is known where there are
	// conflicts.
	Own bool
}

const (
	// mergesAtOnce is how many merges are tried at the same time.
	mergesAtOnce = 2
	// longestMerge bounds trying one, and mergeMemory what git may take of memory for it.
	longestMerge = time.Minute
	mergeMemory  = 1 << 30
	// oldestForMerge is how old the mirror may be for it. A push that we hear of is fetched at once.
	oldestForMerge = 10 * time.Second
	// knownMerges is how many results are remembered of a repository.
	knownMerges = 1000
)

// Merges tells whether a commit, which is the head of a branch, merges into the base. Nothing
// is asked of the forge but what a fetch of the mirror asks, and a pair of commits is tried
// once. It fails with NotFound if the base or the head is not there, and with Conflict if the
// branch has another commit by now. Commits that have nothing in common are no conflict that
// somebody could resolve.
func (m *Mirrors) Merges(ctx context.Context, r task.Repository, base, branch, head string) (Merge, error) {
	release := m.use(r)
	defer release()
	if err := m.Fetch(ctx, r, max(oldestForMerge, m.options.BaseAge(r))); err != nil {
		return Merge{}, err
	}
	heads, err := m.heads(ctx, r)
	if err != nil {
		return Merge{}, err
	}
	tip, has := heads[base], heads[branch]
	switch {
	case tip == "":
		return Merge{}, task.Errorf(task.NotFound, "%s has no branch %q", r, base)
	case has == "":
		return Merge{}, task.Errorf(task.NotFound, "%s has no branch %q", r, branch)
	case has != head:
		return Merge{}, task.Errorf(task.Conflict, "%s has the branch %q at %s, not at %s", r, branch, has, head)
	}
	return m.tryOnce(ctx, r, Merge{Base: tip, Head: head})
}

// heads are the branches of the mirror by their names, as the last fetch has left them or newer.
// They are read once for each fetch: when something is pushed, all pull requests are asked about.
func (m *Mirrors) heads(ctx context.Context, r task.Repository) (map[string]string, error) {
	e := m.entry(r)
	m.mu.Lock()
	at, heads, known := e.fetchedAt, e.heads, e.heads != nil && e.headsAt.Equal(e.fetchedAt)
	m.mu.Unlock()
	if known {
		return heads, nil
	}
	output, err := m.git.run(ctx, command{dir: m.dir(r), args: []string{"for-each-ref", "--format=" + program.BranchFormat, "refs/heads/"}})
	if err != nil {
		return nil, internal(err, "cannot read the branches of the mirror")
	}
	heads = program.ParseBranches(output)
	m.mu.Lock()
	e.heads, e.headsAt = heads, at
	m.mu.Unlock()
	return heads, nil
}

// tryOnce tries a merge, unless it was tried before.
func (m *Mirrors) tryOnce(ctx context.Context, r task.Repository, pair Merge) (Merge, error) {
	select {
	case m.merging <- struct{}{}:
	case <-ctx.Done():
		return Merge{}, ctx.Err()
	}
	defer func() { <-m.merging }()
	e, key := m.entry(r), [2]string{pair.Base, pair.Head}
	m.mu.Lock()
	known, found := e.merges[key]
	m.mu.Unlock()
	if found {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestMerge)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return Merge{}, errStopped
	}
	defer m.running.Done()
	var err error
	if pair, err = m.try(ctx, m.dir(r), pair); err != nil {
		return Merge{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.merges == nil || len(e.merges) >= knownMerges {
		e.merges = map[[2]string]Merge{}
	}
	e.merges[key] = pair
	return pair, nil
}

// try tries a merge. Git writes what it comes to into the mirror, where nothing leads to it.
func (m *Mirrors) try(ctx context.Context, dir string, pair Merge) (Merge, error) {
	_, err := m.git.Run(ctx, program.Command{
		Dir: dir, Memory: mergeMemory, Args: []string{"merge-tree", "--write-tree", "--no-messages", "--name-only", pair.Base, pair.Head},
	})
	exit, ended := errors.AsType[*exec.ExitError](err)
	failed, is := errors.AsType[*program.RunError](err)
	switch {
	case err == nil, is && failed.Contains("unrelated histories"):
		return pair, nil
	case ctx.Err() != nil || !ended || exit.ExitCode() != 1:
		return Merge{}, internal(err, "cannot try a merge")
	}
	pair.Conflicts = true
	pair.Own, err = m.isOwn(ctx, dir, pair.Head)
	return pair, err
}

// isOwn reports whether a commit was made by us, for a task.
func (m *Mirrors) isOwn(ctx context.Context, dir, commit string) (bool, error) {
	by, err := m.git.run(ctx, command{dir: dir, args: []string{"show", "--no-patch", "--format=%cn <%ce>", "--end-of-options", commit}})
	return strings.TrimSpace(by) == m.options.Identity.author(), internal(err, "cannot read a commit")
}
