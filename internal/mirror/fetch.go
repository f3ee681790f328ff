package mirror

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fetch brings the mirror up to date, unless the last fetch began no longer than
// maxAge ago and nothing was said to have changed since. Those who ask for one
// repository at the same time share one fetch. When it fails the mirror is as it
// was.
func (m *Mirrors) Fetch(ctx context.Context, r task.Repository, maxAge time.Duration) error {
	oldest := time.Now().Add(-maxAge)
	e := m.entry(r)
	m.mu.Lock()
	change := e.changes
	m.mu.Unlock()
	for {
		m.mu.Lock()
		good := !e.fetchedAt.IsZero() && !e.fetchedAt.Before(oldest) && e.included >= change
		m.mu.Unlock()
		if good {
			return nil
		}
		flight := m.flights.DoChan(r.String(), func() (any, error) { return nil, m.fetch(ctx, r, e) })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.stop:
			return errStopped
		case result := <-flight:
			if result.Err != nil {
				return result.Err
			}
		}
	}
}

// fetch fetches for everyone who waits for it. It does not end with the context
// of the one caller who happened to be first.
func (m *Mirrors) fetch(ctx context.Context, r task.Repository, e *entry) error {
	release := m.use(r)
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestFetch)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return errStopped
	}
	defer m.running.Done()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.fetches++
	at, change := time.Now(), e.changes
	m.mu.Unlock()
	if err := m.fetchRefs(ctx, r, dir, "--prune", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return err
	}
	m.mu.Lock()
	e.fetchedAt, e.included = at, change
	m.mu.Unlock()
	return nil
}

// fetchRefs fetches by refspecs. Flags come before them. It waits until no other fetch of
// the mirror runs. The mirror counts as used.
func (m *Mirrors) fetchRefs(ctx context.Context, r task.Repository, dir string, specs ...string) error {
	e := m.entry(r)
	if err := e.fetching.Lock(ctx); err != nil {
		return coded(err, "cannot fetch "+r.String())
	}
	defer e.fetching.Unlock()
	if _, err := m.ensure(ctx, r); err != nil { // it may have been removed meanwhile
		return err
	}
	remote, err := m.options.Remote(ctx, r)
	if err != nil {
		return err
	}
	args := []string{
		// Git looks whether all that a commit leads to is here already. The graph knows commits that are not.
		"-c", "core.commitGraph=false",
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
		"--no-auto-maintenance", "--no-show-forced-updates", "--atomic",
	}
	for len(specs) > 0 && strings.HasPrefix(specs[0], "--") {
		args, specs = append(args, specs[0]), specs[1:]
	}
	args = append(append(args, "--end-of-options", remote.URL), specs...)
	_, err = m.git.run(ctx, command{dir: dir, args: args, remote: &remote})
	if err != nil && ctx.Err() == nil {
		e.removeUnfinishedPacks(dir)
	}
	if err != nil {
		return coded(err, "cannot fetch "+r.String())
	}
	return touch(filepath.Join(dir, usedFile)) // before [Mirrors.Forget] may look
}

// Seed is what the namespace of a task begins with.
type Seed struct {
	Repository task.Repository
	Task       task.ID
	Generation int64    // of the run that it is for
	Base       string   // the branch that the work starts from
	Branches   []string // more branches that the task is to see, if they exist
	// Refs are further refs of the forge that the task is to see, such as the
	// head of a pull request from a fork: "refs/pull/12/head".
	Refs []string
	// Commits says for refs of the forge, branches among them, at which commit the
	// task is to see them.
	Commits map[string]string
	// Anew says that no earlier run goes on: branches for which a commit is named have
	// that commit then, whatever the task has pushed there. The work in progress, which the
	// new run replaces, stays under [task.KeptRefs].
	Anew bool
}

// Seed puts the branches into the task's namespace as the forge has them, and
// makes the base its HEAD. What the task has pushed stays, except to the base, and
// except to a branch that has got commits of others on the forge since: there the
// work could never be published.
//
// The mirror is fetched first, however young it is, if it does not have a ref at the
// commit that is named, or if no commit is named for a branch that exists. A commit
// whose branch is gone is fetched by itself. It fails with NotFound if the base does not
// exist, with Conflict if the forge has a ref at another commit than the one that is
// named, and with a [task.NoCommitError] if it says that it does not have that commit. The
// base is as old as the mirror: fetch first.
func (m *Mirrors) Seed(ctx context.Context, seed Seed) error {
	release := m.use(seed.Repository)
	defer release()
	p, err := m.placeOf(ctx, seed.Repository, seed.Task)
	if err != nil {
		return err
	}
	if err := m.bringIn(ctx, p); err != nil {
		return err
	}
	stale, err := m.stale(ctx, p, seed)
	if err != nil {
		return err
	}
	if stale {
		if err := m.Fetch(ctx, p.Repository, 0); err != nil {
			return err
		}
	}
	for _, branch := range seed.Branches {
		if err := m.haveBranch(ctx, p, seed, "refs/heads/"+branch); err != nil {
			return err
		}
	}
	return m.change(ctx, p, seed.Generation, func() (string, error) { return m.seed(ctx, p, seed) })
}

