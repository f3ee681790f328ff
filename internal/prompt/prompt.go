// Package prompt reads the prompts of models. Each is a file that is part of the
// program, and a folder of the configuration may have a file of the same name that
// replaces it.
package prompt

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// folder is where packages have their prompts.
const folder = "prompts/"

// Read returns a prompt: the replacement, if there is one, or the built-in one. Spaces
// around it are left out. Replaced may be nil. BadConfig says that a replacement cannot
// be read, or lacks one of the placeholders without which it is of no use.
func Read(builtIn, replaced fs.FS, name string, placeholders ...string) (string, error) {
	data, err := fs.ReadFile(builtIn, folder+name)
	if err != nil {
		return "", task.Wrap(task.Internal, err, "there is no prompt "+name)
	}
	if replaced == nil {
		return strings.TrimSpace(string(data)), nil
	}
	own, err := fs.ReadFile(replaced, name)
	switch {
	case err == nil:
		data = own
	case !errors.Is(err, fs.ErrNotExist):
		return "", task.Wrap(task.BadConfig, err, "the prompt "+name+" cannot be read").WithHint("see prompts_dir")
	}
	for _, placeholder := range placeholders {
		if !strings.Contains(string(data), mark(placeholder)) {
			return "", task.Errorf(task.BadConfig, "the prompt %s does not have %s in it", name, mark(placeholder)).WithHint("see the file in prompts_dir")
		}
	}
	return strings.TrimSpace(string(data)), nil
}

// Fill puts values in the places of a prompt that are named {{so}}. A value is not
// looked at for places.
func Fill(text string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for placeholder, value := range values {
		pairs = append(pairs, mark(placeholder), value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func mark(placeholder string) string { return "{{" + placeholder + "}}" }
