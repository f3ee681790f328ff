package agent_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
)

// A review for which the model has no judgement that can be used has failed: handed out again, it
// would cost the same without end. A provider that does not answer is tried again.
func TestAReviewWithoutAJudgementFails(t *testing.T) {
	t.Parallel()
	made, err := script.New(script.Script{Rules: []script.Rule{{Name: "words", Answer: script.Answer{Text: "It looks good."}}}})
	if err != nil {
		t.Fatal(err)
	}
	paper, err := judge.PullPaper(judge.Pull{
		Title: "Greet people", Commit: strings.Repeat("a", 40), Diff: "diff --git a/hello.sh b/hello.sh\n--- a/hello.sh\n+++ b/hello.sh\n@@ -1 +1 @@\n-echo\n+echo hello\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = judge.Judge{Model: script.NewModel(made, llm.Endpoint{})}.Judge(t.Context(), paper)
	if err == nil || agent.TriedAgain(t.Context(), err) {
		t.Errorf("it is tried again after %v", err)
	}
	if !agent.TriedAgain(t.Context(), task.Errorf(task.Unavailable, "the provider does not answer")) {
		t.Error("it is not tried again when the provider comes back")
	}
}
