//go:build !unix

package board

import "os/exec"

// endGently leaves it at killing the command.
func endGently(*exec.Cmd) {}
