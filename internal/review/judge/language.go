package judge

import "github.com/toryo-dev/toryo/internal/task"

// wording is what is written into questions and verdicts.
type wording struct {
	issue, criteria, pull, cut, name, scripted string
	fields, verdicts                           map[string]string
}

var words = map[task.Language]wording{
	task.Japanese: {
		issue: "課題", criteria: "受け入れ条件", pull: "プルリクエスト", name: "Japanese",
		cut:      "次のファイルは大きすぎるため対象外です: %s",
		scripted: "（この講評は台本モデルによるものです。）",
		verdicts: map[string]string{approve: "判定: 承認", comment: "判定: コメント", requestChanges: "判定: 要修正"},
		fields: map[string]string{
			Strengths: "良い点", Weaknesses: "問題点", ImportantPoints: "重要な点", FutureConsiderations: "今後の検討事項",
		},
	},
	task.English: {
		issue: "Issue", criteria: "Acceptance criteria", pull: "Pull request", name: "English",
		cut:      "These files are left out because they are too large: %s",
		scripted: "(This review was made by a scripted model.)",
		verdicts: map[string]string{approve: "Verdict: approve", comment: "Verdict: comment", requestChanges: "Verdict: changes requested"},
		fields: map[string]string{
			Strengths: "Strengths", Weaknesses: "Weaknesses", ImportantPoints: "Important points", FutureConsiderations: "To consider later",
		},
	},
}
