package environment

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

//go:embed prompts/*.md
var prompts embed.FS

// fill puts values into an embedded prompt. Each value goes in once and as it
// is: what looks like a placeholder inside a value stays.
func fill(name string, values map[string]string) string {
	text, err := prompts.ReadFile("prompts/" + name)
	if err != nil {
		panic(err) // the file is embedded, which a test would show
	}
	pairs := make([]string, 0, 2*len(values))
	for placeholder, value := range values {
		pairs = append(pairs, "{{"+placeholder+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(string(text))
}

// SelectionPrompt asks the model to select an environment and to write the
// commands, as part of its plan.
func (t *Table) SelectionPrompt(project Detection) (string, error) {
	information, err := json.MarshalIndent(project, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write what was detected: %w", err)
	}
	var list strings.Builder
	for _, entry := range t.entries {
		fmt.Fprintf(&list, "- %s: %s\n", entry.Name, entry.Title)
	}
	return fill("select.md", map[string]string{"environments": strings.TrimRight(list.String(), "\n"),
		"project": string(information), "default": t.Default().Name}), nil
}

// Prompt tells the model in the execution phase what it has to work with.
func (h Handover) Prompt() string {
	text := fill("execution.md", map[string]string{"environment": h.EnvironmentName, "status": string(h.SetupStatus)})
	if h.SetupStatus == Succeeded {
		return text
	}
	var list strings.Builder
	for _, failure := range h.Errors {
		fmt.Fprintf(&list, "- %s\n", llm.QuoteLine(failure.oneLine()))
	}
	return text + fill("execution_failed.md", map[string]string{"errors": strings.TrimRight(list.String(), "\n")})
}
