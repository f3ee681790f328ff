// Package messages holds the texts that people read in English or in Japanese: on
// the pages, in comments and in descriptions of pull requests. They are in en.json
// and ja.json, which have the same keys. Prompts for models are not among them, and
// neither is what only the command line and the log say, which is in English only.
//
// Some of the texts are also read elsewhere, so that a change of one has an effect there:
//   - conversation.* are put into what a model is sent about a review. Its system prompts,
//     prompts/system_en.md and system_ja.md of package review, name the headings literally.
//   - judge.issue, judge.criteria, judge.pull and judge.cut are put into what the model is
//     sent that judges a pull request.
//   - finding.*, fix.* and reason.* in English are put into what the command line and the
//     clients of the API are told, and finding.* and reason.* also into what models are.
package messages

import (
	_ "embed" // for the texts
	"encoding/json"
	"fmt"
	"sync"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed en.json
var englishFile []byte

//go:embed ja.json
var japaneseFile []byte

// Each language is parsed when its first text is needed, so that programs that need
// none start without delay.
var (
	english  = sync.OnceValue(func() map[string]string { return parse(englishFile) })
	japanese = sync.OnceValue(func() map[string]string { return parse(japaneseFile) })
)

func parse(file []byte) map[string]string {
	var texts map[string]string
	if err := json.Unmarshal(file, &texts); err != nil {
		panic(fmt.Sprintf("the embedded texts cannot be read: %v", err))
	}
	return texts
}

// texts are the texts of a language by key. A language that is not known is read as
// English.
func texts(in task.Language) map[string]string {
	if in == task.Japanese {
		return japanese()
	}
	return english()
}

// Text returns the text with the key. Arguments are put in as by [fmt.Sprintf];
// without any, the text is returned as it is. A key that does not exist is returned
// itself: a test finds those.
func Text(in task.Language, key string, args ...any) string {
	text, found := texts(in)[key]
	switch {
	case !found:
		return key
	case len(args) == 0:
		return text
	default:
		return fmt.Sprintf(text, args...)
	}
}

// Find returns the text with a key that may not exist, such as one with a code in it
// that another version of the program has written.
func Find(in task.Language, key string) (text string, found bool) {
	text, found = texts(in)[key]
	return text, found
}

// Reason returns a reason in words. It is empty for a reason that is not known. In
// English it begins with a small letter, for it is put behind "because". In Japanese it is
// a sentence without its 。, for it is put behind 理由.
func Reason(in task.Language, reason task.Reason) string { return texts(in)["reason."+string(reason)] }

// Fix returns what a person can do about a reason for which a task waits. It is
// empty for a reason that needs nobody.
func Fix(in task.Language, reason task.Reason) string { return texts(in)["fix."+string(reason)] }

// Finding returns a finding as one line, without the name of the file.
func Finding(in task.Language, finding task.Finding) string {
	text := texts(in)["finding."+string(finding.Kind)]
	if finding.Detail != "" {
		text += " (" + finding.Detail + ")"
	}
	return text
}