// stale reports whether the mirror may lack something of the seed that the forge has.
func (m *Mirrors) stale(ctx context.Context, p place, seed Seed) (bool, error) {
	for _, branch := range seed.Branches {
		ref := "refs/heads/" + branch
		has, err := m.commit(ctx, p.dir, ref)
		if err != nil {
			return false, err
		}
		own, err := m.commit(ctx, p.dir, p.space()+ref)
		if err != nil {
			return false, err
		}
		want := seed.Commits[ref]
		if want != "" && has != want || want == "" && has+own != "" {
			return true, nil
		}
	}
	for _, ref := range seed.Refs {
		// What the head of a fork was merged with may be as new as the head.
		if want := seed.Commits[ref]; want != "" && !m.has(ctx, p.dir, want) {
			return true, nil
		}
	}
	return false, nil
}

// haveBranch makes sure that the mirror has the commit that the seed names for a branch.
// A forge may show a pull request whose branch was deleted: the commit is all that is
// left then.
func (m *Mirrors) haveBranch(ctx context.Context, p place, seed Seed, ref string) error {
	want := seed.Commits[ref]
	if want == "" {
		return nil
	}
	has, err := m.commit(ctx, p.dir, ref)
	switch {
	case err != nil || has == want:
		return err
	case has != "":
		return movedError(seed, ref, has)
	case m.has(ctx, p.dir, want):
		return nil
	}
	return missing(m.fetchRefs(ctx, p.Repository, p.dir, want), want)
}

// missing gives the error of a fetch the commit that it was for, if the forge has said that
// it does not have it.
func missing(err error, commit string) error {
	if failed, is := errors.AsType[*program.RunError](err); !is || failed.Ended || commit == "" || !slices.ContainsFunc(noCommit, failed.Contains) {
		return err
	}
	return task.NoCommit(commit, err)
}

// noCommit is what git writes when the remote does not have what was asked for, or does not
// give a commit that no ref leads to.
var noCommit = []string{"not our ref", "request for unadvertised object", "couldn't find remote ref"}

// Refs returns which commits a task has, by the names of the refs that its agent sees.
func (m *Mirrors) Refs(ctx context.Context, r task.Repository, id task.ID) (map[string]string, error) {
	release := m.use(r)
	defer release()
	p, err := m.placeOf(ctx, r, id)
	if err != nil {
		return nil, err
	}
	has, err := m.state(ctx, p)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for ref, commit := range has.refs {
		if name, seen := strings.CutPrefix(ref, p.space()); seen {
			refs[name] = commit
		}
	}
	return refs, nil
}

// movedError says that the forge has a ref at another commit than it had a moment
// ago.
func movedError(seed Seed, ref, has string) error {
	return task.Errorf(task.Conflict, "%s has %s at %s, not at %s", seed.Repository, ref, has, seed.Commits[ref])
}

// seed does what Seed says, and returns the commit that the base has.
func (m *Mirrors) seed(ctx context.Context, p place, seed Seed) (string, error) {
	space, dir := p.space(), p.dir
	base, err := m.commit(ctx, dir, "refs/heads/"+seed.Base)
	if err != nil {
		return "", err
	}
	if base == "" {
		return "", task.Errorf(task.NotFound, "%s has no branch %q", seed.Repository, seed.Base)
	}
	var updates strings.Builder
	fmt.Fprintf(&updates, "update %srefs/heads/%s %s\n", space, seed.Base, base)
	given := map[string]bool{base: true} // several branches may have the same commit
	for _, branch := range slices.Compact(slices.Sorted(slices.Values(seed.Branches))) {
		commit, err := m.newer(ctx, p, branch, seed.Commits["refs/heads/"+branch], seed.Anew)
		if err != nil {
			return "", err
		}
		if commit != "" && branch != seed.Base {
			fmt.Fprintf(&updates, "update %srefs/heads/%s %s\n", space, branch, commit)
			given[commit] = true
		}
	}
	for commit := range given {
		fmt.Fprintf(&updates, "update %s %s\n", seededRef(p.id, commit), commit)
	}
	if seed.Anew {
		wip, err := m.commit(ctx, dir, space+task.WIPRef)
		if err != nil {
			return "", err
		}
		if wip != "" {
			fmt.Fprintf(&updates, "update %s%s%s %s\n", space, task.KeptRefs, wip, wip)
			fmt.Fprintf(&updates, "delete %s%s %s\n", space, task.WIPRef, wip) // no run of this assignment is to begin with it
		}
	}
	if err := m.update(ctx, dir, updates.String()); err != nil {
		return "", err
	}
	if err := m.seedRefs(ctx, seed, dir, space); err != nil {
		return "", err
	}
	return base, m.setHead(ctx, p, space+"refs/heads/"+seed.Base)
}

