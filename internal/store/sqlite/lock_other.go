//go:build !unix

package sqlite

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

func lockFile(context.Context, string) (unlock func() error, err error) {
	return nil, task.Errorf(task.Unsupported, "a SQLite database cannot be made on this system").
		WithMend("use PostgreSQL, or Linux or macOS")
}
