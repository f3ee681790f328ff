package phase_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// What the specification has the planning model be told of environments is in the very
// request that it gets.
func TestThePlanningRequestSaysHowEnvironmentsAreMade(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/inside/mixed.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.Adjust = func(options *phase.Options) {
		allowed, err := options.Setup.Table.Only([]string{"python", "miniforge", "node", "java", "go", "shell"})
		if err != nil {
			t.Fatal(err)
		}
		options.Setup.Table = allowed
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := world.Requests(task.Planning)
	if len(requests) == 0 {
		t.Fatal("the model was not asked for a plan")
	}
	var asked strings.Builder
	asked.WriteString(requests[0].System)
	for _, message := range requests[0].Messages {
		asked.WriteString(message.Text())
	}
	for _, text := range []string{
		// Which there are, and how to select.
		"- python: Python 3.11 with pip\n", "- miniforge: ", "- node: Node.js with npm\n", "- java: ", "- go: Go with the go command\n",
		"requirements.txt exists and conda is not required", "condaenv.yaml or environment.yml exists", "package.json exists", "pom.xml or build.gradle exists", "go.mod exists",
		"the language that the task is about, the language with the most dependencies, the presence of build files", "select python",
		// How commands are to be.
		"Upgrade the package manager", "Install all dependencies", "initialisation", "safe to run more than once", "Must fail at once", "with a message that says why",
		"Check that the language's runtime is there", "most important packages", "character by character", "No version numbers, times, random values", "such as OK or SUCCESS",
		"asked for corrected commands at most three times", "answers are in English",
		// Examples, good and bad.
		`python -c 'import requests; print("SUCCESS")'`, `node -e 'require("express"); console.log("SUCCESS")'`, "go version | grep -q 'go version' && echo 'OK'",
		"- `python --version`", "- `npm list`", "- `date`",
		`"pip install -r requirements.txt"`, `"npm install"`, `"conda env create -f condaenv.yaml -n project-env", "conda activate project-env"`, `"mvn clean install -DskipTests"`, `"go mod download"`,
		// And of this project.
		"The repository has 2 projects", `"directory": "frontend"`,
	} {
		if !strings.Contains(asked.String(), text) {
			t.Errorf("the request does not have %q", text)
		}
	}
	for _, text := range []string{"- ruby: ", "- rust: ", "{{"} {
		if strings.Contains(asked.String(), text) {
			t.Errorf("the request has %q", text)
		}
	}
}

// The tools and the system prompt go with every turn: what they say is bounded, in bytes.
func TestWhatEveryTurnRepeatsIsShort(t *testing.T) {
	t.Parallel()
	const mostTools, mostSystem = 5200, 2600
	scenario, err := phasetest.Load("testdata/inside/mixed.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := world.Requests(task.Execution)
	if len(requests) == 0 {
		t.Fatal("the model was not asked to do the work")
	}
	tools := 0
	for _, one := range requests[0].Tools {
		var schema json.RawMessage = one.Schema
		data, err := json.Marshal([]any{one.Name, one.Description, schema})
		if err != nil {
			t.Fatal(err)
		}
		tools += len(data)
	}
	if system := len(requests[0].System); tools > mostTools || system > mostSystem {
		t.Errorf("%d bytes of tools and %d of the system prompt go with every turn; want at most %d and %d", tools, system, mostTools, mostSystem)
	}
}
