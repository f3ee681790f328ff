package review_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// The system prompts name the blocks of a conversation by their headings. The headings
// themselves are texts of package messages.
func TestSystemPromptsNameTheHeadings(t *testing.T) {
	t.Parallel()
	for language, prompt := range map[task.Language]struct {
		file    string
		heading *regexp.Regexp
	}{
		task.English:  {"prompts/review_chat_system_en.md", regexp.MustCompile(`\[[^\]]+\]`)},
		task.Japanese: {"prompts/review_chat_system_ja.md", regexp.MustCompile(`【[^】]+】`)},
	} {
		text, err := os.ReadFile(prompt.file)
		if err != nil {
			t.Fatal(err)
		}
		var headings []string
		for _, block := range []string{"question", "overall", "purpose", "grading", "specified", "related"} {
			headings = append(headings, messages.Text(language, "conversation."+block))
		}
		slices.Sort(headings)
		named := prompt.heading.FindAllString(string(text), -1)
		slices.Sort(named)
		if diff := cmp.Diff(headings, named); diff != "" {
			t.Errorf("%s names other headings than the texts have (-texts +prompt):\n%s", prompt.file, diff)
		}
	}
}
