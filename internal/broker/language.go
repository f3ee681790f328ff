package broker

import (
	"unicode"

	"github.com/toryo-dev/toryo/internal/task"
)

// Language is a language that we write in on a forge.
type Language string

// The languages.
const (
	Japanese Language = "ja"
	English  Language = "en"
)

// LanguageOf is the language to write in on an item: the one that is set, or with
// the setting "auto" that of the item. Kana is Japanese, and so are ideographs
// where nothing else tells: there are only these two languages to choose from.
func LanguageOf(setting, title, body string) Language {
	switch Language(setting) {
	case Japanese, English:
		return Language(setting)
	}
	for _, letter := range title + body {
		if unicode.In(letter, unicode.Hiragana, unicode.Katakana, unicode.Han) {
			return Japanese
		}
	}
	return English
}

// reasonsJa are the reasons that people are told, in Japanese, as they stand
// before "ため".
var reasonsJa = map[task.Reason]string{
	task.ReasonUnassigned:        "ボットのアサインが解除された",
	task.ReasonItemClosed:        "アイテムがクローズされた",
	task.ReasonStopRequested:     "停止が要求された",
	task.ReasonPauseRequested:    "一時停止が要求された",
	task.ReasonAllPaused:         "すべてのタスクの一時停止が要求された",
	task.ReasonBudgetExhausted:   "予算を使い切った",
	task.ReasonAwaitingAnswer:    "質問への回答を待っている",
	task.ReasonPausedTooLong:     "一時停止の期間が長すぎた",
	task.ReasonRunFailed:         "処理に失敗した",
	task.ReasonAttemptsExhausted: "試行回数の上限に達した",
	task.ReasonModelLoops:        "モデルが同じ手順を繰り返した",
	task.ReasonEmptyAnswers:      "モデルが何度も空の応答を返した",
	task.ReasonTurnsExhausted:    "フェーズで許されたターン数を使い切った",
	task.ReasonModelRefused:      "モデルが応答を拒否した",
	task.ReasonContextExceeded:   "会話がモデルのコンテキストに収まらなくなった",
}

// because is a reason as it stands in a text.
func (l Language) because(reason task.Reason) string {
	if text, known := reasonsJa[reason]; l == Japanese && known {
		return text
	}
	if l == Japanese {
		return "「" + reason.Text() + "」の"
	}
	return reason.Text()
}
