package tool

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/toryo-dev/toryo/internal/phase/ignore"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// longestIgnoreFile is how long a file of patterns may be.
const longestIgnoreFile = 1 << 20

// ignoreFiles are read in every directory, the later over the earlier.
var ignoreFiles = []string{".gitignore", ".ignore", ".rgignore"}

// walk visits the files and directories below a place in order of their names.
// What the ignore files exclude and what is hidden is left out, as ripgrep does;
// the place itself is walked even if it is excluded, because it was asked for.
// Links are not followed. Visit returns fs.SkipDir to leave a directory out, or
// any other error to stop.
func walk(ctx context.Context, files fs.FS, start string, visit func(name string, entry fs.DirEntry) error) error {
	w := &walker{files: files, visit: visit}
	for _, dir := range parents(start) {
		w.readIgnores(dir)
	}
	return w.directory(ctx, start)
}

type walker struct {
	files fs.FS
	visit func(name string, entry fs.DirEntry) error
	rules ignore.Rules
}

// parents are the directories above a place, from the root down.
func parents(name string) []string {
	var all []string
	for name != "." {
		name = path.Dir(name)
		all = append([]string{name}, all...)
	}
	return all
}

func (w *walker) readIgnores(dir string) {
	for _, file := range ignoreFiles {
		data, err := workdir.ReadFile(w.files, path.Join(dir, file), longestIgnoreFile)
		if err != nil {
			continue // there is none, or it is nonsense
		}
		w.rules = w.rules.Add(dir, string(data))
	}
}

func (w *walker) directory(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(w.files, dir)
	if err != nil {
		return Mistake("%s cannot be listed: %v", dir, err)
	}
	above := w.rules
	defer func() { w.rules = above }()
	w.readIgnores(dir)
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || w.rules.Ignored(name, entry.IsDir()) {
			continue
		}
		switch err := w.visit(name, entry); {
		case err == fs.SkipDir: //nolint:errorlint // as package fs has it, never wrapped
			continue
		case err != nil:
			return err
		}
		if entry.IsDir() {
			if err := w.directory(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
