package web

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// pastRuns makes runs of other days, as if the installation had worked for so many of them. Some days have
// none.
func (h *house) pastRuns(t testing.TB, days int) {
	t.Helper()
	for i, name := range pastRepositories {
		h.runningOn(t, name, int64(1000+i))
	}
	now := time.Now().UTC()
	for day := range days {
		at := now.Truncate(24 * time.Hour).Add(-time.Duration(day)*24*time.Hour + time.Minute)
		if day%6 == 2 || !at.Before(now) {
			continue
		}
		for i := range 3 + day*7%5 {
			h.pastRun(t, at.Add(time.Duration(i)*20*time.Minute), day*10+i)
		}
	}
	// The sums of days are made as for a database of an older version.
	files, err := filepath.Glob("../store/relational/migrations/*_statistics.sql")
	must(t, err)
	text, err := os.ReadFile(files[0])
	must(t, err)
	_, sums, _ := strings.Cut(string(text), "-- The sums of days")
	h.execute(t, `DELETE FROM counted_days; -- `+sums)
}

var pastRepositories = []string{"team/app", "team/library", "team/website"}

func (h *house) pastRun(t testing.TB, began time.Time, n int) {
	t.Helper()
	repository, id := pastRepositories[n%3], fmt.Sprint("past run ", n)
	result := []store.RunResult{store.RunDone, store.RunDone, store.RunDone, store.RunFailed, store.RunDone, store.RunPaused, store.RunReturned, store.RunDone, store.RunStopped}[n%9]
	attempt := map[store.RunResult]store.AttemptResult{store.RunDone: store.AttemptRight, store.RunFailed: store.AttemptFailed}[result]
	if n%7 == 1 && attempt == store.AttemptRight {
		attempt = store.AttemptCorrected
	}
	ended := began.Add(time.Duration(10+n*13%50) * time.Minute)
	h.execute(t, `INSERT INTO runs (task, generation, forge, repository, type, queued_at, began_at, ended_at, result, attempt)
		VALUES (?, 1, 'board', ?, 'development', ?, ?, ?, ?, ?)`,
		id, repository, began.Add(-time.Duration(n*37%400)*time.Second).UnixMicro(), began.UnixMicro(), ended.UnixMicro(), result, attempt)
	if result == store.RunDone {
		h.execute(t, `INSERT INTO opened_pulls (task, forge, repository, branch, assigned_at, opened_at, rounds) VALUES (?, 'board', ?, '', ?, ?, ?)`,
			id, repository, began.Add(-time.Hour).UnixMicro(), ended.UnixMicro(), n*3%5%4)
	}
	h.execute(t, `INSERT INTO spent_days (day, forge, repository, tokens, money) VALUES (?, 'board', ?, 60000, ?)
		ON CONFLICT (day, forge, repository) DO UPDATE SET tokens = spent_days.tokens + excluded.tokens, money = spent_days.money + excluded.money`,
		began.Unix()/86400, repository, 40_000+n*7919%90_000)
}

