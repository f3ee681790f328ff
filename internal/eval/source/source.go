// Package source makes the repositories that an evaluation works on. Each has one commit with
// its ancestors and nothing that came later, and commits are put together in it from patches.
//
// Repositories and patches come from others. Git is run on repositories of our own only, whose
// configuration we have written; of those of others it reads objects. Nothing is checked out
// here, so that no filter, hook or attribute has a say.
package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Repository is a bare repository of ours.
type Repository struct {
	Dir  string
	Base string // its commit

	git *git.Program
}

const (
	maxFile    = 8 << 30 // of a file that git writes
	maxShallow = 16 << 20
	// MaxPatch is how long the patch of an attempt may be.
	MaxPatch = 32 << 20
	main     = "refs/heads/main"
)

// plain keeps attributes of the files from changing what differences look like.
const plain = "* -text !eol -ident -filter !working-tree-encoding !diff !merge\n"

// Strip makes a repository in a new folder that has a commit of another repository, its
// ancestors, and nothing else: no other commit, no tag, no reflog and no remote. It fails with
// NotFound if the repository does not have the commit.
func Strip(ctx context.Context, from, base, dir string) (*Repository, error) {
	program, err := newProgram()
	if err != nil {
		return nil, err
	}
	theirs, err := gitDir(from)
	if err != nil {
		return nil, err
	}
	refs := git.Refs{Format: format(base), Objects: map[string]string{main: base}, Symbolic: map[string]string{"HEAD": main}}
	if refs.Shallow, err = shallow(theirs); err != nil {
		return nil, err
	}
	// What names the other one's objects is a repository of ours too: its configuration is not read.
	reading := dir + ".reading"
	defer func() { _ = os.RemoveAll(reading) }() // it has nothing in it
	for _, made := range []string{reading, dir} {
		if err := program.Init(ctx, made, refs.Format); err != nil {
			return nil, task.Wrap(task.DataDir, err, "no folder for the repository can be made")
		}
	}
	r := &Repository{Dir: dir, Base: base, git: program}
	if err := r.copyFrom(ctx, reading, theirs, refs); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// newProgram is git with the settings of these repositories.
func newProgram() (*git.Program, error) {
	program, err := git.Find()
	if err != nil {
		return nil, err
	}
	program.MaxFile = maxFile
	program.Settings = []string{"user.name=toryo", "user.email=toryo@localhost", "core.logAllRefUpdates=false"}
	return program, nil
}

// copyFrom copies what the refs lead to.
func (r *Repository) copyFrom(ctx context.Context, reading, theirs string, refs git.Refs) error {
	if len(refs.Shallow) > 0 {
		if err := os.WriteFile(filepath.Join(reading, "shallow"), []byte(strings.Join(refs.Shallow, "\n")+"\n"), 0o600); err != nil {
			return task.Wrap(task.DataDir, err, "the repository cannot be copied")
		}
	}
	objects := filepath.Join(theirs, "objects")
	if _, err := r.git.Run(ctx, git.Command{Dir: reading, Objects: objects, Args: []string{"cat-file", "-e", r.Base + "^{commit}"}}); err != nil {
		return task.Wrap(task.NotFound, err, "the repository does not have the commit "+r.Base).WithHint("fetch it there")
	}
	pipe, pack := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := r.git.Run(ctx, git.Command{Dir: reading, Objects: objects, Input: strings.NewReader(r.Base + "\n"), Output: pack,
			Args: []string{"pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset", "--threads=1"}})
		_ = pack.CloseWithError(err) // always nil
		done <- err
	}()
	err := r.importPack(ctx, refs, pipe)
	_ = pipe.CloseWithError(errors.New("the pack is not read any more")) // always nil
	return errors.Join(err, <-done)
}

// importPack takes the pack over.
func (r *Repository) importPack(ctx context.Context, refs git.Refs, pack io.Reader) error {
	if err := r.git.Import(ctx, r.Dir, refs, pack); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.Dir, "info"), 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "the repository cannot be copied")
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "info", "attributes"), []byte(plain), 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "the repository cannot be copied")
	}
	return nil
}

// format is the format of a hash.
func format(hash string) string {
	const sha1 = 40
	if len(hash) == sha1 {
		return "sha1"
	}
	return "sha256"
}

// gitDir is git's own directory of a repository.
func gitDir(folder string) (string, error) {
	for _, at := range []string{folder, filepath.Join(folder, ".git")} {
		if info, err := os.Stat(filepath.Join(at, "objects")); err == nil && info.IsDir() {
			return filepath.Abs(at)
		}
	}
	return "", task.Errorf(task.NotFound, "%s is no git repository", folder).WithHint("a clone has a folder .git or is bare")
}

// shallow are the commits of a repository whose parents it does not have.
func shallow(dir string) ([]string, error) {
	file, err := os.Open(filepath.Join(dir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, task.Wrap(task.NotFound, err, "the repository cannot be read")
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxShallow))
	if err != nil {
		return nil, task.Wrap(task.NotFound, err, "the repository cannot be read")
	}
	return strings.Fields(string(data)), nil
}

