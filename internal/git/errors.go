package git

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// RunError is a run of git that failed.
type RunError struct {
	What   string // the command
	Stderr string // the end of what git wrote there
	Err    error
	Ended  bool // the context ended it
}

func (f *RunError) Error() string {
	text := fmt.Sprintf("git %s: %v", f.What, f.Err)
	// What git writes may quote what others wrote.
	if stderr := textfmt.OneLine(textfmt.Plain(strings.ToValidUTF8(f.Stderr, "?"))); stderr != "" {
		text += ": " + stderr
	}
	return text
}

// Unwrap returns the cause, which is that of the context when it ended.
func (f *RunError) Unwrap() error { return f.Err }

// Contains reports whether the text is in what git wrote or in how it ended. Git
// writes English: see [Program.Environment].
func (f *RunError) Contains(text string) bool {
	return strings.Contains(f.Stderr, text) || strings.Contains(f.Err.Error(), text)
}

// Message is a part of what git writes when it fails, and the code of that failure.
type Message struct {
	Text string
	Code task.Code
}

// Messages are those of git itself. They mean the same whoever the remote is.
var Messages = []Message{
	{"Authentication failed", task.Unauthorized},
	{"could not read Username", task.Unauthorized},
	{"could not read Password", task.Unauthorized},
	{"returned error: 401", task.Unauthorized},
	{"returned error: 403", task.Forbidden},
	{"returned error: 404", task.NotFound},
	{"/' not found", task.NotFound},
	{"does not appear to be a git repository", task.NotFound},
	{"couldn't find remote ref", task.NotFound},
	{"exceeds maximum allowed size", task.TooLarge},
	{"died of signal 25", task.TooLarge}, // SIGXFSZ
	{"File size limit exceeded", task.TooLarge},
	{"file write error: File too large", task.TooLarge},
	{"fsck error", task.Invalid},
}

// Code is the code of the first message that git wrote. If it is none of them, the
// error is Unavailable: the network fails in many ways.
func (f *RunError) Code(messages []Message) task.Code {
	for _, message := range messages {
		if f.Contains(message.Text) {
			return message.Code
		}
	}
	return task.Unavailable
}

// Local is the error without what the remote has written. A remote whose disk is full says so
// with the same words as our own git.
func (f *RunError) Local() *RunError {
	local := *f
	var text strings.Builder
	for line := range strings.Lines(f.Stderr) {
		if !strings.HasPrefix(line, "remote: ") {
			text.WriteString(line)
		}
	}
	local.Stderr = text.String()
	return &local
}

// errorPrefix begins a line by which our server gives an error's code to the git of
// an agent.
const errorPrefix = "toryo-error: "

// ErrorLine is an error as our server writes it to the git of an agent, in the body
// of a response or as output of a hook. It has the code for the agent, which
// [RunError.ServerCode] reads, and then the text for people:
//
//	toryo-error: lease_lost: the push is refused: the run is over
func ErrorLine(code task.Code, text string) string {
	return errorPrefix + string(code) + ": " + textfmt.OneLine(text)
}

// ServerCode returns the code that our server gave, if it gave one that is known
// here. Git shows each line of a remote behind "remote: ". Only ask for it when the
// remote is our server: a forge can write such a line too.
func (f *RunError) ServerCode() (task.Code, bool) {
	for line := range strings.Lines(f.Stderr) {
		rest, is := strings.CutPrefix(line, "remote: "+errorPrefix)
		name, _, whole := strings.Cut(rest, ":")
		if code := task.Code(name); is && whole && code.Info().Code == code {
			return code.OfServer(), true
		}
	}
	return "", false
}
