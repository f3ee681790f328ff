package mirror

import (
	"cmp"
	"context"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Publication is a branch of a task that is to be published to the forge.
type Publication struct {
	Item       task.Key // names the forge and the repository
	Task       task.ID
	Generation int64
	Branch     string
	Commit     string
	// CoAuthors are people for the message of the commit, as "Name <address>".
	CoAuthors []string
}

// publishedRef is where the mirror keeps what was last published of a task.
func publishedRef(id task.ID, branch string) string {
	return "refs/published/" + string(id) + "/" + branch
}

// Publish makes the forge's branch what the task has under that name: that one
// branch and nothing else. The commits are made anew, by the bot, and signed if there is
// a key: the one that is published is returned, and is what the task has from then on.
// If the forge has it already, nothing happens. Commits
// on the forge that the task does not have are never thrown away, unless the task
// itself has published them before. What was fetched before counts as out of date
// when it returns.
//
// It fails with Conflict if the task's branch is not at the commit; with a [task.MovedError] if
// the forge's branch has commits that are not ours; with Forbidden for the branch
// that the task started from, or if the forge does not let us; with NotFound if
// the task has no such branch.
func (m *Mirrors) Publish(ctx context.Context, p Publication) (commit string, err error) {
	release := m.use(p.Item.Repo())
	defer release()
	ctx, cancel := context.WithTimeout(ctx, longestFetch)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return "", errStopped
	}
	defer m.running.Done()
	at, err := m.placeOf(ctx, p.Item.Repo(), p.Task)
	if err != nil {
		return "", err
	}
	if err := m.bringIn(ctx, at); err != nil {
		return "", err
	}
	if err := m.checkPublication(ctx, at, p); err != nil {
		return "", err
	}
	if commit, err = m.made(ctx, at, p); err != nil {
		return "", err
	}
	if err := m.bring(ctx, at, p, commit); err != nil {
		return "", err
	}
	m.Changed(at.Repository) // whoever needs the branch gets it from the forge, however young the mirror is
	err = m.change(ctx, at, p.Generation, func() (string, error) { return "", m.notePublished(ctx, at, p, commit) })
	if task.CodeOf(err) == task.StaleGeneration { // it was published nevertheless
		m.options.Log.WarnContext(ctx, "publication not recorded: the run is over", "task", p.Task, "error", err)
		return commit, nil
	}
	return commit, err
}

// bring brings the commit to the forge, unless it is there.
func (m *Mirrors) bring(ctx context.Context, at place, p Publication, commit string) error {
	remote, err := m.options.Remote(ctx, at.Repository)
	if err != nil {
		return err
	}
	there, err := m.remoteBranch(ctx, remote, p.Branch)
	if err != nil || there == commit {
		return err
	}
	pushed := p
	pushed.Commit = commit
	err = m.push(ctx, at.dir, remote, pushed, there)
	if task.CodeOf(err) == task.Conflict {
		return m.moved(ctx, at, pushed, err)
	}
	return err
}

// moved lets the task see what others have pushed to its branch in place of what it has
// pushed itself, which could not be published. Why is why.
func (m *Mirrors) moved(ctx context.Context, at place, p Publication, why error) error {
	if err := m.Fetch(ctx, at.Repository, 0); err != nil {
		return err
	}
	has, err := m.commit(ctx, at.dir, "refs/heads/"+p.Branch)
	if err != nil {
		return err
	}
	if has == "" || m.mayReplace(ctx, at.dir, p, has) {
		return why // it is about something else
	}
	updates := "update " + at.space() + "refs/heads/" + p.Branch + " " + has + "\nupdate " + seededRef(p.Task, has) + " " + has + "\n"
	if err := m.change(ctx, at, p.Generation, func() (string, error) { return "", m.update(ctx, at.dir, updates) }); err != nil {
		return err
	}
	return &task.MovedError{Commit: has, Err: why}
}

// notePublished notes what was published. The task has it in place of what it pushed,
// unless it has pushed something else meanwhile: whoever goes on begins with it.
func (m *Mirrors) notePublished(ctx context.Context, at place, p Publication, commit string) error {
	updates := "update " + publishedRef(p.Task, p.Branch) + " " + commit + "\n"
	own := at.space() + "refs/heads/" + p.Branch
	has, err := m.commit(ctx, at.dir, own)
	if err != nil {
		return err
	}
	if has == p.Commit && has != commit {
		updates += "update " + own + " " + commit + " " + has + "\n"
	}
	return m.update(ctx, at.dir, updates)
}

