//go:build !linux

package drill

import "github.com/toryo-dev/toryo/internal/task"

// CanMount reports whether this process may mount file systems, which fill up in the drill.
func CanMount() bool { return false }

func newDisk(string) (*disk, error) {
	return nil, task.Errorf(task.NotReady, "file systems that can fill up are mounted on Linux only").WithHint("leave it out with --small-disks=false")
}

func (*disk) fill() error  { return nil }
func (*disk) free() error  { return nil }
func (*disk) close() error { return nil }
