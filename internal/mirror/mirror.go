package mirror

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/task"
)

// Options is what mirrors need. Root and Remote have to be set.
type Options struct {
	// Root is the directory that the mirrors are in. One process only uses it.
	Root string
	// Remote returns where git finds a repository, with a fresh credential.
	Remote func(ctx context.Context, r task.Repository) (forge.Remote, error)
	// MaxFetch is how large a single file that is fetched may be, which is how
	// large a pack may be; 0 means 8 GB.
	MaxFetch int64
	// MaxPush is how many bytes an agent may push at once; 0 means 1 GB.
	MaxPush int64
	// MaxServed is how many requests of agents are served at once; 0 means 16.
	MaxServed int
	// ReadOnly says that the mirrors are only looked at: nothing is made, and nothing removed that
	// an earlier process has left.
	ReadOnly bool
	// Keep is where what tasks push is kept for other servers, before the push is
	// accepted. Nil means that there are none.
	Keep Keeper
	// MaxKept is how many bytes of a push may be new when it is kept; 0 means 64 MB.
	MaxKept int64
	// Identity is who published commits are by; without a name, the bot's usual one.
	Identity Identity
	// Free is how many bytes are free on the disk that a folder is on; nil asks the system.
	Free func(dir string) (int64, error)
	// BaseAge is how old the base of a task may be when its agent fetches; nil
	// means ten seconds.
	BaseAge func(r task.Repository) time.Duration
	Log     *slog.Logger
}

const (
	// longestFetch bounds one fetch or push to the forge.
	longestFetch = 15 * time.Minute
	// longestFreshening is how long an agent that fetches waits for the forge.
	longestFreshening = 30 * time.Second
)

// Mirrors keeps the mirrors. Its methods may be called by any number of
// goroutines. Errors have the codes of package forge.
type Mirrors struct {
	options Options
	git     git
	serving chan struct{}   // one for each request that may still be served
	merging chan struct{}   // one for each merge that is being tried
	packing lifecycle.Mutex // held while a mirror is packed: one at a time
	flights singleflight.Group
	refused rate.Sometimes // logs: anyone can be refused, and the log is not for everyone to fill

	mu      sync.Mutex
	entries map[task.Repository]*entry
	turns   map[task.ID]*turn
	fetches int64
	stopped bool
	stop    chan struct{}
	running sync.WaitGroup
}

// entry is what is known of a mirror.
type entry struct {
	made      sync.Mutex // held while the mirror is made
	ready     bool
	fetchedAt time.Time       // when the last fetch that succeeded began
	changes   int64           // how often the repository was said to have changed
	included  int64           // how many of these the last fetch has seen
	fetching  lifecycle.Mutex // held while something is fetched
	// packing is held by those who write packs into the mirror, and for writing by who
	// removes packs that were left unfinished.
	packing sync.RWMutex
	// using is held by those who use the mirror, and for writing by who removes objects. It is only tried
	// to get it for writing, so that nobody waits for those who wait for it.
	using   sync.RWMutex
	merges  map[[2]string]Merge // that were tried, by base and head
	heads   map[string]string   // the branches and their commits after the fetch that began at headsAt
	headsAt time.Time
	// notCompacted is when compacting the mirror has failed. It is for whoever holds Mirrors.packing.
	notCompacted time.Time
}

// Open prepares the directory. It fails with NotReady if there is no git program
// and with DataDir if the directory cannot be used.
func Open(ctx context.Context, options Options) (*Mirrors, error) {
	if options.MaxFetch == 0 {
		options.MaxFetch = 8 << 30
	}
	if options.MaxPush == 0 {
		options.MaxPush = 1 << 30
	}
	if options.MaxServed == 0 {
		options.MaxServed = 16
	}
	if options.MaxKept == 0 {
		options.MaxKept = 64 << 20
	}
	if options.Identity.Name == "" {
		options.Identity.Name, options.Identity.Email = "Toryo", "toryo@localhost"
	}
	if options.Free == nil {
		options.Free = func(dir string) (int64, error) { return disk.FreeSpace(dir) }
	}
	if options.BaseAge == nil {
		options.BaseAge = func(task.Repository) time.Duration { return 10 * time.Second }
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	found, err := program.Find()
	if err != nil {
		return nil, err
	}
	found.MaxFile, found.Settings = options.MaxFetch, checks
	root, err := filepath.Abs(options.Root)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the directory for mirrors cannot be used")
	}
	options.Root = root
	hooks := filepath.Join(root, "hooks")
	if err := options.writeHook(hooks); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the directory for mirrors cannot be used")
	}
	// Git names files by the path that no link is in, and it is compared with ours.
	if options.Root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the directory for mirrors cannot be used")
	}
	m := &Mirrors{
		options: options, git: git{Program: found, hooks: hooks},
		serving: make(chan struct{}, options.MaxServed), merging: make(chan struct{}, mergesAtOnce),
		packing: lifecycle.NewMutex(),
		refused: rate.Sometimes{First: 10, Interval: time.Second},
		entries: map[task.Repository]*entry{}, turns: map[task.ID]*turn{}, stop: make(chan struct{}),
	}
	if err := m.removeUnfinished(); err != nil {
		return nil, task.Wrap(task.DataDir, err, "the directory for mirrors cannot be used")
	}
	if _, err := m.git.run(ctx, command{args: []string{"version"}}); err != nil {
		return nil, task.Wrap(task.NotReady, err, "the git program does not run")
	}
	return m, nil
}

