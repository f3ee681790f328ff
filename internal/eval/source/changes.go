package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Change is a file that differs between two commits.
type Change struct {
	Name string
	Mode string // of what is there afterwards; 000000 if that is nothing
	Hash string
	// Added says that it was not there before.
	Added bool
}

// IsGone tests whether nothing is there afterwards.
func (c Change) IsGone() bool { return strings.Trim(c.Mode, "0") == "" }

// IsRegular tests whether a file is there afterwards, and no link or submodule.
func (c Change) IsRegular() bool { return strings.HasPrefix(c.Mode, "100") }

// submodule is the mode of a commit of another repository.
const submodule = "160000"

// Changes lists what differs between two trees.
func (r *Repository) Changes(ctx context.Context, from, to string) ([]Change, error) {
	output, err := r.run(ctx, git.Command{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options", from, to}})
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(output, "\x00"), "\x00")
	var changes []Change
	for i := 0; i+1 < len(fields); i += 2 {
		about := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(about) != 5 { // two modes, two hashes, and the kind of change
			return nil, task.Errorf(task.Internal, "git describes a change as %q", fields[i])
		}
		changes = append(changes, Change{Name: fields[i+1], Mode: about[1], Hash: about[3], Added: strings.Trim(about[0], "0") == ""})
	}
	return changes, nil
}

// Apply makes a commit of a patch on top of another one. It fails with Invalid if the patch does
// not fit, or changes what a patch may not change, and with DataDir if it could not be written.
func (r *Repository) Apply(ctx context.Context, on, patch string) (string, error) {
	index, remove, err := r.index(ctx, on)
	if err != nil {
		return "", err
	}
	defer remove()
	if !strings.HasSuffix(patch, "\n") {
		patch += "\n"
	}
	apply := git.Command{Index: index, Input: strings.NewReader(patch), Args: []string{"apply", "--cached", "--whitespace=nowarn", "-"}}
	if _, err := r.run(ctx, apply); err != nil {
		if git.NotWritten(err) || ctx.Err() != nil {
			return "", task.Wrap(task.DataDir, err, "the patch cannot be written")
		}
		return "", task.Wrap(task.Invalid, err, "the patch cannot be applied")
	}
	commit, err := r.commit(ctx, index, on)
	if err != nil {
		return "", err
	}
	changes, err := r.Changes(ctx, on, commit)
	if err != nil {
		return "", err
	}
	for _, change := range changes {
		if change.Mode == submodule {
			return "", task.Errorf(task.Invalid, "the patch changes the submodule %q, which is not supported", change.Name)
		}
	}
	return commit, nil
}

// With makes a commit of what changes between the base and the work, with the files that
// another commit changes as they are there, whatever the work has made of them.
func (r *Repository) With(ctx context.Context, work, tests string) (string, error) {
	index, remove, err := r.index(ctx, r.Base)
	if err != nil {
		return "", err
	}
	defer remove()
	for _, commit := range []string{work, tests} {
		changes, err := r.Changes(ctx, r.Base, commit)
		if err != nil {
			return "", err
		}
		if commit == work {
			changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Mode == submodule })
		}
		if err := r.put(ctx, index, changes); err != nil {
			return "", err
		}
	}
	if err := r.compare(ctx, index, tests); err != nil {
		return "", err
	}
	return r.commit(ctx, index, r.Base)
}

// put writes changes into an index. What is removed goes first: a folder may become a file.
func (r *Repository) put(ctx context.Context, index string, changes []Change) error {
	var lines strings.Builder
	for _, removed := range []bool{true, false} {
		for _, change := range changes {
			if (strings.Trim(change.Mode, "0") == "") == removed {
				fmt.Fprintf(&lines, "%s %s\t%s\x00", change.Mode, change.Hash, change.Name)
			}
		}
	}
	_, err := r.run(ctx, git.Command{Index: index, Input: strings.NewReader(lines.String()), Args: []string{"update-index", "--replace", "-z", "--index-info"}})
	return err
}

