package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/docsite"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// docsReader is someone without an account who reads in a language.
func (h *house) docsReader(t testing.TB, language task.Language) *visitor {
	t.Helper()
	v := h.visitor(t, "")
	v.header.Set("Accept-Language", string(language))
	return v
}

var linkPattern = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// Every page of the documentation is shown to everyone, and every link on it leads to a page
// and to a heading there.
func TestDocs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, language := range languages {
		reader := h.docsReader(t, language)
		shown := map[string]string{}
		for waiting := []string{"/docs"}; len(waiting) > 0; waiting = waiting[1:] {
			path := waiting[0]
			if _, known := shown[path]; known {
				continue
			}
			status, page := reader.get(path)
			if status != http.StatusOK {
				t.Errorf("%s answers %d", path, status)
			}
			shown[path] = page
			for _, found := range linkPattern.FindAllStringSubmatch(page, -1) {
				if to, _, _ := strings.Cut(found[1], "#"); to == "/docs" || strings.HasPrefix(to, "/docs/") {
					waiting = append(waiting, to)
				}
			}
		}
		if len(shown) < 25 {
			t.Errorf("%d pages are shown in %s", len(shown), language)
		}
		for path, page := range shown {
			for _, found := range linkPattern.FindAllStringSubmatch(page, -1) {
				to, anchor, _ := strings.Cut(found[1], "#")
				anchor, err := url.PathUnescape(anchor) // as browsers do
				must(t, err)
				if to == "" {
					to = path
				}
				if there, ours := shown[to]; ours && anchor != "" && !strings.Contains(there, ` id="`+anchor+`"`) {
					t.Errorf("in %s: on %s there is a link to %s, where no such heading is", language, path, found[1])
				}
			}
		}
	}
}

// The documentation is in the reader's language where it is translated; where not, the page
// says so.
func TestDocsLanguage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const says = "英語版のみです"
	english, japanese := h.docsReader(t, task.English), h.docsReader(t, task.Japanese)
	_, page := japanese.get("/docs/signals")
	if strings.Contains(page, says) || !strings.Contains(page, `lang="ja"><h1 id="signals-stop-pause-and-comments"`) {
		t.Errorf("a translated page is %s", page)
	}
	if _, page := japanese.get("/docs/forges"); !strings.Contains(page, says) || !strings.Contains(page, `lang="en"><h1 id="forges">Forges</h1>`) {
		t.Errorf("a page without a translation is %s", page)
	}
	if _, page := english.get("/docs/signals"); strings.Contains(page, `class="notice"`) || !strings.Contains(page, "What unassigning stops") {
		t.Errorf("the English page is %s", page)
	}
}

// Who is signed in stays so; who cannot be looked up reads as a stranger.
func TestWhoReadsTheDocs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, page := h.visitor(t, "").get("/docs"); strings.Contains(page, `href="/queue"`) || !strings.Contains(page, `<footer>`) {
		t.Errorf("a stranger is shown %s", page)
	}
	if _, page := h.visitor(t, "vera").get("/docs"); !strings.Contains(page, `href="/queue"`) || !strings.Contains(page, "vera") {
		t.Errorf("somebody who is signed in is shown %s", page)
	}
	broken := newHouse(t)
	broken.pages.accounts.Store = noSessions{broken.pages.Store}
	reader := broken.visitor(t, "")
	reader.header.Set("Cookie", sessionCookie+"=session.x")
	if status, page := reader.get("/docs/operations"); status != http.StatusOK || !strings.Contains(page, "Backup and restore") {
		t.Errorf("without a database the documentation answers %d", status)
	}
}

// noSessions is a database that does not answer who is signed in.
type noSessions struct{ Store }

func (noSessions) SessionUser(context.Context, []byte, time.Time) (store.User, error) {
	return store.User{}, errors.New("the database is away")
}

func TestDocsThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stranger := h.visitor(t, "")
	for _, path := range []string{
		"/docs/nothing", "/docs/forges/nothing", "/docs/..%2fREADME", "/docs/..%2f..%2fetc%2fpasswd", "/docs/README", "/docs/%00", "/docs/ja%2fsignals",
		"/docs/images/000000000000/home.png", "/docs/images/..%2f..%2f/docs.go", "/docs/decisions/README", "/docs/docs.go",
	} {
		if status, page := stranger.get(path); status != http.StatusNotFound || strings.Contains(page, `name="password"`) {
			t.Errorf("%s answers %d", path, status)
		}
	}
	if status, page := stranger.get("/docs/../settings"); status != http.StatusOK || !strings.Contains(page, `name="password"`) {
		t.Errorf("a way out of the documentation answers %d", status)
	}
	for path, want := range map[string]string{"/docs/forges.md": ">Forges</h1>", "/docs/": "<h1"} {
		if status, page := stranger.get(path); status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%s answers %d", path, status)
		}
	}
	if status, _ := stranger.post("/docs/forges", nil); status == http.StatusOK {
		t.Error("a page of the documentation can be posted to")
	}
}

func TestDocsSearch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	find := func(language task.Language, query string) string {
		status, page := h.docsReader(t, language).get("/docs/search?q=" + url.QueryEscape(query))
		if status != http.StatusOK {
			t.Errorf("%.30q answers %d", query, status)
		}
		return page
	}
	if page := find(task.English, "webhook secret"); !strings.Contains(page, `href="/docs/forges#webhooks"`) || !strings.Contains(page, "<mark>secret</mark>") {
		t.Errorf("webhooks are not found: %s", page)
	}
	if page := find(task.Japanese, "サンドボックス"); !strings.Contains(page, `href="/docs/environments`) || !strings.Contains(page, "<mark>サンドボックス</mark>") {
		t.Errorf("サンドボックス is not found: %s", page)
	}
	if page := find(task.English, "zzzz"); !strings.Contains(page, "No section contains all the words of") || !strings.Contains(page, `value="zzzz"`) {
		t.Errorf("what is not there is answered with %s", page)
	}
	if page := find(task.English, ""); !strings.Contains(page, "Enter one or more words") {
		t.Errorf("nothing is answered with %s", page)
	}
	plain := strings.Count(find(task.English, "zzzz"), "<script")
	for _, attack := range append(attacks, strings.Repeat("<b>", 100_000), "\xff<b>") {
		page := find(task.English, attack)
		if strings.Count(page, "<script") != plain || strings.Contains(page, "<img src=x") || strings.Contains(page, "<svg onload") || strings.Contains(page, "<b>") || strings.Contains(page, "<iframe") {
			t.Errorf("%.40q becomes markup: %s", attack, page)
		}
		if len(page) > 100_000 {
			t.Errorf("%.40q leads to a page of %d bytes", attack, len(page))
		}
	}
}

// A browser asks whether a page has changed, and is told no more than that; pictures and
// styles it keeps for good.
func TestDocsAreKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ask := func(path, language, tag string) (status int, header http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.web.URL+path, nil)
		must(t, err)
		request.Header.Set("Accept-Language", language)
		request.Header.Set("If-None-Match", tag)
		answer, err := h.web.Client().Do(request)
		must(t, err)
		must(t, answer.Body.Close())
		return answer.StatusCode, answer.Header
	}
	first, header := ask("/docs/signals", "en", "")
	tag := header.Get("ETag")
	if first != http.StatusOK || tag == "" || header.Get("Vary") != "Cookie, Accept-Language" || header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("the first answer is %d with %v", first, header)
	}
	if again, _ := ask("/docs/signals", "en", tag); again != http.StatusNotModified {
		t.Errorf("the same page answers %d", again)
	}
	if other, _ := ask("/docs/signals", "ja", tag); other != http.StatusOK {
		t.Errorf("another language answers %d", other)
	}
}

// Hints on pages lead to pages of the documentation that are there.
func TestHintsLeadToDocs(t *testing.T) {
	t.Parallel()
	hint := regexp.MustCompile(`@docsHint\(v, "([^"]*)", "([^"]*)"\)`)
	files, err := filepath.Glob("*.templ")
	must(t, err)
	library, err := docsite.In(task.English)
	must(t, err)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, found := range hint.FindAllStringSubmatch(string(text), -1) {
			seen++
			page, known := library.Page(found[1])
			if !known || found[2] != "" && !strings.Contains(page.HTML, ` id="`+found[2]+`"`) {
				t.Errorf("%s: %s leads nowhere", file, found[0])
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d hints were found", seen)
	}
	h := newHouse(t)
	if _, page := h.visitor(t, "vera").get("/"); !strings.Contains(page, `<a href="/docs/first-day">`) || !strings.Contains(page, `<a href="/docs/agents#start-one">`) {
		t.Errorf("the first page leads nowhere: %s", page)
	}
}
