package workspace

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/testfiles"
)

// taken is what others have pushed to the branch since the run began: all that the commit below
// the work has besides from. Ours are the files with conflicts as the work had them. Made are
// those of the others that a merge made other than they have them: both sides had changed them.
type taken struct {
	from       string
	ours, made listing
}

// copied is the same in maps of its own.
func (t *taken) copied() taken {
	return taken{t.from, maps.Clone(t.ours), maps.Clone(t.made)}
}

// takenWith is what others have pushed once what they have pushed since is merged. Nothing of the
// work was published in between, so that the first commit stays the one to compare with.
func (w *Workspace) takenWith(ctx context.Context, theirs string, merge merging) (taken, error) {
	t := w.taken.copied()
	if t.from == "" {
		t = taken{w.start, listing{}, listing{}}
	}
	for _, name := range merge.conflicts {
		t.ours[name] = merge.was[name]
	}
	if !w.has(ctx, t.from) { // they may have replaced the history: nothing is compared then
		return t, nil
	}
	names, _, has, err := w.pushed(ctx, t.from, theirs)
	if err != nil {
		return taken{}, err
	}
	for _, name := range names {
		if delete(t.made, name); merge.want[name] != has[name] {
			t.made[name] = merge.want[name]
		}
	}
	return t, nil
}

// takenWithBase is what others have pushed once the base is merged. What that makes of files
// that nobody had changed since is right too. One with a conflict has lost what others have
// pushed if it is just as the base has it.
func (w *Workspace) takenWithBase(ctx context.Context, base string, merge merging) (taken, error) {
	t := w.taken.copied()
	if t.from == "" || !w.has(ctx, t.from) {
		return t, nil
	}
	names, _, has, err := w.pushed(ctx, t.from, w.start)
	if err != nil {
		return taken{}, err
	}
	of, err := w.tree(ctx, base)
	if err != nil {
		return taken{}, err
	}
	for _, name := range names {
		_, conflict := t.ours[name]
		switch {
		case conflict:
		case slices.Contains(merge.conflicts, name):
			t.ours[name] = of[name]
		case merge.was[name] == t.madeOf(name, has[name]):
			t.made[name] = merge.want[name]
		}
	}
	return t, nil
}

// pushed names the files that others have changed from a commit up to one of theirs, with all
// files as they were and as they have them.
func (w *Workspace) pushed(ctx context.Context, from, theirs string) (names []string, was, has listing, err error) {
	if was, err = w.tree(ctx, from); err != nil {
		return nil, nil, nil, err
	}
	if has, err = w.tree(ctx, theirs); err != nil {
		return nil, nil, nil, err
	}
	names = append(changedFrom(has, was), changedFrom(was, has)...)
	slices.Sort(names)
	return slices.Compact(names), was, has, nil
}

// madeOf is a file without a conflict as the merge made it.
func (t *taken) madeOf(name string, theirs file) file {
	if made, other := t.made[name]; other {
		return made
	}
	return theirs
}

// Lines of the message of work in progress say what others have pushed, for a run that goes on.
const (
	takenTrailer = "Toryo-Taken: "
	oursTrailer  = "Toryo-Ours: " // mode, content and name of a file; the first two may be "-"
	madeTrailer  = "Toryo-Made: " // likewise
)

// trailers are these lines.
func (t *taken) trailers() string {
	if t.from == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(takenTrailer + t.from + "\n")
	for _, kind := range []struct {
		trailer string
		files   listing
	}{{oursTrailer, t.ours}, {madeTrailer, t.made}} {
		for _, name := range slices.Sorted(maps.Keys(kind.files)) {
			mode, hash := "-", "-"
			if file := kind.files[name]; file != file0 {
				mode, hash = file.mode, file.hash
			}
			b.WriteString(kind.trailer + mode + " " + hash + " " + strconv.Quote(name) + "\n")
		}
	}
	return b.String()
}

// file0 is no file.
var file0 file

// read takes a line in, if it is one of these.
func (t *taken) read(line string) {
	if hash, is := strings.CutPrefix(line, takenTrailer); is && isHash(hash) {
		t.from, t.ours, t.made = hash, listing{}, listing{}
	}
	if t.from == "" {
		return
	}
	for trailer, files := range map[string]listing{oursTrailer: t.ours, madeTrailer: t.made} {
		text, is := strings.CutPrefix(line, trailer)
		words := strings.SplitN(text, " ", 3)
		if !is || len(words) != 3 || words[1] != "-" && !isHash(words[1]) {
			continue
		}
		name, err := strconv.Unquote(words[2])
		if err != nil {
			continue
		}
		if files[name] = (file{words[0], words[1]}); words[0] == "-" || words[1] == "-" {
			files[name] = file0
		}
	}
}

// Lost names what others have done and the work has not.
func (w *Workspace) Lost(ctx context.Context, saved string) (phase.Lost, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.merged == "" && w.taken.from == "" {
		return phase.Lost{}, nil
	}
	files, _, err := w.compared(ctx, saved)
	if err != nil {
		return phase.Lost{}, err
	}
	var lost phase.Lost
	if err := w.lostInMerge(ctx, files, &lost); err != nil {
		return phase.Lost{}, err
	}
	err = w.lostOfPush(ctx, files, &lost)
	return lost, err
}

