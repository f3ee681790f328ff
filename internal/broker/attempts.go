package broker

import (
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
)

// AttemptsComment tells people that a task has failed because its agents were lost
// again and again.
func AttemptsComment(setting string, t task.Task) string {
	return notice.Notice{Attempts: t.Attempts}.Lost(task.Language(setting).Of(t.Title))
}
