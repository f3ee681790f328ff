package app

import (
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
)

// serveAsGuest does not return when the process is the inside of a sandbox.
func serveAsGuest() {
	guest.Main(map[string]guest.Confinement{landlock.Name: landlock.Confine})
}

// landlockVersion is that of the kernel, or an error when it has none.
func landlockVersion() (int, error) { return landlock.Version() }

// groupsVersion is the version of the control groups that sandboxes get, or an error
// when they get none.
func groupsVersion() (int, error) { return (&cgroup.System{LookOnly: true}).Version() }
