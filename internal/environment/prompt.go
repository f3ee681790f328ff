package environment

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
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
		"project": string(information), "remarks": project.remarks(), "default": t.Default().Name,
		"criteria": t.offered("criteria.md", "\n"), "examples": t.offered("examples.md", "\n\n")}), nil
}

// offered are those parts of an embedded text that are about environments of the table:
// each begins with the name of one.
func (t *Table) offered(file, between string) string {
	parts := strings.Split(strings.TrimSpace(fill(file, nil)), between)
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(part, "- "), ":")
		_, known := t.Find(name)
		return !known
	}), between)
}

// remarks are what the model has to know besides: that the environment is a guess, and
// what is done about further projects.
func (d Detection) remarks() string {
	text := ""
	if d.Guess {
		text += fmt.Sprintf("\nThe environment %s is only a guess: %s. Look at the files, and select another one if it fits better.\n", d.EnvironmentType, llm.QuoteLine(d.Reason))
	}
	if len(d.Projects) > 1 {
		text += fmt.Sprintf("\nThe repository has %d projects, which \"projects\" lists. Select the one that the task is about. The others are set up by themselves with the commands that are shown there: write commands for the selected one only.\n", len(d.Projects))
	}
	return text
}

// places says in which folders the projects are.
func (h Handover) places() string {
	var text strings.Builder
	if h.Directory != "" {
		fmt.Fprintf(&text, "**Folder**: %s. Your commands start at the top of the repository; the tool for tests goes there by itself.\n", llm.QuoteLine(h.Directory))
	}
	for _, other := range h.Others {
		state := "ready"
		if !other.Ready {
			state = "not ready"
		}
		fmt.Fprintf(&text, "**Another project**: %s in %s (%s)", other.EnvironmentType, llm.QuoteLine(other.Directory), state)
		if other.TestCommand != "" {
			fmt.Fprintf(&text, "; its tests: %s", llm.QuoteLine(other.TestCommand))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// Prompt tells the model in the execution phase what it has to work with.
func (h Handover) Prompt() string {
	text := fill("execution.md", map[string]string{"environment": h.EnvironmentName, "status": string(h.SetupStatus)}) + h.places()
	if h.SetupStatus == Succeeded {
		return text
	}
	var list strings.Builder
	for _, failure := range h.Errors {
		fmt.Fprintf(&list, "- %s\n", llm.QuoteLine(failure.oneLine()))
	}
	return text + fill("execution_failed.md", map[string]string{"errors": strings.TrimRight(list.String(), "\n")})
}
