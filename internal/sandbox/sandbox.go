package sandbox

import (
	"context"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// Engine starts sandboxes of one kind. Its methods may be called from any number
// of goroutines.
type Engine interface {
	// Name is the adapter's name in configuration and records.
	Name() string
	// Capabilities says what sandboxes of this kind have. It never changes.
	Capabilities() Capabilities
	// Check says whether sandboxes can be started here. NotReady says what is
	// missing and what to do about it.
	Check(ctx context.Context) error
	// Start makes a sandbox and waits until commands can run in it. The context
	// bounds the start only, not the life of the sandbox. On error nothing is
	// left behind.
	Start(ctx context.Context, spec Spec) (Sandbox, error)
	// List names the sandboxes of an owner that exist, running or not, on this
	// machine, also those that another process started.
	List(ctx context.Context, owner string) ([]Info, error)
	// Reap removes those of the owner's sandboxes for which keep says no, and
	// returns how many. A sandbox that this process runs is never reaped.
	Reap(ctx context.Context, owner string, keep func(Info) bool) (int, error)
	// Identity is what a snapshot depends on besides commands and manifests: the
	// digest of the image, or of the host's toolchains.
	Identity(ctx context.Context, image string) (string, error)
	// Snapshots lists the kept snapshots, least recently used first.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// RemoveSnapshot removes a snapshot. One that is not there is not an error.
	RemoveSnapshot(ctx context.Context, key string) error
	// Sweep removes what no sandbox can use: what was being kept or removed when a program
	// ended, and what belongs to other versions of this one. It is called now and then.
	Sweep(ctx context.Context) error
}

// Warmer is an engine that can have sandboxes ready before they are asked for.
type Warmer interface {
	// KeepWarm keeps some ready that Start gives out, until the context ends, and then
	// removes them. They have nothing of any task and no network, each is given out
	// once, and they make room when one that is asked for finds none. Until they are
	// given out the owner may reap them. An engine that is to keep none returns at once.
	KeepWarm(ctx context.Context, owner string) error
}

// Capabilities are how the sandboxes of an engine differ for who uses them. Ask for
// these, and not for the engine's name.
type Capabilities struct {
	// Images: sandboxes are made from images, which have the programs of one
	// environment. Without them there are the programs of this machine.
	Images bool
	// Network: policies other than [NoNetwork] can be had.
	Network bool
	// Snapshots: an environment can be kept and started from.
	Snapshots bool
	// Layers: a sandbox that was started from a snapshot can itself be kept as one.
	Layers bool
	// HostPaths: workspace and home have the same paths inside as on the host. Otherwise
	// they are at [WorkspacePath] and [HomePath].
	HostPaths bool
	// FileOwner is the user who has to own files that are put into a workspace, or 0
	// when whoever runs this program does already.
	FileOwner int
}

// Sandbox is one running sandbox. Run is called by one goroutine at a time; Stop
// and SetNetwork may be called at any time.
type Sandbox interface {
	// Info identifies it.
	Info() Info
	// Workspace is the folder on the host that the sandbox sees as
	// [WorkspacePath]. An adapter may keep a copy of it inside: then what changes
	// in the folder is inside when the next command begins, and what changes inside
	// is in the folder when the next Run returns. Where the folder would take more
	// than the disk limit by that, Run says that the limit is exceeded, and what
	// does not fit stays inside until there is room. So does what the folder cannot
	// have; [Result] says of how much that is true.
	Workspace() string
	// Run runs a command and returns when it has ended or was killed. When the
	// context ends the command is killed and the context's error is returned.
	Run(ctx context.Context, command Command) (Result, error)
	// SetNetwork changes the policy from now on. Connections that the new policy
	// does not allow are cut.
	SetNetwork(ctx context.Context, policy Policy) error
	// Snapshot keeps the home and what was added to the workspace since before
	// was listed, under the key. An older snapshot of that key is replaced.
	Snapshot(ctx context.Context, key string, before workdir.Listing) (Snapshot, error)
	// Stop kills everything inside and removes what is not the caller's: the
	// workspace stays. It can be called more than once.
	Stop(ctx context.Context) error
}

// WorkspacePath is where the workspace is inside, unless [Capabilities] say that it has
// the path that it has on the host.
const WorkspacePath = "/workspace"

// HomePath is the home folder inside, with the same exception.
const HomePath = "/home/toryo"

// Spec says what sandbox to start.
type Spec struct {
	Owner      string            // who may reap it: the server or agent it belongs to
	Task       string            // the task's identity, for the label
	Generation int64             // of the task, for the label
	Image      string            // of the environment; adapters without images ignore it
	Snapshot   string            // key of a snapshot to start from, or empty
	Workspace  string            // folder on the host; must exist
	Also       string            // another path inside at which the workspace is; only adapters with images have it; may be empty
	Env        map[string]string // for every command
	Network    Policy
	Limits     Limits
	Progress   func(message string) // told of slow steps, such as pulling; may be nil
}

// Limits bound one sandbox. A zero means the default.
type Limits struct {
	Memory    int64   // bytes, of all processes together
	Processes int     // at one time
	CPUs      float64 // where the adapter can limit them
	Disk      int64   // bytes of workspace, home and temporary files together
}

// Defaults are the limits for a sandbox that names none.
var Defaults = Limits{Memory: 4 << 30, Processes: 1024, CPUs: 2, Disk: 10 << 30}

// OrDefaults fills in what is zero.
func (l Limits) OrDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = Defaults.Memory
	}
	if l.Processes == 0 {
		l.Processes = Defaults.Processes
	}
	if l.CPUs == 0 {
		l.CPUs = Defaults.CPUs
	}
	if l.Disk == 0 {
		l.Disk = Defaults.Disk
	}
	return l
}

