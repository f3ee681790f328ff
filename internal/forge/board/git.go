package board

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// git runs the git program in a folder and returns what it writes. It reads no
// configuration but the repository's own, asks nobody anything, and clones from
// nowhere but the usual places.
func git(ctx context.Context, folder string, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = folder
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=file:http:https:ssh:git",
	}, environment...)
	out, complaint := &limitedBuffer{left: forge.MaxResponse}, &limitedBuffer{left: 4 << 10, drop: true}
	command.Stdout, command.Stderr = out, complaint
	endGently(command)
	err := command.Run()
	switch {
	case out.full:
		return "", task.Errorf(task.TooLarge, "git %s gives more than %d MB", args[0], forge.MaxResponse>>20)
	case ctx.Err() != nil:
		return "", task.Wrap(task.Unavailable, ctx.Err(), "git "+args[0]+" was broken off")
	case err != nil:
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, textfmt.OneLine(forge.Clean(complaint.String())))
	}
	return out.String(), nil
}

// limitedBuffer keeps what is written to it, up to a limit. What is beyond is
// either dropped or ends the program that writes.
type limitedBuffer struct {
	bytes.Buffer
	left int
	drop bool
	full bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > b.left {
		if !b.drop {
			b.full = true
			return 0, io.ErrShortBuffer
		}
		_, err := b.Buffer.Write(p[:b.left])
		b.left = 0
		return len(p), err
	}
	b.left -= len(p)
	return b.Buffer.Write(p)
}

// exitCode returns with which code git ended, or -1.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

var hashPattern = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// resolve returns the commit that a reference or a full hash names.
func (b *Board) resolve(ctx context.Context, repository, reference string) (commit string, found bool, err error) {
	out, err := git(ctx, b.Path(repository), nil, "rev-parse", "--verify", "--quiet", "--end-of-options", reference+"^{commit}")
	if exitCode(err) > 0 {
		return "", false, nil
	}
	return strings.TrimSpace(out), err == nil, err
}

// requireCommit refuses what is not the full hash of a commit in the repository.
func (b *Board) requireCommit(ctx context.Context, repository, commit string) error {
	if !hashPattern.MatchString(commit) {
		return task.Errorf(task.Invalid, "%q is not the hash of a commit", commit)
	}
	_, found, err := b.resolve(ctx, repository, commit)
	if err == nil && !found {
		err = task.Errorf(task.NotFound, "there is no commit %s in %s", commit, repository)
	}
	return err
}

// checkBranch refuses what cannot be the name of a branch.
func checkBranch(name string) error {
	if strings.HasPrefix(name, "-") || !program.IsRefName("refs/heads/"+name) {
		return task.Errorf(task.Invalid, "%q cannot be the name of a branch", name)
	}
	return nil
}

// requireBranch returns the commit of a branch that has to be there.
func (b *Board) requireBranch(ctx context.Context, repository, name string) (string, error) {
	if err := checkBranch(name); err != nil {
		return "", err
	}
	commit, found, err := b.resolve(ctx, repository, "refs/heads/"+name)
	if err == nil && !found {
		err = task.Errorf(task.NotFound, "there is no branch %s in %s", name, repository)
	}
	return commit, err
}

// setReference moves a reference from one commit to another; "" means that it is
// not there. It fails with Conflict if the reference is elsewhere by now.
func (b *Board) setReference(ctx context.Context, repository, reference, to, from string) error {
	if from == "" {
		from = strings.Repeat("0", len(to))
	}
	_, err := git(ctx, b.Path(repository), nil, "update-ref", "--end-of-options", reference, to, from)
	if exitCode(err) > 0 {
		return task.Wrap(task.Conflict, err, reference+" has moved")
	}
	return err
}

// mergeBase returns where two commits parted.
func (b *Board) mergeBase(ctx context.Context, repository, one, other string) (string, error) {
	out, err := git(ctx, b.Path(repository), nil, "merge-base", one, other)
	if exitCode(err) > 0 {
		return "", task.Wrap(task.Invalid, err, "the branches have no commit in common")
	}
	return strings.TrimSpace(out), err
}

// mergeCommit makes a commit that merges head into base, without touching any
// branch. It fails with Conflict if git cannot merge them by itself.
func (b *Board) mergeCommit(ctx context.Context, repository, base, head, author, message string) (string, error) {
	tree, err := git(ctx, b.Path(repository), nil, "merge-tree", "--write-tree", "--no-messages", base, head)
	if exitCode(err) == 1 {
		return "", task.Errorf(task.Conflict, "the branches contradict each other: merge the base into the head first")
	}
	if err != nil {
		return "", err
	}
	// A login has no address; this one cannot exist.
	address := author + "@board.invalid"
	out, err := git(ctx, b.Path(repository), []string{
		"GIT_AUTHOR_NAME=" + author, "GIT_AUTHOR_EMAIL=" + address, "GIT_COMMITTER_NAME=" + author, "GIT_COMMITTER_EMAIL=" + address,
	}, "commit-tree", strings.TrimSpace(tree), "-p", base, "-p", head, "-m", message)
	return strings.TrimSpace(out), err
}
