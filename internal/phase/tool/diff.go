package tool

import (
	"context"
	_ "embed"
	"regexp"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed diff.md
var diffDescription string

type diffInput struct {
	Path string `json:"path,omitempty" jsonschema:"only what changed below this path"`
	Stat bool   `json:"stat,omitempty" jsonschema:"only the names of the files and how much changed"`
}

var commitName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._/-]*$`)

// Diff is the tool that shows what has changed since the commit base.
func Diff(w Workspace, base string) Tool {
	return define("diff", diffDescription, true, func(ctx context.Context, call llm.Call, in diffInput) (Output, error) {
		if !commitName.MatchString(base) {
			return Output{}, Mistake("there is no commit to compare with")
		}
		name, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		// An index of its own shows new files too and leaves the real one alone.
		kind := "--patch"
		if in.Stat {
			kind = "--stat=120"
		}
		line := `i=$(mktemp) && export GIT_INDEX_FILE="$i" && git read-tree ` + base +
			` && git add --all 2>/dev/null && git --no-pager diff --cached --no-color --no-ext-diff ` + kind +
			` ` + base + ` -- ` + quoteShell(name) + `; s=$?; rm -f "$i"; exit $s`
		output, err := execute(ctx, w.Runner, Command{Line: "(" + line + ")", Timeout: time.Minute}, RunOptions{}.orDefaults(), call)
		if err == nil && !output.Failed {
			output.Text = strings.TrimSuffix(output.Text, "\n[exit code 0]")
			if output.Text == "(no output)" {
				output.Text = "(nothing has changed)"
			}
		}
		return output, err
	})
}

// quoteShell quotes a text for the shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
