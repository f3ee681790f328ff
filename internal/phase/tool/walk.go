package tool

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// longestIgnoreFile is how long a file of patterns may be.
const longestIgnoreFile = 1 << 20

// ignoreFiles are read in every directory, the later over the earlier.
var ignoreFiles = []string{".gitignore", ".ignore", ".rgignore"}

// walk visits the files and directories below a place in order of their names.
// What the ignore files exclude and what is hidden is left out, as ripgrep does;
// the place itself is visited in any case. Links are not followed. Visit returns
// false to stop, or fs.SkipDir to leave a directory out.
func walk(ctx context.Context, files fs.FS, start string, visit func(name string, entry fs.DirEntry) error) error {
	w := &walker{files: files, visit: visit}
	for _, dir := range parents(start) {
		w.readIgnores(dir)
	}
	return w.directory(ctx, start)
}

type walker struct {
	files    fs.FS
	visit    func(name string, entry fs.DirEntry) error
	patterns []gitignore.Pattern
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
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	for _, file := range ignoreFiles {
		data, err := workdir.ReadFile(w.files, path.Join(dir, file), longestIgnoreFile)
		if err != nil {
			continue // there is none, or it is nonsense
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				w.patterns = append(w.patterns, gitignore.ParsePattern(line, domain))
			}
		}
	}
}

func (w *walker) directory(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(w.files, dir)
	if err != nil {
		return Mistake("%s cannot be listed: %v", dir, err)
	}
	known := len(w.patterns)
	defer func() { w.patterns = w.patterns[:known] }()
	w.readIgnores(dir)
	matcher := gitignore.NewMatcher(w.patterns)
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || matcher.Match(strings.Split(name, "/"), entry.IsDir()) {
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
