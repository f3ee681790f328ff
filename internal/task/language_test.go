package task_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestLanguageOfAnItem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set   task.Language
		texts []string
		want  task.Language
	}{
		{"auto", []string{"Fix the parser", "It fails."}, task.English},
		{"auto", []string{"README.md の typo を直す"}, task.Japanese},
		{"auto", []string{"環境構築失敗"}, task.Japanese},
		{"auto", []string{"The label 完了 is not shown as it should be"}, task.English},
		{"auto", []string{"`GetUserByName` が失敗する", "```go\nfunc main() { panic(\"a very long piece of code\") }\n```"}, task.Japanese},
		{"auto", []string{"```\nエラー\n```\nWhat does this mean?"}, task.English},
		{"auto", []string{"v1.2", "リリースしてください"}, task.English},
		{"auto", []string{"1.2", "リリースしてください"}, task.Japanese},
		{"auto", []string{"", "バグです"}, task.Japanese},
		{"auto", nil, task.English},
		{"", []string{"こんにちは"}, task.Japanese},
		{"ja", []string{"Fix"}, task.Japanese},
		{"en", []string{"直す"}, task.English},
	} {
		if got := test.set.Of(test.texts...); got != test.want {
			t.Errorf("%s %q: %s, want %s", test.set, test.texts, got, test.want)
		}
	}
}
