package workspace

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"github.com/toryo-dev/toryo/internal/phase/ignore"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	// ignoreFile has the patterns of what is ignored in a folder and below.
	ignoreFile = ".gitignore"
	// longestPatterns is how long one such file may be, and mostPatterns all.
	longestPatterns = 1 << 20
	mostPatterns    = 8 << 20
	// mostRules is how many patterns there may be in all of them.
	mostRules = 200_000
	// listTime is how long it may take to list what was not checked out.
	listTime = 2 * time.Minute
	// mostListed is how many bytes the names may have.
	mostListed = 16 << 20
)

// walk goes through the workspace once. Of the files that were checked out, and of those that git
// would add, it puts into the listing what is as it was when it was last read, and returns the names of
// the others. A repository in the workspace is taken for the folder that it is, without its .git; what
// is above it ignores nothing in it. It is not git that lists: starting it would take longer than all
// else of a step.
func (w *Workspace) walk(ctx context.Context, base, files listing) ([]string, error) {
	if w.foldersOf == nil {
		w.foldersOf = map[string]bool{"": true}
		for name := range w.tracked {
			markFolders(w.foldersOf, name)
		}
	}
	l := &lister{of: w, base: base, files: files}
	err := l.list(ctx, &place{dir: w.root, tracked: true})
	if ofSystem(err) != nil {
		err = failure(err, "cannot look at the workspace")
	}
	return l.changed, err
}

// lister lists the workspace. What it holds is bounded, whatever code in the sandbox makes.
type lister struct {
	of       *Workspace
	base     listing
	files    listing  // that are as they were
	changed  []string // that have to be looked at more closely
	patterns int      // bytes of all files with patterns
	rules    int      // in them
	length   int      // of the names of files that were not checked out
	began    time.Time
	spent    time.Duration // on what was not checked out, before it began with the last of it
}

// place is a folder that is listed.
type place struct {
	dir     *workdir.Dir
	name    string // "" for the top
	above   *place
	tracked bool // files in it or below were checked out
	apart   bool // it was excluded
	inner   bool // it is a repository of its own
	ignored *bool
	asked   bool // known is what it is
	known   *patterns
}

// patterns are the rules of a folder, and those of the folders above, over which they go.
type patterns struct {
	rules ignore.Rules
	above *patterns
}

func (p *patterns) ignored(name string, isDir bool) bool {
	for ; p != nil; p = p.above {
		if ignored, said := p.rules.Say(name, isDir); said {
			return ignored
		}
	}
	return false
}

// list lists a folder. What cannot be read is passed over, for it may have gone in the meantime.
func (l *lister) list(ctx context.Context, at *place) error {
	if err := l.enter(at); err != nil {
		return err
	}
	var stop error
	err := at.dir.Each(func(entry fs.DirEntry) error {
		name := entry.Name()
		if at.name != "" {
			name = at.name + "/" + name
		}
		switch {
		case ctx.Err() != nil:
			stop = ctx.Err()
		case entry.Name() == ".git" || len(name) > workdir.Deepest:
		case l.isTracked(name, entry.IsDir()):
			stop = l.visit(ctx, at, entry, name)
		default:
			stop = l.inTime(at, func() error { return l.visit(ctx, at, entry, name) })
		}
		return stop
	})
	if stop == nil {
		stop = ofSystem(err)
	}
	return stop
}

// isTracked reports whether a file was checked out, or one in a folder. What was a file and is a folder
// now was not.
func (l *lister) isTracked(name string, isDir bool) bool {
	if isDir {
		return l.of.foldersOf[name]
	}
	_, tracked := l.of.tracked[name]
	return tracked
}

func (l *lister) visit(ctx context.Context, at *place, entry fs.DirEntry, name string) error {
	if entry.IsDir() {
		return l.below(ctx, at, entry.Name(), name)
	}
	return l.file(at, entry, name)
}

// inTime visits what was not checked out, which code in the sandbox may make without end. What was
// checked out may take as long as it takes.
func (l *lister) inTime(at *place, visit func() error) error {
	now := l.of.now()
	if !at.tracked { // the folder is visited in this way
		if l.spent+now.Sub(l.began) > listTime {
			return errListTime()
		}
		return visit()
	}
	if l.spent > listTime {
		return errListTime()
	}
	l.began = now
	err := visit()
	l.spent += l.of.now().Sub(l.began)
	return err
}

func errListTime() error {
	return task.Errorf(task.TooLarge, "the files of the workspace that were not checked out cannot be listed in time").WithHint("name what is no part of the work in .gitignore")
}

