package phase_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
)

// A project with everything that projects should not have is worked on as any
// other: what is odd stays as it is, and nothing outside is touched.
func TestOddProject(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	maps.Copy(scenario.Files, map[string]string{
		"two\nlines.txt": "odd one", "caf\xe9.txt": "odd two", "Case.txt": "upper", "case.txt": "lower", "a b/$(touch owned)`.sh": "odd three",
		"big.bin": strings.Repeat("\x00\xff\x01binary\n", 400_000), "art.psd": pointer, ".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n",
		".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = https://forge.invalid/x.git\n",
		"shadow":      phasetest.LinkTo + "/etc/shadow", "up": phasetest.LinkTo + "../../../../etc", "loop": phasetest.LinkTo + "loop",
		"CLAUDE.md": phasetest.LinkTo + "/etc/hostname",
	})
	work, err := script.Parse("odd.yaml", []byte(`rules:
  - when: {phase: execution, turn: 1}
    answer:
      calls:
        - {name: run, arguments: {command: "printf ' and more' >> \"$$(printf 'two\\nlines.txt')\"; cat shadow up/shadow 2>&1; head -c 20 big.bin"}}
        - {name: read, arguments: {path: shadow}}
        - {name: read, arguments: {path: big.bin}}
        - {name: list, arguments: {}}
        - {name: search, arguments: {pattern: odd}}
        - {name: edit, arguments: {command: replace, path: add.sh, old: "$$1 - $$2", new: "$$1 + $$2"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if scenario.Script, err = script.New(script.Script{Rules: append(work.Rules, scenario.Script.Rules...)}); err != nil {
		t.Fatal(err)
	}
	scenario.Expect.Files = map[string]string{
		"add.sh": "$1 + $2", "two\nlines.txt": "odd one and more", "caf\xe9.txt": "odd two", "Case.txt": "upper", "case.txt": "lower",
		"art.psd": strings.TrimSpace(pointer), "shadow": "/etc/shadow", "loop": "loop", "a b/$(touch owned)`.sh": "odd three",
	}
	scenario.Expect.Asked = []string{`"two\nlines.txt"`, `"caf\xe9.txt"`}
	scenario.Expect.Absent = []string{"owned"}
	scenario.Expect.NotSaid = []string{"root:"}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	if asked := world.Prompts(); strings.Contains(asked, "root:") || len(asked) > 2_000_000 {
		t.Errorf("the model was sent %d bytes, or what is outside of the workspace", len(asked))
	}
}
