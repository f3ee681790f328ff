package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

//go:embed todo.md
var todoDescription string

// TodoBlock is the name of the pinned block that shows the to-do list.
const TodoBlock = "todo"

const (
	todoItems = 100
	todoWidth = 500
)

type todoInput struct {
	Items []todoItem `json:"items"`
}

type todoItem struct {
	Text  string `json:"text"`
	State string `json:"state" jsonschema:"open, doing or done"`
}

var todoMarks = map[string]string{"open": "[ ]", "doing": "[>]", "done": "[x]"}

// TaskList is the tool that keeps the to-do list. Pin shows it to the model for
// good.
func TaskList(pin func(ctx context.Context, name, text string) error) Tool {
	return Define("todo", todoDescription, false, func(ctx context.Context, _ llm.Call, in todoInput) (Output, error) {
		if len(in.Items) > todoItems {
			return Output{}, Mistake("the list has %d items; %d are the most", len(in.Items), todoItems)
		}
		var lines []string
		done := 0
		for i, item := range in.Items {
			mark, known := todoMarks[item.State]
			text := textfmt.OneLine(item.Text)
			switch {
			case !known:
				return Output{}, Mistake("item %d has the state %q; it is open, doing or done", i+1, item.State)
			case text == "":
				return Output{}, Mistake("item %d is empty", i+1)
			case len(text) > todoWidth:
				return Output{}, Mistake("item %d is too long; %d bytes are the most", i+1, todoWidth)
			}
			if item.State == "done" {
				done++
			}
			lines = append(lines, mark+" "+text)
		}
		if err := pin(ctx, TodoBlock, strings.Join(lines, "\n")); err != nil {
			return Output{}, fmt.Errorf("keep the to-do list: %w", err)
		}
		return Output{Text: fmt.Sprintf("The list has %d items, %d done.", len(in.Items), done)}, nil
	})
}
