package phasetest

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// Scenario is a task, what happens around it, and what is expected of its run. In
// a file it is an archive (txtar) with the parts
//
//	scenario.yaml   the fields of this struct
//	script.yaml     what the model answers; the rules of defaults.yaml follow
//	repo/…          the files of the repository, over those of its project
//	branch/…        files that the branch of the task has besides, if it is there
//	work/…          files that the model writes as its work
type Scenario struct {
	Name string
	// Project is a small project with a failing test that is ready in this package:
	// see the folder projects. Without it and without files it is shell.
	Project string `yaml:"project"`
	// Cheat says that the model wants a verdict that its work does not deserve.
	Cheat bool `yaml:"cheat"`
	// Commands are what the model runs after it has written the files of its work.
	Commands []string `yaml:"commands"`
	// Needs are programs, or pytest, without which it cannot be run.
	Needs    []string     `yaml:"needs"`
	Title    string       `yaml:"title"`
	Body     string       `yaml:"body"`
	Repeat   int          `yaml:"repeat"` // the body is repeated so often
	Author   phase.Person `yaml:"author"`
	Labels   []string     `yaml:"labels"`
	Earlier  string       `yaml:"earlier"`
	Comments []Comment    `yaml:"comments"` // that are there at the start
	// References are other items that the request names; Unreferenced says that
	// they cannot be read.
	References   []Reference `yaml:"references"`
	Unreferenced bool        `yaml:"unreferenced"`
	// Images are the addresses of images that the server gives to the run. The model sees them.
	Images   []string    `yaml:"images"`
	Pull     *Pull       `yaml:"pull"`
	Cause    task.Reason `yaml:"cause"`    // what the task was assigned for
	Occasion string      `yaml:"occasion"` // the one thing that it was assigned for
	Events   []Event     `yaml:"events"`
	Secrets  []string    `yaml:"secrets"` // that may be nowhere
	Expect   Expect      `yaml:"expect"`

	Setting `yaml:",inline"`

	Script *script.Script    `yaml:"-"`
	Files  map[string]string `yaml:"-"`
	Branch map[string]string `yaml:"-"`
}

// Comment is what somebody says.
type Comment struct {
	ID     string             `yaml:"id"`
	Author string             `yaml:"author"`
	Access string             `yaml:"access"`
	Body   string             `yaml:"body"`
	Change task.CommentChange `yaml:"change"`
	Times  int                `yaml:"times"` // it is made so often
	// Refused is why it is not to be taken up.
	Refused task.Reason `yaml:"refused"`

	// What there is only on a pull request of a forge. Review is the verdict of the
	// review whose text this is, Line the line that it is about, as path:line, and
	// Reply the thread that it is written in.
	Review string `yaml:"review"`
	Line   string `yaml:"line"`
	Reply  string `yaml:"reply"`
}

// Reference is another item.
type Reference struct {
	Number int64  `yaml:"number"`
	Title  string `yaml:"title"`
	Body   string `yaml:"body"`
}

// Pull is a pull request that the task is about.
type Pull struct {
	Title   string   `yaml:"title"`
	Body    string   `yaml:"body"`
	Threads []Thread `yaml:"threads"`
}

// Thread is a review thread.
type Thread struct {
	ID     string `yaml:"id"`
	Path   string `yaml:"path"`
	Line   int    `yaml:"line"`
	Author string `yaml:"author"`
	Body   string `yaml:"body"`
}

