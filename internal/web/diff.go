package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/forge"
)

// maxDiffRows is how many rows of a diff a page shows. What comes after is named,
// but not shown.
const maxDiffRows = 4000

// What a page shows of a diff besides: bytes of one line, of all lines, and of one
// that is shown as git wrote it.
const (
	maxDiffLine  = 2000
	maxDiffBytes = 1 << 20
	maxRawDiff   = 256 << 10
)

// clipTo is the start of a text that is too long to show.
func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// diffView is what a pull request changes, side by side.
type diffView struct {
	files []fileView
	cut   bool // there is more than the page shows
	raw   string
}

type fileView struct {
	name    string
	note    string // what is special about it, as a key of the texts
	added   int64
	removed int64
	rows    []diffRow
	cut     bool
}

// diffRow is a line of the old file beside one of the new file, or the heading of
// a hunk.
type diffRow struct {
	hunk     string
	old, new diffCell
	threads  []forge.ReviewThread
	form     *forge.Anchor // a comment is being written here
}

type diffCell struct {
	line int64 // 0 if this side has nothing here
	text string
	mark string // "add", "del", or "" for what is on both sides
}

// newDiff reads a diff as git writes it. One that cannot be read is shown as it
// is.
func newDiff(patch string, threads []forge.ReviewThread, form *forge.Anchor) diffView {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return diffView{raw: clipTo(patch, maxRawDiff), cut: len(patch) > maxRawDiff}
	}
	view, rows, size := diffView{}, 0, 0
	for _, file := range files {
		shown := fileOf(file)
		size += shown.size()
		if rows += len(shown.rows); rows > maxDiffRows || size > maxDiffBytes {
			shown.rows, shown.cut, view.cut = nil, true, true
		}
		for i := range shown.rows {
			shown.rows[i].place(shown.name, oldName(file), threads, form)
		}
		view.files = append(view.files, shown)
	}
	return view
}

// size is how many bytes the rows have.
func (f fileView) size() (bytes int) {
	for _, row := range f.rows {
		bytes += len(row.hunk) + len(row.old.text) + len(row.new.text)
	}
	return bytes
}

func oldName(file *gitdiff.File) string {
	if file.OldName != "" {
		return file.OldName
	}
	return file.NewName
}

func fileOf(file *gitdiff.File) fileView {
	view := fileView{name: file.NewName}
	switch {
	case file.IsDelete:
		view.name, view.note = file.OldName, "diff.deleted"
	case file.IsNew:
		view.note = "diff.added"
	case file.IsRename:
		view.note = "diff.renamed"
	}
	if file.IsBinary {
		view.note = "diff.binary"
	}
	for _, fragment := range file.TextFragments {
		view.added += fragment.LinesAdded
		view.removed += fragment.LinesDeleted
		heading := fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", fragment.OldPosition, fragment.OldLines, fragment.NewPosition, fragment.NewLines, fragment.Comment)
		view.rows = append(view.rows, diffRow{hunk: clipTo(heading, maxDiffLine)})
		view.rows = append(view.rows, rowsOf(fragment)...)
	}
	return view
}

// rowsOf puts what was removed beside what came in its place.
func rowsOf(fragment *gitdiff.TextFragment) []diffRow {
	var rows []diffRow
	var removed, added []diffCell
	flush := func() {
		for i := range max(len(removed), len(added)) {
			var row diffRow
			if i < len(removed) {
				row.old = removed[i]
			}
			if i < len(added) {
				row.new = added[i]
			}
			rows = append(rows, row)
		}
		removed, added = nil, nil
	}
	before, after := fragment.OldPosition, fragment.NewPosition
	for _, line := range fragment.Lines {
		content := clipTo(strings.TrimSuffix(line.Line, "\n"), maxDiffLine)
		switch line.Op {
		case gitdiff.OpDelete:
			removed = append(removed, diffCell{before, content, "del"})
			before++
		case gitdiff.OpAdd:
			added = append(added, diffCell{after, content, "add"})
			after++
		default:
			flush()
			rows = append(rows, diffRow{old: diffCell{before, content, ""}, new: diffCell{after, content, ""}})
			before++
			after++
		}
	}
	flush()
	return rows
}

// place puts conversations, and the form for a new one, below their line.
func (row *diffRow) place(name, old string, threads []forge.ReviewThread, form *forge.Anchor) {
	here := func(at forge.Anchor) bool {
		if at.Side == forge.OldSide {
			return row.old.line > 0 && int64(at.Line) == row.old.line && (at.Path == old || at.Path == name)
		}
		return row.new.line > 0 && int64(at.Line) == row.new.line && at.Path == name
	}
	for _, thread := range threads {
		if !thread.Outdated && here(thread.Anchor) {
			row.threads = append(row.threads, thread)
		}
	}
	if form != nil && here(*form) {
		row.form = form
	}
}

// outdated are the conversations on lines that the diff no longer has.
func (d diffView) outdated(threads []forge.ReviewThread) []forge.ReviewThread {
	shown := make(map[string]bool)
	for _, file := range d.files {
		for _, row := range file.rows {
			for _, thread := range row.threads {
				shown[thread.ID] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(threads), func(t forge.ReviewThread) bool { return shown[t.ID] })
}