// SpareMemory is what a sandbox may take above its memory limit: the guest's own memory,
// and what commands take until the guest has seen that it is too much. The kernel's limit
// is that much higher, so that it ends processes only when they take memory faster. Pods
// have more, for what is in them besides.
const SpareMemory = 64 << 20

// Policy says what a sandbox may reach.
type Policy string

// The policies.
const (
	NoNetwork  Policy = "none"       // nothing
	Registries Policy = "registries" // package registries and configured hosts
	OpenWorld  Policy = "open"       // any public host, through the proxy
)

// Valid reports whether the policy is one that exists.
func (p Policy) Valid() bool { return p == NoNetwork || p == Registries || p == OpenWorld }

// Info identifies a sandbox.
type Info struct {
	ID         string
	Engine     string
	Owner      string
	Task       string
	Generation int64
	Started    time.Time
	Running    bool
}

// Command is one command line for the shell.
type Command struct {
	Text string
	// Folder is the folder of the workspace in which the command starts, whatever the
	// commands before it did; the session's own folder stays as it was. Empty means
	// the session's folder, "." the workspace. A folder that is not there is a
	// command that fails.
	Folder string
	// Session names the shell session, which keeps folder, variables and functions
	// from one command to the next. Empty means the usual one; another name is a
	// session of its own, which begins as the usual one did.
	Session     string
	Timeout     time.Duration // zero means [DefaultTimeout]
	OutputLimit int           // bytes kept of the output; zero means [DefaultOutput]
	// Output is told of output as it comes, in order, from one goroutine. What is
	// past the limit is not told. May be nil.
	Output func(stream Stream, data []byte)
	// Fresh runs the command in a shell that knows nothing of the commands before, in
	// the workspace, and leaves nothing to those that come: no folder, variable,
	// function or alias.
	Fresh bool
}

// Quote makes one word of a shell of a text.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Stream is one of a command's two outputs.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

const (
	// DefaultTimeout is the time limit of a command that names none.
	DefaultTimeout = 10 * time.Minute
	// DefaultOutput is how much output of a command is kept.
	DefaultOutput = 1 << 20
	// LongestCommand is how long a command's text may be.
	LongestCommand = 1 << 20
)

// Limit names a limit that a command exceeded.
type Limit string

// The limits.
const (
	NoLimit        Limit = ""
	TimeLimit      Limit = "time"
	MemoryLimit    Limit = "memory"
	ProcessesLimit Limit = "processes"
	DiskLimit      Limit = "disk"
)

// Result is how a command ended.
type Result struct {
	ExitCode int           // 128 and the signal's number when a signal ended it
	Stdout   []byte        // what fits into the limit
	Log      []byte        // both outputs in order of arrival; the middle may be left out
	Cut      bool          // something was left out
	Bytes    int64         // how much output there was
	Exceeded Limit         // the limit that it exceeded, for which it was killed if it still ran
	Left     int           // how many paths stay inside: there is no room for them in the workspace's folder, or it cannot have them
	Duration time.Duration // from start to end
}

// Snapshot is a kept environment.
type Snapshot struct {
	Key   string
	Bytes int64
	Made  time.Time
	Used  time.Time
	Kept  string // as what and where, for people; may be empty
}