// freshen brings the base in the namespace of a task up to date with the forge, for
// an agent that is about to fetch: it merges what the base has got since it began. Its
// caller has the mirror in use.
func (m *Mirrors) freshen(ctx context.Context, holder Holder) error {
	ctx, cancel := context.WithTimeout(ctx, longestFreshening)
	defer cancel()
	if err := m.Fetch(ctx, holder.Repository, m.options.BaseAge(holder.Repository)); err != nil {
		return err
	}
	p, err := m.placeOf(ctx, holder.Repository, holder.Task)
	if err != nil {
		return err
	}
	if err := m.bringIn(ctx, p); err != nil {
		return err
	}
	has, err := m.state(ctx, p)
	if err != nil {
		return err
	}
	if has.head == "" {
		return task.Errorf(task.Internal, "the namespace of task %s has no base", holder.Task)
	}
	base, err := m.commit(ctx, p.dir, strings.TrimPrefix(has.head, p.space()))
	if err != nil || base == "" || base == has.refs[has.head] {
		return err
	}
	return m.change(ctx, p, holder.Generation, func() (string, error) {
		return base, m.update(ctx, p.dir, fmt.Sprintf("update %s %s\nupdate %s %s\n", has.head, base, seededRef(p.id, base), base))
	})
}

// newer is the commit that the forge has the branch at, if the task is to have it
// too. It is empty if the task keeps what it has pushed there: that has the forge's commit
// in it, or may replace it, because the task has published it. A commit that is named is
// taken in place of what the mirror has by now; anew, the task keeps nothing in place of it.
func (m *Mirrors) newer(ctx context.Context, p place, branch, named string, anew bool) (commit string, err error) {
	if commit = named; commit == "" {
		if commit, err = m.commit(ctx, p.dir, "refs/heads/"+branch); err != nil || commit == "" {
			return "", err
		}
	}
	own, err := m.commit(ctx, p.dir, p.space()+"refs/heads/"+branch)
	if err != nil || own == "" || named != "" && anew {
		return commit, err
	}
	if given, err := m.commit(ctx, p.dir, seededRef(p.id, own)); err != nil || given != "" {
		return commit, err // it has pushed nothing there
	}
	published, err := m.commit(ctx, p.dir, publishedRef(p.id, branch))
	if err != nil || published == commit || m.contains(ctx, p.dir, own, commit) {
		return "", err
	}
	return commit, nil
}

// contains reports whether the history of a commit has another one in it.
func (m *Mirrors) contains(ctx context.Context, dir, commit, other string) bool {
	_, err := m.git.run(ctx, command{dir: dir, args: []string{"merge-base", "--is-ancestor", other, commit}})
	return err == nil
}

// seedRefs fetches single refs right into the namespace.
func (m *Mirrors) seedRefs(ctx context.Context, seed Seed, dir, space string) error {
	if len(seed.Refs) == 0 {
		return nil
	}
	var specs []string
	for _, ref := range seed.Refs {
		if err := checkRef(ref); err != nil {
			return err
		}
		specs = append(specs, "+"+ref+":"+space+ref)
	}
	err := m.fetchRefs(ctx, seed.Repository, dir, specs...)
	if err != nil {
		return missing(err, seed.Commits[seed.Refs[0]])
	}
	for _, ref := range seed.Refs {
		has, err := m.commit(ctx, dir, space+ref)
		if err != nil {
			return err
		}
		if want := seed.Commits[ref]; want != "" && has != want {
			return movedError(seed, ref, has)
		}
	}
	return nil
}

// commit returns what a ref points to, or "" if there is no such ref.
func (m *Mirrors) commit(ctx context.Context, dir, ref string) (string, error) {
	if err := checkRef(ref); err != nil {
		return "", err
	}
	output, err := m.git.run(ctx, command{dir: dir, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", ref}})
	if err != nil {
		return "", internal(err, "cannot read the mirror")
	}
	for line := range strings.Lines(output) {
		if hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name == ref {
			return hash, nil
		}
	}
	return "", nil
}

// Branch is the commit that the mirror has a branch at, or "" if there is no such branch.
func (m *Mirrors) Branch(ctx context.Context, r task.Repository, name string) (string, error) {
	release := m.use(r)
	defer release()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return "", err
	}
	return m.commit(ctx, dir, "refs/heads/"+name)
}

// checkRef refuses what git would not take for the name of a ref.
func checkRef(ref string) error {
	if strings.HasPrefix(ref, "refs/") && program.IsRefName(ref) {
		return nil
	}
	return task.Errorf(task.Invalid, "%q is no name for a branch or ref", ref)
}

// update changes refs, all or none.
func (m *Mirrors) update(ctx context.Context, dir, updates string) error {
	if updates == "" {
		return nil
	}
	_, err := m.git.run(ctx, command{dir: dir, args: []string{"update-ref", "--stdin"}, input: strings.NewReader(updates)})
	return internal(err, "cannot change the refs of the mirror")
}
