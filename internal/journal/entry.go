package journal

import (
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Entry is one entry of a journal. Which fields are set follows from the kind.
type Entry struct {
	Position   int64          `json:"-"`
	Generation int64          `json:"-"`
	Kind       task.EventKind `json:"-"`
	At         time.Time      `json:"-"`
	// Unreadable says why some of the entry could not be read, or all of it.
	Unreadable error `json:"-"`
	// Interrupted says of a call without a result that there will be none. See Shown.
	Interrupted bool `json:"-"`

	task.StateChange // of a state entry
	task.Requesting  // of a request entry
	task.Approval    // of an approve entry
	task.Remembering // of a memory entry

	Phase        task.Phase `json:"phase"`
	Step         int64      `json:"step"`
	Status       string     `json:"status"` // of a phase, of what was saved, or of a note
	Name         string     `json:"name"`   // of a note that people were told
	Conversation string     `json:"conversation"`
	Message      *Message   `json:"message"`
	Call         *Call      `json:"call"`
	Result       *Result    `json:"result"` // with Call: it has ended
	Usage        *Usage     `json:"usage"`
	Plan         *Plan      `json:"plan"`
	Setup        *Setup     `json:"setup"`
	Commit       string     `json:"commit"`
	Signal       *Signal    `json:"signal"`
	Text         string     `json:"text"`

	Outcome json.RawMessage `json:"outcome"` // of a phase that is over; see Verdict and Reason
}

// Message is what became part of a conversation with a model: its beginning, a message, a
// block that stays in sight, or a compaction.
type Message struct {
	Kind       string      `json:"kind"`
	Begin      []Block     `json:"begin"`
	Said       *Said       `json:"message"`
	Block      *Block      `json:"block"`
	Compaction *Compaction `json:"compaction"`
}

// Block is a text that the model has before it in all of a conversation.
type Block struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Said is a message to the model, or its response.
type Said struct {
	Role  string `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is a part of a message: one of its fields is set.
type Part struct {
	Text   string `json:"text"`
	Call   *Call  `json:"call"`
	Result *struct {
		Name string `json:"name"`
	} `json:"result"`
	Thinking *struct {
		Text string `json:"text"`
	} `json:"thinking"`
}

// Compaction is how a conversation was made shorter.
type Compaction struct {
	Method string `json:"method"`
	Before int64  `json:"before"` // estimated tokens
	After  int64  `json:"after"`
}

// Call is a call of a tool. Arguments is as the model wrote it, which need not be JSON.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Result is how a call of a tool ended.
type Result struct {
	Text   string `json:"text"`  // what the model was told
	Whole  string `json:"whole"` // all of the output where Text is a part of it
	Failed bool   `json:"failed"`
	// Exit is how the program ended that the tool ran; nil if it ran none, or if that is not known.
	Exit *struct {
		Code     int  `json:"code"`
		TimedOut bool `json:"timed_out"`
	} `json:"exit"`
	Milliseconds int64 `json:"milliseconds"` // that the call took; 0 if that is not known
}

// Usage is what one call to a model used.
type Usage struct {
	Model    string `json:"model"`
	Scripted bool   `json:"scripted"` // the response came from a script
	Tokens   struct {
		Input  int64 `json:"input"`
		Cached int64 `json:"cached"` // of the input
		Output int64 `json:"output"`
	} `json:"usage"`
	Cost int64 `json:"cost"` // millionths
}

// Plan is a version of the plan.
type Plan struct {
	Revision int `json:"revision"`
	Goal     struct {
		Goal string `json:"goal"`
	} `json:"goal_understanding"`
	Actions struct {
		Actions []struct {
			ID   string `json:"id"`
			What string `json:"what"`
			Done bool   `json:"done"`
		} `json:"actions"`
	} `json:"action_plan"`
}

// Setup is what environment set-up came to.
type Setup struct {
	Handover struct {
		Ready       bool   `json:"environment_ready"`
		Environment string `json:"environment_name"`
		Status      string `json:"setup_status"`
	} `json:"handover"`
	Receipt struct {
		Environment   string   `json:"environment"`
		Sandbox       string   `json:"sandbox"`
		Image         string   `json:"image"`
		SetupCommands []string `json:"setup_commands"`
		Verification  []struct {
			Command string `json:"command"`
			Passed  bool   `json:"passed"`
		} `json:"verification"`
		Baseline *Baseline `json:"baseline"`
		Projects []struct {
			Folder   string    `json:"directory"`
			Baseline *Baseline `json:"baseline"`
		} `json:"projects"`
	} `json:"receipt"`
	Build        *Baseline `json:"build"`        // how building went before any change
	Base         string    `json:"base"`         // the commit whose tests were run
	Unrepeatable string    `json:"unrepeatable"` // why nothing can be verified
}

// Baseline is a run of the tests, or of the build, before any change.
type Baseline struct {
	Command      string   `json:"command"`
	Folder       string   `json:"folder"`
	ExitCode     int      `json:"exit_code"`
	Failing      []string `json:"failing"`
	Milliseconds int64    `json:"milliseconds"`
	Output       string   `json:"output"` // the end of it
}

// Verdict is what verification came to.
type Verdict struct {
	Round        int         `json:"round"`
	Passed       bool        `json:"passed"`
	Again        bool        `json:"again"` // there is another round of repair
	Commit       string      `json:"commit"`
	Setup        string      `json:"setup"`    // why the environment cannot be set up any more
	Untested     bool        `json:"untested"` // build and tests could not be run, for a reason that is not the work's
	Changed      bool        `json:"changed"`
	Conflicts    []string    `json:"conflicts"`
	TooLarge     string      `json:"too_large"`
	Build        *TestedRun  `json:"build"`
	Tests        []TestedRun `json:"project_tests"`
	Unrun        string      `json:"unrun"` // why tests were not run
	NoTests      bool        `json:"no_tests"`
	Placeholders []string    `json:"placeholders"`
	Judgement    struct {
		Satisfied  bool     `json:"satisfied"`
		Missing    []string `json:"missing"`
		Problems   []string `json:"problems"`
		Assessment string   `json:"assessment"`
	} `json:"judgement"`
}

// TestedRun is a run of the tests, or of the build, against the baseline.
type TestedRun struct {
	Command      string   `json:"command"`
	Folder       string   `json:"folder"`
	ExitCode     int      `json:"exit_code"`
	TimedOut     bool     `json:"timed_out"`
	Compared     bool     `json:"compared"`
	New          []string `json:"new"`
	Fixed        []string `json:"fixed"`
	Before       []string `json:"before"`
	Flaky        []string `json:"flaky"`
	Passed       bool     `json:"passed"`
	Counted      bool     `json:"counted"`
	Ran          int      `json:"ran"`
	Failed       int      `json:"failed"`
	Skipped      int      `json:"skipped"`
	Milliseconds int64    `json:"milliseconds"`
	Note         string   `json:"note"`
	Worse        bool     `json:"worse"`
	Output       string   `json:"output"`
}

// Signal is a signal that the run acted on.
type Signal struct {
	Signal   task.Signal `json:"signal"`
	Reason   task.Reason `json:"reason"`
	Position int64       `json:"position"` // of the last comment that was taken up
	Comments []Comment   `json:"comments"`
}

// Comment is what became of a comment. One that was refused has no text.
type Comment struct {
	ID      string `json:"id"`
	Author  string `json:"author"`
	Body    string `json:"body"`
	About   string `json:"about"`   // where it stands, such as path:12
	Change  string `json:"change"`  // new, edited, deleted
	Refused string `json:"refused"` // why it was not taken up
}

// Read reads an entry as far as it can be read.
func Read(event task.Event) Entry {
	entry := Entry{Position: event.Position, Generation: event.Generation, Kind: event.Kind, At: event.At}
	entry.Unreadable = json.Unmarshal(event.Data, &entry)
	return entry
}

// Texts are the texts of a message.
func (e Entry) Texts() (texts []string) {
	for _, part := range e.parts() {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return texts
}

// Thinking is what the model thought before it responded.
func (e Entry) Thinking() (texts []string) {
	for _, part := range e.parts() {
		if part.Thinking != nil && part.Thinking.Text != "" {
			texts = append(texts, part.Thinking.Text)
		}
	}
	return texts
}

func (e Entry) parts() []Part {
	if e.Message == nil || e.Message.Said == nil {
		return nil
	}
	return e.Message.Said.Parts
}

// CallKey names the call of a tool entry, so that its result can take the place of its
// beginning: by the generation and the id of the call. It is empty for entries of other kinds, and
// may come again in a generation when the call has ended.
func (e Entry) CallKey() string {
	if e.Kind != task.ToolCalled || e.Call == nil {
		return ""
	}
	return e.callKey()
}

// quoteMark is a line by which a model is told where a text comes from. People are
// shown the text; a text cannot have such a line itself.
var quoteMark = lazyregexp.New(`(?m)^</?untrusted\b[^\n>]*>(?:\n|$)`)

// ForPeople is a text without what is only for the model.
func ForPeople(text string) string { return quoteMark.ReplaceAllString(text, "") }

// Output is what a tool gave, without what is only for the model.
func (r Result) Output() string { return ForPeople(r.Text) }
