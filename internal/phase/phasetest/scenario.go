package phasetest

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// Scenario is a task, what happens around it, and what is expected of its run. In
// a file it is an archive (txtar) with the parts
//
//	scenario.yaml   the fields of this struct
//	script.yaml     what the model answers; the rules of defaults.yaml follow
//	repo/…          the files of the repository; a shell script with a failing
//	                test when there are none
//	branch/…        files that the branch of the task has besides, if it is there
type Scenario struct {
	Name     string
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
	Pull         *Pull       `yaml:"pull"`
	Events       []Event     `yaml:"events"`
	Secrets      []string    `yaml:"secrets"` // that may be nowhere
	Expect       Expect      `yaml:"expect"`

	Equipment `yaml:",inline"`

	Script *script.Script    `yaml:"-"`
	Files  map[string]string `yaml:"-"`
	Branch map[string]string `yaml:"-"`
}

// Comment is what somebody says.
type Comment struct {
	ID     string `yaml:"id"`
	Author string `yaml:"author"`
	Access string `yaml:"access"`
	Body   string `yaml:"body"`
	Change string `yaml:"change"`
	Times  int    `yaml:"times"` // it is made so often
	// Refused is why it is not to be taken up.
	Refused task.Reason `yaml:"refused"`
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
	Signal   task.Signal       `yaml:"signal"`
	Base     map[string]string `yaml:"base"`     // files that the base branch gets
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
	Hasty    bool   `yaml:"hasty"`    // a crash does not wait until the server has the journal
	By       string `yaml:"by"`       // how a signal is given: close, file, command; else unassign and the API
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
	States  []string          `yaml:"states"` // of every run, as state/reason
	Phases  []string          `yaml:"phases"` // phase/status, in order
	Files   map[string]string `yaml:"files"`  // of the published branch
	Absent  []string          `yaml:"absent"` // files that it does not have
	Title   string            `yaml:"title"`  // of the pull request
	Pull    []string          `yaml:"pull"`   // in its description
	NotPull []string          `yaml:"not_pull"`
	Draft   bool              `yaml:"draft"`
	NoPull  bool              `yaml:"no_pull"`
	Comment []string          `yaml:"comment"`  // at the end
	NotSaid []string          `yaml:"not_said"` // anywhere where people read
	Said    []string          `yaml:"said"`     // in comments during the run
	Replies map[string]string `yaml:"replies"`  // by thread
	Asked   []string          `yaml:"asked"`    // in what the model was sent
	Kept    map[string]string `yaml:"kept"`     // files of the work in progress
	Ledger  []string          `yaml:"ledger"`   // position:change[:refused]
	Summary []string          `yaml:"summary"`  // for a later run
	Journal []string          `yaml:"journal"`  // in what was written down
	Unasked []string          `yaml:"unasked"`  // that is nowhere in what the model was sent
	Taken   int               `yaml:"taken"`    // comments, each new, in order: a ledger that is too long to write down
}

// Load reads a scenario.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Scenario{Files: map[string]string{}, Branch: map[string]string{}}
	for _, file := range txtar.Parse(data).Files {
		switch name, below := cutFolder(file.Name); {
		case file.Name == "scenario.yaml":
			if err := yaml.NewDecoder(bytes.NewReader(file.Data), yaml.DisallowUnknownField()).Decode(s); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		case file.Name == "script.yaml":
			if s.Script, err = script.Parse(path, file.Data); err != nil {
				return nil, err
			}
		case name == "repo":
			s.Files[below] = string(file.Data)
		case name == "branch":
			s.Branch[below] = string(file.Data)
		default:
			return nil, fmt.Errorf("%s: it is not known what %s is for", path, file.Name)
		}
	}
	if len(s.Files) == 0 {
		if err := s.useShell(); err != nil {
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

func cutFolder(name string) (folder, below string) {
	folder, below, _ = strings.Cut(name, "/")
	return folder, below
}

//go:embed defaults.yaml
var defaults []byte

//go:embed shell
var shellProject embed.FS

// useShell makes the repository a shell script with a failing test.
func (s *Scenario) useShell() error {
	for _, name := range []string{"add.sh", "test.sh"} {
		data, err := shellProject.ReadFile("shell/" + name)
		if err != nil {
			return err
		}
		s.Files[name] = string(data)
	}
	return nil
}

// withDefaults puts the usual answers after those of the scenario.
func withDefaults(own *script.Script) (*script.Script, error) {
	usual, err := script.Parse("defaults.yaml", defaults)
	if err != nil || own == nil {
		return usual, err
	}
	return script.New(script.Script{Model: own.Model, Rules: slices.Concat(own.Rules, usual.Rules)})
}
