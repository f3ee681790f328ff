package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// keepChoices is how long a browser keeps what its reader chose.
const keepChoices = 365 * 24 * time.Hour

var themes = []string{"", "light", "dark"}

func themeOf(r *http.Request) string {
	cookie, err := r.Cookie(themeCookie)
	if err != nil || !slices.Contains(themes, cookie.Value) {
		return ""
	}
	return cookie.Value
}

// registerPreferences adds how readers choose language and colours. The choice is
// the browser's: it needs no account and is no action on anything.
func (p *Pages) registerPreferences(mux *http.ServeMux) {
	mux.HandleFunc("POST /preferences", p.strangersForm(func(w http.ResponseWriter, r *http.Request) {
		if chosen := r.PostFormValue("language"); slices.Contains(languages, task.Language(chosen)) {
			setCookie(w, r, languageCookie, chosen, keepChoices)
		}
		if r.PostForm.Has("theme") && slices.Contains(themes, r.PostFormValue("theme")) {
			setCookie(w, r, themeCookie, r.PostFormValue("theme"), keepChoices)
		}
		http.Redirect(w, r, safeNext(r.PostFormValue("next")), http.StatusSeeOther)
	}))
}
