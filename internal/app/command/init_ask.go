package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// terminal is where a person answers.
type terminal struct {
	line    func() (string, error)
	hidden  func() (string, error) // without showing what is typed
	restore func()                 // shows again what is typed
}

// terminalOf is the terminal of the program, or nil.
func terminalOf(p site.Program) *terminal {
	file, is := p.Stdin.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	return &terminal{
		line:   func() (string, error) { return readLine(file) },
		hidden: func() (string, error) { typed, err := term.ReadPassword(fd); return string(typed), err },
		restore: func() {
			if err == nil {
				_ = term.Restore(fd, before)
			}
		},
	}
}

// maxLine is the longest answer.
const maxLine = 64 << 10

// readLine reads one line and nothing that comes after it: the next question may read by
// other means. The end of the input in the middle of a line ends it.
func readLine(from io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxLine {
		n, err := from.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return string(line), nil
		case n == 1:
			line = append(line, one[0])
		case errors.Is(err, io.EOF) && len(line) > 0:
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
	return "", task.Errorf(task.TooLarge, "the answer is too long")
}

// typed waits for an answer, or for the end of the context. The goroutine ends with the
// answer, or with the process: nothing takes a read of a terminal back.
func (o *setup) typed(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := read()
		answers <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		o.terminal.restore()
		return "", interrupted()
	case got := <-answers:
		if errors.Is(got.err, io.EOF) {
			return "", interrupted()
		}
		return strings.TrimSpace(got.text), got.err
	}
}

func interrupted() error {
	return task.Errorf(task.Interrupted, "interrupted: nothing was written and nothing was changed")
}

// initQuestion is one question of toryo init.
type initQuestion struct {
	text     string
	flag     string // that answers it
	given    string // what the flag says
	usual    string // what Enter means
	optional bool   // nothing is an answer too
	hidden   bool   // it is a secret
	check    func(answer string) error
}

// answer gets the answer to a question: from its flag, by default, or from the person at the
// terminal, who is asked again until it is right.
func (o *setup) answer(ctx context.Context, q initQuestion) (string, error) {
	if q.check == nil {
		q.check = func(string) error { return nil }
	}
	if q.given != "" {
		if err := q.check(q.given); err != nil {
			return "", named(q.flag, err)
		}
		return q.given, nil
	}
	if o.yes || o.terminal == nil {
		return o.byDefault(q)
	}
	if before := o.earlier[q.flag]; before != "" && !q.hidden {
		q.usual = before
	}
	for {
		text, err := o.prompt(ctx, q)
		switch {
		case err != nil:
			return "", err
		case text == "" && q.optional:
			return "", nil
		case text == "":
			o.say("  ✗ an answer is needed")
			continue
		}
		if err := q.check(text); err != nil {
			if ctx.Err() != nil {
				return "", interrupted()
			}
			o.sayWrong(err)
			continue
		}
		o.said.keep(q, text)
		return text, nil
	}
}

// byDefault answers a question without a person.
func (o *setup) byDefault(q initQuestion) (string, error) {
	switch {
	case o.yes && (q.usual != "" || q.optional):
		if q.usual == "" {
			return "", nil
		}
		if err := q.check(q.usual); err != nil {
			return "", named(q.flag, err)
		}
		return q.usual, nil
	case q.flag == "yes":
		return "", missingAnswer(q).WithHint("give --yes")
	case q.usual != "" || q.optional:
		hint := "to leave it empty"
		if q.usual != "" {
			hint = "to take the default " + q.usual
		}
		return "", missingAnswer(q).WithHint("give --%s, or --yes %s", q.flag, hint)
	}
	return "", missingAnswer(q).WithHint("give --%s", q.flag)
}

func missingAnswer(q initQuestion) *task.Error {
	return task.Errorf(task.Usage, "there is no answer to %q, and nobody is asked", q.text)
}

// named says which flag has the wrong value.
func named(flag string, err error) error {
	return fmt.Errorf("--%s: %w", flag, err)
}

// prompt asks once. Enter means what is usual.
func (o *setup) prompt(ctx context.Context, q initQuestion) (string, error) {
	text := q.text
	if q.usual != "" {
		text += " [" + q.usual + "]"
	}
	fmt.Fprintf(o.shown(), "%s: ", strings.Map(cli.Visible, text))
	read := o.terminal.line
	if q.hidden {
		read = o.terminal.hidden
	}
	answer, err := o.typed(ctx, read)
	if q.hidden {
		fmt.Fprintln(o.shown()) // the line break was not shown either
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(answer, q.usual), nil
}

// confirm asks whether to go on, and fails if not. Usual is what Enter means.
func (o *setup) confirm(ctx context.Context, text, usual string) error {
	answer, err := o.answer(ctx, initQuestion{text: text + " (yes or no)", flag: "yes", usual: usual, check: isYesOrNo})
	if err != nil {
		return err
	}
	if !isYes(answer) {
		return task.Errorf(task.Interrupted, "nothing was written and nothing was changed")
	}
	return nil
}

func isYes(answer string) bool { return strings.HasPrefix(strings.ToLower(answer), "y") }

func isYesOrNo(answer string) error {
	return oneOf(strings.ToLower(answer), []string{"y", "n", answerYes, answerNo})
}

// oneOf refuses what is not in a list.
func oneOf(answer string, allowed []string) error {
	if slices.Contains(allowed, answer) {
		return nil
	}
	var names []string
	for _, one := range allowed {
		if len(one) > 1 {
			names = append(names, one)
		}
	}
	return task.Errorf(task.Usage, "%q is none of %s", answer, strings.Join(names, ", "))
}

// sayWrong shows an error, and what to do about it on a line of its own.
func (o *setup) sayWrong(err error) {
	text, hint := oneLineOf(err), ""
	if coded, is := task.AsError(err); is && coded.Hint != "" {
		text, hint = strings.TrimSuffix(text, "; "+coded.Hint), coded.Hint
	}
	o.say("  ✗ %s", text)
	if hint != "" {
		o.say("    → %s", hint)
	}
}

func oneLineOf(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
