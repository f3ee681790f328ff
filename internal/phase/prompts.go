package phase

import (
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/*.md
var embedded embed.FS

// prompt is the text of a prompt: that of the configuration, or the embedded one.
func (r *run) prompt(name string, values map[string]string) (string, error) {
	data, err := fs.ReadFile(embedded, "prompts/"+name)
	if err != nil {
		return "", task.Wrap(task.Internal, err, "there is no prompt "+name)
	}
	if r.Prompts != nil {
		replaced, err := fs.ReadFile(r.Prompts, name)
		switch {
		case err == nil:
			data = replaced
		case !errors.Is(err, fs.ErrNotExist):
			return "", task.Wrap(task.BadConfig, err, "the prompt "+name+" cannot be read")
		}
	}
	pairs := make([]string, 0, 2*len(values))
	for placeholder, value := range values {
		pairs = append(pairs, "{{"+placeholder+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(data))), nil
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