// compare makes sure that what the tests change is there as they have it, whatever the work has
// put in its place.
func (r *Repository) compare(ctx context.Context, index, tests string) error {
	tree, err := r.run(ctx, git.Command{Index: index, Args: []string{"write-tree"}})
	if err != nil {
		return err
	}
	changes, err := r.Changes(ctx, r.Base, tests)
	if err != nil {
		return err
	}
	differs, err := r.Changes(ctx, strings.TrimSpace(tree), tests)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if slices.ContainsFunc(differs, func(c Change) bool { return c.Name == change.Name }) {
			return task.Errorf(task.Invalid, "the tests in %q could not be put over the work", change.Name)
		}
	}
	return nil
}

// Split makes two patches of the difference between two commits: of the tests, and of the rest.
func (r *Repository) Split(ctx context.Context, from, to string, isTest func(name string) bool) (rest, tests string, err error) {
	changes, err := r.Changes(ctx, from, to)
	if err != nil {
		return "", "", err
	}
	var patches [2]string
	for i, wanted := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return isTest(c.Name) != wanted })
		if len(some) == 0 {
			continue
		}
		commit, err := r.Put(ctx, from, some)
		if err != nil {
			return "", "", err
		}
		if patches[i], err = r.Diff(ctx, from, commit); err != nil {
			return "", "", err
		}
	}
	return patches[0], patches[1], nil
}

// Blob keeps the content of a file and returns its hash.
func (r *Repository) Blob(ctx context.Context, content []byte) (string, error) {
	hash, err := r.run(ctx, git.Command{Input: bytes.NewReader(content), Args: []string{"hash-object", "-w", "-t", "blob", "--no-filters", "--stdin"}})
	return strings.TrimSpace(hash), err
}

// Put makes a commit of changes on top of another one.
func (r *Repository) Put(ctx context.Context, on string, changes []Change) (string, error) {
	index, remove, err := r.index(ctx, on)
	if err != nil {
		return "", err
	}
	defer remove()
	if err := r.put(ctx, index, changes); err != nil {
		return "", err
	}
	return r.commit(ctx, index, on)
}

// Diff is the difference between two commits as a patch that git can apply, in UTF-8. It fails
// with TooLarge if it is longer than MaxPatch.
func (r *Repository) Diff(ctx context.Context, from, to string) (string, error) {
	patch, err := r.diff(ctx, from, to)
	if err != nil || utf8.ValidString(patch) {
		return patch, err
	}
	back, err := r.withoutText(ctx, from, to)
	if err != nil {
		return "", err
	}
	patch, err = r.diff(ctx, from, to)
	// What is left are lines that git has cut to head a part of a patch, and does not read.
	return strings.ToValidUTF8(patch, "\uFFFD"), errors.Join(err, back())
}

func (r *Repository) diff(ctx context.Context, from, to string) (string, error) {
	out := &limited{most: MaxPatch}
	_, err := r.run(ctx, git.Command{Output: out, Args: []string{
		"diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
		"--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", from, to,
	}})
	if out.over {
		return "", task.Errorf(task.TooLarge, "the patch has more than %d bytes", MaxPatch)
	}
	return out.String(), err
}

// index makes an index with the files of a commit.
func (r *Repository) index(ctx context.Context, of string) (name string, remove func(), err error) {
	folder, err := os.MkdirTemp(r.Dir, "index-")
	if err != nil {
		return "", nil, task.Wrap(task.DataDir, err, "no file for an index can be made")
	}
	name = filepath.Join(folder, "index")
	remove = func() { _ = os.RemoveAll(folder) } // it goes with the repository
	if _, err := r.run(ctx, git.Command{Index: name, Args: []string{"read-tree", of + "^{tree}"}}); err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}

// commit makes a commit of an index.
func (r *Repository) commit(ctx context.Context, index, parent string) (string, error) {
	tree, err := r.run(ctx, git.Command{Index: index, Args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	commit, err := r.run(ctx, git.Command{Args: []string{"commit-tree", "-p", parent, "-m", "work", strings.TrimSpace(tree)}})
	return strings.TrimSpace(commit), err
}
