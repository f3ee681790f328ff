package tool

import (
	"context"
	_ "embed"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed ask.md
var askDescription string

type askInput struct {
	Question string `json:"question"`
}

// Ask is the tool by which a model asks a person.
func Ask() Tool {
	return Define("ask", askDescription, false, func(_ context.Context, _ llm.Call, in askInput) (Output, error) {
		if strings.TrimSpace(in.Question) == "" {
			return Output{}, Mistake("the question is empty")
		}
		return Output{Text: "The question was asked. The answer comes as a comment.", End: &End{Question: in.Question}}, nil
	})
}
