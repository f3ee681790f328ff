package workspace

import (
	"bytes"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// Changes names the files that differ between two commits, in order.
func (w *Workspace) Changes(ctx context.Context, from, to string) ([]phase.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, err := w.tree(ctx, from)
	if err != nil {
		return nil, err
	}
	after, err := w.tree(ctx, to)
	if err != nil {
		return nil, err
	}
	var changes []phase.Change
	for name, was := range before {
		is, stays := after[name]
		switch {
		case !stays:
			changes = append(changes, phase.Change{Name: name, Removed: true})
		case is != was:
			changes = append(changes, phase.Change{Name: name})
		}
	}
	for name := range after {
		if _, was := before[name]; !was {
			changes = append(changes, phase.Change{Name: name, Added: true})
		}
	}
	slices.SortFunc(changes, func(a, b phase.Change) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

// File returns a regular file of a commit, or NotFound, or TooLarge.
func (w *Workspace) File(ctx context.Context, commit, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	found, is := files[name]
	if !is || found.mode == link || found.mode == submodule {
		return nil, task.Errorf(task.NotFound, "the commit has no file %s", quote(name))
	}
	content := &bounded{left: maxBase + 1}
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Output: content, Args: []string{"cat-file", "blob", found.hash}}); err != nil {
		return nil, failure(err, "cannot read a file of a commit")
	}
	if content.Len() > maxBase {
		return nil, task.Errorf(task.TooLarge, "the file %s has more than %d MB", quote(name), maxBase>>20)
	}
	return content.Bytes(), nil
}

// Mixed makes a commit with the files of one, of which those named are as another one
// has them. It is on this machine only.
func (w *Workspace) Mixed(ctx context.Context, on, from string, names []string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.tree(ctx, on)
	if err != nil {
		return "", err
	}
	others, err := w.tree(ctx, from)
	if err != nil {
		return "", err
	}
	mixed := maps.Clone(files)
	for _, name := range names {
		delete(mixed, name)
	}
	folders := map[string]bool{}
	for name := range mixed {
		for at := path.Dir(name); at != "." && !folders[at]; at = path.Dir(at) {
			folders[at] = true
		}
	}
	for _, name := range names {
		other, has := others[name]
		if !has {
			continue
		}
		// A folder and a file, or a link, cannot have one name.
		if folders[name] {
			maps.DeleteFunc(mixed, func(below string, _ file) bool { return strings.HasPrefix(below, name+"/") })
		}
		for at := path.Dir(name); at != "."; at = path.Dir(at) {
			delete(mixed, at)
		}
		mixed[name] = other
	}
	return w.record(ctx, mixed, []string{on}, "Files of two commits\n")
}

// Replaced makes a commit with the files of one, of which some have other contents. It is
// on this machine only.
func (w *Workspace) Replaced(ctx context.Context, on string, contents map[string][]byte) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.tree(ctx, on)
	if err != nil {
		return "", err
	}
	replaced := maps.Clone(files)
	for name, content := range contents {
		was, is := files[name]
		if !is || was.mode == link || was.mode == submodule {
			return "", task.Errorf(task.NotFound, "the commit has no file %s", quote(name))
		}
		hash, err := w.writeObject("blob", int64(len(content)), bytes.NewReader(content))
		if err != nil {
			return "", failure(err, "cannot keep a file")
		}
		now := file{was.mode, hash}
		w.known[now.hash], replaced[name] = true, now
	}
	return w.record(ctx, replaced, []string{on}, "Other contents\n")
}
