package environment

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// A snapshot has what the set-up commands made of the files that there were. Where the
// files are others now, the commands run again, apart from those that are known to install
// packages of others, or to set variables, which the snapshot has.

// installs are commands that make nothing of the project's own files.
var installs = lazyregexp.New(`^(?:true|:|cd|pwd|export|unset|umask|set|command -v|which|mkdir|` +
	`(?:source|\.)\s+\S*(?:/activate|/nvm\.sh|/cargo/env)|` +
	`(?:corepack )?(?:npm (?:ci|install|i)|yarn(?: install)?|pnpm (?:install|i))|bun install|deno install|corepack (?:enable|prepare)|` +
	`(?:\S*python[\d.]* -m |\S*/)?(?:pip[\d.]*|uv pip|pipx) install|uv (?:sync|venv|python)|\S*python[\d.]* -m (?:venv|virtualenv)|virtualenv|` +
	`poetry install\b.* --no-root|poetry config|pipenv install|bundle (?:install|config)|gem install|composer install|` +
	`go mod download|go install \S+@\S+$|cargo fetch|rustup|\S*mvnw?(?: -\S+)* dependency:[\w-]+$|dotnet restore|mix (?:deps\.get|local\.\w+)|` +
	`(?:apt|apt-get|apk|dnf|yum)(?: -\S+)* (?:update|upgrade|install|add))(?:\s|$)`)

var (
	// ends are where one command ends and another one begins.
	ends = lazyregexp.New(`&&|\|\||[;\n|]`)
	// before are words before a command that change nothing about what it does.
	before = lazyregexp.New(`^(?:[\s(]+|sudo\s+(?:-\S+\s+)*|[A-Za-z_]\w*=[\w./:@+-]*\s+)+`)
	// plain is what shows a shell's signs and means none: output that goes nowhere, and a
	// package with its versions.
	plain = lazyregexp.New(`\s*(?:&|\d)?>\s*/dev/null|\s*2>&1|\s(?:'[\w.,\[\]-]+[<>=!~][\w.,*<>=!~ ]*'|"[\w.,\[\]-]+[<>=!~][\w.,*<>=!~ ]*")`)
	// ownFiles are arguments that name files of the project as a package, and whatever
	// makes a shell do more than it seems.
	ownFiles = lazyregexp.New("[`<>&]|\\$\\(|file:|link:|\\s(?:-e|--editable)\\b")
	// ownFolder is such an argument too: a path that is no option's.
	ownFolder = lazyregexp.New(`^['"]?\.{0,2}/|^['"]?\.{1,2}['"]?(?:\[.*)?$`)
)

// onlyInstalls reports whether a command does nothing else than to install packages of
// others or to set variables.
func onlyInstalls(command string) bool {
	for _, part := range ends.Split(command, -1) {
		part = strings.TrimRight(before.ReplaceAllString(plain.ReplaceAllString(part, ""), ""), ") \t")
		if part != "" && (!installs.MatchString(part) || ownFiles.MatchString(part) || namesFolder(part)) {
			return false
		}
	}
	return true
}

// takesPath are commands and options whose paths name no package.
var takesPath = []string{"cd", "mkdir", "source", ".", "venv", "virtualenv", "export", "-r", "--requirement", "-c", "--constraint", "--prefix", "-C", "--dir", "--cwd", "path"}

// namesFolder reports whether a command that installs packages is given a folder as one.
func namesFolder(command string) bool {
	words := strings.Fields(command)
	for i, word := range words[1:] {
		if ownFolder.MatchString(word) && !slices.Contains(takesPath, words[i]) && !slices.Contains(takesPath, words[0]) {
			return true
		}
	}
	return false
}

// setUpAgain runs the set-up commands again that may have made something of the project's
// own files, when these may be others than those that the snapshot was made of.
func (r *setupRun) setUpAgain(ctx context.Context) error {
	if !r.request.Again {
		return nil
	}
	for _, p := range r.inOrder() {
		err := r.setUp(ctx, p, func(folder, command string) bool {
			return !onlyInstalls(command) || nodeInstalls.MatchString(command) && r.buildsItself(folder)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var nodeInstalls = lazyregexp.New(`\b(?:npm|yarn|pnpm|bun)\b`)

// buildsItself reports whether installing the packages of a Node.js project runs scripts
// of its own. One that cannot be read does.
func (r *setupRun) buildsItself(folder string) bool {
	files, err := workdir.Open(r.request.Spec.Workspace)
	if err != nil {
		return true
	}
	defer func() { _ = files.Close() }()
	file, err := files.FS().Open(path.Join(folder, "package.json"))
	if err != nil {
		return false // it has none
	}
	defer func() { _ = file.Close() }()
	var manifest struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.NewDecoder(io.LimitReader(file, longestManifest)).Decode(&manifest) != nil {
		return true
	}
	return slices.ContainsFunc([]string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}, func(name string) bool {
		_, has := manifest.Scripts[name]
		return has
	})
}
