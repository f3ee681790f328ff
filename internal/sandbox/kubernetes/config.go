package kubernetes

import (
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// Config says how sandboxes are made. A zero means the default.
type Config struct {
	Kubeconfig string // file; empty for the usual one, or the pod's own account inside a cluster
	Context    string // of the file; empty for its current one
	Namespace  string // in which the pods are made
	GuestImage string // image with this program; empty has it sent into each pod
	Guest      string // the program that is sent; [guest.Program] when empty
	PullPolicy string // of images: IfNotPresent, Always or Never

	RuntimeClass string
	NodeSelector map[string]string
	Tolerations  []Toleration
	PullSecrets  []string
	User         int64 // that processes run as; 0 gives each pod one of its own
	WritableRoot bool  // for images that need it

	CPURequest    float64
	MemoryRequest int64
	Deadline      time.Duration // after which the cluster ends a pod in any case
	StartTimeout  time.Duration // for a pod to run, pulling included
	Patience      time.Duration // with a connection that is cut
	Warm          int           // pods of each kind that are kept ready; 0 keeps none

	EgressService string // service of the filtering proxy's pods; empty has the agent filter
	Claim         string // volume claim for snapshots; empty keeps none
	Leave         []string

	NewGate sandbox.NewGate // the way out, where the agent filters
	Log     *slog.Logger
	Now     func() time.Time
}

// Toleration is one of a pod, as the API has it.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// The defaults.
const (
	DefaultNamespace     = "toryo-sandboxes"
	defaultCPURequest    = 0.25
	defaultMemoryRequest = 512 << 20
	defaultDeadline      = 24 * time.Hour
	defaultStartTimeout  = 5 * time.Minute
	defaultPatience      = 2 * time.Minute
)

// leave are the folders that package managers fill. The host has no use for them.
var leave = []string{"node_modules", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".gradle", "target"}

var nameForm = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (c Config) complete() (Config, error) {
	if c.NewGate == nil || c.Log == nil {
		return c, task.Errorf(task.Invalid, "the kubernetes engine needs a gate and a log")
	}
	orDefault(&c.Namespace, DefaultNamespace)
	orDefault(&c.PullPolicy, "IfNotPresent")
	orDefault(&c.CPURequest, defaultCPURequest)
	orDefault(&c.MemoryRequest, defaultMemoryRequest)
	orDefault(&c.Deadline, defaultDeadline)
	orDefault(&c.StartTimeout, defaultStartTimeout)
	orDefault(&c.Patience, defaultPatience)
	if c.Leave == nil {
		c.Leave = leave
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if !nameForm.MatchString(c.Namespace) {
		return c, task.Errorf(task.BadConfig, "%q is no name of a namespace", c.Namespace)
	}
	if c.Guest == "" && c.GuestImage == "" {
		var err error
		c.Guest, err = guest.Program()
		return c, err
	}
	return c, nil
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}