// Files lists the files of a commit.
func (r *Repository) Files(ctx context.Context, commit string) ([]string, error) {
	listed, err := r.run(ctx, git.Command{Args: []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", commit}})
	if err != nil || listed == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00"), nil
}

// Commit is a commit with what was written about it.
type Commit struct {
	Hash    string
	Parents []string
	Message string
}

// Merged lists the last commits of the base, following first parents only.
func (r *Repository) Merged(ctx context.Context, most int) ([]Commit, error) {
	listed, err := r.run(ctx, git.Command{Args: []string{"rev-list", "--first-parent", "--no-commit-header", "--max-count=" + strconv.Itoa(most), "--format=%H %P%n%B%x00", r.Base}})
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for part := range strings.SplitSeq(listed, "\x00") {
		hashes, message, _ := strings.Cut(strings.TrimLeft(part, "\n"), "\n")
		if fields := strings.Fields(hashes); len(fields) > 0 {
			commits = append(commits, Commit{Hash: fields[0], Parents: fields[1:], Message: strings.TrimSpace(message)})
		}
	}
	return commits, nil
}

// Head is the commit that is checked out in a repository of the person who calls, and where
// git keeps its files.
func Head(ctx context.Context, folder string) (commit, dir string, err error) {
	program, err := git.Find()
	if err != nil {
		return "", "", err
	}
	program.Settings = []string{"safe.directory=*"} // who names it decides
	out, err := program.Run(ctx, git.Command{Args: []string{"-C", folder, "rev-parse", "--path-format=absolute", "--git-common-dir", "--verify", "HEAD^{commit}"}})
	if err != nil {
		return "", "", task.Wrap(task.NotFound, err, folder+" is no git repository with a commit")
	}
	dir, commit, _ = strings.Cut(strings.TrimSpace(out), "\n")
	return commit, dir, nil
}

// Commit is the commit of a branch, or none if there is no such branch.
func (r *Repository) Commit(ctx context.Context, branch string) (string, error) {
	listed, err := r.run(ctx, git.Command{Args: []string{"for-each-ref", "--format=%(objectname)", "refs/heads/" + branch}})
	return strings.TrimSpace(listed), err
}

// File is a file of a commit; NotFound if there is none, or a folder or submodule is there, and
// TooLarge if it is longer than MaxPatch.
func (r *Repository) File(ctx context.Context, commit, name string) ([]byte, error) {
	// It lists nothing if there is no such file, and fails if that cannot be known.
	listed, err := r.run(ctx, git.Command{Args: []string{"ls-tree", "-z", "--full-tree", "--end-of-options", commit, "--", path.Clean(name)}})
	if err != nil {
		return nil, err
	}
	about := strings.Fields(strings.SplitN(listed, "\t", 2)[0])
	if len(about) != 3 || about[1] != "blob" { // a mode, a kind and a hash
		return nil, task.Errorf(task.NotFound, "there is no file %s", name)
	}
	out := &limited{most: MaxPatch}
	_, err = r.run(ctx, git.Command{Output: out, Args: []string{"cat-file", "blob", about[2]}})
	if out.over {
		return nil, task.Errorf(task.TooLarge, "the file %s has more than %d bytes", name, MaxPatch)
	}
	return []byte(out.String()), err
}

// Sizes are the lengths of blobs, by their hashes.
func (r *Repository) Sizes(ctx context.Context, hashes []string) (map[string]int64, error) {
	listed, err := r.run(ctx, git.Command{Input: strings.NewReader(strings.Join(hashes, "\n") + "\n"), Args: []string{"cat-file", "--batch-check=%(objectname) %(objectsize)"}})
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(listed) {
		hash, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		if sizes[hash], err = strconv.ParseInt(size, 10, 64); err != nil {
			return nil, task.Wrap(task.Internal, err, "the length of a file cannot be found out")
		}
	}
	return sizes, nil
}

// Copy writes a blob, however long it is.
func (r *Repository) Copy(ctx context.Context, hash string, to io.Writer) error {
	_, err := r.run(ctx, git.Command{Output: to, Args: []string{"cat-file", "blob", hash}})
	return err
}

// maxOutput is how long the output of a command may be. Names of files and messages of commits
// come from others.
const maxOutput = 256 << 20

// run runs git in the repository. It fails with TooLarge if the output is too long.
func (r *Repository) run(ctx context.Context, command git.Command) (string, error) {
	command.Dir = r.Dir
	if command.Output != nil {
		return r.git.Run(ctx, command)
	}
	out := &limited{most: maxOutput}
	command.Output = out
	_, err := r.git.Run(ctx, command)
	if out.over {
		return "", task.Errorf(task.TooLarge, "the output of git %s has more than %d bytes", command.Args[0], maxOutput)
	}
	return out.String(), err
}

// limited keeps the beginning of what is written to it.
type limited struct {
	strings.Builder

	most int
	over bool
}

func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > l.most {
		l.over = true
		return 0, errors.New("it is too long")
	}
	return l.Builder.Write(data)
}
