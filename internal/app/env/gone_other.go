//go:build !unix

package env

import "os"

// isGone reports whether there is surely no process with that number. Windows keeps the
// number of a process that has ended for as long as somebody looks at it.
func isGone(process int) bool {
	found, err := os.FindProcess(process)
	if err != nil {
		return true
	}
	_ = found.Release() // it was only looked for
	return false
}
