package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed edit.md
var editDescription string

type editInput struct {
	Command   string `json:"command" jsonschema:"replace, insert, create or undo"`
	Path      string `json:"path"`
	Old       string `json:"old,omitempty"`
	New       string `json:"new,omitempty"`
	All       bool   `json:"all,omitempty"`
	Line      *int   `json:"line,omitempty"`
	Overwrite bool   `json:"overwrite,omitempty"`
}

// undoDepth is how many changes of one file can be taken back.
const undoDepth = 20

// Edit is the tool that changes files. It remembers what it changed, to undo it.
func Edit(w Workspace) Tool {
	e := &editor{w: w, past: map[string][]version{}}
	return Define("edit", editDescription, false, func(_ context.Context, _ llm.Call, in editInput) (Output, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		name, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		switch in.Command {
		case "replace":
			return e.replace(name, in)
		case "insert":
			return e.insert(name, in)
		case "create":
			return e.create(name, in)
		case "undo":
			return e.undo(name)
		}
		return Output{}, Mistake("there is no command %q; it is replace, insert, create or undo", in.Command)
	})
}

type editor struct {
	w    Workspace
	mu   sync.Mutex
	past map[string][]version
}

// version is what a file was before a change.
type version struct {
	existed bool
	data    []byte
}

func (e *editor) text(name string) (string, error) {
	data, err := e.w.read(name)
	if err != nil {
		return "", err
	}
	if isBinary(data) {
		return "", Mistake("%s is a binary file", name)
	}
	return string(data), nil
}

// write changes the file and remembers what it was.
func (e *editor) write(name string, before version, after string) error {
	if err := e.w.Files.WriteFile(name, []byte(after)); err != nil {
		return Mistake("%s cannot be written: %v", name, err)
	}
	e.past[name] = append(e.past[name], before)
	e.past[name] = e.past[name][max(0, len(e.past[name])-undoDepth):]
	return nil
}

func (e *editor) replace(name string, in editInput) (Output, error) {
	text, err := e.text(name)
	if err != nil {
		return Output{}, err
	}
	if in.Old == "" {
		return Output{}, Mistake("old is empty; to write a new file use create, to add text use insert")
	}
	if in.Old == in.New {
		return Output{}, Mistake("old and new are the same")
	}
	old, replacement := in.Old, in.New
	if strings.Contains(text, "\r\n") && !strings.Contains(old, "\r\n") {
		// The model does not see the line ends.
		old, replacement = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(replacement, "\n", "\r\n")
	}
	count := strings.Count(text, old)
	switch {
	case count == 0:
		return Output{}, Mistake("old does not occur in %s. %s", name, nearest(text, in.Old))
	case count > 1 && !in.All:
		return Output{}, Mistake("old occurs %d times in %s, at lines %s; give more lines around it, or set all", count, name, linesOf(text, old))
	}
	after := strings.ReplaceAll(text, old, replacement)
	if err := e.write(name, version{true, []byte(text)}, after); err != nil {
		return Output{}, err
	}
	head, _, _ := strings.Cut(text, old)
	at := strings.Count(head, "\n") + 1
	return Output{Text: fmt.Sprintf("Replaced %d occurrence(s) in %s:\n%s", count, name, around(after, at, strings.Count(replacement, "\n")+1))}, nil
}

func (e *editor) insert(name string, in editInput) (Output, error) {
	text, err := e.text(name)
	if err != nil {
		return Output{}, err
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if in.Line == nil || *in.Line < 0 || *in.Line > len(lines) {
		return Output{}, Mistake("insert needs line, from 0 to %d", len(lines))
	}
	addition := in.New
	if !strings.HasSuffix(addition, "\n") {
		addition += "\n"
	}
	head := strings.Join(lines[:*in.Line], "")
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	after := head + addition + strings.Join(lines[*in.Line:], "")
	if err := e.write(name, version{true, []byte(text)}, after); err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf("Inserted into %s:\n%s", name, around(after, *in.Line+1, strings.Count(addition, "\n")))}, nil
}

func (e *editor) create(name string, in editInput) (Output, error) {
	if name == "." {
		return Output{}, Mistake("path names no file")
	}
	before := version{}
	info, err := fs.Stat(e.w.Files, name)
	switch {
	case err == nil && info.IsDir():
		return Output{}, Mistake("%s is a directory", name)
	case err == nil && !in.Overwrite:
		return Output{}, Mistake("%s exists; use replace to change it, or set overwrite", name)
	case err == nil:
		data, err := e.w.read(name)
		if err != nil {
			return Output{}, err
		}
		before = version{true, data}
	case !errors.Is(err, fs.ErrNotExist):
		return Output{}, Mistake("%s cannot be written: %v", name, err)
	}
	if err := e.write(name, before, in.New); err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf("Wrote %s: %d bytes, %d lines", name, len(in.New), len(splitLines(in.New)))}, nil
}

func (e *editor) undo(name string) (Output, error) {
	past := e.past[name]
	if len(past) == 0 {
		return Output{}, Mistake("this tool has made no change to %s that could be taken back", name)
	}
	last := past[len(past)-1]
	var err error
	if last.existed {
		err = e.w.Files.WriteFile(name, last.data)
	} else {
		err = e.w.Files.Remove(name)
	}
	if err != nil {
		return Output{}, Mistake("%s cannot be changed back: %v", name, err)
	}
	e.past[name] = past[:len(past)-1]
	return Output{Text: fmt.Sprintf("Took back the last change to %s; %d more can be taken back", name, len(past)-1)}, nil
}

// around shows the lines of a change with two before and after it.
func around(text string, first, count int) string {
	lines := splitLines(text)
	count = min(count, 40)
	var b strings.Builder
	for i := max(1, first-2); i <= min(len(lines), first+count+1); i++ {
		b.WriteString(numbered(i, lines[i-1]))
	}
	return b.String()
}

// linesOf names the lines on which a text occurs.
func linesOf(text, part string) string {
	var numbers []string
	line, at := 1, 0
	for len(numbers) < 10 {
		next := strings.Index(text[at:], part)
		if next < 0 {
			return strings.Join(numbers, ", ")
		}
		line += strings.Count(text[at:at+next], "\n")
		numbers = append(numbers, fmt.Sprint(line))
		line += strings.Count(text[at+next:at+next+len(part)], "\n")
		at += next + len(part)
	}
	return strings.Join(numbers, ", ") + " …"
}