// runningOn makes a task for an issue of a repository that an agent holds.
func (h *house) runningOn(t testing.TB, repository string, number int64) task.Task {
	t.Helper()
	made, _, err := h.store.Assign(t.Context(), store.NewTask{
		Key: task.Key{Forge: task.Board, Repository: repository, Kind: task.Issue, Number: number}, Type: task.Development, Title: "Past", Reason: task.ReasonAssigned,
	}, nil)
	must(t, err)
	_, err = h.store.Claim(t.Context(), []store.Claim{{Task: made.ID, Generation: made.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	must(t, err)
	return made
}

// With more repositories than are listed, the name of any other can be typed, and the page says so.
func TestStatisticsOfManyRepositories(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range listedRepositories {
		_, _, err := h.store.Assign(t.Context(), store.NewTask{
			Key: task.Key{Forge: task.Board, Repository: fmt.Sprintf("team/app-%03d", i), Kind: task.Issue, Number: 1}, Type: task.Development, Title: "x", Reason: task.ReasonAssigned,
		}, nil)
		must(t, err)
	}
	vera := h.visitor(t, "vera")
	if _, page := vera.get("/statistics"); strings.Count(page, `<option value="board:team/app-`) != listedRepositories || strings.Contains(page, "<datalist") {
		t.Error("not all repositories can be chosen")
	}
	h.runningOn(t, "team/last", 1)
	_, page := vera.get("/statistics?repository=board:team/last")
	if !strings.Contains(page, `<input name="repository" value="board:team/last" list="repositories"`) || !strings.Contains(page, "Any other can be typed") {
		t.Error("a repository that is not listed cannot be typed")
	}
	window := h.window(t, "vera")
	window.Open("/statistics")
	window.Accessible("statistics with many repositories")
}

// Where nothing has happened, the page says so for each picture, and draws none.
func TestStatisticsOfNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	vera := h.visitor(t, "vera")
	for _, query := range []string{"", "?days=7", "?days=90", "?repository=no%2Fsuch"} {
		status, page := vera.get("/statistics" + query)
		if status != http.StatusOK || strings.Count(page, "Nothing in this period.") != 7 || strings.Contains(page, `role="img"`) || strings.Contains(page, "NaN") {
			t.Errorf("%q answers %d with %d empty pictures", query, status, strings.Count(page, "Nothing in this period."))
		}
	}
}

// Every picture has a name, a description and its numbers as a table and as CSV. A period of 90 days stays
// small.
func TestStatisticsPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.pastRuns(t, 90)
	vera := h.visitor(t, "vera")
	status, page := vera.get("/statistics?days=90")
	if status != http.StatusOK || strings.Count(page, `role="img"`) != 7 || strings.Count(page, "<table") != 7 {
		t.Fatalf("it answers %d with %d pictures and %d tables", status, strings.Count(page, `role="img"`), strings.Count(page, "<table"))
	}
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, name := range statistics.Names() {
		for _, want := range []string{`aria-labelledby="title-` + name + ` desc-` + name + `"`, `<title id="title-` + name + `">`, `<desc id="desc-` + name + `">`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %s", want)
			}
		}
		status, text := vera.get("/statistics/" + name + ".csv?days=90")
		if status != http.StatusOK || !strings.HasPrefix(text, "day,") || strings.Count(text, "\n") < 60 {
			t.Errorf("%s.csv answers %d: %.200s", name, status, text)
		}
	}
	if wrong := regexp.MustCompile(` style=|NaN|Inf| on[a-z]+="`).FindString(page); wrong != "" {
		t.Errorf("the page has %q in it", wrong)
	}
	if _, page := vera.get("/statistics?days=90&repository=board%3Ateam%2Fapp"); !strings.Contains(page, `<option value="board:team/app" selected>`) || strings.Count(page, "board:team/library") != 2 {
		t.Error("one repository is not shown by itself")
	}
}

// What the page shows is what happened, and what the API says.
func TestStatisticsAreWhatHappened(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i, trigger := range []task.Trigger{task.Finished, task.Finished, task.GaveUp, task.PauseSet} {
		x := h.runningOn(t, "team/app", int64(i+1))
		_, err := h.store.Move(t.Context(), store.Change{Task: x.ID, Trigger: trigger, Reason: task.ReasonCompleted})
		must(t, err)
	}
	vera := h.visitor(t, "vera")
	_, page := vera.get("/statistics?days=7")
	for _, want := range []string{"4 runs, 50% done", "67% right, of 3 issues", "All days", `desc-queue_wait`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	found, err := statistics.Read(t.Context(), h.store, statistics.Wish{Days: 7}, time.Now())
	must(t, err)
	if found.Total.Runs != (wire.RunCounts{Done: 2, Failed: 1, Paused: 1}) || found.Total.FirstAttempts != (wire.AttemptCounts{Right: 2, Failed: 1}) {
		t.Errorf("statistics are %+v", found.Total)
	}
}

// Names of repositories are data, and wrong addresses are refused.
func TestStatisticsAndHostileTexts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i, attack := range attacks {
		x := h.runningOn(t, "team/app", int64(i+1))
		_, err := h.store.ReserveSpend(t.Context(), store.Call{Task: x.ID, Generation: 1, At: time.Now(), Most: store.Amount{Tokens: 9, Money: int64(i + 1)}}, func(store.Amount, store.Amount) error { return nil })
		must(t, err)
		// The store takes no such names.
		for _, table := range []string{"tasks", "runs", "spent_days"} {
			h.execute(t, `UPDATE `+table+` SET repository = ? WHERE repository = 'team/app'`, attack)
		}
	}
	vera := h.visitor(t, "vera")
	for _, attack := range append([]string{""}, attacks...) {
		status, page := vera.get("/statistics?repository=" + url.QueryEscape(attack))
		if status != http.StatusOK || strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") || strings.Contains(page, "<svg onload") || strings.Contains(page, "<iframe") {
			t.Errorf("%q answers %d, or is markup", attack, status)
		}
	}
	for path, want := range map[string]int{
		"/statistics?days=8": 422, "/statistics?days=x": 422, "/statistics?repository=%00": 422, "/statistics?repository=" + strings.Repeat("a", 2001): 413,
		"/statistics/nothing.csv": 404, "/statistics/runs": 404, "/statistics/runs.csv?days=-1": 422,
	} {
		if status, _ := vera.get(path); status != want {
			t.Errorf("%.40s answers %d, want %d", path, status, want)
		}
	}
}

