package web

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// statisticsStore is what the statistics need of the database.
type statisticsStore interface {
	statistics.Source
	TaskRepositories(ctx context.Context, limit int) ([]store.RepositoryName, error)
}

const (
	// listedRepositories is how many repositories can be chosen from. If there are more, names of
	// others can be typed.
	listedRepositories = 500
	// drawnRepositories is how many repositories have a colour of their own.
	drawnRepositories = 5
)

func (p *Pages) registerStatistics(mux *http.ServeMux) {
	mux.HandleFunc("GET /statistics", p.page(access.Viewer, p.showStatistics))
	mux.HandleFunc("GET /statistics/{file}", p.signedIn(access.Viewer, p.sendStatistics))
}

// statisticsView is the page of statistics.
type statisticsView struct {
	wish         statistics.Wish
	repositories []string
	cut          bool // there are more of them
	found        wire.Statistics
	figures      []statisticsFigure
}

// statisticsFigure is one picture with its table.
type statisticsFigure struct {
	name     string
	headline string // what all days together come to
	empty    bool   // there is nothing to draw
	chart    chart
	columns  []figureColumn
}

// figureColumn is a column of the table, and perhaps a part of the picture.
type figureColumn struct {
	statistics.Column
	title string
	tone  string // its colour in the picture; empty if it is not in it
}

// cell is the number of a day as people read it.
func (c figureColumn) cell(v visit, day wire.StatisticsDay) string {
	value, is := c.Value(day)
	if !is {
		return "–"
	}
	return numberText(v, c.Unit, value)
}

// wishOf is what the address asks for.
func wishOf(query url.Values) (statistics.Wish, error) {
	wish := statistics.Wish{Days: statistics.Default, Repository: query.Get("repository")}
	if text := query.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil {
			return wish, task.Errorf(task.Invalid, "the number of days is no number")
		}
		wish.Days = days
	}
	return wish, wish.Check()
}

// statisticsPath is the address of the page, or of the table with a name as CSV.
func statisticsPath(wish statistics.Wish, table string) string {
	query := url.Values{"days": {strconv.Itoa(wish.Days)}}
	if wish.Repository != "" {
		query.Set("repository", wish.Repository)
	}
	path := "/statistics"
	if table != "" {
		path += "/" + table + ".csv"
	}
	return path + "?" + query.Encode()
}

// daysOf is the same wish for another number of days.
func daysOf(wish statistics.Wish, days int) statistics.Wish {
	wish.Days = days
	return wish
}

func (p *Pages) showStatistics(r *http.Request, v visit) (templ.Component, error) {
	wish, err := wishOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	view := statisticsView{wish: wish}
	if view.found, err = statistics.Read(r.Context(), p.Store, wish, v.now); err != nil {
		return nil, err
	}
	if err := view.readRepositories(r.Context(), p.Store); err != nil {
		return nil, err
	}
	for _, table := range statistics.Tables {
		view.figures = append(view.figures, tableFigure(v, table, view.found))
	}
	view.figures = append(view.figures, costFigure(v, view.found))
	return statisticsPage(v, view), nil
}

// readRepositories reads which repositories can be chosen, the chosen one among them.
func (view *statisticsView) readRepositories(ctx context.Context, from statisticsStore) error {
	names, err := from.TaskRepositories(ctx, listedRepositories+1)
	if err != nil {
		return err
	}
	view.cut = len(names) > listedRepositories
	for _, name := range names[:min(len(names), listedRepositories)] {
		view.repositories = append(view.repositories, statistics.RepositoryName(name))
	}
	if chosen := view.wish.Repository; chosen != "" && !slices.Contains(view.repositories, chosen) {
		view.repositories = append(view.repositories, chosen)
	}
	return nil
}

