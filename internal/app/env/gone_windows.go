package env

import (
	"errors"
	"os"
	"syscall"
)

// invalidParameter is what Windows says of a number that no process has. It says something else
// of a process that this user may not look at.
const invalidParameter = syscall.Errno(87)

// isGone reports whether there is surely no process with that number. Windows keeps the
// number of a process that has ended for as long as somebody looks at it.
func isGone(process int) bool {
	found, err := os.FindProcess(process)
	if err != nil {
		return errors.Is(err, invalidParameter)
	}
	_ = found.Release() // it was only looked for
	return false
}
