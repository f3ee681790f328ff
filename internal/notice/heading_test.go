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
		{"## Toryo is at work\n\n**Task**: a\n", task.Stopped, "## Toryo was stopped\n\n**Task**: a\n"},
		{"## Toryo is paused\n\n**Task**: a\n", task.Failed, "## Toryo could not finish\n\n**Task**: a\n"},
		{"## Toryo が作業中です\n\n**タスク**: a\n", task.Stopped, "## Toryo は停止しました\n\n**タスク**: a\n"},
		{"## Toryo は停止しました\n\nb", task.Paused, "## Toryo は一時停止中です\n\nb"},
		{"## Toryo is at work\n\nb", task.Done, "## Toryo is at work\n\nb"},
		{"somebody has edited it", task.Stopped, "somebody has edited it"},
	} {
		if got := notice.WithHeading(test.comment, test.state); got != test.want {
			t.Errorf("%q in the state %s is %q, want %q", test.comment, test.state, got, test.want)
		}
	}
}
