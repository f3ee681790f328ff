package connect

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Root may connect an installation whose server runs as another user: that of a package does.
// What it makes has to be readable there. Root may lack the right to give files away, as in a
// container without capabilities: then the server says that it cannot read them.

// keepOwner gives a new file to the owner of the one that it is about to replace, or else of the
// folder that it is in.
func keepOwner(draft *os.File, path string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return
	}
	if owner, is := info.Sys().(*syscall.Stat_t); is {
		_ = draft.Chown(int(owner.Uid), int(owner.Gid)) // see above
	}
}

// giveToOwner gives a new folder to the owner of the one that it is in. It is opened before:
// that owner could put a link in its place.
func giveToOwner(in *os.Root, name string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := in.Stat(".")
	if err != nil {
		return
	}
	folder, err := in.OpenRoot(name)
	if err != nil {
		return
	}
	defer func() { _ = folder.Close() }()
	if owner, is := info.Sys().(*syscall.Stat_t); is {
		_ = folder.Chown(".", int(owner.Uid), int(owner.Gid)) // see above
	}
}

// OtherOwner is the name of the user whose folder it is, if root runs this and it is not root's.
func OtherOwner(folder string) string {
	info, err := os.Stat(folder)
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	owner, is := info.Sys().(*syscall.Stat_t)
	if !is || owner.Uid == 0 {
		return ""
	}
	id := strconv.FormatUint(uint64(owner.Uid), 10)
	if known, err := user.LookupId(id); err == nil {
		return known.Username
	}
	return "#" + id // as sudo -u takes it
}