// checkPublication makes sure that the task has what it wants published.
func (m *Mirrors) checkPublication(ctx context.Context, at place, p Publication) error {
	space, dir := at.space(), at.dir
	commit, err := m.commit(ctx, dir, space+"refs/heads/"+p.Branch)
	if err != nil {
		return err
	}
	if commit == "" {
		return task.Errorf(task.NotFound, "the task has not pushed a branch %q", p.Branch)
	}
	made, err := m.commit(ctx, dir, madeRef(p.Task, p.Commit))
	if err != nil {
		return err
	}
	if commit != p.Commit && commit != made {
		other := task.Errorf(task.Conflict, "the task's branch %q is at %s, not at %s", p.Branch, commit, p.Commit)
		if given, err := m.commit(ctx, dir, seededRef(p.Task, commit)); err != nil || given == "" {
			return cmp.Or(err, error(other))
		}
		return &task.MovedError{Commit: commit, Err: other} // an earlier run has pushed it, and then others have
	}
	base, err := m.base(ctx, at)
	if err == nil && base == p.Branch {
		err = task.Errorf(task.Forbidden, "the branch %q is the one that the task started from", p.Branch)
	}
	return err
}

// Base is the branch that a task started from, by its last Seed. No push can change it.
func (m *Mirrors) Base(ctx context.Context, r task.Repository, id task.ID) (string, error) {
	release := m.use(r)
	defer release()
	at, err := m.placeOf(ctx, r, id)
	if err != nil {
		return "", err
	}
	if err := m.bringIn(ctx, at); err != nil {
		return "", err
	}
	return m.base(ctx, at)
}

func (m *Mirrors) base(ctx context.Context, at place) (string, error) {
	head, err := m.git.run(ctx, command{dir: at.dir, args: []string{"symbolic-ref", at.space() + "HEAD"}})
	if err != nil {
		return "", internal(err, "cannot read the namespace of the task")
	}
	return strings.TrimPrefix(strings.TrimSuffix(head, "\n"), at.space()+"refs/heads/"), nil
}

// remoteBranch asks the forge which commit a branch has; "" if there is none.
func (m *Mirrors) remoteBranch(ctx context.Context, remote forge.Remote, branch string) (string, error) {
	ref := "refs/heads/" + branch
	output, err := m.git.run(ctx, command{args: []string{"ls-remote", "--quiet", "--end-of-options", remote.URL, ref}, remote: &remote})
	if err != nil {
		return "", coded(err, "cannot ask the forge for the branch "+branch)
	}
	for line := range strings.Lines(output) {
		if hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); name == ref {
			return hash, nil
		}
	}
	return "", nil
}

// push pushes the commit in place of what is there, and only of that.
func (m *Mirrors) push(ctx context.Context, dir string, remote forge.Remote, p Publication, there string) error {
	if there != "" && !m.mayReplace(ctx, dir, p, there) {
		return task.Errorf(task.Conflict, "the branch %q on the forge has commits that are not the task's", p.Branch)
	}
	ref := "refs/heads/" + p.Branch
	_, err := m.git.run(ctx, command{dir: dir, remote: &remote, args: []string{
		"push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--force-with-lease=" + ref + ":" + there,
		"--end-of-options", remote.URL, p.Commit + ":" + ref,
	}})
	return coded(err, "cannot publish the branch "+p.Branch)
}

// mayReplace reports whether no commit of anyone else is lost.
func (m *Mirrors) mayReplace(ctx context.Context, dir string, p Publication, there string) bool {
	published, err := m.commit(ctx, dir, publishedRef(p.Task, p.Branch))
	if err == nil && published == there {
		return true
	}
	return m.contains(ctx, dir, p.Commit, there)
}

// internal gives errors of git on a mirror, where no forge is involved, a code.
func internal(err error, message string) error {
	if err == nil {
		return nil
	}
	return task.Wrap(task.Internal, err, message)
}
