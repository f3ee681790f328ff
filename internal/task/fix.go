package task

// fixes say what a person can do about a reason for which a task waits.
var fixes = map[Reason]string{
	ReasonNoAgents:        "start one: toryo up works by itself; for toryo serve make a token with toryo agent token create and start toryo agent with it",
	ReasonAgentsSilent:    "start an agent again, and look at its log; toryo agent list says when each was seen",
	ReasonNoSandbox:       "install bubblewrap there, for example: sudo apt-get install bubblewrap; or start a Docker Engine; toryo doctor says what is missing",
	ReasonNoModel:         "set llm.provider and llm.model in toryo.yaml and the key in TORYO_LLM_API_KEY, and start the agent again",
	ReasonPauseRequested:  "let it go on with toryo resume TASK, or on its page",
	ReasonAllPaused:       "let everything go on with toryo resume; if a file pause_signal asks for the pause, remove it",
	ReasonAgentPaused:     "remove the file pause_signal from the folder contexts of the agent; if that machine is gone, use toryo resume --force",
	ReasonBudgetExhausted: "raise the limits in budget, or wait until tomorrow if it is that of the day; then let it go on with toryo resume TASK",
	ReasonAwaitingAnswer:  "answer the question on the item",
}

var fixesInJapanese = map[Reason]string{
	ReasonNoAgents:        "エージェントを起動してください。toryo up にはエージェントが含まれます。toryo serve の場合は toryo agent token create でトークンを作り、toryo agent を起動します",
	ReasonAgentsSilent:    "エージェントを再起動し、ログを確認してください。最後に応答した時刻は toryo agent list で確認できます",
	ReasonNoSandbox:       "そのマシンに bubblewrap をインストールする（例: sudo apt-get install bubblewrap）か、Docker Engine を起動してください。不足しているものは toryo doctor で確認できます",
	ReasonNoModel:         "toryo.yaml に llm.provider と llm.model、環境変数 TORYO_LLM_API_KEY にキーを設定し、エージェントを再起動してください",
	ReasonPauseRequested:  "toryo resume TASK またはタスクのページで再開できます",
	ReasonAllPaused:       "toryo resume で再開できます。ファイル pause_signal による一時停止であれば、そのファイルを削除してください",
	ReasonAgentPaused:     "エージェントの contexts フォルダーからファイル pause_signal を削除してください。そのマシンがもう存在しない場合は toryo resume --force を使います",
	ReasonBudgetExhausted: "budget の上限を増やすか、1日の予算であれば翌日まで待ってから、toryo resume TASK で再開してください",
	ReasonAwaitingAnswer:  "アイテムの質問に回答してください",
}

// Fix is what a person can do about the reason, in words of a language. It is
// empty for a reason that needs nobody.
func (r Reason) Fix(language Language) string {
	if language == Japanese {
		return fixesInJapanese[r]
	}
	return fixes[r]
}
