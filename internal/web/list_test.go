package web

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// titles are the titles of the rows of a list of tasks.
func titles(page string) (all []string) {
	_, rows, _ := strings.Cut(page, `id="rows"`)
	for _, found := range regexp.MustCompile(`(?s)<td class="main"><a [^>]*>([^<]*)</a>`).FindAllStringSubmatch(rows, -1) {
		all = append(all, found[1])
	}
	return all
}

// A list of tasks can be searched, narrowed and put in order, each by its address.
func TestListOfTasks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	h.assignOne(t, 1, "Beta")
	h.assignOne(t, 2, "alpha")
	h.move(t, h.assignOne(t, 3, "Gamma"), task.GaveUp, task.ReasonRunFailed, "exit status 128")
	h.move(t, h.assignOne(t, 4, "Delta"), task.PauseSet, task.ReasonAwaitingAnswer, "Which one?")
	vera := h.visitor(t, "vera")
	for path, want := range map[string][]string{
		"/queue":                              {"Beta", "alpha", "Delta"},
		"/queue?sort=title":                   {"alpha", "Beta", "Delta"},
		"/queue?sort=-title":                  {"Delta", "Beta", "alpha"},
		"/queue?q=ALP":                        {"alpha"},
		"/queue?q=app%232":                    {"alpha"},
		"/queue?state=failed":                 {"Gamma"},
		"/queue?state=all&q=128":              {"Gamma"},
		"/queue?reason=awaiting_answer":       {"Delta"},
		"/queue?repository=team/other":        nil,
		"/queue?state=all&sort=-since":        {"Delta", "Gamma", "alpha", "Beta"},
		"/queue?sort=nonsense&page=99&state=": {"Beta", "alpha", "Delta"},
		"/queue?page=-1":                      {"Beta", "alpha", "Delta"},
	} {
		status, page := vera.get(path)
		if got := titles(page); status != http.StatusOK || !slices.Equal(got, want) {
			t.Errorf("%s has the rows %q, want %q", path, got, want)
		}
	}
	if _, page := vera.get("/queue?state=all"); !strings.Contains(page, "The run failed: exit status 128") {
		t.Error("the list does not say what was said about a failure")
	}
	_, page := vera.get("/queue?reason=awaiting_answer&state=paused")
	if !strings.Contains(page, `href="/queue?state=paused" aria-label="Remove filter: `+textfmt.UpperFirst(messages.Reason(task.English, task.ReasonAwaitingAnswer))+`"`) {
		t.Error("the page does not say that it shows one reason only")
	}
	if _, page := vera.get("/queue?q=a&sort=-title&state=failed"); !strings.Contains(page, `data-fold="false"`) {
		t.Error("the filters are folded although one is set")
	}
	if _, page := vera.get("/queue?q=a&sort=-title"); !strings.Contains(page, `data-fold="true"`) {
		t.Error("the filters are not folded although none is set")
	}
}

// Tasks that a list is too long for are in an older part of it.
func TestOlderTasks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	oldest := h.assignOne(t, 1, "The oldest of all")
	h.move(t, oldest, task.GaveUp, task.ReasonRunFailed, "")
	h.multiply(t, oldest, mostListed)
	vera := h.visitor(t, "vera")
	_, page := vera.get("/queue?state=failed")
	older := regexp.MustCompile(`<a href="(/queue\?before=[^"]*)"`).FindStringSubmatch(page)
	if older == nil || !strings.Contains(page, "Rows 1–50 of 5,000") {
		t.Fatal("the list does not lead to older tasks")
	}
	_, page = vera.get(strings.ReplaceAll(older[1], "&amp;", "&"))
	if got := titles(page); !slices.Equal(got, []string{"The oldest of all"}) {
		t.Errorf("the older tasks are %q", got)
	}
	if !strings.Contains(page, "Older rows only") {
		t.Error("the page does not say that it has older tasks only")
	}
	newest := h.assignOne(t, mostListed+2, "The newest")
	if _, page := vera.get("/queue?before=" + string(newest.ID)); strings.Contains(page, "The newest") {
		t.Error("a list of older tasks that have not ended has a newer one")
	}
}