// sendStatistics sends one table as CSV.
func (p *Pages) sendStatistics(w http.ResponseWriter, r *http.Request, v visit) {
	wish, err := wishOf(r.URL.Query())
	name, is := strings.CutSuffix(r.PathValue("file"), ".csv")
	if err == nil && (!is || !slices.Contains(statistics.Names(), name)) {
		err = task.Errorf(task.NotFound, "there is no page at %s", r.URL.Path)
	}
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	found, err := statistics.Read(r.Context(), p.Store, wish, v.now)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	var body bytes.Buffer
	if err := statistics.WriteCSV(&body, name, found); err != nil {
		p.fail(w, r, v, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="toryo-`+name+"-"+found.From+"-"+found.To+`.csv"`)
	if _, err := w.Write(body.Bytes()); err != nil {
		p.Log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}

// columnTones are the colours of what is drawn.
var columnTones = map[string]string{
	"done": "good", "failed": "bad", "stopped": "grey", "paused": "wait", "returned": "blue",
	"right": "good", "corrected": "wait", "failed_first": "bad",
	"no_rounds": "good", "one_round": "blue", "two_rounds": "wait", "more_rounds": "bad",
	"median": "blue", "p90": "wait", "busy_average": "blue",
}

func tableFigure(v visit, table statistics.Table, found wire.Statistics) statisticsFigure {
	f := statisticsFigure{name: table.Name, headline: headline(v, table.Name, found.Total)}
	for _, column := range table.Columns {
		f.columns = append(f.columns, figureColumn{column, v.t("statistics.column." + column.Name), columnTones[column.Name]})
	}
	f.draw(v, found.Days, table.Columns[len(table.Columns)-1].Name == "p90")
	return f
}

// draw makes the picture of the columns that have a colour: lines, or bars that stand on each other.
func (f *statisticsFigure) draw(v visit, days []wire.StatisticsDay, lines bool) {
	var drawn []figureColumn
	for _, column := range f.columns {
		if column.tone != "" {
			drawn = append(drawn, column)
		}
	}
	f.chart = drawChart(v, drawn, days, lines)
	f.empty = !f.chart.drawn
}

// headline is what all days together come to, in words.
func headline(v visit, table string, total wire.StatisticsDay) string {
	times := func(times wire.Times) string {
		if times.Count == 0 {
			return ""
		}
		return v.t("statistics.times", durationText(v, times.Median), durationText(v, times.P90), strconv.FormatInt(times.Count, 10))
	}
	switch {
	case table == "runs" && total.Runs.All() > 0:
		return v.t("statistics.runs", strconv.FormatInt(total.Runs.All(), 10), shareText(total.Runs.Done, total.Runs.All()))
	case table == "first_attempts" && total.FirstAttempts.All() > 0:
		return v.t("statistics.right", shareText(total.FirstAttempts.Right, total.FirstAttempts.All()), strconv.FormatInt(total.FirstAttempts.All(), 10))
	case table == "pull_requests":
		return times(total.Pulls)
	case table == "review_rounds" && total.Rounds.All() > 0:
		return v.t("statistics.rounds", decimal(float64(total.Rounds.Sum)/float64(total.Rounds.All())), strconv.FormatInt(total.Rounds.All(), 10))
	case table == "queue_wait":
		return times(total.Waits)
	case table == "agents_busy" && total.Busy.Seconds > 0:
		return v.t("statistics.busy", numberText(v, statistics.Average, total.Busy.Average))
	default:
		return ""
	}
}

// costFigure is the figure of the costs: the repositories with the highest, and the others together.
// Where no prices are known, tokens are drawn.
func costFigure(v visit, found wire.Statistics) statisticsFigure {
	total := found.Total.Cost
	f := statisticsFigure{name: statistics.Costs}
	unit, amount := statistics.Money, func(c wire.RepositoryCost) int64 { return c.Money }
	if total.Money == 0 {
		unit, amount = statistics.Count, func(c wire.RepositoryCost) int64 { return c.Tokens }
	}
	drawn := map[string]bool{}
	column := func(title, tone string, of func(c wire.RepositoryCost) bool) {
		f.columns = append(f.columns, figureColumn{statistics.Column{Unit: unit, Value: func(day wire.StatisticsDay) (float64, bool) {
			sum := int64(0)
			for _, one := range day.Cost.Repositories {
				if of(one) {
					sum += amount(one)
				}
			}
			return float64(sum), true
		}}, title, tone})
	}
	for i, one := range total.Repositories {
		if one.Others || i == drawnRepositories {
			break
		}
		title := one.Repository
		if title == "" {
			title = v.t("statistics.no_task")
		}
		drawn[one.Repository] = true
		column(title, "tone"+strconv.Itoa(i+1), func(c wire.RepositoryCost) bool { return !c.Others && c.Repository == one.Repository })
	}
	if len(total.Repositories) > len(drawn) {
		column(v.t("statistics.others"), "grey", func(c wire.RepositoryCost) bool { return c.Others || !drawn[c.Repository] })
	}
	f.draw(v, found.Days, false)
	f.columns = append(f.columns, figureColumn{Column: statistics.Column{Unit: statistics.Count, Value: func(day wire.StatisticsDay) (float64, bool) {
		return float64(day.Cost.Tokens), true
	}}, title: v.t("usage.tokens")})
	if total.Tokens > 0 {
		f.headline = v.t("statistics.cost", money(total.Money), count(total.Tokens))
	}
	return f
}

// numberText is a number with its unit.
func numberText(v visit, unit statistics.Unit, value float64) string {
	switch unit {
	case statistics.Seconds:
		return durationText(v, value)
	case statistics.Share:
		return strconv.FormatFloat(value*100, 'f', 0, 64) + "%"
	case statistics.Average:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case statistics.Money:
		return money(int64(math.Round(value)))
	default:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
}

func shareText(of, all int64) string {
	return strconv.FormatFloat(float64(of)/float64(all)*100, 'f', 0, 64) + "%"
}

// durationText is a time in the unit that fits, with as many digits as people need.
func durationText(v visit, seconds float64) string {
	digits := func(n float64) string {
		if n < 9.95 {
			return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
		}
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	switch {
	case seconds < 60:
		return v.t("statistics.seconds", digits(seconds))
	case seconds < 3600:
		return v.t("statistics.minutes", digits(seconds/60))
	case seconds < 48*3600:
		return v.t("statistics.hours", digits(seconds/3600))
	default:
		return v.t("statistics.days", digits(seconds/(24*3600)))
	}
}
