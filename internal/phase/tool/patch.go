package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed patch.md
var patchDescription string

type patchInput struct {
	Patch string `json:"patch"`
}

// Patch is the tool that applies patches.
func Patch(w Workspace) Tool {
	return Define("patch", patchDescription, false, func(_ context.Context, _ llm.Call, in patchInput) (Output, error) {
		text := in.Patch
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		files, _, err := gitdiff.Parse(strings.NewReader(text))
		if err != nil {
			return Output{}, Mistake("the patch cannot be read: %v", err)
		}
		if len(files) == 0 {
			return Output{}, Mistake("the patch has no files in it; it is a unified diff with --- and +++ lines")
		}
		var changes []change
		for _, file := range files {
			planned, err := plan(w, file)
			if err != nil {
				return Output{}, err
			}
			changes = append(changes, planned...)
		}
		return carryOut(w, changes)
	})
}

// change is what happens to one file. Nil means that it goes.
type change struct {
	name          string
	before, after []byte
	words         string
}

// plan works out what a patch does to one file, without doing it.
func plan(w Workspace, file *gitdiff.File) ([]change, error) {
	if file.IsBinary {
		return nil, Mistake("the patch changes the binary file %s, which this tool does not do", file.NewName)
	}
	oldName, newName, err := names(w, file)
	if err != nil {
		return nil, err
	}
	var before []byte
	if oldName != "" {
		if before, err = w.read(oldName); err != nil {
			return nil, err
		}
	} else if _, err := fs.Stat(w.Files, newName); err == nil {
		return nil, Mistake("the patch creates %s, which exists", newName)
	}
	var after bytes.Buffer
	if err := gitdiff.Apply(&after, bytes.NewReader(before), file); err != nil {
		return nil, Mistake("the patch does not fit %s: %v; read the file and make the patch anew. Nothing was changed", oldName, shortly(err))
	}
	switch {
	case newName == "":
		return []change{{oldName, before, nil, "deleted " + oldName}}, nil
	case oldName == "":
		return []change{{newName, nil, orEmpty(after.Bytes()), "created " + newName}}, nil
	case oldName != newName && !file.IsCopy:
		return []change{{newName, nil, orEmpty(after.Bytes()), "renamed " + oldName + " to " + newName}, {oldName, before, nil, ""}}, nil
	}
	return []change{{newName, before, orEmpty(after.Bytes()), "changed " + newName}}, nil
}

func orEmpty(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func shortly(err error) error {
	var applying *gitdiff.ApplyError
	if errors.As(err, &applying) && applying.Line > 0 {
		return fmt.Errorf("line %d: %w", applying.Line, applying.Unwrap())
	}
	return err
}

// unprefixed takes the a/ or b/ off a name that a patch without git's own header
// lines has left on it, unless there really is such a directory.
func (w Workspace) unprefixed(name string) string {
	top, rest, found := strings.Cut(name, "/")
	if !found || top != "a" && top != "b" {
		return name
	}
	if _, err := fs.Stat(w.Files, top); err == nil {
		return name
	}
	return rest
}

func names(w Workspace, file *gitdiff.File) (oldName, newName string, err error) {
	if !file.IsNew && file.OldName != "" {
		if oldName, err = w.resolve(w.unprefixed(file.OldName)); err != nil {
			return "", "", err
		}
	}
	if !file.IsDelete && file.NewName != "" {
		if newName, err = w.resolve(w.unprefixed(file.NewName)); err != nil {
			return "", "", err
		}
	}
	if oldName == "" && newName == "" {
		return "", "", Mistake("the patch names no file")
	}
	return oldName, newName, nil
}

// carryOut makes the changes, and takes them back when one fails.
func carryOut(w Workspace, changes []change) (Output, error) {
	var done []string
	for i, c := range changes {
		if err := c.make(w.Files, c.after); err != nil {
			var failed []error
			for _, made := range changes[:i] {
				failed = append(failed, made.make(w.Files, made.before))
			}
			if err := errors.Join(failed...); err != nil {
				return Output{}, fmt.Errorf("take back a patch that could not be written: %w", err)
			}
			return Output{}, Mistake("%s cannot be written: %v. Nothing was changed", c.name, err)
		}
		if c.words != "" {
			done = append(done, c.words)
		}
	}
	return Output{Text: "Applied: " + strings.Join(done, ", ")}, nil
}

func (c change) make(files Files, content []byte) error {
	if content == nil {
		return files.Remove(c.name)
	}
	return files.WriteFile(c.name, content)
}
