package tool

import (
	"context"
	_ "embed"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed finish.md
var finishDescription string

type finishInput struct {
	Summary string   `json:"summary"`
	Proof   []string `json:"proof,omitempty"`
}

// Finish is the tool by which a model says that it is done. It is told what check
// finds while it can still do something about it; nil means that nothing is checked.
func Finish(check func(ctx context.Context) error) Tool {
	return Define("finish", finishDescription, false, func(ctx context.Context, _ llm.Call, in finishInput) (Output, error) {
		if strings.TrimSpace(in.Summary) == "" {
			return Output{}, Mistake("the summary is empty")
		}
		if check != nil {
			if err := check(ctx); err != nil {
				return Output{}, err
			}
		}
		return Output{Text: "Finished.", End: &End{Summary: in.Summary, Proof: in.Proof}}, nil
	})
}