// enter finds out whether a folder is a repository of its own, of which nothing was checked out.
func (l *lister) enter(at *place) error {
	if at.tracked {
		return nil
	}
	info, err := at.dir.Lstat(".git")
	if err != nil {
		return ofSystem(err)
	}
	if info.IsDir() {
		if _, err := at.dir.Lstat(".git/HEAD"); err != nil {
			return ofSystem(err)
		}
	}
	l.of.remark("workspace.inner_repository", quote(at.name))
	at.inner = true
	return nil
}

// below lists a folder in the folder that is listed, unless nothing in it counts.
func (l *lister) below(ctx context.Context, in *place, base, name string) error {
	if l.of.tracked[name].mode == submodule {
		return nil
	}
	at := &place{name: name, above: in, tracked: l.of.foldersOf[name], apart: in.apart || l.of.excludes(name)}
	if !at.tracked {
		if leftOut, err := l.leavesOut(at); err != nil || leftOut {
			return err
		}
	}
	below, err := in.dir.Sub(base)
	if err != nil {
		return ofSystem(err) // else it went, or may not be entered
	}
	defer func() { _ = below.Close() }() // it was only read
	at.dir = below
	return l.list(ctx, at)
}

// leavesOut reports whether what was not checked out in a folder, or below it, does not count.
func (l *lister) leavesOut(at *place) (bool, error) {
	if at.apart || at.above == nil {
		return at.apart, nil
	}
	if at.ignored == nil {
		ignored, err := l.leavesOut(at.above)
		if err != nil {
			return false, err
		}
		if !ignored {
			known, err := l.patternsIn(at.above)
			if err != nil {
				return false, err
			}
			ignored = known.ignored(at.name, true)
		}
		at.ignored = &ignored
	}
	return *at.ignored, nil
}

// patternsIn are the patterns that count in a folder. They are read when the first name that was not
// checked out is found there, or in a folder below.
func (l *lister) patternsIn(at *place) (*patterns, error) {
	if at.asked {
		return at.known, nil
	}
	var above *patterns
	if at.above != nil && !at.inner {
		var err error
		if above, err = l.patternsIn(at.above); err != nil {
			return nil, err
		}
	}
	known, err := l.read(at, above)
	if err != nil {
		return nil, err
	}
	at.known, at.asked = known, true
	return known, nil
}

// file looks at something that is no folder.
func (l *lister) file(at *place, entry fs.DirEntry, name string) error {
	_, tracked := l.of.tracked[name]
	if !tracked {
		if counts, err := l.counts(at, entry, name); err != nil || !counts {
			return err
		}
	}
	_, ofBase := l.base[name]
	if (at.apart || l.of.excludes(name)) && (!tracked || !ofBase) {
		return nil
	}
	if last, seen := l.of.seen[name]; seen && last.look.certain {
		if info, err := entry.Info(); err == nil && info.Size() <= l.of.options.MaxFile && lookOf(info) == last.look {
			if ofBase || !l.of.isMade(name, last.file) {
				l.files[name] = last.file
			}
			return nil
		}
	}
	l.changed = append(l.changed, name)
	return nil
}

// counts reports whether git would add a file.
func (l *lister) counts(at *place, entry fs.DirEntry, name string) (bool, error) {
	if entry.Type() != 0 && entry.Type() != fs.ModeSymlink {
		return false, nil
	}
	if leftOut, err := l.leavesOut(at); err != nil || leftOut {
		return false, err
	}
	known, err := l.patternsIn(at)
	if err != nil || known.ignored(name, false) {
		return false, err
	}
	if reserved(name) {
		l.of.remark("workspace.reserved_name", quote(name))
		return false, nil
	}
	if l.length += len(name); l.length > mostListed {
		return false, task.Errorf(task.TooLarge, "the workspace has too many files that are not ignored").WithHint("name what is no part of the work in .gitignore")
	}
	return true, nil
}

// read reads the patterns of a folder. A file that is none, that is too long or that went has
// no patterns, as a link has none for git.
func (l *lister) read(at *place, above *patterns) (*patterns, error) {
	if info, err := at.dir.Lstat(ignoreFile); err != nil || !info.Mode().IsRegular() {
		return above, ofSystem(err) // else there is none
	}
	text, err := at.dir.ReadFile(ignoreFile, longestPatterns)
	if err != nil {
		return above, ofSystem(err)
	}
	own := ignore.Rules(nil).Add(cmp.Or(at.name, "."), string(text))
	l.patterns, l.rules = l.patterns+len(text), l.rules+len(own)
	if l.patterns > mostPatterns || l.rules > mostRules {
		return nil, task.Errorf(task.TooLarge, "the .gitignore files of the workspace have more than %d MB or %d patterns", mostPatterns>>20, mostRules)
	}
	return &patterns{own, above}, nil
}
