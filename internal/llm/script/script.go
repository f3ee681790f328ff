package script

import (
	"os"
	"regexp"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Script is what a script file says. See the package comment for the format.
type Script struct {
	Model string `yaml:"model"`
	Rules []Rule `yaml:"rules"`
}

// Rule is one rule of a script.
type Rule struct {
	Name   string `yaml:"name"`
	When   When   `yaml:"when"`
	Times  int    `yaml:"times"`
	Answer Answer `yaml:"answer"`
}

// When says what has to be the case. What is not set does not matter.
type When struct {
	Phase       task.Phase `yaml:"phase"`
	System      string     `yaml:"system"`
	Last        string     `yaml:"last"`
	LastMatches string     `yaml:"last_matches"`
	Tool        string     `yaml:"tool"`
	Failed      *bool      `yaml:"failed"`
	Turn        int        `yaml:"turn"`

	matches *regexp.Regexp
}

// Answer is what is answered.
type Answer struct {
	Thinking string        `yaml:"thinking"`
	Redacted bool          `yaml:"redacted"`
	Text     string        `yaml:"text"`
	Calls    []Call        `yaml:"calls"`
	Stop     string        `yaml:"stop"`
	Delay    time.Duration `yaml:"delay"`
	Pace     time.Duration `yaml:"pace"`
	Cut      int           `yaml:"cut"`
	Error    *Failure      `yaml:"error"`
	Usage    *llm.Usage    `yaml:"usage"`
}

// Call is a tool call of an answer. Raw, if set, is the text of the arguments as
// it is, valid or not.
type Call struct {
	ID        string         `yaml:"id"`
	NoID      bool           `yaml:"no_id"`
	Name      string         `yaml:"name"`
	Arguments map[string]any `yaml:"arguments"`
	Raw       string         `yaml:"raw"`
}

// Failure is an HTTP error, or with After an error in the middle of a stream.
type Failure struct {
	Status     int           `yaml:"status"`
	Type       string        `yaml:"type"`
	Message    string        `yaml:"message"`
	RetryAfter time.Duration `yaml:"retry_after"`
	After      int           `yaml:"after"`
}

// The stop words of a script.
const (
	stopEnd       = "end"
	stopCalls     = "calls"
	stopMaxTokens = "max_tokens"
	stopRefusal   = "refusal"
)

// defaultModel is the name of a script's model that names none.
const defaultModel = "scripted"

// Load reads and checks a script file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, task.Wrap(task.NotFound, err, "the script cannot be read").WithHint("check the path")
	}
	return Parse(path, data)
}
