package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// examples show what may stand in the place of an argument.
var examples = map[string]string{
	"TASK": "team/app#3", "RUN|TASK": "team/app#3", "ITEM": "team/app#3", "PLAN": "1", "LOGIN": "alice", "FILE": "file.txt", "DIR": ".",
	"LABEL": "bug", "PATH|URL": "~/code/app", "THREAD": "one that toryo board pr show names",
	"REVIEW": "an id of toryo review list", "RECEIPT": "receipt.json", "ID": "one of the list",
}

// NeedsQuotes is said where the name of a task is missing.
const NeedsQuotes = "'#3' needs quotes, since a shell takes it for a comment"

var (
	optional  = lazyregexp.New(`\[[^\[\]]*\]`)
	withValue = lazyregexp.New(`--[a-z-]+ \S+`)
)

// Arguments are the names of the arguments that a command has to be given, as its usage says.
func Arguments(c *cobra.Command) []string {
	_, rest, _ := strings.Cut(c.Use, " ")
	rest, _, _ = strings.Cut(rest, "<") // what comes on standard input is no argument
	rest = withValue.ReplaceAllString(optional.ReplaceAllString(rest, ""), "")
	var names []string
	for word := range strings.FieldsSeq(rest) {
		if word = strings.TrimSuffix(word, "..."); word != "" && word != "|" && !strings.HasPrefix(word, "-") {
			names = append(names, word)
		}
	}
	return names
}

// WrongArguments says what is wrong with the arguments of a command that has refused them.
func WrongArguments(c *cobra.Command, args []string, refused error) error {
	if _, plain := task.AsError(refused); plain {
		return refused // the command says it itself
	}
	required := Arguments(c)
	if c.HasSubCommands() && len(required) == 0 {
		return refused // it names the command that does not exist
	}
	if len(args) < len(required) {
		missing := required[len(args):]
		text := fmt.Sprintf("%s needs %s", c.CommandPath(), strings.Join(missing, " and "))
		if example := examples[missing[0]]; example != "" {
			text += ", such as " + example
		}
		if strings.Contains(missing[0], "TASK") || missing[0] == "ITEM" {
			text += "; " + NeedsQuotes
		}
		return errors.New(text)
	}
	if len(args) == 0 {
		return refused
	}
	if usage := strings.TrimSpace(strings.TrimPrefix(c.Use, c.Name())); len(required) > 0 || strings.HasPrefix(usage, "[") && !strings.HasPrefix(usage, "[-") {
		return fmt.Errorf("%s was given more than it takes: %q; it takes %s, and a text of several words is put in quotes", c.CommandPath(), args[len(args)-1], usage)
	}
	return fmt.Errorf("%s takes no arguments, and was given %q", c.CommandPath(), args[0])
}

// WrongFlag says what is wrong with the flags of a command, and which was probably meant.
func WrongFlag(c *cobra.Command, refused error) error {
	switch wrong := refused.(type) { //nolint:errorlint // the library gives them as they are
	case *pflag.NotExistError:
		name := wrong.GetSpecifiedName()
		if len(name) < 2 && wrong.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("%s has no flag -%s", c.CommandPath(), name)
		}
		text := fmt.Sprintf("%s has no flag --%s", c.CommandPath(), name)
		if meant := nearestFlag(c, name); meant != "" {
			text += "; did you mean --" + meant + "?"
		}
		return errors.New(text)
	case *pflag.ValueRequiredError:
		value, _ := pflag.UnquoteUsage(wrong.GetFlag())
		return fmt.Errorf("--%s needs a value: %s", wrong.GetFlag().Name, value)
	case *pflag.InvalidValueError:
		return fmt.Errorf("--%s cannot be %q: %w", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap())
	}
	return refused
}

// nearestFlag is the flag that was probably meant, or nothing.
func nearestFlag(c *cobra.Command, name string) string {
	best, least := "", 1+len(name)/3 // letters that may be wrong
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if steps := distance(name, flag.Name); !flag.Hidden && steps <= least && (best == "" || steps < least) {
			best, least = flag.Name, steps
		}
	})
	return best
}

// distance counts the letters to insert, remove or change to get from one word to the other.
func distance(from, to string) int {
	before := make([]int, len(to)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(from) {
		row := make([]int, len(to)+1)
		row[0] = i + 1
		for j := range len(to) {
			change := 1
			if from[i] == to[j] {
				change = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+change)
		}
		before = row
	}
	return before[len(to)]
}
