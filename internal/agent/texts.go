package agent

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// phrase is a text in both languages, with places to fill in as in fmt.
type phrase struct{ ja, en string }

func (p phrase) in(l task.Language, args ...any) string {
	if l == task.Japanese {
		return fmt.Sprintf(p.ja, args...)
	}
	return fmt.Sprintf(p.en, args...)
}

var (
	failedText = phrase{
		ja: "作業を完了できませんでした: %s",
		en: "The work could not be finished: %s",
	}
	exitText = phrase{
		ja: "実行したコマンドが終了コード %d で失敗しました。",
		en: "The command that does the work failed with exit code %d.",
	}
	limitText = phrase{
		ja: "実行したコマンドが制限(%s)を超えたため、打ち切られました。",
		en: "The command that does the work was killed because it exceeded a limit (%s).",
	}
	unchangedText = phrase{
		ja: "コマンドは終了しましたが、変更は一つもありませんでした。プルリクエストは作成していません。",
		en: "The command ended, but it changed nothing. No pull request was opened.",
	}
	silentText = phrase{
		ja: "レビューのコマンドは終了しましたが、何も出力しませんでした。",
		en: "The command that does the review ended, but it wrote nothing.",
	}
	outputText = phrase{
		ja: "出力の末尾:",
		en: "The end of its output:",
	}
	pullText = phrase{
		ja: "Closes #%d\n\nこのプルリクエストは Toryo が `%s` を実行して作成しました。",
		en: "Closes #%d\n\nThis pull request was made by Toryo with `%s`.",
	}
	threadText = phrase{
		ja: "この指摘を渡してコマンドを実行し、コミット %s を作成しました。ご確認ください。",
		en: "The command was run with this request and made commit %s. Please have a look.",
	}
)

// failureText is what people are told of a run that ended with an error: what
// happened and how to fix it. What is behind the error is for the log.
func failureText(in task.Language, err error) string {
	return notice.Notice{Detail: failedText.in(in, failureDetail(err))}.Broke(in)
}

// failureDetail is what an error means to people.
func failureDetail(err error) string {
	message := task.CodeOf(err).Info().Meaning
	if coded, found := task.AsError(err); found && coded.Code != task.Internal {
		message = coded.Message
		if coded.Hint != "" {
			message += " (" + coded.Hint + ")"
		}
	}
	return message
}

// quoted is output in a block of its own, which nothing in it can leave.
func quoted(text string) string {
	fence := textfmt.Fence(text)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// ending is the last part of a text, from the beginning of a line if there is one.
func ending(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = strings.ToValidUTF8(text[len(text)-most:], "")
	if _, rest, found := strings.Cut(text, "\n"); found && rest != "" {
		text = rest
	}
	return text
}
