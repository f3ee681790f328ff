package workspace

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Options is what a workspace is made from. Dir, URL and Branch have to be set.
type Options struct {
	// Dir is the folder of this run. It is emptied first: what counts is what
	// was pushed.
	Dir string
	// URL is where git finds the repository, and Token the password for it.
	URL   string
	Token string
	// CAFile has certificates by which git knows the server, in place of those of
	// the system; empty for the latter.
	CAFile string
	// Base is the branch that the work starts from; empty for the default one.
	Base string
	// Branch is what the work goes to. If it exists the work goes on there.
	Branch string
	// Start is a ref that the work begins with in place of the branch, such as
	// the head of a pull request from a fork.
	Start string
	// WIP is the ref with the work in progress of a run that goes on.
	WIP string
	// BaseCommit, StartCommit and WIPCommit are the commits to begin with, whatever the
	// refs have by now; empty for what the refs have.
	BaseCommit, StartCommit, WIPCommit string
	// MaxFile is how large a file may be that goes into the history; 0 means
	// 100 MB, which is what forges take.
	MaxFile int64
	Author  Author
	// Language is that of the remarks: Japanese, or else English.
	Language task.Language
	Log      *slog.Logger
}

// Author is who the commits are by.
type Author struct{ Name, Email string }

// Workspace is a [phase.Repository]. Its methods may be called by several
// goroutines, and take turns.
type Workspace struct {
	options Options
	git     *git.Program
	remote  git.Remote
	theirs  string // git's directory of a repository on this machine; empty for a server
	dir     string // git's own
	files   string
	root    *workdir.Dir
	send    func(ctx context.Context, commit, ref string) error
	now     func() time.Time
	// removals are folders that are being removed. Remove waits for them.
	removals removals

	mu        sync.Mutex
	base      string // the commit that differences are counted from
	fork      string // the commit at which the work left the base
	tip       string // the last known commit of the base branch
	start     string // the commit that the work is on top of
	merged    string // the commit of the base that was merged into the work
	before    string // what somebody else's branch had at first, with beforeOf of the base
	beforeOf  string
	taken     taken                        // what others have pushed since the run began
	moved     bool                         // the work was put on top of another commit since the last save
	tracked   listing                      // what was checked out
	foldersOf map[string]bool              // the folders with files that were checked out; nil until it is asked
	seen      map[string]sight             // what files had when they were last read
	trees     map[string]listing           // of commits
	folders   map[string]map[string]string // of the same: the names of their trees, by path
	known     map[string]bool              // content that the history has
	sizes     map[string]int64             // of large files of the history
	packs     []string                     // what was fetched at first, with no work of this run in it
	commits   []string                     // whose files the packs have
	shallow   []byte                       // the commits of the packs whose parents are not in them
	kept      listing                      // what the last save had
	wip       string                       // its commit
	had       listing                      // the files when they were last saved, or checked out or merged since
	large     []string                     // files over the limit at the last look
	left      string                       // the branch, as it was at first or as we have made it
	apart     map[string]string            // paths that are no part of the work, some of them only with this content
	remarks   []string
}

var _ phase.Repository = (*Workspace)(nil)

// maxFetch is how large a single file may be that git writes.
const maxFetch = 8 << 30

// Prepare makes the workspace: it fetches what is needed and checks it out. It
// fails with NotFound if there is no such branch, as in a repository that is
// empty, and with LeaseLost if the token is refused.
func Prepare(ctx context.Context, options Options) (*Workspace, error) {
	w, err := open(options)
	if err != nil {
		return nil, err
	}
	w.remote = git.Remote{URL: options.URL, Username: "agent", Password: options.Token}
	w.send = w.push
	listed, err := w.remoteRefs(ctx)
	if err == nil {
		err = w.prepare(ctx, listed)
	}
	if err != nil {
		// What is there of it may be what fills the disk.
		return nil, errors.Join(ofMachine(err), w.Remove())
	}
	return w, nil
}

// open makes the folders.
func open(options Options) (*Workspace, error) {
	if options.MaxFile == 0 {
		options.MaxFile = 100 << 20
	}
	if options.Author.Name == "" {
		options.Author = Author{"Toryo", "toryo@localhost"}
	}
	if strings.ContainsAny(options.Author.Name+options.Author.Email, "<>\n\x00") {
		return nil, task.Errorf(task.Invalid, "the author %q of the commits has characters that git does not take", options.Author.Name)
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	program, err := git.Find()
	if err != nil {
		return nil, err
	}
	program.MaxFile = maxFetch
	program.Settings = []string{"checkout.workers=-1", "core.symlinks=true", "core.ignoreCase=false", "core.precomposeUnicode=false"}
	program.CAFile = options.CAFile
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	options.Dir = dir
	w := &Workspace{
		options: options, git: program, now: time.Now,
		dir: filepath.Join(dir, "git"), files: filepath.Join(dir, "files"),
		seen: map[string]sight{}, trees: map[string]listing{}, folders: map[string]map[string]string{}, known: map[string]bool{}, sizes: map[string]int64{}, apart: map[string]string{},
	}
	if err := workdir.Remove(dir); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	if err := os.MkdirAll(w.files, 0o700); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	if w.root, err = workdir.Open(w.files); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	return w, nil
}

// Workspace is the folder with the files.
func (w *Workspace) Workspace() string { return w.files }

// Remarks says what people should know: what was left out or left alone. It grows
// as the work goes on.
func (w *Workspace) Remarks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.remarks)
}

// Exclude keeps paths out of what is saved, compared and committed.
func (w *Workspace) Exclude(_ context.Context, paths []string) error {
	all := map[string]string{}
	for _, name := range paths {
		all[name] = ""
	}
	return w.exclude(all)
}

// ExcludeUnchanged keeps files out for as long as they have the content.
func (w *Workspace) ExcludeUnchanged(_ context.Context, files map[string]string) error {
	return w.exclude(files)
}

func (w *Workspace) exclude(all map[string]string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, content := range all {
		name = path.Clean(filepath.ToSlash(name))
		if !filepath.IsLocal(name) || name == "." {
			return task.Errorf(task.Invalid, "%s is no path in the workspace", quote(name))
		}
		w.apart[name] = content
	}
	return nil
}

// isApart reports whether a file was excluded, by itself or with its folder.
func (w *Workspace) isApart(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if w.excludes(name) {
			return true
		}
	}
	return false
}

// excludes reports whether just this path was excluded, with everything below it.
func (w *Workspace) excludes(name string) bool {
	content, is := w.apart[name]
	return is && content == ""
}

// Remove removes the workspace and git's directory. What was pushed stays.
func (w *Workspace) Remove() error {
	<-w.removals.done()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.root.Close()
	if removeErr := workdir.Remove(w.options.Dir); removeErr != nil {
		return task.Wrap(task.DataDir, removeErr, "failed to remove the workspace")
	}
	return err
}