// lostInMerge finds the files that are not what a merge of the base makes by itself, and tests
// that one side has and the files with conflicts have not.
func (w *Workspace) lostInMerge(ctx context.Context, is listing, lost *phase.Lost) error {
	if w.merged == "" || !w.has(ctx, w.fork) {
		return nil
	}
	merged, conflicts, err := w.mergedStart(ctx)
	if err != nil {
		return err
	}
	var trees [4]listing
	for i, commit := range []string{merged, w.start, w.merged, w.fork} {
		if trees[i], err = w.tree(ctx, commit); err != nil {
			return err
		}
	}
	clean, start, base, fork := trees[0], trees[1], trees[2], trees[3]
	names := append(changedFrom(clean, is), changedFrom(is, clean)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		_, was := start[name]
		conflict := slices.Contains(conflicts, name)
		asBase := is[name] == base[name] // which may not have it either
		asOne := asBase || is[name] == start[name]
		switch {
		case conflict && was && asBase, !conflict && (asOne || is[name] == file0):
			lost.Dropped = append(lost.Dropped, name)
		case !conflict:
			lost.Merge = append(lost.Merge, name)
		}
	}
	lost.Tests, err = w.lostTests(ctx, conflicts, fork, start, base, is)
	return err
}

// lostTests are tests that one of two sides has in files with conflicts, and that the files do
// not have any more. Those that one side has removed are not: both come from the same files. A
// test may have moved from one of the files to another.
func (w *Workspace) lostTests(ctx context.Context, conflicts []string, before, one, other, is listing) ([]string, error) {
	var declared [4]map[string]string // the names of tests, each with its file
	for i, side := range []listing{before, one, other, is} {
		declared[i] = map[string]string{}
		for _, name := range conflicts {
			content, _, err := w.content(ctx, side[name])
			if err != nil {
				return nil, err
			}
			for _, test := range testfiles.Declared(name, content) {
				declared[i][test] = name
			}
		}
	}
	var lost []string
	for i, side := range declared[1:3] {
		for test, name := range side {
			_, was := declared[0][test]
			_, both := declared[2-i][test]
			if _, there := declared[3][test]; !there && (both || !was) {
				lost = append(lost, name+": "+test)
			}
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost), nil
}

// content is that of a regular file, if it is a text that is not too long.
func (w *Workspace) content(ctx context.Context, of file) (content []byte, text bool, err error) {
	if of == file0 || of.mode == link || of.mode == submodule {
		return nil, false, nil
	}
	read := &bounded{left: maxBase + 1}
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Output: read, Args: []string{"cat-file", "blob", of.hash}}); err != nil {
		return nil, false, failure(err, "cannot read a file of a commit")
	}
	if read.Len() > maxBase || bytes.IndexByte(read.Bytes(), 0) >= 0 {
		return nil, false, nil
	}
	return read.Bytes(), true, nil
}

// lostOfPush finds the files that lack what others have pushed since the run began.
func (w *Workspace) lostOfPush(ctx context.Context, is listing, lost *phase.Lost) error {
	if w.taken.from == "" || !w.has(ctx, w.taken.from) {
		return nil
	}
	names, was, theirs, err := w.pushed(ctx, w.taken.from, w.start)
	if err != nil {
		return err
	}
	for _, name := range names {
		gone, err := w.lostIn(ctx, name, was[name], theirs[name], is[name])
		if err != nil {
			return err
		}
		if gone {
			lost.Pushed = append(lost.Pushed, name)
		}
	}
	conflicts := slices.Sorted(maps.Keys(w.taken.ours))
	tests, err := w.lostTests(ctx, conflicts, was, nil, theirs, is) // those that they have added
	lost.Tests = append(lost.Tests, tests...)
	return err
}

// lostIn reports whether a file lacks what others have made of it. In one with a conflict it is
// not known which lines have to stay: then it does if it is just as the work had it. One that is
// as the merge made it lacks nothing.
func (w *Workspace) lostIn(ctx context.Context, name string, was, theirs, is file) (bool, error) {
	ours, conflict := w.taken.ours[name]
	made := w.taken.madeOf(name, theirs)
	switch {
	case is == theirs, !conflict && is == made:
		return false, nil
	case theirs == file0:
		return !conflict && is == was, nil
	case is == file0:
		return true, nil
	case conflict:
		return is == ours, nil
	}
	if !w.hasContent(ctx, made) { // another machine has merged
		made = theirs
	}
	var counts [4]map[string]int
	for i, version := range []file{was, theirs, made, is} {
		content, text, err := w.content(ctx, version)
		if err != nil {
			return false, err
		}
		if !text && version != file0 {
			// More is not known, but that a text of theirs is none any more.
			return version == is || is == was, nil
		}
		counts[i] = lines(content)
	}
	return lacks(counts[0], counts[1], counts[2], counts[3]), nil
}

// hasContent reports whether the content of a file is here.
func (w *Workspace) hasContent(ctx context.Context, of file) bool {
	if of == file0 {
		return true
	}
	_, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"cat-file", "-e", of.hash}})
	return err == nil
}

// lines counts the lines of a text, without those that are empty and however they are indented.
func lines(text []byte) map[string]int {
	counts := map[string]int{}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			counts[string(line)]++
		}
	}
	return counts
}

// lacks reports whether a text lacks lines that others have added and the merge has kept, or has
// all those again that they have removed and the merge has not.
func lacks(was, theirs, made, is map[string]int) bool {
	for line, count := range theirs {
		if is[line] < min(count-was[line], made[line]) {
			return true
		}
	}
	removed, back := 0, 0
	for line, count := range was {
		if theirs[line] > 0 || made[line] >= count {
			continue
		}
		if removed++; is[line] >= count {
			back++
		}
	}
	return removed > 0 && back == removed
}
