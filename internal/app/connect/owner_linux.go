package connect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/owner"
	"github.com/toryo-dev/toryo/internal/task"
)

// keepOwner gives a new file to the owner of the one that it is about to replace, or else of the
// folder that it is in. Who is not root can keep the group, if it is one of theirs.
func keepOwner(draft *os.File, path string) {
	info, err := os.Stat(path)
	root := os.Geteuid() == 0
	if err != nil && root {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return
	}
	if root {
		owner.Give(draft, info)
		return
	}
	if _, gid, known := owner.Of(info); known {
		_ = draft.Chown(-1, gid)
	}
}

// ownedAs reports whether something belongs to the owner of the folder that it is in, or to who
// runs this.
func ownedAs(one fs.FileInfo, in *os.Root) bool {
	info, err := in.Stat(".")
	if err != nil {
		return false
	}
	is, _, known := owner.Of(one)
	wanted, _, also := owner.Of(info)
	return known && also && (is == wanted || is == os.Geteuid())
}

// account is the user whose folder it is, with the groups that it is in.
type account struct {
	syscall.Credential
	name string
	home string // the folder itself if the system does not know the user
}

func accountOf(folder string) (account, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return account{}, err
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return account{}, errors.ErrUnsupported
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	found := account{Credential: syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}, name: "#" + id, home: folder} // as sudo -u takes it
	known, err := user.LookupId(id)
	if err != nil {
		return found, nil //nolint:nilerr // files may belong to nobody who is known
	}
	found.name, found.home = known.Username, known.HomeDir
	if primary, err := strconv.ParseUint(known.Gid, 10, 32); err == nil {
		found.Gid = uint32(primary)
	}
	groups, err := known.GroupIds()
	for _, group := range groups {
		if number, err := strconv.ParseUint(group, 10, 32); err == nil {
			found.Groups = append(found.Groups, uint32(number))
		}
	}
	return found, err
}

// OtherOwner is the name of the user whose folder it is, if root runs this and it is not root's.
func OtherOwner(folder string) string {
	if os.Geteuid() != 0 {
		return ""
	}
	found, err := accountOf(folder)
	if err != nil || found.Uid == 0 {
		return ""
	}
	return found.name
}

// OwnerReads reports whether the user whose folder it is can read a file that root can. The system
// is asked as that user: modes of all folders above and access lists count too.
func OwnerReads(ctx context.Context, folder, file string) bool {
	found, err := accountOf(folder)
	if err != nil {
		return false
	}
	command := exec.CommandContext(ctx, "test", "-r", file)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &found.Credential}
	return command.Run() == nil
}

// BecomeOwner makes this process, which root runs, one of the user whose folder it is. There is no
// way back. What it starts finds itself in that folder, with the home of that user.
func BecomeOwner(folder string) error {
	found, err := accountOf(folder)
	if err == nil {
		err = found.become()
	}
	if err != nil {
		return task.Wrap(task.NotReady, err, "this process cannot become one of the owner of "+folder).WithHint("start the server as that user")
	}
	for _, variable := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		if err := os.Unsetenv(variable); err != nil {
			return err
		}
	}
	return errors.Join(os.Setenv("HOME", found.home), os.Setenv("USER", found.name), os.Setenv("LOGNAME", found.name), os.Chdir(folder))
}

// become changes the user and the groups of all threads. The kernel then hides the process from its
// own user, because memory of root's may be in it; but who makes user namespaces for sandboxes
// writes to the files in /proc of what it starts.
func (a account) become() error {
	groups := make([]int, 0, len(a.Groups))
	for _, group := range a.Groups {
		groups = append(groups, int(group))
	}
	if err := syscall.Setgroups(groups); err != nil {
		return err
	}
	if err := syscall.Setgid(int(a.Gid)); err != nil {
		return err
	}
	if err := syscall.Setuid(int(a.Uid)); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}
