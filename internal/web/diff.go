package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/forge"
)

// What is read of a diff, in bytes: of all its files, of one line, and of one that is shown as git
// wrote it.
const (
	maxDiff     = 16 << 20
	maxDiffLine = 2000
	maxRawDiff  = 256 << 10
)

// maxDiffPage is how many bytes of a page are rows of a diff, about. What comes after is on the
// next page. maxDiffNames is how many files are named beside them.
const (
	maxDiffPage  = 180 << 10
	maxDiffNames = 500
)

// clipTo is the start of a text that is too long to show.
func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// diffView is what a pull request changes, side by side, and the part of it that a page shows.
type diffView struct {
	files []fileView // all, with all their rows
	shown []fileView // those on the page, with the rows that are on it
	here  diffPlace  // where the page begins
	next  diffPlace  // where the next page begins; zero if there is none
	back  diffPlace  // where the page before begins
	cut   bool       // there is more than any page shows
	raw   string
	// placed is the row below which each conversation stands, by its id. One that is not in it is
	// on a line that the diff no longer has, or that no page shows.
	placed map[string]diffPlace
}

// diffPlace is a row of a file of a diff, from which a page shows it.
type diffPlace struct{ file, row int }

// query is how the address of a page says where it begins.
func (p diffPlace) query() string {
	if p.row == 0 {
		return "?tab=changes&from=" + strconv.Itoa(p.file)
	}
	return "?tab=changes&from=" + strconv.Itoa(p.file) + "." + strconv.Itoa(p.row)
}

// of is the address of a page that begins there.
func (p diffPlace) of(item itemView) string {
	if p == (diffPlace{}) {
		return item.path() + "?tab=changes"
	}
	return item.path() + p.query()
}

// placeOf is where a page begins that shows a conversation.
func (d *diffView) placeOf(thread string) diffPlace {
	at := d.placed[thread]
	return diffPlace{at.file, max(0, at.row-rowsBefore)}
}

// diffPlaceOf reads where a page begins; the beginning is where nothing is said.
func diffPlaceOf(r *http.Request) diffPlace {
	file, row, _ := strings.Cut(r.URL.Query().Get("from"), ".")
	return diffPlace{whole(file), whole(row)}
}

// whole reads a number from 0 on; what is none is 0.
func whole(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return max(0, number)
}

type fileView struct {
	name    string
	note    string // what is special about it, as a key of the texts
	added   int64
	removed int64
	rows    []diffRow
	index   int  // among all files
	begins  bool // the page has its first row
	goesOn  bool // it has more rows than the page
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
	read := firstFiles(patch)
	files, _, err := gitdiff.Parse(strings.NewReader(read))
	if err != nil {
		return diffView{raw: clipTo(patch, maxRawDiff), cut: len(patch) > maxRawDiff}
	}
	view := diffView{cut: len(read) < len(patch), placed: make(map[string]diffPlace, len(threads))}
	on := byLine(threads)
	for i, file := range files {
		one := fileOf(file)
		one.index = i
		for row := range one.rows {
			at := diffPlace{i, row}
			if one.rows[row].place(one.name, oldName(file), on, form) {
				view.here = diffPlace{i, max(0, row-rowsBefore)}
			}
			view.note(one.rows[row].threads, at)
		}
		view.files = append(view.files, one)
	}
	view.page(view.here)
	return view
}

// note remembers where conversations stand, the first place of each.
func (d *diffView) note(threads []forge.ReviewThread, at diffPlace) {
	for _, thread := range threads {
		if _, noted := d.placed[thread.ID]; !noted {
			d.placed[thread.ID] = at
		}
	}
}

// firstFiles is the files at the beginning of a diff that are read. Of a first one that is too long
// it is the beginning, which has no end that could be read and is shown as it is.
func firstFiles(patch string) string {
	if len(patch) <= maxDiff {
		return patch
	}
	if at := strings.LastIndex(patch[:maxDiff], "\ndiff --git "); at >= 0 {
		return patch[:at+1]
	}
	return patch[:maxDiff]
}

// lineThreads are the conversations about each line that the diff has, as their places in order.
type lineThreads struct {
	all []forge.ReviewThread
	at  map[forge.Anchor][]int
}

// byLine puts conversations at their lines.
func byLine(threads []forge.ReviewThread) lineThreads {
	on := lineThreads{threads, make(map[forge.Anchor][]int, len(threads))}
	for i, thread := range threads {
		if thread.Outdated {
			continue
		}
		at := thread.Anchor
		if at.Side != forge.OldSide {
			at.Side = forge.NewSide
		}
		on.at[at] = append(on.at[at], i)
	}
	return on
}

// of are the conversations at some lines, in order.
func (l lineThreads) of(lines []forge.Anchor) (found []forge.ReviewThread) {
	if len(l.at) == 0 {
		return nil
	}
	var places []int
	for _, line := range lines {
		places = append(places, l.at[line]...)
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		found = append(found, l.all[place])
	}
	return found
}

// rowsBefore is how many rows are shown before the one on which somebody comments.
const rowsBefore = 20

// page shows what begins at a place, as much as fits.
func (d *diffView) page(from diffPlace) {
	if len(d.files) == 0 {
		return
	}
	if from.file >= len(d.files) || from.row > 0 && from.row >= len(d.files[from.file].rows) || d.fits() {
		from = diffPlace{}
	}
	d.here, d.back, d.next, d.shown = from, d.before(from), diffPlace{}, nil
	left := maxDiffPage
	for i := from.file; i < len(d.files); i++ {
		file := d.files[i]
		first := 0
		if i == from.file {
			first = from.row
		}
		most := file.fitting(first, left, len(d.shown) == 0)
		if most == first && len(file.rows) > 0 || left < 0 {
			d.next = diffPlace{i, 0}
			return
		}
		left -= file.cost(first, most)
		file.begins, file.goesOn = first == 0, most < len(file.rows)
		file.rows = file.rows[first:most]
		d.shown = append(d.shown, file)
		if file.goesOn {
			d.next = diffPlace{i, most}
			return
		}
	}
}

