//go:build unix

package git

import (
	"os/exec"
	"syscall"
	"time"
)

// EndGently makes the command's context end it and all of its children by a
// signal at which git removes its locks. What does not end then is killed.
func EndGently(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
}