// A picture has a bar for each number of each day, and a line only where two days follow each other.
func TestCharts(t *testing.T) {
	t.Parallel()
	v := visit{language: task.English}
	column := func(name string, unit statistics.Unit, values ...float64) figureColumn {
		return figureColumn{Column: statistics.Column{Name: name, Unit: unit, Value: func(day wire.StatisticsDay) (float64, bool) {
			var i int
			_, _ = fmt.Sscanf(day.Day, "2026-11-%d", &i)
			return max(values[i-1], 0), values[i-1] >= 0
		}}, title: name, tone: name}
	}
	var days []wire.StatisticsDay
	for i := range 4 {
		days = append(days, wire.StatisticsDay{Day: fmt.Sprintf("2026-11-%02d", i+1)})
	}
	bars := drawChart(v, []figureColumn{column("a", statistics.Count, 1, 0, 3, 0), column("b", statistics.Count, 1, 0, 0, 2)}, days, false)
	if bars.highest != 3 || bars.shapes[0].path != "M1 75h8v25h-8zM21 25h8v75h-8z" || bars.shapes[1].path != "M1 50h8v25h-8zM31 50h8v50h-8z" {
		t.Errorf("bars are %+v", bars)
	}
	if strings.Join(bars.marks, " ") != "4 2 0" || strings.Join(bars.days, " ") != "11-01 11-03 11-04" || len(bars.areas) != 3 || bars.areas[0].text != "2026-11-01: a 1, b 1" {
		t.Errorf("bars are %+v", bars)
	}
	lines := drawChart(v, []figureColumn{column("a", statistics.Seconds, 30, 60, -1, 0)}, days, true)
	if lines.shapes[0].path != "M5 50L15 0M35 100" || lines.shapes[0].dots != "M5 50h0M15 0h0M35 100h0" || strings.Join(lines.marks, " ") != "1 min 30 s 0" {
		t.Errorf("lines are %+v", lines)
	}
	for name, nothing := range map[string]chart{
		"no columns": drawChart(v, nil, days, false), "zeros": drawChart(v, []figureColumn{column("a", statistics.Count, 0, 0, 0, 0)}, days, false),
		"no times": drawChart(v, []figureColumn{column("a", statistics.Seconds, -1, -1, -1, -1)}, days, true),
	} {
		if nothing.drawn {
			t.Errorf("%s are drawn as %+v", name, nothing)
		}
	}
	if at := drawChart(v, []figureColumn{column("a", statistics.Seconds, 0, -1, -1, -1)}, days, true); !at.drawn || at.shapes[0].dots != "M5 100h0" {
		t.Errorf("a time of zero is drawn as %+v", at)
	}
}

func TestScales(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit          statistics.Unit
		highest, want float64
	}{
		{statistics.Count, 1, 2}, {statistics.Count, 3, 4}, {statistics.Count, 10, 10}, {statistics.Count, 11, 20}, {statistics.Count, 81, 100}, {statistics.Count, 2001, 4000},
		{statistics.Average, 0.2, 1}, {statistics.Average, 1.5, 2}, {statistics.Money, 3, 100}, {statistics.Money, 1_234_567, 2_000_000},
		{statistics.Seconds, 3, 10}, {statistics.Seconds, 61, 120}, {statistics.Seconds, 50_000, 86_400}, {statistics.Seconds, 30 * 86_400, 40 * 86_400},
	} {
		if is := roundUp(test.unit, test.highest); is != test.want {
			t.Errorf("a scale for %v %s ends with %v, want %v", test.highest, test.unit, is, test.want)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0 s", 0.25: "0.2 s", 42: "42 s", 90: "1.5 min", 3600: "1 h", 100_000: "28 h", 400_000: "4.6 d"} {
		if is := durationText(visit{language: task.English}, seconds); is != want {
			t.Errorf("%v seconds are %q, want %q", seconds, is, want)
		}
	}
}
