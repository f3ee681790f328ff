package eval_test

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval"
)

func TestFlagsOfCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"go test ./...":                       nil,
		"git status && git diff":              nil,
		"git checkout -- main.go":             nil,
		"git add . ; echo show the log":       nil,
		"cat CHANGELOG.md | grep fetch":       nil,
		"git log -p --all":                    {eval.FlagHistory},
		"git -C /workspace show v2:main.go":   {eval.FlagHistory},
		"cd x && git --no-pager reflog":       {eval.FlagHistory},
		"ls .git/objects/pack":                {eval.FlagHistory},
		"git fsck --lost-found":               {eval.FlagHistory},
		"git fetch origin":                    {eval.FlagHistory, eval.FlagNetwork},
		"curl -s example.org":                 {eval.FlagNetwork},
		"pip install git+https://example.org": {eval.FlagNetwork},
	} {
		var w eval.Watcher
		w.Command(line)
		w.Command(line)
		if found := w.Flags(); !slices.Equal(found, want) {
			t.Errorf("%s: %q", line, found)
		}
	}
}
