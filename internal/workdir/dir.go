package workdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/toryo-dev/toryo/internal/task"
)

// Dir is a folder that code in a sandbox can write to. Names are relative to
// it, with slashes, as package fs has them. Its methods may be called by several
// goroutines.
type Dir struct{ root *os.Root }

// Open opens a folder. Close it after use.
func Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Close closes the folder.
func (f *Dir) Close() error { return f.root.Close() }

// Name is the folder's path.
func (f *Dir) Name() string { return f.root.Name() }

// ErrNotRegular is the error for what is neither a file nor a folder.
var ErrNotRegular = errors.New("it is not a regular file")

// OpenFile opens a regular file to read.
func (f *Dir) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	return f.open(name, os.O_RDONLY, 0, fs.FileMode.IsRegular)
}

// Create makes a file that is not there yet.
func (f *Dir) Create(name string, mode fs.FileMode) (*os.File, error) {
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// Overwrite opens a regular file to write, empty. One that is not there is made.
func (f *Dir) Overwrite(name string, mode fs.FileMode) (*os.File, error) {
	file, _, err := f.open(name, os.O_WRONLY|os.O_CREATE, mode, fs.FileMode.IsRegular)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// OpenPipe opens a named pipe, without waiting for its other end.
func (f *Dir) OpenPipe(name string, how int) (*os.File, error) {
	file, _, err := f.open(name, how, 0, func(mode fs.FileMode) bool { return mode.Type() == fs.ModeNamedPipe })
	return file, err
}

// open never waits: what is opened is looked at before it is used.
func (f *Dir) open(name string, how int, mode fs.FileMode, is func(fs.FileMode) bool) (*os.File, fs.FileInfo, error) {
	file, err := f.root.OpenFile(name, how|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ENXIO) { // a pipe that nobody reads, or a socket
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !is(info.Mode()) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// ReadFile reads a regular file of at most so many bytes. A longer one is an error
// with the code TooLarge, and is not read.
func (f *Dir) ReadFile(name string, most int64) ([]byte, error) {
	file, info, err := f.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info.Size() > most {
		return nil, tooLarge(name, most)
	}
	data := make([]byte, 0, info.Size()+1)
	for { // it may grow while it is read
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, tooLarge(name, most)
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

func tooLarge(name string, most int64) error {
	return task.Errorf(task.TooLarge, "%s is longer than the %d bytes that are read of such a file", name, most)
}

// WriteFile replaces the content of a regular file, and makes it and its folders
// where they are missing. An existing file keeps its mode.
func (f *Dir) WriteFile(name string, data []byte) error {
	if dir := path.Dir(name); dir != "." {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	file, err := f.Overwrite(name, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Lstat describes what has the name, and not what a link points to.
func (f *Dir) Lstat(name string) (fs.FileInfo, error) { return f.root.Lstat(name) }

// Stat describes what has the name; a link is followed if it stays in the folder.
func (f *Dir) Stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }

// Readlink is where a link points to.
func (f *Dir) Readlink(name string) (string, error) { return f.root.Readlink(name) }

// Symlink makes a link.
func (f *Dir) Symlink(to, name string) error { return f.root.Symlink(to, name) }

// Mkdir makes a folder.
func (f *Dir) Mkdir(name string, mode fs.FileMode) error { return f.root.Mkdir(name, mode) }

// MkdirAll makes a folder and those above it.
func (f *Dir) MkdirAll(name string, mode fs.FileMode) error { return f.root.MkdirAll(name, mode) }

// Remove removes a file or an empty folder.
func (f *Dir) Remove(name string) error { return f.root.Remove(name) }

// Lchown changes who something belongs to.
func (f *Dir) Lchown(name string, owner int) error { return f.root.Lchown(name, owner, owner) }

// Sub opens a folder below.
func (f *Dir) Sub(name string) (*Dir, error) {
	root, err := openRoot(f.root, name)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// openRoot opens a folder below. With the dot at its end, the name is opened as a folder
// only: a pipe that takes its place meanwhile would be waited for.
func openRoot(in *os.Root, name string) (*os.Root, error) { return in.OpenRoot(name + "/.") }

// Root is the folder for calls that open nothing.
func (f *Dir) Root() *os.Root { return f.root }

// FS is the folder as a file system. See [Files].
func (f *Dir) FS() Files { return Files{f} }

// Files is a folder as a file system: of files it opens regular ones only, of a
// folder it lists at most [MostListed] names, and it reads no file at once that
// has more than [MostRead] bytes.
type Files struct{ in *Dir }

const (
	// MostRead is how much of a file is read at once where the caller names no
	// limit.
	MostRead = 16 << 20
	// MostListed is how many names of one folder are listed at once.
	MostListed = 10_000
	// Deepest is how long a path may be. No program can open a longer one at once.
	Deepest = 4096
)

var (
	_ fs.ReadFileFS = Files{}
	_ fs.ReadDirFS  = Files{}
	_ fs.StatFS     = Files{}
)

// Open implements [fs.FS].
func (s Files) Open(name string) (fs.File, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	file, _, err := s.in.open(name, os.O_RDONLY, 0, func(mode fs.FileMode) bool { return mode.IsRegular() || mode.IsDir() })
	if err != nil {
		return nil, err
	}
	return file, nil
}

// ReadFile implements [fs.ReadFileFS].
func (s Files) ReadFile(name string) ([]byte, error) { return s.ReadAtMost(name, MostRead) }

// ReadAtMost reads a regular file of at most so many bytes.
func (s Files) ReadAtMost(name string, most int64) ([]byte, error) {
	if err := valid("read", name); err != nil {
		return nil, err
	}
	return s.in.ReadFile(name, most)
}

// Stat implements [fs.StatFS].
func (s Files) Stat(name string) (fs.FileInfo, error) {
	if err := valid("stat", name); err != nil {
		return nil, err
	}
	return s.in.Stat(name)
}

// ReadDir implements [fs.ReadDirFS]. What is past the limit is left out.
func (s Files) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := valid("readdir", name); err != nil {
		return nil, err
	}
	return s.in.list(name)
}

func valid(what, name string) error {
	if !fs.ValidPath(name) || len(name) > Deepest {
		return &fs.PathError{Op: what, Path: name[:min(len(name), 200)], Err: fs.ErrInvalid}
	}
	return nil
}

// ReadFile reads a file of any file system that is at most so long, such as one
// that was built in, or [Files].
func ReadFile(files fs.FS, name string, most int64) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", name, ErrNotRegular)
	}
	if info.Size() > most {
		return nil, tooLarge(name, most)
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1)) // it may grow while it is read
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, tooLarge(name, most)
	}
	return data, nil
}