// fits reports whether one page shows everything.
func (d *diffView) fits() bool {
	left := maxDiffPage
	for _, file := range d.files {
		if left -= file.cost(0, len(file.rows)); left < 0 {
			return false
		}
	}
	return true
}

// before is where the page begins that ends before a place, as near as it fits.
func (d *diffView) before(at diffPlace) diffPlace {
	left := maxDiffPage
	for i := at.file; i >= 0; i-- {
		last := len(d.files[i].rows)
		if i == at.file {
			last = at.row
		}
		for row := last - 1; row >= 0; row-- {
			if left -= d.files[i].cost(row, row+1); left < 0 {
				return diffPlace{i, row + 1}.within(d.files)
			}
		}
		left -= fileCost
	}
	return diffPlace{}
}

// within is a place that there is: one behind the last row of a file is the next file.
func (p diffPlace) within(files []fileView) diffPlace {
	if p.row >= len(files[p.file].rows) {
		return diffPlace{p.file + 1, 0}
	}
	return p
}

// About how many bytes of a page a file, and a row of it, take besides their texts.
const (
	fileCost = 700
	rowCost  = 320
)

// cost is about how many bytes of a page some rows of a file take.
func (f fileView) cost(from, until int) int {
	bytes := 0
	if from == 0 {
		bytes = fileCost
	}
	for _, row := range f.rows[from:until] {
		bytes += rowCost + 2*len(f.name) + len(row.hunk) + len(row.old.text) + len(row.new.text)
	}
	return bytes
}

// fitting is up to which row a file is shown from one on, if there is so much room. The first
// file of a page is shown with some rows in any case.
func (f fileView) fitting(from, room int, first bool) int {
	if len(f.rows) == 0 {
		return 0
	}
	until := from
	for until < len(f.rows) {
		if room -= f.cost(until, until+1); room < 0 && (!first || until > from) {
			return until
		}
		until++
	}
	return until
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
// It reports whether the form is here.
func (row *diffRow) place(name, old string, threads lineThreads, form *forge.Anchor) bool {
	lines := make([]forge.Anchor, 0, 3)
	if row.old.line > 0 {
		lines = append(lines, forge.Anchor{Path: name, Side: forge.OldSide, Line: int(row.old.line)}, forge.Anchor{Path: old, Side: forge.OldSide, Line: int(row.old.line)})
	}
	if row.new.line > 0 {
		lines = append(lines, forge.Anchor{Path: name, Side: forge.NewSide, Line: int(row.new.line)})
	}
	row.threads = threads.of(lines)
	if form != nil && slices.Contains(lines, *form) {
		row.form = form
	}
	return row.form != nil
}

// whole says whether pages show every line of the diff.
func (d *diffView) whole() bool { return !d.cut && d.raw == "" }

// notPlaced are the conversations on lines that no page shows.
func (d *diffView) notPlaced(threads []forge.ReviewThread) []forge.ReviewThread {
	return slices.DeleteFunc(slices.Clone(threads), func(t forge.ReviewThread) bool {
		_, shown := d.placed[t.ID]
		return shown
	})
}

// run is rows of a file of one kind, one after the other: a heading, what is on both sides, or
// a change.
type run struct {
	kind string // a class of the style sheet: "hunk", "same" or "change"
	rows []diffRow
}

// kind is what a row shows.
func (row *diffRow) kind() string {
	switch {
	case row.hunk != "":
		return "hunk"
	case row.old.mark == "" && row.new.mark == "":
		return "same"
	default:
		return "change"
	}
}

// runs are the rows of a file by their kinds. On a narrow page the lines of a change that were
// removed stand before those that were added, for which they have to be one element.
func (f fileView) runs() (all []run) {
	for _, row := range f.rows {
		if kind := row.kind(); len(all) == 0 || all[len(all)-1].kind != kind {
			all = append(all, run{kind: kind})
		}
		last := &all[len(all)-1]
		last.rows = append(last.rows, row)
	}
	return all
}

// talkSide is on which side of a row the conversations below it are.
func (row *diffRow) talkSide() forge.Side {
	switch {
	case row.form != nil:
		return row.form.Side
	case len(row.threads) > 0:
		return row.threads[0].Anchor.Side
	default:
		return forge.NewSide
	}
}

// commentOn is what the number of a line leads to, as a key of the texts.
func commentOn(side string) string {
	if side == string(forge.OldSide) {
		return "diff.comment_before"
	}
	return "diff.comment"
}

// excerptRows is how many rows before a line are shown with a conversation about it.
const excerptRows = 3

// excerpt is the lines up to the one that a conversation is about.
func (d *diffView) excerpt(thread forge.ReviewThread) (lines []diffCell) {
	at, found := d.placed[thread.ID]
	if !found {
		return nil
	}
	old := thread.Anchor.Side == forge.OldSide
	for _, near := range d.files[at.file].rows[max(0, at.row-excerptRows) : at.row+1] {
		cell := near.new
		if old || cell.line == 0 {
			cell = near.old
		}
		if cell.line > 0 {
			lines = append(lines, cell)
		}
	}
	return lines
}

// excerptView shows lines of a file as they are.
func excerptView(lines []diffCell) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var text strings.Builder
		for _, line := range lines {
			text.WriteString(`<span class="` + line.mark + `">` + templ.EscapeString(line.text) + "\n</span>")
		}
		_, err := io.WriteString(w, `<pre class="excerpt">`+text.String()+"</pre>")
		return err
	})
}
