//go:build unix

package processes

import "syscall"

// openAsFile neither follows a link nor waits for the other end of a pipe: another user may
// have put one there.
const openAsFile = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
