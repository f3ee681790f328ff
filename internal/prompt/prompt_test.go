package prompt_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toryo-dev/toryo/internal/prompt"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestRead(t *testing.T) {
	t.Parallel()
	builtIn := fstest.MapFS{"prompts/a.md": {Data: []byte("\nours {{x}}\n\n")}, "prompts/b.md": {Data: []byte("ours")}}
	replaced := fstest.MapFS{"a.md": {Data: []byte(" theirs {{x}} \n")}, "c.md": {Data: []byte("of no use")}}
	for name, want := range map[string]string{"a.md": "theirs {{x}}", "b.md": "ours"} {
		if got, err := prompt.Read(builtIn, replaced, name); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if got, err := prompt.Read(builtIn, nil, "a.md", "x"); err != nil || got != "ours {{x}}" {
		t.Errorf("without replacements it is %q, %v", got, err)
	}
	if _, err := prompt.Read(builtIn, replaced, "a.md", "x", "y"); task.CodeOf(err) != task.BadConfig || !strings.Contains(err.Error(), "{{y}}") {
		t.Errorf("a replacement without a place gives %v", err)
	}
	if _, err := prompt.Read(builtIn, fstest.MapFS{"b.md/x": {}}, "b.md"); task.CodeOf(err) != task.BadConfig {
		t.Errorf("a folder in place of a file gives %v", err)
	}
	if _, err := prompt.Read(builtIn, replaced, "c.md"); task.CodeOf(err) != task.Internal {
		t.Errorf("a name that nothing is built in for gives %v", err)
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	got := prompt.Fill("{{a}} {{b}} {{c}}", map[string]string{"a": "{{b}}", "b": "{{a}}"})
	if got != "{{b}} {{a}} {{c}}" {
		t.Errorf("it is %q", got)
	}
}
