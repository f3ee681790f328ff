package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed run.md
var runDescription string

// RunOptions are the limits of the tool run.
type RunOptions struct {
	Timeout time.Duration // when the model names none; 0 means two minutes
	Longest time.Duration // that a model can ask for; 0 means thirty minutes
	Shown   int           // bytes of output for the model; 0 means 16,000
	// Excerpt is what is shown of the output of a command that failed, if it is longer than
	// Shown. Nil means its beginning and its end.
	Excerpt  func(output []byte, most int) string
	Recorded int // bytes of output for the journal; 0 means 8 MiB
	// Watch is given the output as it comes, if not nil.
	Watch func(call llm.Call, piece []byte)
}

func (o RunOptions) orDefaults() RunOptions {
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Longest == 0 {
		o.Longest = 30 * time.Minute
	}
	if o.Shown == 0 {
		o.Shown = 16_000
	}
	if o.Recorded == 0 {
		o.Recorded = 8 << 20
	}
	return o
}

// show is what the model is shown of the output.
func (o RunOptions) show(output string, failed bool) string {
	if failed && o.Excerpt != nil && len(output) > o.Shown {
		return fmt.Sprintf("[Of %d lines those are shown that tell most.]\n", strings.Count(output, "\n")+1) + Printable(o.Excerpt([]byte(output), o.Shown))
	}
	return Shorten(Printable(output), o.Shown)
}

type runInput struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"default 120"`
}

// Run is the tool that runs commands.
func Run(w Workspace, options RunOptions) Tool {
	options = options.orDefaults()
	return Define("run", runDescription, false, func(ctx context.Context, call llm.Call, in runInput) (Output, error) {
		if strings.TrimSpace(in.Command) == "" {
			return Output{}, Mistake("the command is empty")
		}
		if strings.ContainsRune(in.Command, 0) {
			return Output{}, Mistake("the command has a NUL character in it")
		}
		timeout := options.Timeout
		if in.Timeout > 0 {
			timeout = min(time.Duration(in.Timeout)*time.Second, options.Longest)
		}
		return execute(ctx, w.Runner, Command{Line: in.Command, Timeout: timeout}, options, call)
	})
}

func execute(ctx context.Context, runner Runner, command Command, options RunOptions, call llm.Call) (Output, error) {
	var watch func([]byte)
	if options.Watch != nil {
		watch = func(piece []byte) { options.Watch(call, piece) }
	}
	collected := newCollector(options.Recorded, watch)
	exit, err := runner.Run(ctx, command, collected)
	if err != nil {
		return Output{}, fmt.Errorf("run a command in the sandbox: %w", err)
	}
	whole := collected.String()
	failed := exit.Code != 0 || exit.TimedOut
	output := Output{Text: "(no output)", Whole: whole, Failed: failed, Exit: &exit}
	if shown := options.show(whole, failed); strings.TrimSpace(shown) != "" {
		output.Text, output.Origin = strings.TrimRight(shown, "\n"), "command output"
	}
	switch {
	case exit.TimedOut:
		output.Verdict = fmt.Sprintf("[stopped after %s: the time limit]", command.Timeout)
	default:
		output.Verdict = fmt.Sprintf("[exit code %d]", exit.Code)
	}
	return output, nil
}
