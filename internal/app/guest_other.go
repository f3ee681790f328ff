//go:build !linux

package app

import "github.com/toryo-dev/toryo/internal/sandbox/guest"

// serveAsGuest does not return when the process is the inside of a sandbox.
func serveAsGuest() { guest.Main(nil) }
