package phase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/toryo-dev/toryo/internal/phase/tool"
)

// judgedFiles are the files of a commit, for the model that compares it with the request. They are
// exported when it looks at one for the first time: in a large repository that takes long, and the
// difference is often all that it needs.
type judgedFiles struct {
	open func() (*tool.Directory, error)
}

var _ tool.Files = judgedFiles{}

// judged returns the files of a commit. Done removes them, and fails if they could not be had.
func (r *run) judged(ctx context.Context, commit string) (files judgedFiles, done func() error) {
	var export Export
	var opened *tool.Directory
	var failed error
	files.open = sync.OnceValues(func() (*tool.Directory, error) {
		if export, failed = r.Repository.Export(ctx, commit); failed == nil {
			opened, failed = tool.OpenDirectory(export.Dir())
		}
		return opened, failed
	})
	return files, func() error {
		if opened != nil {
			_ = opened.Close() // it was only read
		}
		if export != nil {
			if err := export.Remove(); err != nil {
				r.Log.WarnContext(ctx, "failed to remove the files of the comparison", "error", err)
			}
		}
		if failed != nil {
			return fmt.Errorf("export the files for the comparison: %w", failed)
		}
		return nil
	}
}

// Open implements [fs.FS].
func (f judgedFiles) Open(name string) (fs.File, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	return in.Open(name)
}

// ReadDir implements [fs.ReadDirFS].
func (f judgedFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	return in.ReadDir(name)
}

// Stat implements [fs.StatFS].
func (f judgedFiles) Stat(name string) (fs.FileInfo, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	return in.Stat(name)
}

var errOnlyRead = errors.New("the files that are compared are only read")

// WriteFile implements [tool.Files].
func (f judgedFiles) WriteFile(string, []byte) error { return errOnlyRead }

// Remove implements [tool.Files].
func (f judgedFiles) Remove(string) error { return errOnlyRead }
