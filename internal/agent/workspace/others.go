package workspace

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// ignoreFile has the patterns of what is ignored in a folder and below.
	ignoreFile = ".gitignore"
	// longestPatterns is how long one such file may be, and mostPatterns all.
	longestPatterns = 1 << 20
	mostPatterns    = 8 << 20
	// listTime is how long git may take to list the workspace. Code in the sandbox
	// can have it wait for ever, with a pipe in a repository of its own.
	listTime = 2 * time.Minute
	// listMemory is what git may take of memory for that, and mostListed how many
	// bytes the names may have.
	listMemory = 1 << 30
	mostListed = 16 << 20
	// listRounds is how often files with patterns may turn up in the listing.
	listRounds = 10
)

// others lists what is not ignored and was not checked out, below a folder. A
// repository in the workspace is taken for the folder that it is, without its
// .git. Git only lists here; it is told of no repository but ours, and of the
// patterns that we have read: of the files in the workspace it reads none.
func (w *Workspace) others(ctx context.Context, below string) ([]string, error) {
	within := w.files
	command := git.Command{Dir: w.dir, Memory: listMemory}
	if below != "" {
		if info, err := w.root.Lstat(below); err != nil || !info.IsDir() {
			return nil, nil // it is gone again
		}
		within, command.Index = filepath.Join(w.files, below), filepath.Join(w.dir, "no-index")
	}
	command.Tree, command.From = within, within
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var listed string
	for range listRounds { // until no more patterns turn up
		var err error
		if listed, err = w.list(ctx, command, below); err != nil {
			return nil, err
		}
		if !w.findIgnores(listed, below) {
			break
		}
	}
	return w.namesOf(ctx, listed, below)
}

// list has git list what the known patterns do not ignore.
func (w *Workspace) list(ctx context.Context, command git.Command, below string) (string, error) {
	patterns, err := w.patterns(below)
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.dir, "ignored")
	if err := os.WriteFile(file, patterns, 0o600); err != nil { //nolint:forbidigo // git's own folder, which no sandbox has
		return "", task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	output := &capped{left: mostListed}
	command.Output, command.Args = output, []string{"ls-files", "--others", "--exclude-from=" + file, "-z"}
	if _, err := w.git.Run(ctx, command); err != nil {
		if output.full {
			return "", task.Errorf(task.TooLarge, "the workspace has too many files that are not ignored").WithHint("name what is no part of the work in .gitignore")
		}
		return "", failure(err, "cannot list the files of the workspace")
	}
	return output.String(), nil
}

// findIgnores notes files with patterns that are not known yet, and reports
// whether there are any.
func (w *Workspace) findIgnores(listed, below string) bool {
	found := false
	for name := range strings.SplitSeq(listed, "\x00") {
		full := path.Join(below, name)
		if path.Base(name) != ignoreFile || w.ignores[full] {
			continue
		}
		w.ignores[full], found = true, true
	}
	return found
}

// namesOf are the files of a listing, with those of repositories inside.
func (w *Workspace) namesOf(ctx context.Context, listed, below string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		if name == "" {
			continue
		}
		full := path.Join(below, name)
		if reserved(full) {
			w.remark("workspace.reserved_name", quote(full))
			continue
		}
		if !strings.HasSuffix(name, "/") {
			names = append(names, full)
			continue
		}
		within, err := w.others(ctx, full)
		if err != nil {
			return nil, err
		}
		w.remark("workspace.inner_repository", quote(full))
		names = append(names, within...)
	}
	return names, nil
}

// patterns are all patterns for what is below a folder, as one file of that folder
// would have them.
func (w *Workspace) patterns(below string) ([]byte, error) {
	var all bytes.Buffer
	for _, folder := range w.ignoring(below) {
		name := path.Join(below, folder, ignoreFile)
		if info, err := w.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue // git does not follow links here either
		}
		text, err := w.root.ReadFile(name, longestPatterns)
		if err != nil {
			continue // it went, or is nonsense
		}
		for line := range strings.Lines(string(text)) {
			all.WriteString(patternFor(folder, line))
		}
		if all.Len() > mostPatterns {
			return nil, task.Errorf(task.TooLarge, "the .gitignore files of the workspace have more than %d MB", mostPatterns>>20)
		}
	}
	return all.Bytes(), nil
}

// ignoring are the folders at or below a folder that may have patterns, relative to
// it: what is deeper comes later, and goes over what is above.
func (w *Workspace) ignoring(below string) []string {
	files := map[string]bool{path.Join(below, ignoreFile): true}
	for name := range w.tracked {
		if path.Base(name) == ignoreFile {
			files[name] = true
		}
	}
	maps.Copy(files, w.ignores)
	var folders []string
	for name := range files {
		folder, is := path.Dir(name), true
		if below != "" && folder != below {
			folder, is = strings.CutPrefix(folder, below+"/")
		} else if below != "" {
			folder = "."
		}
		if is && !strings.Contains(folder, "\n") {
			folders = append(folders, folder)
		}
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	return folders
}

func depth(folder string) int {
	if folder == "." {
		return 0
	}
	return 1 + strings.Count(folder, "/")
}

// special are the characters that mean something in a pattern.
var special = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// patternFor is a line of a file of patterns in a folder, as it has to be written
// in a file at the top to mean the same.
func patternFor(folder, line string) string {
	line = strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r\n")
	if folder == "." || line == "" || strings.HasPrefix(line, "#") {
		return line + "\n"
	}
	body, negated := strings.CutPrefix(line, "!")
	anchored := strings.Contains(strings.TrimSuffix(strings.TrimRight(body, " "), "/"), "/")
	if body = strings.TrimPrefix(body, "/"); strings.TrimSpace(body) == "" {
		return ""
	}
	if !anchored {
		body = "**/" + body
	}
	pattern := "/" + special.Replace(folder) + "/" + body + "\n"
	if negated {
		pattern = "!" + pattern
	}
	return pattern
}

// capped takes what fits, and no more.
type capped struct {
	bytes.Buffer
	left int
	full bool
}

func (c *capped) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.full = true
		return 0, task.Errorf(task.TooLarge, "there is too much of it")
	}
	c.left -= len(p)
	return c.Buffer.Write(p)
}
