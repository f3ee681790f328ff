//go:build !linux

package connect

// isMountPoint is known on Linux only, where containers are given single files.
func isMountPoint(string) bool { return false }
