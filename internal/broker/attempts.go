package broker

import (
	"fmt"

	"github.com/toryo-dev/toryo/internal/task"
)

// AttemptsComment tells people that a task has failed because its agents were lost
// again and again.
func AttemptsComment(setting string, t task.Task) string {
	if task.Language(setting).Of(t.Title) == task.Japanese {
		return fmt.Sprintf("## タスク失敗\n\nエージェントからの応答が %d 回途絶えたため、このタスクを失敗としました。"+
			"もう一度試すには、ボットのアサインを外してから再度アサインしてください。", t.Attempts)
	}
	return fmt.Sprintf("## Task failed\n\nThe agents that worked on this were not heard of any more, %d times, so the task has failed. "+
		"To try again, unassign the bot and then assign it again.", t.Attempts)
}
