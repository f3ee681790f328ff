package environment

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Every command of set-up starts in the folder of its project. Plans and repairs are
// written by models, which often go into that folder once more, as if commands shared
// one shell: on a line of its own, which is to hold for the lines after it, or at the
// beginning of a command. Both are understood, from the project's folder or from the
// top, whichever has the folder that is named.

const folderWord = `(?:'([^']*)'|"([^"$\\` + "`" + `]*)"|([A-Za-z0-9_./@+][A-Za-z0-9_./@+-]*))`

var (
	onlyChanges  = lazyregexp.New(`^\s*cd\s+(?:--\s+)?` + folderWord + `\s*;?\s*$`)
	firstChanges = lazyregexp.New(`^[\s(]*cd\s+(?:--\s+)?` + folderWord + `\s*(?:&&|;|\n)`)
)

// changedFolder is the folder that a command goes to, if it has that form.
func changedFolder(form *lazyregexp.Regexp, command string) (string, bool) {
	found := form.FindStringSubmatch(command)
	if found == nil {
		return "", false
	}
	return found[1] + found[2] + found[3], true
}

// folders knows which folders a workspace has.
type folders struct{ workspace string }

// has reports whether the workspace has the folder.
func (f folders) has(name string) bool {
	if !filepath.IsLocal(name) {
		return false
	}
	files, err := workdir.Open(f.workspace)
	if err != nil {
		return false
	}
	defer func() { _ = files.Close() }()
	info, err := fs.Stat(files.FS(), path.Clean(name))
	return err == nil && info.IsDir()
}

// goTo is the folder in which one is after cd target in at, if there is such a folder.
func (f folders) goTo(at, target string) (string, bool) {
	if inside, is := strings.CutPrefix(target, sandbox.WorkspacePath); is && (inside == "" || inside[0] == '/') {
		at, target = ".", path.Join(".", inside)
	}
	if path.IsAbs(target) {
		return "", false
	}
	for _, folder := range []string{path.Join(at, target), path.Clean(target)} {
		if f.has(folder) {
			return folder, true
		}
	}
	return "", false
}

// start is where a command starts that belongs into the folder at: there, unless it
// goes by itself to a folder that only the top has.
func (f folders) start(at, command string) string {
	target, changes := changedFolder(firstChanges, command)
	if changes && !path.IsAbs(target) && !f.has(path.Join(at, target)) && f.has(target) {
		return "."
	}
	return at
}

// inFolder is a command for people, with the folder in which it starts.
func inFolder(folder, command string) string {
	if folder == "" || folder == "." {
		return command
	}
	return "cd " + quote(folder) + " && " + command
}
