package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/task"
)

// Making is a backup that is being made, in a folder beside the file that it becomes.
type Making struct {
	path string
	dir  string
	lock *flock.Flock // of the folder
	m    Manifest
}

const (
	// folderPrefix begins the names of such folders.
	folderPrefix = ".toryo-backup-"
	// lockName is the file in such a folder that is locked while somebody uses it. No file of a backup
	// has this name.
	lockName = "lock"
)

// Begin begins a backup. It fails with Conflict if the file is there already. Close has to be
// called in any case. What backups that were killed have left beside is removed.
func Begin(path string) (*Making, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := requireNew(path); err != nil {
		return nil, err
	}
	removeLeft(filepath.Dir(path))
	dir, err := os.MkdirTemp(filepath.Dir(path), folderPrefix)
	if err != nil {
		return nil, unwritable(err)
	}
	b := &Making{path: path, dir: dir, lock: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))}
	if locked, err := b.lock.TryLock(); err != nil || !locked {
		return nil, errors.Join(unwritable(err), b.Close())
	}
	return b, nil
}

// removeLeft removes folders of backups that were killed: nobody has them locked. One without a file to
// lock has just been made. What cannot be removed is no reason not to make a backup.
func removeLeft(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", lockName)) // as said
	for _, path := range left {
		// In a folder that others may write to, it may be a link of theirs, or never end.
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		lock := flock.New(path, flock.SetPermissions(0o600))
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}

func requireNew(path string) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(err)
	}
	return task.Errorf(task.Conflict, "%s is there already", path).WithHint("name another file, or remove it")
}

func unwritable(err error) error {
	return task.Wrap(task.DataDir, err, "the backup cannot be written")
}

// Path returns where the content of a file has to be before Add.
func (b *Making) Path(name string) (string, error) {
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", unwritable(err)
	}
	return path, nil
}

// Add adds the file that is where Path says.
func (b *Making) Add(ctx context.Context, name string) (Entry, error) {
	path, err := b.Path(name)
	if err != nil {
		return Entry{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return Entry{}, unwritable(err)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, reading{ctx, file})
	if err = errors.Join(err, file.Close()); err != nil {
		return Entry{}, unwritable(err)
	}
	entry := Entry{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	b.m.Entries = append(b.m.Entries, entry)
	return entry, nil
}

// AddText adds a small file.
func (b *Making) AddText(ctx context.Context, name string, content []byte) error {
	path, err := b.Path(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return unwritable(err)
	}
	_, err = b.Add(ctx, name)
	return err
}

// Write writes the file, with all that was added, and returns its manifest. It is there whole, and
// synced, or not at all.
func (b *Making) Write(ctx context.Context, about Manifest) (m Manifest, err error) {
	about.Format, about.Entries = Format, b.m.Entries
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return m, err
	}
	// What Read would refuse is not written.
	if len(text) > maxManifest {
		return m, task.Errorf(task.TooLarge, "the manifest of the backup has %d bytes; %d are allowed", len(text), maxManifest)
	}
	if _, err := parse(text); err != nil {
		return m, err
	}
	making := filepath.Join(b.dir, endName) // no file has this name
	file, err := os.OpenFile(making, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return m, unwritable(err)
	}
	err = errors.Join(b.writeTo(ctx, file, about, text), file.Sync(), file.Close())
	if err != nil {
		return m, unwritable(err)
	}
	// A link does not go over a file that came meanwhile.
	if err := os.Link(making, b.path); errors.Is(err, fs.ErrExist) {
		return m, requireNew(b.path)
	} else if err != nil { // the file system may have no links
		if err := requireNew(b.path); err != nil {
			return m, err
		}
		if err := os.Rename(making, b.path); err != nil {
			return m, unwritable(err)
		}
	}
	return about, SyncFolder(filepath.Dir(b.path))
}

func (b *Making) writeTo(ctx context.Context, out io.Writer, m Manifest, text []byte) error {
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	files := tar.NewWriter(packed)
	add := func(name string, size int64, content io.Reader) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.CreatedAt}
		if err := files.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.Copy(files, reading{ctx, content})
		return err
	}
	if err := add(manifestName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	for _, entry := range m.Entries {
		if err := b.addFile(entry, add); err != nil {
			return err
		}
	}
	end := endOf(text)
	if err := add(endName, int64(len(end)), bytes.NewReader(end)); err != nil {
		return err
	}
	return errors.Join(files.Close(), packed.Close())
}

func (b *Making) addFile(entry Entry, add func(string, int64, io.Reader) error) (err error) {
	file, err := os.Open(filepath.Join(b.dir, filepath.FromSlash(entry.Name)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return add(entry.Name, entry.Size, file)
}

// Close removes what was written on the way.
func (b *Making) Close() error { return errors.Join(os.RemoveAll(b.dir), b.lock.Close()) }

// SyncFolder makes what was made in a folder, or moved there, durable. Windows keeps its own
// journal of that, and refuses to sync a folder.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
