package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/task"
)

// Work knows what the runs of tasks have done besides what is in their journals.
type Work interface {
	// Changes are the files that a task has changed so far. It fails with NotFound if nothing was saved.
	Changes(ctx context.Context, t task.Task) (Changes, error)
	// FileDiff is what is different in a file of changes, as git writes it, so many bytes at most.
	FileDiff(ctx context.Context, t task.Task, between Changes, file ChangedFile, most int) (string, error)
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
	Base, Head string // what is compared; the head is a commit
	Files      []ChangedFile
	More       bool // there are more files than are named

	count          int   // of all files
	added, removed int64 // the lines that they have more and less
}

// ChangedFile is a file that a task has changed.
type ChangedFile struct {
	Path    string
	Before  string // its name before, if that was another
	Kind    string // added, deleted, renamed, changed
	Added   int64
	Removed int64
	Binary  bool
	Version string // names what the file was and is; it changes with either
}

// note is what is special about the file, as a key of the texts.
func (f ChangedFile) note() string {
	if f.Binary {
		return "diff.binary"
	}
	return map[string]string{"added": "diff.added", "deleted": "diff.deleted", "renamed": "diff.renamed"}[f.Kind]
}

const (
	// mostFiles is how many changed files are kept of a task, and mostNames how many bytes their names
	// have together.
	mostFiles = 1000
	mostNames = 256 << 10
	// filesAtOnce is how many of them a page names, and filesRoom in about how many bytes.
	filesAtOnce = 300
	filesRoom   = 200 << 10
	// maxFileDiff is how many bytes of the diff of a file are read, maxFileRows how many lines of it
	// are shown, and fileRoom in about how many bytes.
	maxFileDiff = 128 << 10
	maxFileRows = 1500
	fileRoom    = 220 << 10
	// waitForChanges is how long a page waits for the changes, which asks for them again, and
	// waitForFile how long the diff of one file does.
	waitForChanges = time.Second
	waitForFile    = 20 * time.Second
)

// bounded are the changes with as many files as are kept. The sums are of all.
func (c Changes) bounded() Changes {
	c.count = len(c.Files)
	for _, file := range c.Files {
		c.added += file.Added
		c.removed += file.Removed
	}
	names := 0
	for i, file := range c.Files {
		if names += len(file.Path) + len(file.Before); i == mostFiles || names > mostNames {
			c.Files, c.More = slices.Clone(c.Files[:i]), true
			break
		}
	}
	return c
}

// filesPage are the files that a page names, and where the pages around it begin.
type filesPage struct {
	files          []ChangedFile
	from, previous int
	next           int // 0 if there is none
}

// pickFiles picks the files that the page names: those from a number on, or the one that the reader
// has opened.
func (t *taskView) pickFiles(from string) {
	if t.changes == nil {
		return
	}
	if t.file != nil {
		t.files.files = slices.DeleteFunc(slices.Clone(t.changes.Files), func(f ChangedFile) bool { return f.Path != t.file.name })
		return
	}
	begin, err := strconv.Atoi(from)
	if err != nil || begin < 0 || begin >= len(t.changes.Files) {
		begin = 0
	}
	t.files.from, t.files.previous = begin, max(0, begin-filesAtOnce)
	space := filesRoom
	for i, file := range t.changes.Files[begin:] {
		space -= 350 + 3*len(templ.EscapeString(file.Path)) + len(url.QueryEscape(file.Path))
		if i == filesAtOnce || space < 0 && i > 0 {
			t.files.next = begin + i
			return
		}
		t.files.files = t.changes.Files[begin : begin+i+1]
	}
}

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
	changes, reading, err := p.changesOf(ctx, view.Task, view.saved, waitForChanges)
	view.reading = reading
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		view.unread = !reading && task.CodeOf(err) != task.NotFound
		return nil
	}
	view.changes = &changes
	return nil
}

// changesOf are the changes of a task as it was saved last. Who does not want to wait long is given
// those before, and told that they are still being read.
func (p *Pages) changesOf(ctx context.Context, of task.Task, saved string, wait time.Duration) (changes Changes, reading bool, err error) {
	kept := p.changed.find(ctx, of, saved, func(ctx context.Context) (Changes, error) {
		changes, err := p.Work.Changes(ctx, of)
		if err != nil && ctx.Err() == nil && task.CodeOf(err) != task.NotFound {
			p.Log.WarnContext(ctx, "the changes of a task cannot be read", "task", of.ID, "error", err)
		}
		return changes.bounded(), err
	})
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-kept.known:
		return kept.changes, false, kept.err
	case <-ctx.Done():
		return Changes{}, false, ctx.Err()
	case <-timer.C:
		if kept.before != nil {
			return *kept.before, true, nil
		}
		return Changes{}, true, task.Errorf(task.Unavailable, "the changes are still being read")
	}
}

// filePage is the page with the diff of a file, and of the part of it that a script fetches.
func (t *taskView) filePage(name string) string {
	return t.tabPath(tabChanges) + "&file=" + url.QueryEscape(name)
}

// filesFrom is the page with the files from a number on.
func (t *taskView) filesFrom(number int) string {
	return t.tabPath(tabChanges) + "&from=" + strconv.Itoa(number)
}

// changedFile reads what a task has changed in a file.
func (p *Pages) changedFile(ctx context.Context, of task.Task, saved, name string) (*taskFile, error) {
	gone := task.Errorf(task.NotFound, "the task has not changed that file")
	if p.Work == nil || saved == "" {
		return nil, gone
	}
	changes, _, err := p.changesOf(ctx, of, saved, waitForFile)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(changes.Files, func(f ChangedFile) bool { return f.Path == name })
	if at < 0 {
		return nil, gone
	}
	key := diffKey{of.ID, changes.Base, changes.Head, changes.Files[at]}
	if view := p.changed.diff(key); view != nil {
		return view, nil
	}
	patch, err := p.Work.FileDiff(ctx, of, changes, changes.Files[at], maxFileDiff)
	if err != nil {
		return nil, err
	}
	view := newTaskFile(patch)
	view.name, view.note, view.cut = name, changes.Files[at].note(), view.cut || len(patch) >= maxFileDiff
	p.changed.keepDiff(key, view)
	return view, nil
}

// taskFile is what a task has changed in a file. Nobody changes it, as it is kept.
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
	lines := unified(fileOf(files[0]).rows)
	fitting := fittingLines(lines)
	return &taskFile{lines: slices.Clone(lines[:fitting]), cut: fitting < len(lines)}
}

// fittingLines is how many lines of a diff there is room for on a page. A row of the table has about as
// many bytes besides its text as are counted.
func fittingLines(lines []unifiedLine) int {
	const row = 100
	space := fileRoom
	for i, line := range lines {
		if space -= row + len(templ.EscapeString(line.text)) + len(templ.EscapeString(line.hunk)); i == maxFileRows || space < 0 {
			return i
		}
	}
	return len(lines)
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
