package phase_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// The files of a commit are written for the model that judges it when it looks at them, not before.
// It sees those of the commit, not what the workspace has besides.
func TestFilesOfTheJudgement(t *testing.T) {
	t.Parallel()
	const archive = `A model that judges.
-- scenario.yaml --
title: add.sh gives a wrong result
body: It should add.
-- script.yaml --
rules:
  - when: {phase: execution, turn: 2}
    answer: {calls: [{name: run, arguments: {command: "echo left > left.log"}}]}
%s-- repo/add.sh --
echo $(($1 - $2))
-- repo/.gitignore --
*.log
-- repo/test.sh --
exit 0
`
	const looking = `  - when: {phase: verification, turn: 1}
    answer: {calls: [{name: read, arguments: {path: add.sh}}, {name: read, arguments: {path: left.log}}]}
`
	exports := map[string]int{}
	for name, rules := range map[string]string{"not looking": "", "looking": looking} {
		file := filepath.Join(t.TempDir(), "scenario.txtar")
		if err := os.WriteFile(file, fmt.Appendf(nil, archive, rules), 0o600); err != nil {
			t.Fatal(err)
		}
		scenario, err := phasetest.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		world := phasetest.New(t, phasetest.Engine(t), scenario)
		outcome, err := world.Run(t.Context())
		if err != nil || outcome.State != task.Done {
			t.Fatalf("%s: %+v, %v", name, outcome, err)
		}
		exports[name] = world.Exports()
		if name == "not looking" {
			continue
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
	}
	if exports["looking"] != exports["not looking"]+1 {
		t.Errorf("exports were %v", exports)
	}
}
