package taskset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Task is one task: a commit of a repository, what is asked for, and how it is found out
// whether that was done.
type Task struct {
	ID        string `json:"instance_id"`
	Repo      string `json:"repo,omitempty"` // as the set names it
	Base      string `json:"base_commit,omitempty"`
	Statement string `json:"problem_statement"`
	// Patch is the change that people have made, without tests, and TestPatch the hidden
	// tests, which are put over the work.
	Patch     string `json:"patch,omitempty"`
	TestPatch string `json:"test_patch,omitempty"`
	// FailToPass and PassToPass name the tests that have to pass. Those of FailToPass fail
	// without the change. Without any, they are found out when the task is checked.
	FailToPass []string `json:"fail_to_pass,omitempty"`
	PassToPass []string `json:"pass_to_pass,omitempty"`
	// TestCommand runs the tests; empty means the one that is detected.
	TestCommand string `json:"test_cmd,omitempty"`
	// Container is how the task is run and scored that a task folder has; nil for rows.
	Container *Container `json:"container,omitempty"`

	// AfterWork says that whoever wrote the statement knew the change.
	AfterWork bool `json:"after_work,omitempty"`

	// Repository is the repository on this machine, and Missing says why the task cannot be
	// tried.
	Repository string `json:"-"`
	Missing    string `json:"-"`
}

// Hash identifies all that the result of a task depends on, but for the environment.
func (t Task) Hash() string {
	data, err := json.Marshal(t)
	if err != nil { // raw JSON was checked when it was read
		data = []byte(t.ID + t.Base + t.Patch + t.TestPatch)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Set is a set of tasks.
type Set struct {
	Name  string // for people
	Hash  string // of what was read
	Tasks []Task
}

// The limits of what is read.
const (
	MaxTasks     = 10_000
	maxSet       = 1 << 30  // bytes of all rows
	maxRow       = 32 << 20 // bytes of one row
	maxStatement = 1 << 20
	maxPatch     = 16 << 20
	maxTests     = 50_000
	maxTestName  = 2000
	maxCommand   = 16 << 10
)

var (
	idForm     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,149}$`)
	commitForm = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// isID reports whether a text can be the id of a task. Ids become names of files.
func isID(text string) bool {
	return idForm.MatchString(text) && !strings.Contains(text, "..") && !strings.HasSuffix(text, ".")
}

// check says what is wrong with a task.
func (t Task) check() error {
	switch {
	case !isID(t.ID):
		return task.Errorf(task.Invalid, "%q is no id of a task: letters, digits, dots, hyphens and underscores, 150 at most", clip(t.ID))
	case t.Missing != "" && t.Statement == "": // nothing of it could be read, and nobody tries it
		return nil
	case strings.TrimSpace(t.Statement) == "":
		return task.Errorf(task.Invalid, "the task %s has no problem statement", t.ID)
	case len(t.Statement) > maxStatement:
		return task.Errorf(task.TooLarge, "the problem statement of %s has %d bytes; %d are the limit", t.ID, len(t.Statement), maxStatement)
	case t.Container != nil: // the rest is made from the folder
		return nil
	case !commitForm.MatchString(t.Base):
		return task.Errorf(task.Invalid, "the base_commit of %s is %q, which is no full hash of a commit", t.ID, clip(t.Base))
	case strings.TrimSpace(t.Patch) == "" || strings.TrimSpace(t.TestPatch) == "":
		return task.Errorf(task.Invalid, "the task %s lacks a patch or a test_patch", t.ID)
	case max(len(t.Patch), len(t.TestPatch)) > maxPatch:
		return task.Errorf(task.TooLarge, "a patch of %s has more than %d bytes", t.ID, maxPatch)
	case len(t.TestCommand) > maxCommand || strings.ContainsRune(t.TestCommand, 0):
		return task.Errorf(task.Invalid, "the test_cmd of %s is too long or has a zero byte in it", t.ID)
	}
	return t.checkTests()
}

func (t Task) checkTests() error {
	if len(t.FailToPass)+len(t.PassToPass) > maxTests {
		return task.Errorf(task.TooLarge, "the task %s names more than %d tests", t.ID, maxTests)
	}
	if len(t.FailToPass) == 0 && len(t.PassToPass) > 0 {
		return task.Errorf(task.Invalid, "the task %s names no test in FAIL_TO_PASS", t.ID)
	}
	for _, list := range [][]string{t.FailToPass, t.PassToPass} {
		for _, name := range list {
			if name == "" || len(name) > maxTestName {
				return task.Errorf(task.Invalid, "the task %s names a test %q", t.ID, clip(name))
			}
		}
	}
	return nil
}

// clip is the beginning of a text from a set, for an error.
func clip(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
