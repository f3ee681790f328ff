package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Masker masks secrets in a text. It is a redactor.
type Masker interface {
	String(text string) string
}

// Options says what is looked for. Known and Recognised have to be set.
type Options struct {
	// Known masks the secrets of this installation. What it finds is never published.
	Known Masker
	// Recognised masks what looks like a secret of some service. What it finds is
	// published in files of Allow only.
	Recognised Masker
	Protect    []string // patterns of protected files, besides those of [Protected]
	Allow      []string // patterns of files in which nothing but known secrets is found
	// Registry tells whether packages come from a host wherever nobody says otherwise,
	// or because the operator says so; nil means that there is none.
	Registry func(host string) bool
	// MaxDiff is how many bytes of a diff are read, and how large a changed file may be;
	// 0 means 16 MB.
	MaxDiff int64
	// MaxBlobs is how large all changed files together may be, before and after; 0 means
	// 16 times MaxDiff.
	MaxBlobs int64
	Memory   int64         // how many bytes of memory git may take; 0 means 1 GB
	AtOnce   int           // how many looks there are at a time; 0 means 2
	MaxFiles int           // how many changed files are looked at; 0 means 5,000
	Within   time.Duration // how long it may take; 0 means 90 seconds
}

const (
	// MaxCommits is how many new commits are looked at.
	MaxCommits = 100
	// maxNames bounds the names of changed files, and of all files, in bytes.
	maxNames = 16 << 20
	// mostFindings is how many findings are told of what can be published, and
	// mostBlocking of what cannot.
	mostFindings = 100
	mostBlocking = 300
)

// Inspector looks at changes. Its methods may be called by several goroutines.
type Inspector struct {
	options Options
	protect globs
	folders globs // that protected files are in
	allow   globs
	looks   chan struct{} // has one element for each look that goes on
}

// New makes an inspector.
func New(options Options) *Inspector {
	if options.MaxDiff == 0 {
		options.MaxDiff = 16 << 20
	}
	if options.MaxBlobs == 0 {
		options.MaxBlobs = 16 * options.MaxDiff
	}
	if options.Memory == 0 {
		options.Memory = 1 << 30
	}
	if options.AtOnce == 0 {
		options.AtOnce = 2
	}
	if options.MaxFiles == 0 {
		options.MaxFiles = 5000
	}
	if options.Within == 0 {
		options.Within = 90 * time.Second
	}
	if options.Registry == nil {
		options.Registry = func(string) bool { return false }
	}
	return &Inspector{
		options: options, protect: compile(options.Protect), folders: above(append(builtIn(), options.Protect...)), allow: compile(options.Allow),
		looks: make(chan struct{}, options.AtOnce),
	}
}

// Change is a commit that is to be published.
type Change struct {
	Git *git.Program
	Dir string // git's directory
	// Commit is what is to be published.
	Commit string
	// Bases are commits that the forge has. What the commit has in common with one of
	// them is not new.
	Bases []string
	// Public are arguments of git rev-list that name what the forge has.
	Public []string
	// Names are the commits by which people know others, if they do not know those.
	Names map[string]string
}

// Found is a finding with what tells whether the request asks for it.
type Found struct {
	task.Finding
	// Sole says that the file was there before, and that no other file had its name:
	// whoever made the change did not choose it.
	Sole bool
}

// errTooLarge ends a look that would take too long.
var errTooLarge = &tooLargeError{}

// tooLargeError says that something is too large to be looked at.
type tooLargeError struct{ path string } // empty for the whole change

func (*tooLargeError) Error() string { return "it is too large to be looked at" }

// Inspect looks at a change. What is too large to be looked at is a finding; an error
// means that git could not be asked. It waits while others are looked at.
func (i *Inspector) Inspect(ctx context.Context, change Change) ([]Found, error) {
	select {
	case i.looks <- struct{}{}:
		defer func() { <-i.looks }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	looking, cancel := context.WithTimeout(ctx, i.options.Within)
	defer cancel()
	found, err := i.inspect(looking, change)
	if large, is := errors.AsType[*tooLargeError](err); is {
		return []Found{{Finding: task.Finding{Kind: task.FindingTooLarge, Path: i.shown(large.path)}}}, nil
	}
	if err != nil && looking.Err() != nil && ctx.Err() == nil {
		return []Found{{Finding: task.Finding{Kind: task.FindingTooLarge}}}, nil
	}
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the change cannot be looked at")
	}
	return found, nil
}

func (i *Inspector) inspect(ctx context.Context, change Change) ([]Found, error) {
	program := *change.Git
	program.Settings = slices.Concat(program.Settings, frugal)
	change.Git = &program
	l := &look{Inspector: i, Change: change, hosts: map[string]map[string]bool{}, room: i.options.MaxDiff}
	findings, err := l.common(ctx, change.Bases, change.Commit)
	if err != nil {
		return nil, err
	}
	if err := l.history(ctx, findings); err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(findings))
	for finding := range findings {
		found = append(found, Found{Finding: finding})
	}
	slices.SortFunc(found, func(a, b Found) int { return compare(a.Finding, b.Finding) })
	return found, l.markSole(ctx, found)
}

// compare orders findings: the worst kind first, then by place.
func compare(a, b task.Finding) int {
	if a.Kind != b.Kind {
		return slices.Index(task.FindingKinds, a.Kind) - slices.Index(task.FindingKinds, b.Kind)
	}
	if order := strings.Compare(a.Path, b.Path); order != 0 {
		return order
	}
	return a.Line - b.Line
}

