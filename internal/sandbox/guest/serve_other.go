//go:build !linux

package guest

import "github.com/toryo-dev/toryo/internal/task"

func serve(Options) error { return task.Errorf(task.Unsupported, "a guest runs on Linux only") }

func launch(string) error { return task.Errorf(task.Unsupported, "a guest runs on Linux only") }

func hide() error { return task.Errorf(task.Unsupported, "a guest runs on Linux only") }
