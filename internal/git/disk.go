package git

import (
	"errors"
	"syscall"

	"github.com/toryo-dev/toryo/internal/task"
)

// DiskMessages are what git writes when the disk of this machine is full or can only be read.
var DiskMessages = []Message{
	{Text: "No space left on device", Code: task.DataDir},
	{Text: "Disk quota exceeded", Code: task.DataDir},
	{Text: "Read-only file system", Code: task.DataDir},
	{Text: "Out of diskspace", Code: task.DataDir}, // of fast-import, and what writes packs
	// These do not say why.
	{Text: "unable to write file", Code: task.DataDir},
	{Text: "unable to write new index file", Code: task.DataDir},
	{Text: "unable to write new_index file", Code: task.DataDir},
	{Text: "failed to write new configuration file", Code: task.DataDir},
}

// NotWritten reports whether the disk of this machine is full or can only be read.
func NotWritten(err error) bool {
	for _, reason := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, reason) {
			return true
		}
	}
	failed, is := errors.AsType[*RunError](err)
	if !is || failed.Ended || failed.Local().Code(DiskMessages) != task.DataDir {
		return false
	}
	_, given := failed.ServerCode()
	return !given
}
