package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed read.md
var readDescription string

const (
	readLines = 1000   // shown at once
	readBytes = 40_000 // shown at once
	readWidth = 2000   // of one line
)

type readInput struct {
	Path   string `json:"path" jsonschema:"relative to the project's root"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to show, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines to show; default 1000"`
}

// Read is the tool that reads files.
func Read(w Workspace) Tool {
	return Define("read", readDescription, true, func(_ context.Context, _ llm.Call, in readInput) (Output, error) {
		name, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		data, err := w.read(name)
		if err != nil {
			return Output{}, err
		}
		if isBinary(data) {
			return Output{}, Mistake("%s is a binary file of %d bytes", name, len(data))
		}
		if len(data) == 0 {
			return Output{Text: "(the file is empty)"}, nil
		}
		return showLines(name, splitLines(string(data)), in)
	})
}

// isBinary decides as git and ripgrep do: by a NUL near the beginning.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func showLines(name string, lines []string, in readInput) (Output, error) {
	first := max(in.Offset, 1)
	if first > len(lines) {
		return Output{}, Mistake("%s has %d lines only", name, len(lines))
	}
	limit := in.Limit
	if limit <= 0 || limit > readLines {
		limit = readLines
	}
	var b strings.Builder
	last := first - 1
	for last < len(lines) && last-first+1 < limit && b.Len() < readBytes {
		b.WriteString(numbered(last+1, lines[last]))
		last++
	}
	if last < len(lines) {
		fmt.Fprintf(&b, "[lines %d to %d of %d; go on with offset %d]\n", first, last, len(lines), last+1)
	}
	return Output{Text: b.String(), Origin: "file " + name}, nil
}

func numbered(number int, line string) string {
	line = Printable(strings.TrimSuffix(line, "\r"))
	if len(line) > readWidth {
		line = strings.ToValidUTF8(line[:readWidth], "") + fmt.Sprintf("[… %d bytes more]", len(line)-readWidth)
	}
	return fmt.Sprintf("%d\t%s\n", number, line)
}
