//go:build unix

package drill

import (
	"os"
	"syscall"
)

// Supported says whether processes can be broken here as the drill does it.
func Supported() error { return nil }

// freeze and thaw are best effort: the process may have ended.
func freeze(process *os.Process) { _ = process.Signal(syscall.SIGSTOP) }

func thaw(process *os.Process) { _ = process.Signal(syscall.SIGCONT) }
