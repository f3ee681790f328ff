package task_test

import (
	"strings"
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

// A title that is the name of something says nothing about the language of people.
func TestLanguageOfTitleAndBody(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set         task.Language
		title, body string
		others      []string
		want        task.Language
	}{
		{"auto", "Fix the parser", "It fails.", nil, task.English},
		{"auto", "v1.2", "リリースしてください", nil, task.Japanese},
		{"auto", "NullPointerException in UserService", "ログイン時に例外が発生します。", nil, task.Japanese},
		{"auto", "ログインできない", "java.lang.NullPointerException at com.example.UserService.login", nil, task.Japanese},
		{"auto", "Fix the parser", "```\nエラー\n```", nil, task.English},
		{"auto", "v1.2", "", []string{"リリースしてください"}, task.English},
		{"auto", "", "1.2", []string{"リリースしてください"}, task.Japanese},
		{"", "", "", nil, task.English},
		{"en", "直す", "直す", nil, task.English},
		{"ja", "Fix", "It fails.", nil, task.Japanese},
	} {
		if got := test.set.OfItem(test.title, test.body, test.others...); got != test.want {
			t.Errorf("%s %q, %q: %s, want %s", test.set, test.title, test.body, got, test.want)
		}
	}
}

func TestSpokenLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]task.Language{
		"なぜですか": task.Japanese,
		"§3の reasonable person とは何ですか": task.Japanese,
		"理由は？":                           task.Japanese,
		"Why was §3 marked down?":        task.English,
		"Isn't it right?":                task.English,
		"> なぜ減点ですか\n\nBecause I asked":   task.English,
		"> The answer is wrong\n\nなぜ":    task.Japanese,
		"§3 main.go:12\n> Too loud.\n\n": "",
		"OK":                             "",
		"§3":                             "",
		"user_1":                         "",
		"main.go":                        "",
		"":                               "",
		"`if x then`":                    "",
		// What the buttons of a review put into a message is not what the person says.
		"§3「契約は申込みと承諾の合致によって成立する。」 Why is this wrong?":          task.English,
		"§3 “契約は申込みと承諾の合致によって成立する。” Why is this wrong?":         task.English,
		"§3「A contract needs an offer and an acceptance.」なぜ？":   task.Japanese,
		"§3 “A contract needs an offer and an acceptance.” なぜ？": task.Japanese,
		"§3「彼は「はい」と言った。」 Is that enough?":                       task.English,
		"§3「彼は「はい、契約を…」 Is that enough?":                        task.English,
		"§3『契約の成立』 §4「契約の効力」":                                   "",
		"§3「A contract needs an offer.」":                        "",
		"What does \"契約\" mean in 5\" of text?":                 task.English,
		"「契約」とは何ですか":                                            task.Japanese,
		"「閉じていない引用":                                             task.Japanese,
		"「「契約」 Is that enough?":                                 task.English,
		"「契約」」 Is that enough?":                                 task.English,
		"「 \" 」 契約 \"is\" というのは":                                task.Japanese,
	} {
		if got, told := task.Spoken(text); told != (want != "") || told && got != want {
			t.Errorf("%q: %s, %v", text, got, told)
		}
	}
}

// Marks that open quotations and never close them cost no more than other letters: with a
// look at the whole rest for each of them this would not end within the time of a test.
func TestSpokenLanguageOfManyMarks(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"「", "“", "「「」…"} {
		text := strings.Repeat(mark, 600_000) + "なぜですか"
		if got, told := task.Spoken(text); got != task.Japanese || !told {
			t.Errorf("%q: %s, %v", mark, got, told)
		}
	}
}