// Stop ends what is being fetched and waits for it. What agents fetch and push
// ends with their requests.
func (m *Mirrors) Stop() {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		close(m.stop)
	}
	m.mu.Unlock()
	m.running.Wait()
}

// Fetches returns how many fetches from forges were begun.
func (m *Mirrors) Fetches() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetches
}

// Changed says that something was pushed to the repository on the forge.
func (m *Mirrors) Changed(r task.Repository) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, found := m.entries[r]; found {
		e.changes++
	}
}

func (m *Mirrors) entry(r task.Repository) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, found := m.entries[r]
	if !found {
		e = &entry{fetching: lifecycle.NewMutex()}
		m.entries[r] = e
	}
	return e
}

// dir is where the mirror of a repository is.
func (m *Mirrors) dir(r task.Repository) string {
	return filepath.Join(m.options.Root, pathOf(r))
}

// pathOf is where the mirror of a repository is below the root.
func pathOf(r task.Repository) string {
	return filepath.Join(string(r.Forge), url.PathEscape(r.Name)+".git")
}

// check refuses what cannot be a repository.
func check(r task.Repository) error {
	key := task.Key{Forge: r.Forge, Repository: r.Name, Kind: task.Issue, Number: 1}
	return key.Validate()
}

// settings are written into each mirror.
var settings = [][2]string{
	{"http.receivepack", "true"}, // who may push is decided by us, before git is asked
	{"http.getanyfile", "false"},
	{"receive.autogc", "false"},
	{"receive.denyDeleteCurrent", "ignore"},
	{"core.logAllRefUpdates", "false"},
	{"uploadpack.allowFilter", "true"},
}

// ensure makes the mirror, empty, if there is none, and sees to it that one that
// was left in the middle of something can be used.
func (m *Mirrors) ensure(ctx context.Context, r task.Repository) (string, error) {
	if err := check(r); err != nil {
		return "", err
	}
	dir := m.dir(r)
	e := m.entry(r)
	e.made.Lock()
	defer e.made.Unlock()
	if e.ready {
		return dir, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !m.options.ReadOnly {
		if err := m.make(ctx, dir); err != nil {
			return "", task.Wrap(task.DataDir, err, "cannot make the mirror of "+r.String())
		}
	} else if err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot use the mirror of "+r.String())
	}
	if m.options.ReadOnly {
		return dir, nil
	}
	if err := errors.Join(restoreCruft(dir), removeLeftovers(dir)); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot use the mirror of "+r.String())
	}
	e.ready = true
	return dir, nil
}

// make makes the mirror beside its place and moves it there whole.
func (m *Mirrors) make(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	making, err := os.MkdirTemp(filepath.Dir(dir), makingPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(making) }()
	if _, err := m.git.run(ctx, command{args: []string{"init", "--quiet", "--bare", "--template=", "--initial-branch=main", making}}); err != nil {
		return err
	}
	for _, setting := range settings {
		if _, err := m.git.run(ctx, command{dir: making, args: []string{"config", setting[0], setting[1]}}); err != nil {
			return err
		}
	}
	return os.Rename(making, dir)
}

// removeLeftovers removes the locks and unfinished packs of git processes that
// were killed. Nothing else uses the mirror when it is called.
func removeLeftovers(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && strings.HasPrefix(name, "tmp_objdir-"):
			if err := os.RemoveAll(path); err != nil { //nolint:gosec // nobody else writes there
				return err
			}
			return fs.SkipDir
		case entry.IsDir() && len(name) == 2 && filepath.Base(filepath.Dir(path)) == "objects":
			return fs.SkipDir // loose objects: there are many, and no locks
		case !entry.IsDir() && (strings.HasSuffix(name, ".lock") || unfinished(name) || leftKeep(path)):
			return os.Remove(path) //nolint:gosec // nobody else writes there
		}
		return nil
	})
}

// leftKeep reports whether a file keeps a pack from being packed for a fetch that was killed. Fetches remove
// it when they end. We have such files for packs with the times of objects only, see removeCruft.
func leftKeep(path string) bool {
	pack, is := strings.CutSuffix(path, ".keep")
	if !is || filepath.Base(filepath.Dir(path)) != "pack" {
		return false
	}
	_, err := os.Lstat(pack + ".mtimes")
	return errors.Is(err, fs.ErrNotExist)
}

// begin counts something that is being done and that cancel ends, unless the
// mirrors are stopped.
func (m *Mirrors) begin(ctx context.Context, cancel context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	m.running.Add(1)
	go func() {
		select {
		case <-m.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return true
}

var errStopped = task.Errorf(task.Interrupted, "the server is stopping")

// taskName is what the id of a task may look like: it is part of the names of
// refs.
var taskName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
