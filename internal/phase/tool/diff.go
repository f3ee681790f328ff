package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed diff.md
var diffDescription string

type diffInput struct {
	Path string `json:"path,omitempty"`
	Stat bool   `json:"stat,omitempty" jsonschema:"only names and how much changed"`
}

// Diff is the tool that shows what has changed since the task began. Changes
// gives all of it, as git writes it. It is asked of the host's own git: what runs
// in the sandbox cannot make it say something else.
func Diff(w Workspace, changes func(ctx context.Context) (string, error)) Tool {
	return Define("diff", diffDescription, true, func(ctx context.Context, _ llm.Call, in diffInput) (Output, error) {
		name, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		whole, err := changes(ctx)
		if err != nil {
			return Output{}, fmt.Errorf("look at what has changed: %w", err)
		}
		var shown strings.Builder
		for _, file := range SplitDiff(whole) {
			switch {
			case !file.below(name):
			case in.Stat:
				fmt.Fprintf(&shown, "%s | +%d -%d\n", file.Name, len(file.Added), len(file.Removed))
			default:
				shown.WriteString(file.Text)
			}
		}
		text := shown.String()
		if text == "" {
			return Output{Text: "(nothing has changed)"}, nil
		}
		return Output{Text: Shorten(Printable(text), RunOptions{}.orDefaults().Shown), Whole: text, Origin: "diff"}, nil
	})
}

// FileDiff is the part of a unified diff that is about one file.
type FileDiff struct {
	Name    string // as it is after the change, or as it was if it is gone
	Text    string
	Added   []string // lines, without the mark
	Removed []string
}

func (f FileDiff) below(name string) bool {
	return name == "." || f.Name == name || strings.HasPrefix(f.Name, name+"/")
}

const diffBegins = "diff --git "

// SplitDiff takes a diff as git writes it apart.
func SplitDiff(text string) []FileDiff {
	var files []FileDiff
	inHunk := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, diffBegins) {
			files = append(files, FileDiff{Name: nameIn(line)})
			inHunk = false
		}
		if len(files) == 0 {
			continue
		}
		file := &files[len(files)-1]
		file.Text += line
		plain := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
		case !inHunk && strings.HasPrefix(line, "+++ b/"):
			file.Name = strings.TrimSuffix(plain[len("+++ b/"):], "\t")
		case inHunk && strings.HasPrefix(line, "+"):
			file.Added = append(file.Added, plain[1:])
		case inHunk && strings.HasPrefix(line, "-"):
			file.Removed = append(file.Removed, plain[1:])
		}
	}
	return files
}

// nameIn is the file's name in the first line of its diff.
func nameIn(line string) string {
	line = strings.TrimSpace(line)
	if at := strings.LastIndex(line, " b/"); at >= 0 {
		return line[at+len(" b/"):]
	}
	return strings.Trim(strings.TrimPrefix(line, diffBegins), `"`)
}
