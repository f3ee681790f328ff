package web

import (
	"net/http"
	"sync"

	tags "golang.org/x/text/language"

	"github.com/toryo-dev/toryo/internal/task"
)

// languages are those in which the pages are written. The first is used where the
// reader's own is not among them.
var languages = []task.Language{task.English, task.Japanese}

var matcher = sync.OnceValue(func() tags.Matcher {
	return tags.NewMatcher([]tags.Tag{tags.English, tags.Japanese})
})

// languageOf is the language that the reader chose, or the best of those that the
// browser asks for.
func languageOf(r *http.Request) task.Language {
	if cookie, err := r.Cookie(languageCookie); err == nil {
		for _, one := range languages {
			if cookie.Value == string(one) {
				return one
			}
		}
	}
	wanted, _, err := tags.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return task.English
	}
	_, index, _ := matcher().Match(wanted...)
	return languages[index]
}
