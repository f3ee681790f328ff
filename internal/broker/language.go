package broker

import "github.com/toryo-dev/toryo/internal/task"

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
func because(reason task.Reason, in task.Language) string {
	if in != task.Japanese {
		return reason.Text()
	}
	if text, known := reasonsJa[reason]; known {
		return text
	}
	return "「" + reason.Text() + "」の"
}
