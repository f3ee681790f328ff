package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// plain is the repository that programs in the sandbox find. It shares nothing with ours, not
// even a hard link: they may write to it. It is complete: nothing in a sandbox can fetch.
type plain struct {
	commit string // the one that its branch has, such as the one that the work is on top of
	base   string // what programs find as origin/main, for example; empty for nothing
	index  string // the index that the files were checked out with; empty for a new one
}

// plainSettings let git in a sandbox take a file for unchanged by its size and the time of its
// content. Its owner and its inode are others there.
const plainSettings = "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"

// notePacks notes what was fetched, so that it can be copied. Work in progress is no part of that:
// what is verified must not find it.
func (w *Workspace) notePacks() error {
	if w.wip != "" {
		return nil
	}
	folder := filepath.Join(w.dir, "objects", "pack")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return task.Wrap(task.DataDir, err, "cannot read git's directory")
	}
	w.packs = nil
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "pack-") {
			w.packs = append(w.packs, filepath.Join(folder, entry.Name()))
		}
	}
	w.commits = []string{w.start, w.tip}
	w.shallow, err = os.ReadFile(filepath.Join(w.dir, "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return task.Wrap(task.DataDir, err, "cannot read git's directory")
	}
	return nil
}

// makePlain makes the repository for the sandbox. What was fetched at first is copied, because to
// pack it once more takes as long as to fetch it.
func (w *Workspace) makePlain(ctx context.Context, made plain, files string) error {
	at := filepath.Join(files, ".git")
	_, err := w.git.Run(ctx, git.Command{Args: []string{"init", "--quiet", "--template=", "--initial-branch=" + w.options.Branch, files}})
	if err == nil {
		err = w.copyPacks(at)
	}
	refs := []string{"update refs/heads/" + w.options.Branch + " " + made.commit}
	if err == nil {
		err = w.completePlain(ctx, made.commit, at)
	}
	if err == nil && made.base != "" {
		refs = append(refs, "update refs/remotes/origin/"+w.options.Base+" "+made.base)
		err = w.completePlain(ctx, made.base, at)
	}
	if err == nil {
		_, err = w.git.Run(ctx, git.Command{Dir: at, Input: strings.NewReader(strings.Join(refs, "\n") + "\n"), Args: []string{"update-ref", "--no-deref", "--stdin"}})
	}
	if err == nil {
		err = w.indexPlain(ctx, made, at)
	}
	if err == nil {
		err = addTo(filepath.Join(at, "config"), fmt.Sprintf("%s[user]\n\tname = %s\n\temail = %s\n", plainSettings, setting(w.options.Author.Name), setting(w.options.Author.Email)))
	}
	if err != nil {
		return failure(err, "cannot make the repository for the sandbox")
	}
	return nil
}

// copyPacks copies what was fetched at first.
func (w *Workspace) copyPacks(at string) error {
	folder := filepath.Join(at, "objects", "pack")
	for _, pack := range w.packs {
		if err := copyFile(pack, filepath.Join(folder, filepath.Base(pack))); err != nil {
			return err
		}
	}
	if len(bytes.TrimSpace(w.shallow)) == 0 {
		return nil
	}
	return addTo(filepath.Join(at, "shallow"), string(w.shallow))
}

// completePlain adds a commit that was not fetched at first. With a ref on what was, git packs
// only what differs from it.
func (w *Workspace) completePlain(ctx context.Context, commit, at string) error {
	if slices.Contains(w.commits, commit) {
		return nil
	}
	const had = "refs/toryo/had"
	if len(w.commits) > 0 {
		if _, err := w.git.Run(ctx, git.Command{Dir: at, Args: []string{"update-ref", "--no-deref", had, w.commits[0]}}); err != nil {
			return err
		}
	}
	own := git.Remote{URL: w.dir}
	if _, err := w.git.Run(ctx, git.Command{Dir: at, Remote: &own, Args: []string{
		"fetch", "--quiet", "--no-tags", "--depth=1", "--no-write-fetch-head", "--no-auto-maintenance", "--end-of-options", own.URL, commit,
	}}); err != nil {
		return err
	}
	if len(w.commits) == 0 {
		return nil
	}
	_, err := w.git.Run(ctx, git.Command{Dir: at, Args: []string{"update-ref", "--no-deref", "-d", had}})
	return err
}

// indexPlain gives the repository its index. With the one of the check-out, git need not read all
// files to see that none was changed.
func (w *Workspace) indexPlain(ctx context.Context, made plain, at string) error {
	if made.index != "" {
		return copyFile(made.index, filepath.Join(at, "index"))
	}
	_, err := w.git.Run(ctx, git.Command{Dir: at, Args: []string{"read-tree", made.commit}})
	return err
}

// setting is a text as a value in a file of git's settings.
func setting(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(text) + `"`
}

// copyFile copies a file to where there is none. Where the file system can, it copies when one of
// the two is written to.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // it was only read
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// addTo adds a text to a file that we have made.
func addTo(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// replacePlain gives programs in the sandbox a repository with another commit. They may have
// written anything into the one that is there, and may be running: git never looks into that,
// and the new one is made elsewhere.
func (w *Workspace) replacePlain(ctx context.Context, commit string) error {
	made, err := os.MkdirTemp(w.options.Dir, "plain-")
	if err != nil {
		return task.Wrap(task.DataDir, err, "cannot make the repository for the sandbox")
	}
	defer func() { _ = workdir.Remove(made) }() // it is empty, or goes with the workspace
	if err := w.makePlain(ctx, plain{commit: commit, base: w.tip}, made); err != nil {
		return err
	}
	if err := w.root.RemoveAll(".git"); err != nil {
		return failure(err, "cannot replace the repository for the sandbox")
	}
	// A name that is taken again by then is refused, and a link is not followed.
	if err := os.Rename(filepath.Join(made, ".git"), filepath.Join(w.files, ".git")); err != nil {
		return failure(err, "cannot replace the repository for the sandbox")
	}
	return nil
}
