package progress

import (
	"fmt"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// phrase is a text in both languages, with places to fill in as in fmt. The
// places are numbered where their order differs.
type phrase struct{ en, ja string }

// format is a phrase in the language of the comment.
func (c *Comment) format(p phrase, args ...any) string {
	if c.language == task.Japanese {
		return fmt.Sprintf(p.ja, args...)
	}
	return fmt.Sprintf(p.en, args...)
}

var (
	workingText  = phrase{"Toryo is at work", "Toryo が作業中です"}
	finishedText = phrase{"Toryo has finished", "Toryo の作業が終わりました"}

	taskText     = phrase{"**Task**: %s", "**タスク**: %s"}
	roleText     = phrase{"**Role**: %s", "**役割**: %s"}
	branchText   = phrase{"**Branch**: `%s`", "**ブランチ**: `%s`"}
	scriptedText = phrase{
		"The model is scripted: its answers were written beforehand and no model was asked.",
		"モデルはスクリプトです。応答はあらかじめ用意されたもので、実際のモデルには問い合わせていません。",
	}
	countsText = phrase{
		"**Steps**: %d, **tool calls**: %d (failed: %d), **tokens**: %d in (%d from the cache) and %d out, **cost**: %s",
		"**ステップ**: %d、**ツール呼び出し**: %d(失敗 %d)、**トークン**: 入力 %d(うちキャッシュ %d)・出力 %d、**費用**: %s",
	}
	environmentText = phrase{"**Environment**: %s, set-up: %s", "**環境**: %s、環境構築: %s"}
	succeededText   = phrase{"succeeded", "成功"}
	failedText      = phrase{"failed; the work goes on with what there is", "失敗(制限付きで作業を続けています)"}
	reasonText      = phrase{"**Reason**: %s", "**理由**: %s"}

	planHeading     = phrase{"### Plan (%d of %d done)", "### 計画(%d/%d 完了)"}
	notesHeading    = phrase{"### Last notes", "### 最近のメモ"}
	warningsHeading = phrase{"### Warnings", "### 警告"}
	commentsHeading = phrase{"### Comments taken up", "### 取り込んだコメント"}
	historyHeading  = phrase{"History (%d)", "履歴(%d 件)"}
	moreText        = phrase{"… and %d more", "… ほか %d 件"}
	earlierText     = phrase{"… and %d before", "… これより前に %d 件"}
	cutText         = phrase{"*(the rest is left out: the comment would be too long)*", "*(コメントが長くなりすぎるため、残りは省略しました)*"}

	ledgerTitles = phrase{"| Comment | By | What became of it |", "| コメント | 投稿者 | 扱い |"}
	takenText    = phrase{"taken up at step %d", "ステップ %d で取り込みました"}
	editedText   = phrase{"edited; taken up at step %d", "編集されました。ステップ %d で取り込みました"}
	deletedText  = phrase{"deleted; withdrawn at step %d", "削除されました。ステップ %d で取り下げました"}
	refusedText  = phrase{"not taken up: %s", "取り込みませんでした: %s"}

	savedText    = phrase{"Work in progress saved as %s", "作業途中の状態を %s として保存しました"}
	plannedText  = phrase{"Plan %d with %d actions", "計画 %d 版(%d 件の作業)"}
	stoppedText  = phrase{"Stopped", "停止しました"}
	pausedText   = phrase{"Paused", "一時停止しました"}
	commentsText = phrase{"Comments read: %d", "コメントを %d 件読みました"}
)

var phaseTexts = map[string]phrase{
	phase.PhaseActive:    {"%s began", "%s を開始しました"},
	phase.PhaseCompleted: {"%s completed", "%s が完了しました"},
	phase.PhaseFailed:    {"%s failed", "%s が失敗しました"},
}
