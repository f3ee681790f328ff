package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Launch is what the superuser needs before a sandbox can be started as an
// ordinary user: that user may not be able to reach the folders to be shared.
// The launcher runs in a mount namespace of its own, puts the folders where the
// user can reach them, becomes the user and starts the program.
type Launch struct {
	User  int      `json:"user"`
	Binds []Bind   `json:"binds"`
	Args  []string `json:"args"` // of the program to start; the first is its path
	// Groups are files of control groups to which the launcher writes itself, and
	// with it what it starts.
	Groups []string `json:"groups,omitempty"`
}

// Bind makes a file or folder reachable as a name below [LaunchFolder].
type Bind struct {
	From string `json:"from"`
	Name string `json:"name"`
}

// LaunchFolder is where the launcher puts things. It exists on every system; the
// host's own folder of that name is not touched.
const LaunchFolder = "/mnt"

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
	if err := unix.Mount("toryo", LaunchFolder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("make a place for folders: %w", err)
	}
	for _, bind := range what.Binds {
		if err := makeBind(bind); err != nil {
			return fmt.Errorf("make %s reachable: %w", bind.From, err)
		}
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

func makeBind(bind Bind) error {
	target := filepath.Join(LaunchFolder, bind.Name)
	info, err := os.Stat(bind.From)
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
	return unix.Mount(bind.From, target, "", unix.MS_BIND, "")
}
