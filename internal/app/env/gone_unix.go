//go:build unix

package env

import (
	"errors"
	"syscall"
)

// isGone reports whether there is surely no process with that number.
func isGone(process int) bool { return errors.Is(syscall.Kill(process, 0), syscall.ESRCH) }
