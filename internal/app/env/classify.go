package env

import (
	"fmt"
	"io"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/task"
)

// Classify says what the log of a failed command means.
type Classify struct {
	Stdin    io.Reader
	Stdout   io.Writer
	ExitCode int
	JSON     bool
}

// longestLog is how much of a log is read.
const longestLog = 64 << 20

// Run prints what the log on standard input means.
func (c Classify) Run() error {
	log, err := io.ReadAll(io.LimitReader(c.Stdin, longestLog))
	if err != nil {
		return task.Wrap(task.Invalid, err, "the log cannot be read")
	}
	found := environment.Classify(log, c.ExitCode)
	if c.JSON {
		return printJSON(c.Stdout, found)
	}
	text := fmt.Sprintf("%s: %s\n", found.Class, found.Kind)
	if found.Line != "" {
		text += found.Line + "\n"
	}
	_, err = io.WriteString(c.Stdout, text)
	return err
}
