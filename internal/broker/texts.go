package broker

import (
	"fmt"
	"unicode"

	"github.com/toryo-dev/toryo/internal/task"
)

// Language chooses the language of what we write about a text: as the setting
// says, or, with auto, that of the text. It is ja or en.
func Language(setting, text string) string {
	if setting == "ja" || setting == "en" {
		return setting
	}
	for _, r := range text {
		if unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) {
			return "ja"
		}
	}
	return "en"
}

// AttemptsComment tells people that a task has failed because its agents were lost
// again and again.
func AttemptsComment(setting string, t task.Task) string {
	if Language(setting, t.Title) == "ja" {
		return fmt.Sprintf("## タスク失敗\n\nエージェントからの応答が %d 回途絶えたため、このタスクを失敗としました。"+
			"もう一度試すには、ボットのアサインを外してから再度アサインしてください。", t.Attempts)
	}
	return fmt.Sprintf("## Task failed\n\nThe agents that worked on this were not heard of any more, %d times, so the task has failed. "+
		"To try again, unassign the bot and then assign it again.", t.Attempts)
}
