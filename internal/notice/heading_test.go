package notice_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestWithHeading(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		comment string
		state   task.State
		want    string
	}{
		{"## Toryo is working\n\n**Task**: a\n", task.Stopped, "## Toryo was stopped\n\n**Task**: a\n"},
		{"## Toryo is paused\n\n**Task**: a\n", task.Failed, "## Toryo could not finish\n\n**Task**: a\n"},
		{"## Toryo が作業中です\n\n**タスク**: a\n", task.Stopped, "## Toryo は停止しました\n\n**タスク**: a\n"},
		{"## Toryo は停止しました\n\nb", task.Paused, "## Toryo は一時停止中です\n\nb"},
		{"## Toryo is working\n\nb", task.Done, "## Toryo is working\n\nb"},
		{"somebody has edited it", task.Stopped, "somebody has edited it"},
	} {
		if got := notice.WithHeading(test.comment, test.state); got != test.want {
			t.Errorf("%q in the state %s is %q, want %q", test.comment, test.state, got, test.want)
		}
	}
}

func TestWithLink(t *testing.T) {
	t.Parallel()
	const page = "https://toryo.example.com/tasks/1"
	for _, test := range []struct{ comment, address, want string }{
		{"## Toryo is working\n\n**Task**: a\n", page, "## Toryo is working\n\n[The task page](" + page + ") shows every step of the work.\n\n**Task**: a\n"},
		{"## Toryo が作業中です\n\n**タスク**: a\n", page, "## Toryo が作業中です\n\n[このタスクのページ](" + page + ")で作業の各段階を確認できます。\n\n**タスク**: a\n"},
		{"## Toryo is working\n\n**Task**: a\n", "", "## Toryo is working\n\n**Task**: a\n"},
		{"one\n", page, "one\n\n[The task page](" + page + ") shows every step of the work.\n"},
	} {
		if got := notice.WithLink(test.comment, test.address); got != test.want {
			t.Errorf("%q with %q is %q, want %q", test.comment, test.address, got, test.want)
		}
	}
}