// look is one look at a change.
type look struct {
	*Inspector
	Change
	hosts map[string]map[string]bool // that blobs name
	room  int64                      // how many bytes of diffs may still be read
}

// findings is a set of findings.
type findings map[task.Finding]bool

// common is what is found in a commit against each of the bases. Line numbers are those
// of the new file, so that the same line has the same number against every base.
func (l *look) common(ctx context.Context, bases []string, commit string) (findings, error) {
	all := findings{}
	for at, base := range bases {
		found, err := l.against(ctx, base, commit)
		if err != nil {
			return nil, err
		}
		if at == 0 {
			all = found
			continue
		}
		maps.DeleteFunc(all, func(finding task.Finding, _ bool) bool { return !found[finding] })
	}
	return all, nil
}

// against is what is found in the difference between two commits.
func (l *look) against(ctx context.Context, base, commit string) (findings, error) {
	entries, err := l.entries(ctx, base, commit)
	if err != nil {
		return nil, err
	}
	found := findings{}
	for name, entry := range entries {
		l.tree(found, name, entry)
	}
	if err := l.sizes(ctx, entries); err != nil {
		return nil, err
	}
	return found, l.patch(ctx, base, commit, entries, found)
}

// Modes of the entries of a tree.
const (
	noFile     = "000000"
	executable = "100755"
	symlink    = "120000"
	submodule  = "160000"
)

// tree looks at what a tree says of a file.
func (l *look) tree(found findings, name string, entry entry) {
	if entry.newMode != noFile && l.options.Known.String(name) != name {
		l.addAnyway(found, task.Finding{Kind: task.FindingSecret, Path: name, Detail: "in the name"})
	}
	isProtected := func(p protection) bool { return p.match(name) }
	switch {
	case slices.ContainsFunc(protections, isProtected) || l.protect.match(name):
		l.add(found, task.Finding{Kind: task.FindingProtected, Path: name})
	case entry.newMode == symlink && l.folders.match(name):
		// What is behind it counts as if it were there, under whatever name it has.
		l.add(found, task.Finding{Kind: task.FindingProtected, Path: name, Detail: "a link"})
	}
	if entry.newMode == submodule {
		l.add(found, task.Finding{Kind: task.FindingSubmodule, Path: name})
	}
	if entry.newMode == executable && entry.oldMode != executable {
		l.add(found, task.Finding{Kind: task.FindingExecutable, Path: name})
	}
}

// hidden is a text without secrets.
func (i *Inspector) hidden(text string) string {
	return i.options.Recognised.String(i.options.Known.String(text))
}

// shown is the name of a file as it can be told.
func (i *Inspector) shown(name string) string { return strings.ToValidUTF8(i.hidden(name), "\uFFFD") }

// add adds a finding, unless the file is one in which such things are allowed.
func (l *look) add(found findings, finding task.Finding) {
	if l.allow.match(finding.Path) && finding.Kind != task.FindingTooLarge {
		return
	}
	l.addAnyway(found, finding)
}

// addAnyway adds a finding in whatever file it is.
func (l *look) addAnyway(found findings, finding task.Finding) {
	finding.Path = l.shown(finding.Path)
	found[finding] = true
}

// markSole finds out which files were there before as the only ones of their name.
func (l *look) markSole(ctx context.Context, found []Found) error {
	if len(found) == 0 || len(l.Bases) == 0 {
		return nil
	}
	names, err := l.names(ctx, l.Bases[0])
	if err != nil {
		return err
	}
	there, count := map[string]bool{}, map[string]int{}
	for _, one := range found {
		there[one.Path], count[nameOf(one.Path)] = false, 0
	}
	for _, name := range names {
		if _, is := there[name]; is {
			there[name] = true
		}
		if _, is := count[nameOf(name)]; is {
			count[nameOf(name)]++
		}
	}
	for at := range found {
		found[at].Sole = there[found[at].Path] && count[nameOf(found[at].Path)] == 1
	}
	return nil
}

// nameOf is the name of a file without its folder, in small letters.
func nameOf(file string) string { return strings.ToLower(path.Base(file)) }

// history looks for secrets in every new commit: what a later one removes is published
// with the earlier one. It adds to what was found in the whole change.
func (l *look) history(ctx context.Context, whole findings) error {
	commits, err := l.commits(ctx)
	if err != nil {
		return err
	}
	for _, one := range commits {
		commit, parents := one.hash, one.parents
		text, err := l.message(ctx, commit)
		if err != nil {
			return err
		}
		name := cmp.Or(l.Names[commit], commit)
		detail := fmt.Sprintf("in commit %.10s", name)
		if l.hidden(text) != text {
			whole[task.Finding{Kind: task.FindingSecret, Detail: fmt.Sprintf("in the message or the author of commit %.10s", name)}] = true
		}
		if commit == l.Commit && slices.Equal(parents, l.Bases) {
			continue // that is the whole change
		}
		if len(parents) == 0 {
			parents = []string{emptyTree(commit)}
		}
		found, err := l.common(ctx, parents, commit)
		if err != nil {
			return err
		}
		for finding := range found {
			if finding.Kind == task.FindingSecret && !whole[finding] {
				finding.Detail = detail
				whole[finding] = true
			}
		}
	}
	return nil
}

// emptyTree is the tree without files, in the hash that the commit has.
func emptyTree(commit string) string {
	if len(commit) == 64 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}
