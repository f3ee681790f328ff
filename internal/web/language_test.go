package web

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		accept, cookie string
		want           task.Language
	}{
		{"", "", task.English},
		{"ja", "", task.Japanese},
		{"ja-JP,ja;q=0.9,en;q=0.8", "", task.Japanese},
		{"de,en;q=0.5", "", task.English},
		{"en-GB,ja;q=0.5", "", task.English},
		{"ja", "en", task.English},
		{"en", "ja", task.Japanese},
		{"ja", "xx", task.Japanese},
		{";;;", "", task.English},
	} {
		r, err := http.NewRequest(http.MethodGet, "/", nil)
		must(t, err)
		r.Header.Set("Accept-Language", test.accept)
		if test.cookie != "" {
			r.AddCookie(&http.Cookie{Name: languageCookie, Value: test.cookie})
		}
		if got := languageOf(r); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
