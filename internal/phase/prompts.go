package phase

import (
	"embed"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/prompt"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/*.md
var embedded embed.FS

// prompt is the text of a prompt: that of the configuration, or the embedded one.
func (r *run) prompt(name string, values map[string]string) (string, error) {
	text, err := prompt.Read(embedded, r.Prompts, name)
	if err != nil {
		return "", err
	}
	return prompt.Fill(text, values), nil
}

// system is the system prompt of a phase. It does not change within a run.
func (r *run) system(phase task.Phase, more ...string) (string, error) {
	general, err := r.prompt("system.md", nil)
	if err != nil {
		return "", err
	}
	special, err := r.prompt(string(phase)+".md", map[string]string{"language": r.language.Name()})
	if err != nil {
		return "", err
	}
	parts := []string{general, strings.TrimSpace(llm.UntrustedRule)}
	if r.Work.Role != "" {
		parts = append(parts, r.Role.Text(r.Work.Role))
	}
	parts = append(parts, special)
	return strings.Join(append(parts, more...), "\n\n"), nil
}
