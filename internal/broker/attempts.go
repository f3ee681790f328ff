package broker

import (
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
)

// AttemptsComment tells people that a task has failed because its agents were lost
// again and again.
func AttemptsComment(in task.Language, t task.Task) string {
	return notice.Notice{Attempts: t.Attempts}.Lost(in)
}
