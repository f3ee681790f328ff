//go:build !linux

package program

// withoutLandlock is for Linux only: nothing else has Landlock.
func withoutLandlock() (exit int) { return 1 }
