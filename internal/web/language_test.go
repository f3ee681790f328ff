package web

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

var verbs = regexp.MustCompile(`%[sd%]`)

// Every text is there in every language, with the same gaps to fill.
func TestCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	all := catalogue()
	keys := slices.Sorted(maps.Keys(all[english]))
	for _, one := range languages {
		if got := slices.Sorted(maps.Keys(all[one])); !slices.Equal(got, keys) {
			t.Errorf("%s has other keys than English", one)
		}
		for _, key := range keys {
			text := all[one][key]
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no text for %s", one, key)
			}
			if got, want := verbs.FindAllString(text, -1), verbs.FindAllString(all[english][key], -1); !slices.Equal(got, want) {
				t.Errorf("%s has %v in %s, English has %v", one, got, key, want)
			}
		}
	}
}

// Every text that the pages ask for is there.
func TestCatalogueHasWhatPagesAsk(t *testing.T) {
	t.Parallel()
	var wanted []string
	asked := regexp.MustCompile(`\.t\("([a-z_.]+[a-z_])"`)
	files, err := os.ReadDir(".")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") || file.IsDir() {
			continue
		}
		content, err := os.ReadFile(file.Name())
		must(t, err)
		for _, found := range asked.FindAllStringSubmatch(string(content), -1) {
			wanted = append(wanted, found[1])
		}
	}
	if len(wanted) < 100 {
		t.Fatalf("only %d texts are asked for", len(wanted))
	}
	for _, state := range task.States {
		wanted = append(wanted, "state."+string(state))
	}
	for _, phase := range task.Phases {
		wanted = append(wanted, "phase."+string(phase))
	}
	for _, role := range access.Roles {
		wanted = append(wanted, "role."+string(role))
	}
	for _, key := range wanted {
		if _, found := catalogue()[english][key]; !found {
			t.Errorf("there is no text for %s", key)
		}
	}
	for key, text := range catalogue()[english] {
		if reason, is := strings.CutPrefix(key, "reason."); is && task.Reason(reason).Text() != text {
			t.Errorf("%s says %q, and package task %q", key, text, task.Reason(reason).Text())
		}
	}
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		accept, cookie string
		want           language
	}{
		{"", "", english},
		{"ja", "", japanese},
		{"ja-JP,ja;q=0.9,en;q=0.8", "", japanese},
		{"de,en;q=0.5", "", english},
		{"en-GB,ja;q=0.5", "", english},
		{"ja", "en", english},
		{"en", "ja", japanese},
		{"ja", "xx", japanese},
		{";;;", "", english},
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
