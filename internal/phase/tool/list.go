package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed list.md
var listDescription string

const listEntries = 500

type listInput struct {
	Path  string `json:"path,omitempty" jsonschema:"default the root"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels to go down; default 2"`
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// List is the tool that lists files.
func List(w Workspace) Tool {
	return Define("list", listDescription, true, func(ctx context.Context, _ llm.Call, in listInput) (Output, error) {
		start, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		l := &lister{start: start, depth: in.Depth}
		if l.depth <= 0 {
			l.depth = 2
		}
		err = walk(ctx, w.Files, start, l.visit)
		if errors.Is(err, errEnough) {
			fmt.Fprintf(&l.text, "[only the first %d entries are shown; name a directory below]\n", listEntries)
			err = nil
		}
		if err != nil {
			return Output{}, err
		}
		if l.shown == 0 {
			return Output{Text: "(nothing there)"}, nil
		}
		return Output{Text: l.text.String(), Origin: "file names"}, nil
	})
}

type lister struct {
	start string
	depth int
	shown int
	text  strings.Builder
}

func (l *lister) visit(name string, entry fs.DirEntry) error {
	if l.shown == listEntries {
		return errEnough
	}
	l.shown++
	if !entry.IsDir() {
		l.text.WriteString(Printable(name) + "\n")
		return nil
	}
	l.text.WriteString(Printable(name) + "/\n")
	below := name
	if l.start != "." {
		below = strings.TrimPrefix(name, l.start+"/")
	}
	if strings.Count(below, "/")+1 >= l.depth {
		return fs.SkipDir
	}
	return nil
}
