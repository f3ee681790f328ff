package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/task"
)

// Launch is what the superuser needs before a sandbox can be started as an
// ordinary user: that user may not be able to reach the folders to be shared.
// The launcher runs in a mount namespace of its own, puts the folders where the
// user can reach them, becomes the user and starts the program.
type Launch struct {
	User   int      `json:"user"`
	Folder string   `json:"folder"` // where the launcher puts things; see [LaunchFolder]
	Binds  []Bind   `json:"binds"`
	Args   []string `json:"args"` // of the program to start; the first is its path
	// Groups are files of control groups to which the launcher writes itself, and
	// with it what it starts.
	Groups []string `json:"groups,omitempty"`
}

// Bind makes a file or folder reachable as a name below the launcher's folder.
type Bind struct {
	From string `json:"from"`
	Name string `json:"name"`
}

// launchFolders are folders that a system usually has and whose content toolchains do not
// need. The launcher mounts over one of them, in its own mount namespace: the host's folder
// is not touched.
var launchFolders = []string{"/mnt", "/media", "/srv", "/opt", "/home"}

// LaunchFolder is a folder over which the launcher can mount without hiding the files that
// the program has to find at their own paths.
func LaunchFolder(files ...string) (string, error) {
	for _, folder := range launchFolders {
		if info, err := os.Stat(folder); err == nil && info.IsDir() && !holdsAny(folder, files) {
			return folder, nil
		}
	}
	return "", task.Errorf(task.NotReady, "none of the folders %s can be used to start a sandbox", strings.Join(launchFolders, ", ")).
		WithHint("make an empty folder /mnt")
}

// holdsAny says whether one of the files is in the folder, by its name or by where a
// symbolic link leads.
func holdsAny(folder string, files []string) bool {
	for _, file := range files {
		for _, at := range []string{file, resolved(file)} {
			for _, in := range []string{folder, resolved(folder)} {
				if at == in || strings.HasPrefix(at, in+"/") {
					return true
				}
			}
		}
	}
	return false
}

// resolved is the path without symbolic links, or the path itself if it does not exist.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return path
}

// LaunchArguments are those with which the program has to be started to be a
// launcher.
func LaunchArguments(what Launch) ([]string, error) {
	text, err := json.Marshal(what)
	return []string{launchName, string(text)}, err
}

// launch runs in a mount namespace that its parent made for it.
func launch(text string) error {
	var what Launch
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		return fmt.Errorf("read what to launch: %w", err)
	}
	for _, group := range what.Groups {
		if err := os.WriteFile(group, []byte("0"), 0); err != nil {
			return fmt.Errorf("enter the control group: %w", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := makeBinds(what.Folder, what.Binds); err != nil {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave groups: %w", err)
	}
	if err := syscall.Setgid(what.User); err != nil {
		return fmt.Errorf("become the group: %w", err)
	}
	if err := syscall.Setuid(what.User); err != nil {
		return fmt.Errorf("become the user: %w", err)
	}
	return syscall.Exec(what.Args[0], what.Args, []string{"PATH=" + os.Getenv("PATH")})
}

// makeBinds mounts an empty folder and the binds in it. What is bound is opened first: it
// may lie in the folder that is hidden then.
func makeBinds(folder string, binds []Bind) error {
	opened := make([]int, len(binds))
	for i, bind := range binds {
		var err error
		if opened[i], err = unix.Open(bind.From, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("make %s reachable: %w", bind.From, err)
		}
	}
	if err := unix.Mount("toryo", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("make a place for folders: %w", err)
	}
	for i, bind := range binds {
		if err := makeBind("/proc/self/fd/"+strconv.Itoa(opened[i]), filepath.Join(folder, bind.Name)); err != nil {
			return fmt.Errorf("make %s reachable: %w", bind.From, err)
		}
	}
	return nil
}

func makeBind(from, target string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(target, 0o755) //nolint:gosec // for the user that we become
	} else {
		err = os.WriteFile(target, nil, 0o644) //nolint:gosec // for the user that we become
	}
	if err != nil {
		return err
	}
	return unix.Mount(from, target, "", unix.MS_BIND, "")
}
