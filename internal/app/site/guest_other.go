//go:build !linux

package site

import (
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// ServeAsGuest does not return when the process is the inside of a sandbox.
func ServeAsGuest() { guest.Main(nil) }

// LandlockVersion is that of the kernel, or an error when it has none.
func LandlockVersion() (int, error) {
	return 0, task.Errorf(task.Unsupported, "Landlock is for Linux only")
}

// GroupsVersion is the version of the control groups that sandboxes get, or an error
// when they get none.
func GroupsVersion() (int, error) {
	return 0, task.Errorf(task.Unsupported, "control groups are for Linux only")
}