// Event is something that happens while the run goes on: as soon as the journal
// has an entry that fits, or at the start of the run with that number.
type Event struct {
	When When `yaml:"when"`
	// What happens.
	Comments []Comment         `yaml:"comments"`
	Unheard  []Comment         `yaml:"unheard"` // the server has them, and the run has not received them
	Signal   task.Signal       `yaml:"signal"`
	Base     map[string]string `yaml:"base"`     // files that the base branch gets
	Push     map[string]string `yaml:"push"`     // files that a person pushes to the branch of the task
	Deaf     int               `yaml:"deaf"`     // so many looks for comments fail
	Crash    bool              `yaml:"crash"`    // the process is gone
	NoSaving int               `yaml:"nosaving"` // so many saves fail

	// What happens only where there are a server and a forge.
	Unassign bool   `yaml:"unassign"` // the bot is taken off the item; signal: stop waits for the end too
	Assign   bool   `yaml:"assign"`   // the bot is put on the item again
	Restart  bool   `yaml:"restart"`  // the server is killed and started again
	Mute     int    `yaml:"mute"`     // the forge refuses so many requests
	Away     bool   `yaml:"away"`     // the agent that had the last run is away until the next begins
	Late     bool   `yaml:"late"`     // the run does not wait for it
	Running  string `yaml:"running"`  // not before this command runs; with late
	Hasty    bool   `yaml:"hasty"`    // a crash does not wait until the server has the journal
	By       string `yaml:"by"`       // how a signal is given: close, file, agent file, command, issue (taken off the issue of a pull request); else unassign and the API

	// Do is what a test does itself, in whole installations only.
	Do func(ctx context.Context) error `yaml:"-"`
}

// When says which entry of the journal an event follows.
type When struct {
	Run    int            `yaml:"run"` // 1 for the first run; 0 means any
	Kind   task.EventKind `yaml:"kind"`
	Phase  task.Phase     `yaml:"phase"`
	Status string         `yaml:"status"`
	Tool   string         `yaml:"tool"`
	Begun  bool           `yaml:"begun"` // the tool has begun and not ended
	Step   int64          `yaml:"step"`
	Start  bool           `yaml:"start"` // of the run
	Entry  int            `yaml:"entry"` // the number of the entry in the journal
	Over   bool           `yaml:"over"`  // the task has ended, after so many runs
	Asked  task.Phase     `yaml:"asked"` // the model was asked from the phase
}

// Expect is what has to be the case at the end. Texts are parts of what is there.
type Expect struct {
	Runs    int               `yaml:"runs"` // how many it takes; 1 when not set
	State   task.State        `yaml:"state"`
	Reason  task.Reason       `yaml:"reason"`
	States  []string          `yaml:"states"`  // of every run, as state/reason
	Phases  []string          `yaml:"phases"`  // phase/status, in order
	Files   map[string]string `yaml:"files"`   // of the published branch
	Absent  []string          `yaml:"absent"`  // files that it does not have
	Parents []string          `yaml:"parents"` // of its commit: main, theirs for what a person has pushed, start for what the branch had
	Title   string            `yaml:"title"`   // of the pull request
	Pull    []string          `yaml:"pull"`    // in its description
	NotPull []string          `yaml:"not_pull"`
	Draft   bool              `yaml:"draft"`
	NoPull  bool              `yaml:"no_pull"`
	Comment []string          `yaml:"comment"`  // at the end
	NotSaid []string          `yaml:"not_said"` // anywhere where people read
	Said    []string          `yaml:"said"`     // in comments during the run
	Replies map[string]string `yaml:"replies"`  // by thread
	Asked   []string          `yaml:"asked"`    // in what the model was sent
	Shown   []string          `yaml:"shown"`    // addresses of the images that the model of execution was shown
	Kept    map[string]string `yaml:"kept"`     // files of the work in progress
	Ledger  []string          `yaml:"ledger"`   // position:change[:refused]
	Summary []string          `yaml:"summary"`  // for a later run
	Journal []string          `yaml:"journal"`  // in what was written down
	Unasked []string          `yaml:"unasked"`  // that is nowhere in what the model was sent
	Taken   int               `yaml:"taken"`    // comments, each new, in order: a ledger that is too long to write down

	// Executing is in what the model was sent that does the work, and Unexecuting is not.
	Executing   []string `yaml:"executing"`
	Unexecuting []string `yaml:"unexecuting"`
}

