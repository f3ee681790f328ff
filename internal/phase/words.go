package phase

import (
	"fmt"

	"github.com/toryo-dev/toryo/internal/task"
)

var languageNames = map[task.Language]string{task.Japanese: "Japanese", task.English: "English"}

// languageOf is the language of what people read: the configured one, or that of
// the item.
func languageOf(work Work, configured string) task.Language {
	texts := []string{work.Title, work.Body}
	for _, comment := range work.Comments {
		texts = append(texts, comment.Body)
	}
	return task.Language(configured).Of(texts...)
}

// words are the texts that people read, in one language.
type words struct {
	nothingAsked, questionForm                                string
	notVerified                                               string
	summary, actions, verification, stillFailing, newFailing  string
	fixed, warnings, notRun, passed, exitCode, timedOut       string
	noPlaceholders, placeholder, missing, problem, judged     string
	closes, scripted, setupFailed, build, tests, noComparison string
	detail, setupBroken, sandboxLost, noVerdict, counts       string
}

var allWords = map[task.Language]words{
	task.English: {
		nothingAsked: "The item does not say what is to be done. What should I do?",
		questionForm: "**A question before I go on**\n\n%s\n\nThe work is paused until somebody answers here.",
		notVerified:  "The work is **not finished**: it did not pass verification. The pull request says what is wrong.",
		summary:      "What was done", actions: "Plan", verification: "How it was verified",
		newFailing: "New failures", stillFailing: "Failing before and still failing", fixed: "Fixed",
		warnings: "Warnings", notRun: "The tests were **not run**: %s.", passed: "passed", exitCode: "failed with exit code %d", timedOut: "did not end in time",
		noPlaceholders: "No placeholders are left in the added lines.", placeholder: "A placeholder is left: `%s`",
		missing: "Missing: %s", problem: "Problem: %s", judged: "The change was compared with the request by a model, which found it complete.",
		closes: "Closes #%d", scripted: "_The answers came from a script, not from a model._",
		setupFailed: "Environment set-up failed; the work went on with restrictions.",
		build:       "Build", tests: "Tests", noComparison: "There is no run from before the change to compare with.", detail: "Detail",
		noVerdict: "ended with exit code 0, which does **not** count as passed: %s", counts: " (%d passed, %d failed, %d skipped)",
		setupBroken: "The environment can **no longer be set up** with the changed files: %s",
		sandboxLost: "The sandbox was lost and could not be made again, so that no more commands could be run: %s",
	},
	task.Japanese: {
		nothingAsked: "何をすればよいか書かれていません。何をしましょうか？",
		questionForm: "**続ける前に質問があります**\n\n%s\n\nここに回答があるまで作業を一時停止します。",
		notVerified:  "作業は**完了していません**。検証に合格しませんでした。問題点はプルリクエストに記載しています。",
		summary:      "実施内容", actions: "計画", verification: "検証方法",
		newFailing: "新たに失敗したテスト", stillFailing: "以前から失敗しているテスト", fixed: "修正されたテスト",
		warnings: "警告", notRun: "テストは**実行されていません**: %s。", passed: "成功", exitCode: "失敗 (終了コード %d)", timedOut: "時間内に終わりませんでした",
		noPlaceholders: "追加行に仮実装は残っていません。", placeholder: "仮実装が残っています: `%s`",
		missing: "不足: %s", problem: "問題: %s", judged: "変更内容をモデルが依頼と照合し、過不足がないと判断しました。",
		closes: "Closes #%d", scripted: "_この回答はモデルではなくスクリプトによるものです。_",
		setupFailed: "環境構築に失敗したため、制限付きで作業を進めました。",
		build:       "ビルド", tests: "テスト", noComparison: "変更前の実行結果がないため比較できません。", detail: "詳細",
		noVerdict: "終了コード 0 で終わりましたが、成功とは**みなしません**: %s", counts: "（成功 %d、失敗 %d、スキップ %d）",
		setupBroken: "変更後のファイルでは環境を**構築できなくなりました**: %s",
		sandboxLost: "サンドボックスが失われ、再作成できなかったため、以降のコマンドは実行できませんでした: %s",
	},
}

func (r *run) words() words { return allWords[r.language] }

func (w words) question(text string) string { return fmt.Sprintf(w.questionForm, text) }