// multiply makes newer tasks of a task, which differ in nothing but their items.
func (h *house) multiply(t testing.TB, one task.Task, count int) {
	t.Helper()
	h.execute(t, `SELECT 1`)
	names := h.columns(t, "tasks")
	values := slices.Clone(names)
	for i, name := range names {
		switch name {
		case "id":
			values[i] = `tasks.id || printf('-%06d', n)`
		case "number":
			values[i] = "n"
		}
	}
	h.execute(t, `WITH RECURSIVE numbers (n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO tasks (`+strings.Join(names, ", ")+`) SELECT `+strings.Join(values, ", ")+` FROM tasks, numbers WHERE tasks.id = ?`, 1000+count-1, string(one.ID))
}

// columns are the names of the columns of a table.
func (h *house) columns(t testing.TB, table string) (names []string) {
	t.Helper()
	rows, err := h.raw.QueryContext(t.Context(), `SELECT name FROM pragma_table_info(?)`, table)
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		names = append(names, name)
	}
	must(t, rows.Err())
	return names
}

// The numbers of rows are not rounded.
func TestPagerIsExact(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	must(t, pager(visit{}, listing{path: "/queue", page: 246, rows: 12_345}).Render(t.Context(), &text))
	if !strings.Contains(text.String(), "12,251–12,300 of 12,345") {
		t.Errorf("the pager says %s", text.String())
	}
}

