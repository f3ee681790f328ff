package mirror

import (
	"context"
	"errors"
	"os/exec"
	"strings"
)

// Contents is what a published commit is made of.
type Contents struct {
	// Own says that the commit was made for the task. A task can publish a commit that
	// the forge has from somebody else too.
	Own  bool
	Tree string
	// Base is the newest commit of the base branch that is in the history of the commit;
	// empty if the two have nothing in common, or if the branch is gone.
	Base string
}

// Contents tells what a commit is made of that Publish has returned. Nothing of it is
// the agent's to say.
func (m *Mirrors) Contents(ctx context.Context, p Publication, commit string) (Contents, error) {
	release := m.use(p.Item.Repo())
	defer release()
	at, err := m.placeOf(ctx, p.Item.Repo(), p.Task)
	if err != nil {
		return Contents{}, err
	}
	tree, err := m.git.run(ctx, command{dir: at.dir, args: []string{"rev-parse", "--verify", "--end-of-options", commit + "^{tree}"}})
	if err != nil {
		return Contents{}, internal(err, "cannot read what was published")
	}
	made, err := m.pushedAs(ctx, at)
	if err != nil {
		return Contents{}, err
	}
	_, own := made[commit]
	branch, err := m.base(ctx, at)
	if err != nil {
		return Contents{}, err
	}
	tip, err := m.commit(ctx, at.dir, "refs/heads/"+branch)
	if err != nil {
		return Contents{}, err
	}
	if tip == "" { // somebody has removed it meanwhile
		return Contents{Own: own, Tree: strings.TrimSpace(tree)}, nil
	}
	base, err := m.git.run(ctx, command{dir: at.dir, args: []string{"merge-base", commit, tip}})
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == 1 {
		base, err = "", nil // that is how git says that there is none
	}
	return Contents{Own: own, Tree: strings.TrimSpace(tree), Base: strings.TrimSpace(base)}, internal(err, "cannot compare what was published with the base")
}
