//go:build !linux

package connect

import (
	"context"
	"io/fs"
	"os"

	"github.com/toryo-dev/toryo/internal/task"
)

// keepOwner does nothing here: servers that run as another user are those of packages for Linux.
func keepOwner(*os.File, string) {}

// ownedAs is asked where root gives files to others.
func ownedAs(fs.FileInfo, *os.Root) bool { return true }

// OtherOwner is known on Linux only.
func OtherOwner(string) string { return "" }

// OwnerReads is asked for another owner only.
func OwnerReads(context.Context, string, string) bool { return true }

// BecomeOwner is called for another owner only.
func BecomeOwner(folder string) error {
	return task.Errorf(task.Unsupported, "this process cannot become one of the owner of %s", folder)
}
