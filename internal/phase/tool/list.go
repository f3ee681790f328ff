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
	Path  string `json:"path,omitempty" jsonschema:"the directory, relative to the project's root; the root when not given"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels to go down; 2 when not given"`
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// List is the tool that lists files.
func List(w Workspace) Tool {
	return define("list", listDescription, true, func(ctx context.Context, _ llm.Call, in listInput) (Output, error) {
		start, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		depth := in.Depth
		if depth <= 0 {
			depth = 2
		}
		var b strings.Builder
		shown := 0
		err = walk(ctx, w.Files, start, func(name string, entry fs.DirEntry) error {
			if shown == listEntries {
				return errEnough
			}
			shown++
			below := name
			if start != "." {
				below = strings.TrimPrefix(name, start+"/")
			}
			if !entry.IsDir() {
				b.WriteString(Printable(name) + "\n")
				return nil
			}
			b.WriteString(Printable(name) + "/\n")
			if strings.Count(below, "/")+1 >= depth {
				return fs.SkipDir
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			fmt.Fprintf(&b, "[only the first %d entries are shown; name a directory below]\n", listEntries)
			err = nil
		}
		if err != nil {
			return Output{}, err
		}
		if shown == 0 {
			return Output{Text: "(nothing there)"}, nil
		}
		return Output{Text: b.String(), Origin: "file names"}, nil
	})
}
