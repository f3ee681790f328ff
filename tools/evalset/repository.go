package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	patching "github.com/toryo-dev/toryo/internal/eval/source"
)

// attributes keep git from changing files on the way in, whatever a module's own
// .gitattributes say.
const attributes = "* -text -ident !filter !diff !working-tree-encoding\n"

// git runs git with no settings but those given, so that its output depends on nothing else.
func git(ctx context.Context, environ []string, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull}, environ...)
	command.Stdin = strings.NewReader(input)
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("git: %w: %s", err, firstLine(said.String()))
	}
	return string(output), nil
}

// bare makes an empty repository.
func bare(ctx context.Context, at string) error {
	if _, err := git(ctx, nil, "", "init", "-q", "--bare", "--template=", "--object-format=sha1", "-b", "main", at); err != nil {
		return err
	}
	info := filepath.Join(at, "info")
	if err := os.MkdirAll(info, 0o755); err != nil { //nolint:gosec // as git makes it
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte(attributes), 0o644) //nolint:gosec // as git makes it
}

// tree adds files to a repository and returns their tree. The files are in a folder of the
// place until then.
func tree(ctx context.Context, repository, place string, f files) (id string, err error) {
	folder, err := os.MkdirTemp(place, "tree-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it goes with the place
	if err := f.write(filepath.Join(folder, "files")); err != nil {
		return "", err
	}
	environ := []string{"GIT_DIR=" + repository, "GIT_WORK_TREE=" + filepath.Join(folder, "files"), "GIT_INDEX_FILE=" + filepath.Join(folder, "index")}
	if _, err := git(ctx, environ, "", "-c", "core.filemode=false", "add", "--all", "--force", "."); err != nil {
		return "", err
	}
	id, err = git(ctx, environ, "", "write-tree")
	return strings.TrimSpace(id), err
}

// commit makes a repository with one commit on its branch main, which depends on the
// arguments alone.
func commit(ctx context.Context, at, place string, f files, message, date string) (string, error) {
	if err := bare(ctx, at); err != nil {
		return "", err
	}
	root, err := tree(ctx, at, place, f)
	if err != nil {
		return "", err
	}
	environ := []string{"GIT_DIR=" + at}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		environ = append(environ, "GIT_"+who+"_NAME=evalset", "GIT_"+who+"_EMAIL=evalset@localhost", "GIT_"+who+"_DATE="+date)
	}
	made, err := git(ctx, environ, message+"\n", "commit-tree", root)
	if err != nil {
		return "", err
	}
	made = strings.TrimSpace(made)
	_, err = git(ctx, environ, "", "update-ref", "refs/heads/main", made)
	return made, err
}

// patches are the differences from the older version to the newer one: those of the source,
// and those of the tests. They are found in a repository of their own, so that nothing of the
// newer version is in that of the task.
func (s source) patches(ctx context.Context, place string) (gold, tests string, err error) {
	scratch, err := os.MkdirTemp(place, "patches-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it goes with the place
	repository := filepath.Join(scratch, "repository")
	if err := errors.Join(bare(ctx, repository), os.WriteFile(filepath.Join(repository, "info", "attributes"), []byte(attributes+patching.NoText(s.noText())), 0o600)); err != nil {
		return "", "", err
	}
	was, err := tree(ctx, repository, place, s.older)
	if err != nil {
		return "", "", err
	}
	diff := func(to files) (string, error) {
		is, err := tree(ctx, repository, place, to)
		if err != nil {
			return "", err
		}
		return git(ctx, []string{"GIT_DIR=" + repository}, "", "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", was, is)
	}
	if gold, err = diff(s.older.only(isTest).and(s.newer.only(not(isTest)))); err != nil {
		return "", "", err
	}
	tests, err = diff(s.older.only(not(isTest)).and(s.newer.only(isTest)))
	return gold, tests, err
}

// noText are the files that differ and have other text than UTF-8, which JSON does not have.
func (s source) noText() []string {
	var names []string
	for name := range s.older.and(s.newer) {
		if was, is := s.older[name], s.newer[name]; (!utf8.Valid(was) || !utf8.Valid(is)) && !bytes.Equal(was, is) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkOut clones a repository and applies patches to its files.
func checkOut(ctx context.Context, repository, to string, patches ...string) error {
	if _, err := git(ctx, nil, "", "clone", "-q", "--template=", repository, to); err != nil {
		return err
	}
	for _, patch := range patches {
		if _, err := git(ctx, nil, patch, "-C", to, "apply", "--whitespace=nowarn"); err != nil {
			return unfit("its patch does not apply: %v", err)
		}
	}
	return nil
}