// Load reads a scenario.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	own, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	if own.Project == "" && len(own.Files) == 0 {
		own.Project = "shell"
	}
	s := own
	if own.Project != "" {
		if s, err = own.inProject(path, data); err != nil {
			return nil, err
		}
	}
	if s.Script, err = withDefaults(s.Script); err != nil {
		return nil, err
	}
	if s.Repeat > 0 {
		s.Body = strings.Repeat(s.Body, s.Repeat)
	}
	if s.Author.Login == "" {
		s.Author = phase.Person{Login: "alice", Access: "write"}
	}
	return s, nil
}

func parse(path string, data []byte) (*Scenario, error) {
	s := &Scenario{Files: map[string]string{}, Branch: map[string]string{}}
	err := s.read(path, data)
	return s, err
}

// read reads the parts of an archive over what is there. Rules come before those that
// are there.
func (s *Scenario) read(path string, data []byte) error {
	var work []script.Call
	var own script.Script
	for _, file := range txtar.Parse(data).Files {
		switch name, below := cutFolder(file.Name); {
		case file.Name == "scenario.yaml":
			if err := yaml.NewDecoder(bytes.NewReader(file.Data), yaml.DisallowUnknownField()).Decode(s); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		case file.Name == "script.yaml":
			read, err := script.Parse(path, file.Data)
			if err != nil {
				return err
			}
			own = *read
		case name == "repo":
			s.Files[below] = string(file.Data)
		case name == "branch":
			s.Branch[below] = string(file.Data)
		case name == "work":
			work = append(work, script.Call{Name: "edit", Arguments: map[string]any{"command": "create", "path": below, "new": literal(string(file.Data)), "overwrite": true}})
		default:
			return fmt.Errorf("%s: it is not known what %s is for", path, file.Name)
		}
	}
	for _, command := range s.Commands {
		work = append(work, script.Call{Name: "run", Arguments: map[string]any{"command": literal(command)}})
	}
	if len(work) > 0 {
		own.Rules = append(own.Rules, script.Rule{Name: "work", When: script.When{Phase: task.Execution, Turn: 1}, Answer: script.Answer{Calls: work}},
			script.Rule{Name: "work is done", When: script.When{Phase: task.Execution}, Answer: script.Answer{Calls: []script.Call{
				{Name: "finish", Arguments: map[string]any{"summary": "It works now."}}}}})
	}
	if len(own.Rules) == 0 {
		return nil
	}
	if s.Script != nil {
		own.Rules = slices.Concat(own.Rules, s.Script.Rules)
	}
	var err error
	s.Script, err = script.New(own)
	return err
}

// literal is a text of which a script changes nothing.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func cutFolder(name string) (folder, below string) {
	folder, below, _ = strings.Cut(name, "/")
	return folder, below
}

//go:embed defaults.yaml
var defaults []byte

//go:embed projects
var projects embed.FS

// inProject is the scenario in its project, of which it changes what it has itself.
func (s *Scenario) inProject(path string, data []byte) (*Scenario, error) {
	name := "projects/" + s.Project + ".txtar"
	project, err := projects.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	both, err := parse(name, project)
	if err != nil {
		return nil, err
	}
	err = both.read(path, data)
	return both, err
}

// need leaves the test out if this machine lacks what the scenario needs.
func (s *Scenario) need(t testing.TB) {
	t.Helper()
	for _, name := range s.Needs {
		command := exec.CommandContext(t.Context(), "sh", "-c", "command -v "+name)
		if name == "pytest" { // of the Python that sandboxes have
			command = exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import pytest")
		}
		if command.Run() != nil {
			testkit.LeaveOut(t, name)
		}
	}
}

// withDefaults puts the usual answers after those of the scenario.
func withDefaults(own *script.Script) (*script.Script, error) {
	usual, err := script.Parse("defaults.yaml", defaults)
	if err != nil || own == nil {
		return usual, err
	}
	return script.New(script.Script{Model: own.Model, Rules: slices.Concat(own.Rules, usual.Rules)})
}
