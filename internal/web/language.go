package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	tags "golang.org/x/text/language"
)

//go:embed messages/*.json
var messageFiles embed.FS

// language is one in which the pages are written.
type language string

// The languages. The first is used where the reader's own is not among them.
const (
	english  language = "en"
	japanese language = "ja"
)

var languages = []language{english, japanese}

// catalogue is the texts of the pages, by language and key.
var catalogue = sync.OnceValue(func() map[language]map[string]string {
	all := make(map[language]map[string]string)
	for _, one := range languages {
		content, err := messageFiles.ReadFile("messages/" + string(one) + ".json")
		texts := make(map[string]string)
		if err == nil {
			err = json.Unmarshal(content, &texts)
		}
		if err != nil {
			panic(fmt.Sprintf("the embedded texts in %q cannot be read: %v", one, err))
		}
		all[one] = texts
	}
	return all
})

// text is a text of the pages. A key without one is shown as it is; a test sees
// to it that there is none.
func (l language) text(key string, args ...any) string {
	text, found := catalogue()[l][key]
	if !found {
		return key
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// textOr is a text of the pages, or the given one if there is none: for codes that
// other parts of the program may add to.
func (l language) textOr(key, otherwise string) string {
	if text, found := catalogue()[l][key]; found {
		return text
	}
	return otherwise
}

// name is the language in itself.
func (l language) name() string {
	return map[language]string{english: "English", japanese: "日本語"}[l]
}

var matcher = sync.OnceValue(func() tags.Matcher {
	return tags.NewMatcher([]tags.Tag{tags.English, tags.Japanese})
})

// languageOf is the language that the reader chose, or the best of those that the
// browser asks for.
func languageOf(r *http.Request) language {
	if cookie, err := r.Cookie(languageCookie); err == nil {
		for _, one := range languages {
			if cookie.Value == string(one) {
				return one
			}
		}
	}
	wanted, _, err := tags.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return english
	}
	_, index, _ := matcher().Match(wanted...)
	return languages[index]
}
