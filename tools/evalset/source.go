package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// files are files by their path with slashes.
type files map[string][]byte

const (
	mostFiles = 5000
	mostBytes = 20 << 20
)

// readFiles reads the files below a folder. Modules larger than the limits do not make good
// tasks.
func readFiles(folder string) (files, error) {
	found, size := files{}, int64(0)
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > mostBytes || len(found) == mostFiles {
			return unfit("it has more than %d files or %d MiB", mostFiles, mostBytes>>20)
		}
		if !info.Mode().IsRegular() {
			return unfit("%s is not a regular file", name)
		}
		found[name], err = fs.ReadFile(root, name)
		return err
	})
	return found, err
}

// write writes the files below a folder.
func (f files) write(folder string) error {
	for name, content := range f {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // public source
			return err
		}
		if err := os.WriteFile(at, content, 0o644); err != nil { //nolint:gosec // public source
			return err
		}
	}
	return nil
}

// isTest says whether a file belongs to the tests.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// isSource says whether a file is Go code that is not a test.
func isSource(name string) bool { return strings.HasSuffix(name, ".go") && !isTest(name) }

// only are the files of which a rule says so.
func (f files) only(rule func(string) bool) files {
	return maps.Collect(func(yield func(string, []byte) bool) {
		for name, content := range f {
			if rule(name) && !yield(name, content) {
				return
			}
		}
	})
}

func not(rule func(string) bool) func(string) bool {
	return func(name string) bool { return !rule(name) }
}

// and are the files of several sets together.
func (f files) and(others ...files) files {
	all := maps.Clone(f)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

func (f files) equal(other files) bool { return maps.EqualFunc(f, other, bytes.Equal) }

// source is a pair's source: what the task is made from.
type source struct {
	older, newer files
	// vendor are the modules that both need, the same for both.
	vendor files
}

// readSource reads both versions and what they need. It refuses pairs that cannot become a
// task before any of their code has run.
func (c client) readSource(ctx context.Context, older, newer version, listed bool) (source, error) {
	var s source
	var err error
	if s.older, err = readFiles(older.Dir); err != nil {
		return s, err
	}
	if s.newer, err = readFiles(newer.Dir); err != nil {
		return s, err
	}
	// Archives of modules have no vendor folders, but some have their list of modules.
	inVendor := func(name string) bool { return strings.HasPrefix(name, "vendor/") }
	s.older, s.newer = s.older.only(not(inVendor)), s.newer.only(not(inVendor))
	if s.older.only(isSource).equal(s.newer.only(isSource)) {
		return s, unfit("no Go code differs")
	}
	if s.older.only(isTest).equal(s.newer.only(isTest)) {
		return s, unfit("no test differs")
	}
	was, err := requirements(s.older)
	if err != nil {
		return s, err
	}
	is, err := requirements(s.newer)
	if err != nil {
		return s, err
	}
	if !slices.Equal(was, is) {
		return s, unfit("go.mod requires other modules")
	}
	if len(is) == 0 {
		return s, nil
	}
	s.vendor, err = c.vendor(ctx, s, listed)
	return s, err
}

// requirements are the lines of a go.mod that say which modules are used.
func requirements(f files) ([]string, error) {
	text, has := f["go.mod"]
	if !has {
		return nil, unfit("there is no go.mod")
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, unfit("%v", err)
	}
	var lines []string
	for _, r := range mod.Require {
		lines = append(lines, "require "+r.Mod.String())
	}
	for _, r := range mod.Replace {
		if r.New.Version == "" {
			return nil, unfit("go.mod replaces %s by a folder", r.Old.Path) // of this machine, here
		}
		lines = append(lines, "replace "+r.Old.String()+" "+r.New.String())
	}
	for _, e := range mod.Exclude {
		lines = append(lines, "exclude "+e.Mod.String())
	}
	slices.Sort(lines)
	return lines, nil
}

// vendor has go mod vendor copy the packages of other modules that both versions need, with
// their tests. That runs no code of theirs. If the versions do not need the same ones, the
// older source would fail for the lack of them.
func (c client) vendor(ctx context.Context, s source, listed bool) (files, error) {
	var vendored [2]files
	for i, version := range []files{s.older, s.newer} {
		folder, err := os.MkdirTemp(c.dir, "vendor-")
		if err != nil {
			return nil, err
		}
		if err := version.write(folder); err != nil {
			return nil, err
		}
		if _, err := c.command(ctx, folder, "mod", "vendor"); err != nil {
			return nil, ofListed(err, listed)
		}
		found, err := readFiles(filepath.Join(folder, "vendor"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		vendored[i] = files{}
		for name, content := range found {
			vendored[i]["vendor/"+name] = content
		}
		if err := os.RemoveAll(folder); err != nil {
			return nil, err
		}
	}
	if !vendored[0].equal(vendored[1]) {
		return nil, unfit("it uses other packages of other modules")
	}
	return vendored[1], nil
}

// unfitError is why a pair is no task. The details are for whoever runs the program: they
// may name addresses of this machine, and the set is handed on.
type unfitError struct {
	reason, details string
	// passing says that it may be another time: it comes from this machine or the network, and
	// not from what the versions have in them.
	passing bool
}

func (u unfitError) Error() string { return u.reason }

// ofListed is an error of a pair. If the list has its sums, it says that the pair is good: without
// it the set would be another one.
func ofListed(err error, listed bool) error {
	if failed, is := unfitness(err); is && err != nil && listed {
		return fmt.Errorf("%s: %s", failed.reason, failed.details)
	}
	return err
}

func unfit(format string, values ...any) error {
	return unfitError{reason: fmt.Sprintf(format, values...)}
}

// unfitness is why a pair is no task, empty if there is no error. False means that something
// else went wrong, alone or besides.
func unfitness(err error) (unfitError, bool) {
	switch err := err.(type) { //nolint:errorlint // the errors within are looked at below
	case nil:
		return unfitError{}, true
	case unfitError:
		return err, true
	case interface{ Unwrap() []error }:
		all := err.Unwrap()
		if len(all) == 1 {
			return unfitness(all[0])
		}
	}
	return unfitError{}, false
}
