//go:build !linux

package env

import (
	"runtime"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

func (e Engines) bubblewrap(sandbox.NewGate) (sandbox.Engine, error) {
	return nil, task.Errorf(task.Unsupported, "bubblewrap is for Linux only").WithHint("%s", fixOn(runtime.GOOS))
}

func (e Engines) landlock(sandbox.NewGate) (sandbox.Engine, error) {
	return nil, task.Errorf(task.Unsupported, "Landlock is for Linux only").WithHint("%s", fixOn(runtime.GOOS))
}
