//go:build !linux

package app

import (
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// serveAsGuest does not return when the process is the inside of a sandbox.
func serveAsGuest() { guest.Main(nil) }

// landlockVersion is that of the kernel, or an error when it has none.
func landlockVersion() (int, error) {
	return 0, task.Errorf(task.Unsupported, "Landlock is for Linux only")
}

// groupsVersion is the version of the control groups that sandboxes get, or an error
// when they get none.
func groupsVersion() (int, error) {
	return 0, task.Errorf(task.Unsupported, "control groups are for Linux only")
}