// A list of many tasks has pages that are small, however many there are, and leads from one to the
// next.
func TestListOfManyTasks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	const many = 320
	h.many(t, many)
	vera := h.visitor(t, "vera")
	seen := map[string]bool{}
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`)
	path := "/queue?q=task"
	for range many/rowsPerPage + 1 {
		_, page := vera.get(path)
		if len(page) > 150_000 {
			t.Fatalf("%s has %d bytes", path, len(page))
		}
		for _, title := range titles(page) {
			seen[title] = true
		}
		found := next.FindStringSubmatch(page)
		if found == nil {
			break
		}
		path = strings.ReplaceAll(found[1], "&amp;", "&")
	}
	if len(seen) != many {
		t.Errorf("the pages have %d of %d tasks", len(seen), many)
	}
	if _, page := vera.get("/"); len(page) > 150_000 {
		t.Errorf("the first page has %d bytes", len(page))
	}
}

// many makes so many queued tasks, in several repositories.
func (h *house) many(t testing.TB, count int) {
	t.Helper()
	for i := range count {
		key := task.Key{Forge: task.Gitea, Repository: fmt.Sprint("team/app", i%20), Kind: task.Issue, Number: int64(i + 1)}
		_, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: fmt.Sprintf("task %04d with a title of a usual length", i), Reason: task.ReasonAssigned}, nil)
		must(t, err)
	}
}

// A view of a list can be saved under a name, by its reader and for nobody else.
func TestSavedLinks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	vera, alice := h.visitor(t, "vera"), h.visitor(t, "alice")
	status, page := vera.post("/links/save", url.Values{"name": {"<b>mine</b>"}, "next": {"/queue?q=gate&sort=-title"}})
	if status != http.StatusOK || !strings.Contains(page, `href="/queue?q=gate&amp;sort=-title" aria-current="page"`) || !strings.Contains(page, "&lt;b&gt;mine&lt;/b&gt;") {
		t.Errorf("%d: the saved link is not on the page: %s", status, page)
	}
	if _, page := alice.get("/queue"); strings.Contains(page, "mine") {
		t.Error("others see it")
	}
	if _, page := vera.get("/agents"); strings.Contains(page, "mine") {
		t.Error("it is on another list")
	}
	vera.post("/links/save", url.Values{"name": {"elsewhere"}, "next": {"https://evil.example/queue"}})
	if _, page := vera.get("/queue"); strings.Contains(page, "evil.example") {
		t.Error("a link leads elsewhere")
	}
	if status, page := vera.post("/links/remove", url.Values{"name": {"<b>mine</b>"}, "next": {"/queue"}}); status != http.StatusOK || strings.Contains(page, "mine") {
		t.Errorf("%d: the link is still there", status)
	}
}

// The agents say when they were last seen, what they do and what they did. Revoked ones, and
// revoked tokens, are out of sight.
func TestAgentsAndTokens(t *testing.T) {
	t.Parallel()
	later := func() time.Time { return time.Now().Add(3 * time.Hour) } // nobody was heard of since
	h := newHouse(t, func(o *Options) { o.Now = later }, withBroker)
	tokens := access.Tokens{Store: h.store, Now: time.Now}
	for _, name := range []string{"mill", "gone", "old", "revoked-one"} {
		_, err := tokens.Create(t.Context(), access.Agent, name)
		must(t, err)
	}
	agents, err := h.store.ListAgents(t.Context())
	must(t, err)
	ids := map[string]string{}
	for _, agent := range agents {
		ids[agent.Name] = agent.Token
	}
	must(t, h.store.AgentsSeen(t.Context(), map[string]time.Time{ids["mill"]: time.Now()}))
	must(t, h.store.RevokeToken(t.Context(), ids["revoked-one"], time.Now()))
	h.runningTask(t, 1, "In hand")
	ended := h.runningTask(t, 2, "Ended")
	h.move(t, ended, task.GaveUp, task.ReasonRunFailed, "")
	vera := h.visitor(t, "vera")
	_, page := vera.get("/agents")
	for _, want := range []string{"mill", "Working", "In hand", "0 done, 1 failed", "Ended", "Offline", "3 h ago", "Revoked agents: 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the agents page does not say %q: %s", want, page)
		}
	}
	if strings.Contains(page, "revoked-one") {
		t.Error("a revoked agent is in sight")
	}
	if _, page := vera.get("/agents?state=revoked"); !strings.Contains(page, "revoked-one") || strings.Contains(page, "gone") {
		t.Error("the revoked agents are not to be found")
	}
	if _, page := vera.get("/settings"); strings.Contains(page, "revoked-one") || !strings.Contains(page, "Revoked tokens: 1") {
		t.Error("a revoked token is in sight")
	}
	if _, page := vera.get("/settings?tokens=all"); !strings.Contains(page, "revoked-one") {
		t.Error("the revoked tokens are not to be found")
	}
	if _, page := vera.get("/"); !strings.Contains(page, "Agent gone is offline") {
		t.Error("the first page does not say that an agent is offline")
	}
}

// A screen has at least 15 rows of a list, no word of a head is broken, and rows that are picked
// stay so when the list changes.
func TestRowsOnAScreen(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	h.many(t, 40)
	alice := h.window(t, "alice")
	alice.Run("choose a size", chromedp.EmulateViewport(1280, 850))
	for _, language := range []string{"en", "ja"} {
		alice.choose(language, "light")
		alice.Open("/queue")
		if rows := get[int](alice, `[...document.querySelectorAll("#rows tbody tr")].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length`); rows < 15 {
			t.Errorf("in %s a screen has %d rows", language, rows)
		}
		if broken := get[string](alice, `[...document.querySelectorAll("#rows th")].filter((cell) => cell.getBoundingClientRect().height > 40).map((cell) => cell.textContent).join()`); broken != "" {
			t.Errorf("in %s heads of columns are broken: %s", language, broken)
		}
	}
	alice.IsLive()
	alice.Click(`#rows tbody tr:nth-child(2) input[name="pick"]`)
	h.assignOne(t, 99, "Comes later")
	alice.Sees("#rows", "Comes later")
	if picked := get[int](alice, `document.querySelectorAll('#rows input[name="pick"]:checked').length`); picked != 1 {
		t.Errorf("%d rows are picked after the list has changed", picked)
	}
	if !get[bool](alice, `document.activeElement.matches('#rows input[name="pick"]:checked')`) {
		t.Error("the box that was clicked has not the focus any more")
	}
	alice.Click(`[data-pick-all]`)
	if picked := get[int](alice, `document.querySelectorAll('#rows input[name="pick"]:checked').length`); picked != 41 {
		t.Errorf("%d of 41 rows are picked", picked)
	}
	h.assignOne(t, 100, "Comes last")
	alice.Sees("#rows", "Comes last")
	if !get[bool](alice, `document.querySelector("[data-pick-all]").indeterminate`) {
		t.Error("the box in the head does not say that some rows are picked")
	}
}
