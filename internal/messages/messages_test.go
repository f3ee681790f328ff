package messages

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/toryo-dev/toryo/internal/task"
)

var (
	verb  = regexp.MustCompile(`%(?:\[(\d+)\])?([-+# 0-9.]*[a-zA-Z%])`)
	place = regexp.MustCompile(`\{\w+\}`)
)

// verbsOf are the verbs of a text by the argument that each is for.
func verbsOf(text string) map[int]string {
	verbs := make(map[int]string)
	next := 1
	for _, found := range verb.FindAllStringSubmatch(text, -1) {
		if found[2] == "%" {
			continue
		}
		if number, err := strconv.Atoi(found[1]); err == nil { // else it is for the next argument
			next = number
		}
		verbs[next] = found[2]
		next++
	}
	return verbs
}

// compare says what is wrong with the texts of one language beside those of the other.
func compare(english, japanese map[string]string) []string {
	var wrong []string
	for key := range japanese {
		if _, found := english[key]; !found {
			wrong = append(wrong, key+" is not there in English")
		}
	}
	for key, text := range english {
		other, found := japanese[key]
		switch {
		case !found:
			wrong = append(wrong, key+" is not there in Japanese")
		case strings.TrimSpace(text) == "" || strings.TrimSpace(other) == "":
			wrong = append(wrong, key+" is empty")
		case !maps.Equal(verbsOf(text), verbsOf(other)):
			wrong = append(wrong, fmt.Sprintf("%s has the verbs %v in English and %v in Japanese", key, verbsOf(text), verbsOf(other)))
		case !slices.Equal(placesOf(text), placesOf(other)):
			wrong = append(wrong, fmt.Sprintf("%s has the places %v in English and %v in Japanese", key, placesOf(text), placesOf(other)))
		}
	}
	return wrong
}

func placesOf(text string) []string {
	return slices.Sorted(slices.Values(place.FindAllString(text, -1)))
}

func TestBothLanguagesAreComplete(t *testing.T) {
	t.Parallel()
	if len(english()) == 0 {
		t.Fatal("there are no texts")
	}
	for _, wrong := range compare(english(), japanese()) {
		t.Error(wrong)
	}
	for key, text := range japanese() {
		if !slices.Contains(sameInJapanese, key) && !strings.ContainsFunc(text, isJapanese) {
			t.Errorf("%s is %q in Japanese", key, text)
		}
		if strings.ContainsFunc(english()[key], isJapanese) {
			t.Errorf("%s is %q in English", key, english()[key])
		}
	}
}

// sameInJapanese are the texts of words that are not translated.
var sameInJapanese = []string{"board.issues", "forge.webhooks", "pull.body_hint", "review.quoted", "run.closes", "statistics.column.p90", "webhooks.title", "why.by"}

func isJapanese(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) }

func TestIncompleteTextsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		english, japanese map[string]string
		wrong             bool
	}{
		"the same":            {map[string]string{"a": "%s of %d {x} %%"}, map[string]string{"a": "{x} %s %d"}, false},
		"numbered":            {map[string]string{"a": "%s of %d"}, map[string]string{"a": "%[2]d %[1]s"}, false},
		"other order":         {map[string]string{"a": "%s of %d"}, map[string]string{"a": "%d %s"}, true},
		"fewer verbs":         {map[string]string{"a": "%s %s"}, map[string]string{"a": "%s"}, true},
		"other place":         {map[string]string{"a": "{x}"}, map[string]string{"a": "{y}"}, true},
		"empty":               {map[string]string{"a": "x"}, map[string]string{"a": " "}, true},
		"missing in Japanese": {map[string]string{"a": "x"}, map[string]string{}, true},
		"missing in English":  {map[string]string{}, map[string]string{"a": "x"}, true},
	} {
		if wrong := compare(test.english, test.japanese); (len(wrong) > 0) != test.wrong {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ got, want string }{
		{Text(task.English, "run.closes", 7), "Closes #7"},
		{Text(task.Japanese, "run.build"), "ビルド"},
		{Text(task.Automatic, "run.build"), "Build"},
		{Text("", "run.build"), "Build"},
		{Text(task.English, "home.share"), "%d%% of the daily budget"},
		{Text(task.English, "home.share", 40), "40% of the daily budget"},
		{Text(task.English, "no.such"), "no.such"},
		{Reason(task.English, task.ReasonUnassigned), "the bot was unassigned"},
		{Reason(task.Japanese, task.ReasonUnassigned), "ボットのアサインが解除されました"},
		{Reason(task.English, "unheard_of"), ""},
		{Fix(task.English, task.ReasonAwaitingAnswer), "answer the question on the item"},
		{Fix(task.English, task.ReasonCompleted), ""},
		{Finding(task.Japanese, task.Finding{Kind: task.FindingSubmodule}), "サブモジュール"},
		{Finding(task.English, task.Finding{Kind: task.FindingBinary, Detail: "1 MB"}), "binary content (1 MB)"},
	} {
		if test.got != test.want {
			t.Errorf("it is %q, want %q", test.got, test.want)
		}
	}
	if text, found := Find(task.Japanese, "no.such"); found || text != "" {
		t.Errorf("found %q", text)
	}
}
