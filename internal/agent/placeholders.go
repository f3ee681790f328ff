package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// place is a place to be filled in a word of a command, such as {{.Prompt}}.
var place = lazyregexp.New(`\{\{\s*\.?(\w*)[^}]*\}\}`)

// promptFile is the place for the path of a file with the prompt.
const promptFile = "PromptFile"

// places are what can be filled in.
var places = map[string]func(wire.Assignment) string{
	"Prompt":     func(a wire.Assignment) string { return a.Prompt },
	promptFile:   func(wire.Assignment) string { return promptPath },
	"Task":       func(a wire.Assignment) string { return a.TaskID },
	"Type":       func(a wire.Assignment) string { return a.TaskType },
	"Role":       func(a wire.Assignment) string { return a.RequiredRole },
	"Forge":      func(a wire.Assignment) string { return a.Forge },
	"Repository": func(a wire.Assignment) string { return a.Repository },
	"Number":     func(a wire.Assignment) string { return strconv.FormatInt(a.Number, 10) },
	"URL":        func(a wire.Assignment) string { return a.URL },
	"Title":      func(a wire.Assignment) string { return a.Title },
	"Body":       func(a wire.Assignment) string { return a.Body },
	"Branch":     func(a wire.Assignment) string { return a.Branch },
	"Base":       func(a wire.Assignment) string { return a.Base },
	"PullURL": func(a wire.Assignment) string {
		if a.PullRequest == nil {
			return ""
		}
		return a.PullRequest.URL
	},
}

// CheckCommand returns an error if a word of a command has a placeholder that is not known.
func CheckCommand(words []string) error {
	if len(words) == 0 {
		return task.Errorf(task.BadConfig, "the command is empty")
	}
	for _, word := range words {
		for _, found := range place.FindAllStringSubmatch(word, -1) {
			if places[found[1]] == nil || found[0] != "{{."+found[1]+"}}" {
				return task.Errorf(task.BadConfig, "%s cannot be filled in", found[0]).
					WithHint("use one of {{.%s}}", strings.Join(slices.Sorted(maps.Keys(places)), "}}, {{."))
			}
		}
	}
	return nil
}

// fill puts the assignment into the words. What is put in is never looked at for
// places again.
func fill(words []string, a wire.Assignment) []string {
	filled := make([]string, len(words))
	for i, word := range words {
		filled[i] = place.ReplaceAllStringFunc(word, func(found string) string {
			return places[place.FindStringSubmatch(found)[1]](a)
		})
	}
	return filled
}

// needsPromptFile says whether a command wants the prompt in a file.
func needsPromptFile(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "{{."+promptFile+"}}") })
}

// shellText is the command line for words that must arrive as they are.
func shellText(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
