package phase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// If the files of a commit cannot be written for the model that judges it, the run ends without a
// verdict, and the model knows nothing of that. The next run asks it again, with the files of the
// commit, not with what the workspace has besides.
func TestFilesOfTheJudgementThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	const archive = `A model that judges.
-- scenario.yaml --
title: add.sh gives a wrong result
body: It should add.
-- script.yaml --
rules:
  - when: {phase: execution, turn: 2}
    answer: {calls: [{name: run, arguments: {command: "echo left > left.log"}}]}
  - when: {phase: verification, turn: 1}
    answer: {calls: [{name: read, arguments: {path: add.sh}}, {name: read, arguments: {path: left.log}}]}
-- repo/add.sh --
echo $(($1 - $2))
-- repo/.gitignore --
*.log
-- repo/test.sh --
exit 0
`
	file := filepath.Join(t.TempDir(), "scenario.txtar")
	if err := os.WriteFile(file, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	scenario, err := phasetest.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	failed := 0
	world.FailExport = func() error {
		if failed++; failed > 3 { // more often than there are exports in a run
			return nil
		}
		return task.Errorf(task.DataDir, "no room in the secret folder")
	}
	for range 3 {
		if outcome, err := world.Run(t.Context()); task.CodeOf(err) != task.DataDir {
			t.Fatalf("without room: %+v, %v", outcome, err)
		}
	}
	if outcome, err := world.Run(t.Context()); err != nil || outcome.State != task.Done {
		t.Fatalf("%+v, %v", outcome, err)
	}
	requests := world.Requests(task.Verification)
	seen := ""
	for _, message := range requests[len(requests)-1].Messages {
		for _, part := range message.Parts {
			if part.Result != nil {
				seen += part.Result.Text + "\n"
			}
		}
	}
	for _, part := range []string{"echo $(($1 + $2))", "there is no file left.log"} {
		if !strings.Contains(seen, part) {
			t.Errorf("the model was not shown %q:\n%s", part, seen)
		}
	}
	if strings.Contains(world.Journal(), "secret folder") {
		t.Error("the failure is in the journal")
	}
}
