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
	flaky, unexplained, explained, because, doubted, shown    string
	noneShown, testFiles                                      string
	found                                                     map[string]string // by the kind of a finding about tests
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
		flaky:       "Flaky tests, which do not count", unexplained: "Changes to tests that nothing explains", explained: "Changes to tests",
		because: "%s — explained by a model that did not do the work: %s", doubted: "does **not** count: see “Changes to tests that nothing explains”",
		shown: "Shown by tests that fail without the change and pass with it: %s", noneShown: "No test can show it, as the plan says: %s",
		testFiles: "Files of the change that are tests, or say how tests are run:",
		found: map[string]string{
			testsNotRun:    "Tests that ran before the change do not run any more",
			testsSkipped:   "Tests that ran before the change are skipped now",
			noReport:       "The test runner did not come to the end of its report, so that nothing is known of the tests",
			testsRewritten: "These files of tests were changed while the tests ran",
			failsAsBefore:  "As they were before the change, these tests do not pass with it",
			flakyWithWork:  "These tests fail now and then, and were never seen to fail before the change",
			buildFileLines: "Lines of build files decide which tests run, or what replaces the packages that they use",
			stillFails:     "The request names these tests, and they still fail",
			nothingShown:   "Tests that failed before still fail, and no test shows what the change does",
		},
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
		flaky:       "不安定なテスト（判定には含めません）", unexplained: "説明のつかないテストの変更", explained: "テストの変更",
		because: "%s — 作業をしていないモデルによる説明: %s", doubted: "成功とは**みなしません**。「説明のつかないテストの変更」を参照してください",
		shown: "変更前は失敗し、変更後は成功するテスト: %s", noneShown: "計画によると、テストでは示せません: %s",
		testFiles: "変更に含まれるテスト、またはテストの実行方法を決めるファイル:",
		found: map[string]string{
			testsNotRun:    "変更前に実行されていたテストが実行されなくなりました",
			testsSkipped:   "変更前に実行されていたテストがスキップされるようになりました",
			noReport:       "テストランナーの報告が最後まで届かず、テストの結果がわかりません",
			testsRewritten: "テストの実行中に書き換えられたテストのファイルです",
			failsAsBefore:  "変更前のままのテストでは、変更後のコードは成功しません",
			flakyWithWork:  "変更前には失敗が確認されなかったのに、ときどき失敗するテストです",
			buildFileLines: "実行するテストや、テストが使うパッケージの置き換えを決めるビルドファイルの行が変わりました",
			stillFails:     "依頼に書かれているテストがまだ失敗しています",
			nothingShown:   "以前から失敗しているテストが残り、変更の効果を示すテストもありません",
		},
	},
}

func (r *run) words() words { return allWords[r.language] }

func (w words) question(text string) string { return fmt.Sprintf(w.questionForm, text) }
