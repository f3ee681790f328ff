//go:build unix

package board

import (
	"os/exec"
	"syscall"
	"time"
)

// endGently makes the command's context end it and all of its children by a
// signal at which git removes its locks. What does not end then is killed.
func endGently(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
}
