package tool

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// Files are the files of a workspace. Paths are relative, with slashes, as
// package fs has them. An implementation never follows a link out of the
// workspace, and never waits for a pipe: [workdir.Files] is such a one.
type Files interface {
	fs.FS // with fs.ReadDirFS and fs.StatFS
	// WriteFile replaces a file, and makes it and its directories where they are
	// missing. An existing file keeps its mode.
	WriteFile(name string, data []byte) error
	// Remove removes a file.
	Remove(name string) error
}

// Command is a command line for the workspace's shell.
type Command struct {
	Line    string
	Timeout time.Duration
}

// Exit is how a command ended.
type Exit struct {
	Code     int
	TimedOut bool
}

// Runner runs commands in the workspace, in the sandbox. Output is written as it
// comes, standard output and error together. An error means that the command
// could not be run or that the sandbox is gone; a command that fails is none.
type Runner interface {
	Run(ctx context.Context, command Command, output io.Writer) (Exit, error)
}

// Workspace is where a model works.
type Workspace struct {
	Files  Files
	Runner Runner
	// Mount is where the workspace lies as commands see it, for example
	// "/workspace". Models use such paths too, and they are understood.
	Mount string
}

// resolve turns a path as a model writes it into a name in the workspace.
func (w Workspace) resolve(given string) (string, error) {
	name := strings.TrimSpace(strings.ReplaceAll(given, `\`, "/"))
	if w.Mount != "" && (name == w.Mount || strings.HasPrefix(name, w.Mount+"/")) {
		name = strings.TrimPrefix(name[len(w.Mount):], "/")
	}
	if strings.HasPrefix(name, "/") {
		return "", Mistake("%q is outside the workspace; give a path relative to its root", given)
	}
	name = path.Clean(name)
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", Mistake("%q leads out of the workspace", given)
	}
	if name == ".git" || strings.HasPrefix(name, ".git/") {
		return "", Mistake("%q belongs to git; use git commands for it", given)
	}
	return name, nil
}

// largestFile is the most that a tool reads of a file at once.
const largestFile = 16 << 20

// read returns the content of a file. What is wrong with it is the model's to
// know.
func (w Workspace) read(name string) ([]byte, error) {
	info, err := fs.Stat(w.Files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Mistake("there is no file %s%s", name, w.similar(name))
	case err != nil:
		return nil, Mistake("%s cannot be read: %v", name, err)
	case info.IsDir():
		return nil, Mistake("%s is a directory; use list", name)
	case !info.Mode().IsRegular():
		return nil, Mistake("%s is not a regular file", name)
	case info.Size() > largestFile:
		return nil, Mistake("%s has %d bytes, which is too many to read at once; use search or a command", name, info.Size())
	}
	data, err := workdir.ReadFile(w.Files, name, largestFile)
	if err != nil {
		return nil, Mistake("%s cannot be read: %v", name, err)
	}
	return data, nil
}

// similar names a file with the same name elsewhere in the same directory, but
// in another case or with another ending.
func (w Workspace) similar(name string) string {
	entries, err := fs.ReadDir(w.Files, path.Dir(name))
	if err != nil {
		return ""
	}
	stem := strings.ToLower(strings.TrimSuffix(path.Base(name), path.Ext(name)))
	for _, entry := range entries {
		other := entry.Name()
		if strings.ToLower(strings.TrimSuffix(other, path.Ext(other))) == stem {
			return "; there is " + path.Join(path.Dir(name), other)
		}
	}
	return ""
}

// Directory is the files of a directory on this machine, which nothing leads out
// of: links and ".." are refused where they would.
type Directory struct {
	workdir.Files
	in *workdir.Dir
}

var _ Files = (*Directory)(nil)

// OpenDirectory opens a directory. Close it after use.
func OpenDirectory(name string) (*Directory, error) {
	in, err := workdir.Open(name)
	if err != nil {
		return nil, err
	}
	return &Directory{Files: in.FS(), in: in}, nil
}

// Close closes the directory.
func (d *Directory) Close() error { return d.in.Close() }

// WriteFile implements [Files].
func (d *Directory) WriteFile(name string, data []byte) error { return d.in.WriteFile(name, data) }

// Remove implements [Files].
func (d *Directory) Remove(name string) error { return d.in.Remove(name) }
