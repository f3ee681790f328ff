package receipt

import (
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// MaxVerdict is how many bytes a verdict may have as JSON.
const MaxVerdict = 256 << 10

// Bounds of what is in a verdict. The tags of its fields say the same.
const (
	maxText     = 1000 // characters
	maxCommands = 100
	maxNames    = 200
	maxProjects = 50
	maxRuns     = 10
)

// Verdict is what an agent says that verification found. Names and commands come from
// the repository: they are data, whatever they say.
type Verdict struct {
	Passed      bool        `json:"passed"`
	Environment Environment `json:"environment"`
	Projects    []Project   `json:"projects,omitempty" maxItems:"50"`
	NotRun      string      `json:"notRun,omitempty" doc:"Why tests were not run" maxLength:"1000"`
	NoTests     bool        `json:"noTests,omitempty" doc:"Tests were not run because the repository has none that are known"`
	Findings    []string    `json:"findings,omitempty" doc:"What else is wrong with the work" maxItems:"200"`
	// Cut counts what was left out because it was too much.
	Cut int `json:"cut,omitempty" minimum:"0" doc:"How many commands, names and findings were left out"`
}

// Environment is where the commands ran.
type Environment struct {
	Name     string `json:"name,omitempty" maxLength:"1000"`
	Ready    bool   `json:"ready" doc:"False if set-up failed"`
	Sandbox  string `json:"sandbox,omitempty" doc:"The kind of sandbox" maxLength:"1000"`
	Image    string `json:"image,omitempty" maxLength:"1000"`
	Identity string `json:"identity,omitempty" doc:"Digest of the image, or of the packages of the host" maxLength:"1000"`
	Snapshot string `json:"snapshot,omitempty" doc:"Digest of everything that the environment was made from" maxLength:"1000"`
	// SetupCommands made it, in this order.
	SetupCommands []string `json:"setupCommands,omitempty" maxItems:"100"`
}

// Project is a folder of the repository with what ran for it.
type Project struct {
	Folder string `json:"folder" doc:"Below the root of the repository; . is the root" maxLength:"1000"`
	Runs   []Run  `json:"runs" maxItems:"10"`
}

// The kinds of run.
const (
	BuildRun = "build"
	TestRun  = "tests"
)

// Run is a command that built or tested.
type Run struct {
	Kind         string   `json:"kind" enum:"build,tests"`
	Command      string   `json:"command" maxLength:"1000"`
	ExitCode     int      `json:"exitCode"`
	TimedOut     bool     `json:"timedOut,omitempty"`
	Compared     bool     `json:"compared" doc:"There was a run before the change to compare with"`
	Milliseconds int64    `json:"milliseconds,omitempty" minimum:"0"`
	Counts       *Counts  `json:"counts,omitempty" doc:"Missing if the output does not say"`
	Failed       []string `json:"failed,omitempty" doc:"Tests that fail, and did not before" maxItems:"200"`
	FailedBefore []string `json:"failedBefore,omitempty" doc:"Tests that fail, and did before" maxItems:"200"`
	Fixed        []string `json:"fixed,omitempty" doc:"Tests that failed before and no longer fail" maxItems:"200"`
	Skipped      []string `json:"skipped,omitempty" maxItems:"200"`
	Flaky        []string `json:"flaky,omitempty" doc:"Tests that passed in one run and failed in another, on the same files" maxItems:"200"`
}

// Counts are numbers of tests.
type Counts struct {
	Passed  int `json:"passed" minimum:"0"`
	Failed  int `json:"failed" minimum:"0"`
	Skipped int `json:"skipped" minimum:"0"`
}

// Fit makes a verdict small enough for [Verdict.Check], with every text put through
// clean. What it leaves out is counted in Cut. The lists of the given verdict stay as
// they are.
func (v Verdict) Fit(clean func(string) string) Verdict {
	for most := maxNames; ; most /= 2 {
		cutter := cutter{clean: clean, names: most}
		fitted := v
		fitted.NotRun = cutter.text(v.NotRun)
		fitted.Environment = cutter.environment(v.Environment)
		fitted.Findings = cutter.texts(v.Findings, most)
		fitted.Projects = nil
		for i, project := range v.Projects {
			if i >= min(maxProjects, most) {
				cutter.cut++
				continue
			}
			fitted.Projects = append(fitted.Projects, cutter.project(project))
		}
		fitted.Cut = v.Cut + cutter.cut
		if most <= 1 || fitted.size() <= MaxVerdict {
			return fitted
		}
	}
}

func (v Verdict) size() int {
	data, err := json.Marshal(v)
	if err != nil {
		return MaxVerdict + 1
	}
	return len(data)
}

// Check is Invalid or TooLarge if the verdict is not one that a receipt can have.
func (v Verdict) Check() error {
	for _, project := range v.Projects {
		for _, run := range project.Runs {
			if run.Kind != BuildRun && run.Kind != TestRun {
				return task.Errorf(task.Invalid, "there is no kind of run %.20q in a verdict", run.Kind)
			}
		}
	}
	if size := v.size(); size > MaxVerdict {
		return task.Errorf(task.TooLarge, "the verdict has %d bytes; %d are the limit", size, MaxVerdict)
	}
	return nil
}

// cutter cuts what is too long, and counts what it leaves out.
type cutter struct {
	clean func(string) string
	names int // how many names a list may have
	cut   int
}

func (c *cutter) text(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if c.clean != nil {
		text = c.clean(text) // before it is cut: half a secret is not recognised
	}
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return text
}

func (c *cutter) texts(all []string, most int) []string {
	var kept []string
	for i, text := range all {
		if i >= most {
			c.cut += len(all) - i
			break
		}
		kept = append(kept, c.text(text))
	}
	return kept
}

func (c *cutter) environment(e Environment) Environment {
	for _, text := range []*string{&e.Name, &e.Sandbox, &e.Image, &e.Identity, &e.Snapshot} {
		*text = c.text(*text)
	}
	e.SetupCommands = c.texts(e.SetupCommands, min(maxCommands, c.names))
	return e
}

func (c *cutter) project(p Project) Project {
	cut := Project{Folder: c.text(p.Folder)}
	for i, run := range p.Runs {
		if i >= maxRuns {
			c.cut++
			continue
		}
		run.Command = c.text(run.Command)
		for _, names := range []*[]string{&run.Failed, &run.FailedBefore, &run.Fixed, &run.Skipped, &run.Flaky} {
			*names = c.texts(*names, c.names)
		}
		cut.Runs = append(cut.Runs, run)
	}
	return cut
}
