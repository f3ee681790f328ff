//go:build !linux

package connect

import "os"

// keepOwner does nothing here: servers that run as another user are those of packages for Linux.
func keepOwner(*os.File, string) {}

// giveToOwner does nothing here either.
func giveToOwner(*os.Root, string) {}

// OtherOwner is known on Linux only.
func OtherOwner(string) string { return "" }
