package site

import (
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
)

// ServeAsGuest does not return when the process is the inside of a sandbox.
func ServeAsGuest() {
	guest.Main(map[string]guest.Confinement{landlock.Name: landlock.Confine})
}

// LandlockVersion is that of the kernel, or an error when it has none.
func LandlockVersion() (int, error) { return landlock.Version() }

// GroupsVersion is the version of the control groups that sandboxes get, or an error
// when they get none.
func GroupsVersion() (int, error) { return (&cgroup.System{LookOnly: true}).Version() }
