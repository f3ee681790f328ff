package env

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
)

// Engines says how sandbox engines are made.
type Engines struct {
	Dir        string            // for what they keep
	DockerHost string            // the usual one when empty
	Hosts      []string          // that sandboxes may reach besides the package registries
	Kubernetes config.Kubernetes // the cluster, for the engine of that name
	Toolchains []string          // folders of the host that sandboxes without images may read
	// AllowWeak lets the engine that only confines a process be chosen where
	// there is nothing better. It is for a person's own folder, never for work
	// that comes from a forge.
	AllowWeak bool
	Log       *slog.Logger
}

// Weakened is the configuration without what the engine does not have.
func Weakened(c config.Sandbox, engine sandbox.Engine) config.Sandbox {
	has := engine.Capabilities()
	if !has.Network {
		c.Network.Setup, c.Network.Execution = string(sandbox.NoNetwork), string(sandbox.NoNetwork)
	}
	if !has.Snapshots {
		c.Snapshots.Enabled = false
	}
	return c
}

// Automatic is the name for the best engine that there is.
const Automatic = "auto"

// Choose returns the engine of that name, ready to use. For Automatic it is the
// first of docker, bubblewrap and, if allowed, landlock that works here, and a
// warning says when that is a weak one.
func (e Engines) Choose(ctx context.Context, name string) (engine sandbox.Engine, warning string, err error) {
	list, err := egress.Registries(e.Hosts...)
	if err != nil {
		return nil, "", err
	}
	gate := func(policy sandbox.Policy) sandbox.Gate { return egress.New(list, policy, e.Log) }
	makers := []struct {
		name  string
		make  func(sandbox.NewGate) (sandbox.Engine, error)
		named bool // taken only when it is named: a cluster is somebody else's
		weak  bool // only confines a process
	}{
		{name: docker.Name, make: func(gate sandbox.NewGate) (sandbox.Engine, error) {
			return docker.New(docker.Config{Host: e.DockerHost, Dir: filepath.Join(e.Dir, docker.Name), NewGate: gate, Log: e.Log})
		}},
		{name: "bubblewrap", make: e.bubblewrap},
		{name: kubernetes.Name, make: e.kubernetes, named: true},
		{name: "landlock", make: e.landlock, weak: true},
	}
	var reasons []string
	for _, maker := range makers {
		if name != maker.name && (name != Automatic || maker.named || maker.weak && !e.AllowWeak) {
			continue
		}
		made, err := maker.make(gate)
		if err == nil {
			err = made.Check(ctx)
		}
		if err != nil {
			if name != Automatic {
				return nil, "", err
			}
			reasons = append(reasons, maker.name+": "+briefly(err))
			continue
		}
		if maker.weak {
			warning = weakWarning
		}
		return made, warning, nil
	}
	if name != Automatic {
		return nil, "", task.Errorf(task.Usage, "there is no sandbox %q; it is auto, docker, bubblewrap, kubernetes or landlock", name)
	}
	return nil, "", task.Errorf(task.NotReady, "no sandbox works here (%s)", strings.Join(reasons, "; ")).WithHint("%s", fixOn(runtime.GOOS))
}

// weakWarning says what the engine that only confines a process is good for.
const weakWarning = "commands run in a process that is only confined with Landlock, which is good enough for the demo and your own folders; " +
	"for tasks from a forge install bubblewrap or a Docker Engine"

// fixOn says how to get a sandbox on an operating system.
func fixOn(system string) string {
	if system == "linux" {
		return "install bubblewrap, for example: sudo apt-get install bubblewrap; or start a Docker Engine"
	}
	return "start a Docker Engine, for example Docker Desktop: other sandboxes are for Linux only"
}

// briefly is an error without its cause and its fix: toryo doctor has the details.
func briefly(err error) string {
	if coded, found := task.AsError(err); found {
		return coded.Message
	}
	return err.Error()
}

func (e Engines) kubernetes(gate sandbox.NewGate) (sandbox.Engine, error) {
	return NewKubernetes(e.Kubernetes, gate, e.Log)
}

// NewKubernetes makes the engine of a cluster from its configuration.
func NewKubernetes(c config.Kubernetes, gate sandbox.NewGate, log *slog.Logger) (*kubernetes.Engine, error) {
	made := kubernetes.Config{
		Kubeconfig: c.Kubeconfig, Context: c.Context, Namespace: c.Namespace, GuestImage: c.GuestImage, PullPolicy: c.PullPolicy,
		RuntimeClass: c.RuntimeClass, PullSecrets: c.PullSecrets, User: int64(c.User), WritableRoot: c.WritableRoot,
		CPURequest: c.CPURequest, MemoryRequest: int64(c.MemoryRequest), Deadline: c.Deadline, StartTimeout: c.StartTimeout, Patience: c.Patience, Warm: c.Warm,
		EgressService: c.EgressService, Claim: c.SnapshotClaim, NewGate: gate, Log: log,
	}
	for _, pair := range c.NodeSelector {
		if made.NodeSelector == nil {
			made.NodeSelector = map[string]string{}
		}
		name, value, _ := strings.Cut(pair, "=")
		made.NodeSelector[name] = value
	}
	for _, text := range c.Tolerations {
		made.Tolerations = append(made.Tolerations, toleration(text))
	}
	return kubernetes.New(made)
}

// toleration reads one that is written as kubectl writes taints.
func toleration(text string) kubernetes.Toleration {
	rest, effect, _ := strings.Cut(text, ":")
	name, value, equal := strings.Cut(rest, "=")
	made := kubernetes.Toleration{Key: name, Operator: "Exists", Effect: effect}
	if equal {
		made.Operator, made.Value = "Equal", value
	}
	return made
}
