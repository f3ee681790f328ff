package config

import "time"

// Sandbox is the section "sandbox".
type Sandbox struct {
	Kind            string        `key:"kind" default:"auto" enum:"auto docker bubblewrap landlock" usual:"true" about:"auto takes a container engine if there is one and else bubblewrap; landlock, the weakest, is for the demo and local use."`
	CPUs            float64       `key:"cpus" default:"2" min:"0.1" max:"4096" about:"Processors that one sandbox may use, where they can be limited."`
	Memory          ByteSize      `key:"memory" default:"4GiB" min:"64MiB" max:"64TiB" about:"Memory for all processes of one sandbox together."`
	PIDs            int           `key:"pids" default:"512" min:"16" max:"4194304" about:"Processes that may run in one sandbox at the same time."`
	Disk            ByteSize      `key:"disk" default:"20GiB" min:"64MiB" max:"1024TiB" about:"Space for what one sandbox writes."`
	CommandTimeout  time.Duration `key:"command_timeout" default:"10m" min:"1s" max:"168h" about:"A command that takes longer is killed."`
	OutputLimit     ByteSize      `key:"output_limit" default:"10MiB" min:"1KiB" max:"1GiB" about:"Of a longer output of a command the middle is left out."`
	ContainerEngine string        `key:"container_engine" format:"engine" example:"unix:///run/user/1000/docker.sock" about:"Address of the container engine; without it DOCKER_HOST or the usual socket is used."`

	Network   Network   `key:"network" about:"What commands can reach: none is nothing, registries is package registries and the hosts below, open is every public host."`
	Snapshots Snapshots `key:"snapshots" about:"Verified environments that are kept, so that the next task starts from them."`
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
