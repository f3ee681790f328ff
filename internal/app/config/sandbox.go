package config

import "time"

// Sandbox is the section "sandbox".
type Sandbox struct {
	Kind            string        `key:"kind" default:"auto" enum:"auto docker bubblewrap kubernetes landlock" usual:"true" about:"auto takes a container engine if there is one and else bubblewrap; kubernetes runs each sandbox as a pod; landlock, the weakest, is for the demo and local use."`
	CPUs            float64       `key:"cpus" default:"2" min:"0.1" max:"4096" about:"Processors that one sandbox may use, where they can be limited."`
	Memory          ByteSize      `key:"memory" default:"4GiB" min:"64MiB" max:"64TiB" about:"Memory for all processes of one sandbox together."`
	PIDs            int           `key:"pids" default:"512" min:"16" max:"4194304" about:"Processes that may run in one sandbox at the same time."`
	Disk            ByteSize      `key:"disk" default:"20GiB" min:"64MiB" max:"1024TiB" about:"Space for what one sandbox writes."`
	CommandTimeout  time.Duration `key:"command_timeout" default:"10m" min:"1s" max:"168h" about:"A command that takes longer is killed."`
	OutputLimit     ByteSize      `key:"output_limit" default:"10MiB" min:"1KiB" max:"1GiB" about:"Of a longer output of a command the middle is left out."`
	ContainerEngine string        `key:"container_engine" format:"engine" example:"unix:///run/user/1000/docker.sock" about:"Address of the container engine; without it DOCKER_HOST or the usual socket is used."`

	Network    Network    `key:"network" about:"What commands can reach: none is nothing, registries is package registries and the hosts below, open is every public host."`
	Kubernetes Kubernetes `key:"kubernetes" about:"The cluster that pods of sandboxes run in, if kind is kubernetes: see docs/environments.md."`

	Snapshots Snapshots `key:"snapshots" about:"Environments that are kept after their set-up, so that the next task starts from them."`
}

// Network is the section "sandbox.network".
type Network struct {
	Setup     string   `key:"setup" default:"registries" enum:"none registries open" about:"While an environment is set up."`
	Execution string   `key:"execution" default:"none" enum:"none registries open" about:"While the work is done."`
	Hosts     []string `key:"hosts" format:"host" example:"[packages.example.com, '*.example.org', 'git.example.net:8443']" about:"Hosts that registries allows besides those known to Toryo; *. before a name means every host below it."`
}

// Snapshots is the section "sandbox.snapshots".
type Snapshots struct {
	Enabled bool     `key:"enabled" default:"true" about:"Whether environments are kept."`
	MaxSize ByteSize `key:"max_size" default:"20GiB" min:"0" max:"1024TiB" about:"When they take more space, those that were used least recently are removed."`
}

// Kubernetes is the section "sandbox.kubernetes".
type Kubernetes struct {
	Kubeconfig    string        `key:"kubeconfig" format:"path" example:"/etc/toryo/kubeconfig" about:"File that says where the cluster is and who we are; without it the account of the agent's own pod is used, or KUBECONFIG, or ~/.kube/config."`
	Context       string        `key:"context" format:"word" example:"production" about:"Context of that file; without it its current one."`
	Namespace     string        `key:"namespace" default:"toryo-sandboxes" format:"word" about:"Namespace for the pods."`
	GuestImage    string        `key:"guest_image" format:"image" example:"registry.example.com/toryo:1" about:"Image of Toryo, from which pods get its program; without it the agent sends the program into every pod."`
	PullPolicy    string        `key:"pull_policy" default:"IfNotPresent" enum:"IfNotPresent Always Never" about:"When images are pulled."`
	PullSecrets   []string      `key:"pull_secrets" format:"word" example:"[registry]" about:"Secrets of the namespace with which images are pulled."`
	RuntimeClass  string        `key:"runtime_class" format:"word" example:"gvisor" about:"Runtime class of the pods, for a stronger wall than that of containers."`
	NodeSelector  []string      `key:"node_selector" format:"pair" example:"['pool=sandboxes']" about:"Labels of the nodes that pods may run on, as name=value."`
	Tolerations   []string      `key:"tolerations" format:"toleration" example:"['dedicated=sandboxes:NoSchedule']" about:"Taints of nodes that pods tolerate, as name=value:effect, name:effect or name."`
	User          int           `key:"user" default:"0" min:"0" max:"2147483647" about:"User that runs in the pods; 0 gives each pod one of its own."`
	WritableRoot  bool          `key:"writable_root" default:"false" about:"Whether images may be written to outside of workspace, home and /tmp; only images that need it need it."`
	CPURequest    float64       `key:"cpu_request" default:"0.25" min:"0.01" max:"4096" about:"Processors that a node must have free for a pod; sandbox.cpus is the limit."`
	MemoryRequest ByteSize      `key:"memory_request" default:"512MiB" min:"16MiB" max:"64TiB" about:"Memory that a node must have free for a pod; sandbox.memory is the limit."`
	Deadline      time.Duration `key:"deadline" default:"24h" min:"1m" max:"8760h" about:"After this time the cluster ends a pod in any case."`
	StartTimeout  time.Duration `key:"start_timeout" default:"5m" min:"1s" max:"24h" about:"How long a pod may take to run, pulling its image included."`
	Patience      time.Duration `key:"patience" default:"2m" min:"5s" max:"1h" about:"How long a pod and its agent wait for each other when the connection is cut."`
	Warm          int           `key:"warm" default:"0" min:"0" max:"100" about:"Pods that an agent keeps ready for each of the last four images (with their limits and snapshots) it used, so that sandboxes start in a fraction of the time; each takes the room of its requests."`
	EgressService string        `key:"egress_service" format:"word" example:"toryo-egress" about:"Service of the filtering proxy's pods, see deploy/kubernetes/egress.yaml; without it what pods download goes through the agent."`
	SnapshotClaim string        `key:"snapshot_claim" format:"word" example:"toryo-snapshots" about:"Volume claim of the namespace on which environments are kept after their set-up; without it none are."`
}
