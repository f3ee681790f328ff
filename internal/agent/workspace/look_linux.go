package workspace

import (
	"io/fs"
	"syscall"
	"time"
)

// look is what a file looks like from outside. Who changes the content changes
// the time of the last change too, which programs cannot set back.
type look struct {
	size, inode uint64
	mode        uint32
	changed     time.Time
	certain     bool
}

func lookOf(info fs.FileInfo) look {
	about, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return look{}
	}
	return look{
		size: uint64(about.Size), inode: about.Ino, mode: about.Mode, //nolint:gosec // sizes are not negative
		changed: time.Unix(about.Ctim.Unix()), certain: true,
	}
}
