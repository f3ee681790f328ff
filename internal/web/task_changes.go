package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/task"
)

// Work knows what the runs of tasks have done besides what is in their journals.
type Work interface {
	// Changes are the files that a task has changed so far. It fails with NotFound if nothing was saved.
	Changes(ctx context.Context, t task.Task) (Changes, error)
	// FileDiff is what a task has changed in a file so far, as git writes it, so many bytes at most.
	FileDiff(ctx context.Context, t task.Task, file ChangedFile, most int) (string, error)
	// Pulls are the pull requests that the runs of a task have opened since it was assigned.
	Pulls(ctx context.Context, t task.Task) ([]OpenedPull, error)
}

// OpenedPull is a pull request that a run has opened.
type OpenedPull struct {
	Number int64
	URL    string
}

// Changes is what a task has changed, against what it began with.
type Changes struct {
	Base, Head string // commits
	Files      []ChangedFile
	More       bool // there are more files than are named
}

// ChangedFile is a file that a task has changed.
type ChangedFile struct {
	Path    string
	Before  string // its name before, if that was another
	Kind    string // added, deleted, renamed, changed
	Added   int64
	Removed int64
	Binary  bool
}

// note is what is special about the file, as a key of the texts.
func (f ChangedFile) note() string {
	if f.Binary {
		return "diff.binary"
	}
	return map[string]string{"added": "diff.added", "deleted": "diff.deleted", "renamed": "diff.renamed"}[f.Kind]
}

// sums are the lines that all files together have more and less.
func (c Changes) sums() (added, removed int64) {
	for _, file := range c.Files {
		added += file.Added
		removed += file.Removed
	}
	return added, removed
}

const (
	// mostFiles is how many changed files a page names.
	mostFiles = 1000
	// maxFileDiff is how many bytes of the diff of a file are shown.
	maxFileDiff = 128 << 10
)

// readWork reads what the task has come to. That the repository cannot be read now is not the end of
// the page.
func (p *Pages) readWork(ctx context.Context, view *taskView) (err error) {
	if p.Work == nil {
		return nil
	}
	if view.opened, err = p.Work.Pulls(ctx, view.Task); err != nil {
		return err
	}
	if view.saved == "" {
		return nil
	}
	changes, err := p.changesOf(ctx, view.Task, view.saved)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		if task.CodeOf(err) != task.NotFound {
			p.Log.WarnContext(ctx, "the changes of a task cannot be read", "task", view.ID, "error", err)
		}
		return nil
	}
	if len(changes.Files) > mostFiles {
		changes.Files, changes.More = changes.Files[:mostFiles], true
	}
	view.changes = &changes
	return nil
}

// changesOf are the changes of a task as it was saved last. Many may look at the same page, and it is
// made anew with every answer of the model, so they are kept until more is saved.
func (p *Pages) changesOf(ctx context.Context, of task.Task, saved string) (Changes, error) {
	if known, found := p.changed.get(of.ID, saved); found {
		return known, nil
	}
	changes, err := p.Work.Changes(ctx, of)
	if err == nil {
		p.changed.set(of.ID, saved, changes)
	}
	return changes, err
}

// mostKept is of how many tasks the changes are kept.
const mostKept = 100

// keptChanges are the changes of tasks that somebody looks at. The zero value is empty.
type keptChanges struct {
	mutex sync.Mutex
	of    map[task.ID]keptChange
}

type keptChange struct {
	saved   string
	changes Changes
}

func (k *keptChanges) get(id task.ID, saved string) (Changes, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	kept, found := k.of[id]
	return kept.changes, found && kept.saved == saved
}

func (k *keptChanges) set(id task.ID, saved string, changes Changes) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.of) >= mostKept {
		clear(k.of)
	}
	if k.of == nil {
		k.of = make(map[task.ID]keptChange)
	}
	k.of[id] = keptChange{saved, changes}
}

// filePath is where the diff of a file is fetched.
func (t *taskView) filePath(name string) string {
	return t.path() + "/changes?file=" + url.QueryEscape(name)
}

// filePage is the page with the diff of a file, for browsers without scripts.
func (t *taskView) filePage(name string) string {
	return t.tabPath(tabChanges) + "&file=" + url.QueryEscape(name)
}

// showFile is the diff of one file, as a part of the page.
func (p *Pages) showFile(r *http.Request, v visit) (templ.Component, error) {
	of, err := p.Store.Task(r.Context(), task.ID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	file, err := p.changedFile(r.Context(), of, r.URL.Query().Get("file"))
	if err != nil {
		return nil, err
	}
	return unifiedDiff(v, *file), nil
}

// changedFile reads what a task has changed in a file.
func (p *Pages) changedFile(ctx context.Context, of task.Task, name string) (*taskFile, error) {
	gone := task.Errorf(task.NotFound, "the task has not changed that file")
	if p.Work == nil {
		return nil, gone
	}
	changes, err := p.Work.Changes(ctx, of)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(changes.Files, func(f ChangedFile) bool { return f.Path == name })
	if at < 0 {
		return nil, gone
	}
	patch, err := p.Work.FileDiff(ctx, of, changes.Files[at], maxFileDiff)
	if err != nil {
		return nil, err
	}
	view := newTaskFile(patch)
	view.name, view.note, view.cut = name, changes.Files[at].note(), len(patch) >= maxFileDiff
	return view, nil
}

// taskFile is what a task has changed in a file.
type taskFile struct {
	name  string
	note  string // what is special about it, as a key of the texts
	lines []unifiedLine
	raw   string // as git writes it, where it cannot be read
	cut   bool
}

// newTaskFile reads the diff of one file. One that was cut, or that has something in it that cannot
// be read, is shown as git wrote it.
func newTaskFile(patch string) *taskFile {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil || len(files) != 1 {
		return &taskFile{raw: patch}
	}
	return &taskFile{lines: unified(fileOf(files[0]).rows)}
}

// unifiedLine is a line of a diff in which what was removed stands above what came in its place.
type unifiedLine struct {
	hunk          string
	before, after string // line numbers
	mark, text    string
}

// unified are the rows of a file one below the other.
func unified(rows []diffRow) []unifiedLine {
	var lines, added []unifiedLine
	flush := func() {
		lines = append(lines, added...)
		added = nil
	}
	for _, row := range rows {
		switch {
		case row.hunk != "":
			flush()
			lines = append(lines, unifiedLine{hunk: row.hunk})
		case row.old.mark == "" && row.new.mark == "":
			flush()
			lines = append(lines, unifiedLine{before: number(row.old), after: number(row.new), text: row.new.text})
		default:
			if row.old.line > 0 {
				lines = append(lines, unifiedLine{before: number(row.old), mark: row.old.mark, text: row.old.text})
			}
			if row.new.line > 0 {
				added = append(added, unifiedLine{after: number(row.new), mark: row.new.mark, text: row.new.text})
			}
		}
	}
	flush()
	return lines
}

func number(cell diffCell) string { return strconv.FormatInt(cell.line, 10) }
