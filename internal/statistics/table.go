package statistics

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Unit is what a number counts.
type Unit string

// The units of numbers.
const (
	Count   Unit = "count"
	Seconds Unit = "seconds"
	Share   Unit = "share"   // of 1
	Average Unit = "average" // with a fraction
	Money   Unit = "money"   // millionths of the currency
)

// Table is the numbers of one kind, a row for each day.
type Table struct {
	Name    string
	Columns []Column
}

// Column is one number of each day. Value reports whether the day has it.
type Column struct {
	Name  string
	Unit  Unit
	Value func(day wire.StatisticsDay) (value float64, is bool)
}

// Tables are all tables but that of the costs, whose columns depend on the repositories, in the order in
// which they are shown.
var Tables = []Table{
	{"runs", []Column{
		counted("done", func(d wire.StatisticsDay) int64 { return d.Runs.Done }),
		counted("failed", func(d wire.StatisticsDay) int64 { return d.Runs.Failed }),
		counted("stopped", func(d wire.StatisticsDay) int64 { return d.Runs.Stopped }),
		counted("paused", func(d wire.StatisticsDay) int64 { return d.Runs.Paused }),
		counted("returned", func(d wire.StatisticsDay) int64 { return d.Runs.Returned }),
	}},
	{"first_attempts", []Column{
		counted("right", func(d wire.StatisticsDay) int64 { return d.FirstAttempts.Right }),
		counted("corrected", func(d wire.StatisticsDay) int64 { return d.FirstAttempts.Corrected }),
		counted("failed_first", func(d wire.StatisticsDay) int64 { return d.FirstAttempts.Failed }),
		{"right_share", Share, func(d wire.StatisticsDay) (float64, bool) { return part(d.FirstAttempts.Right, d.FirstAttempts.All()) }},
	}},
	{"pull_requests", timesColumns("opened", func(d wire.StatisticsDay) wire.Times { return d.Pulls })},
	{"review_rounds", []Column{
		counted("no_rounds", func(d wire.StatisticsDay) int64 { return d.Rounds.None }),
		counted("one_round", func(d wire.StatisticsDay) int64 { return d.Rounds.One }),
		counted("two_rounds", func(d wire.StatisticsDay) int64 { return d.Rounds.Two }),
		counted("more_rounds", func(d wire.StatisticsDay) int64 { return d.Rounds.More }),
		{"rounds_average", Average, func(d wire.StatisticsDay) (float64, bool) { return part(d.Rounds.Sum, d.Rounds.All()) }},
	}},
	{"queue_wait", timesColumns("taken", func(d wire.StatisticsDay) wire.Times { return d.Waits })},
	{"agents_busy", []Column{
		{"busy_average", Average, func(d wire.StatisticsDay) (float64, bool) { return d.Busy.Average, true }},
		{"busy_time", Seconds, func(d wire.StatisticsDay) (float64, bool) { return d.Busy.Seconds, true }},
	}},
}

// Costs is the name of the table of costs.
const Costs = "cost"

// Names are the names of all tables.
func Names() []string {
	var names []string
	for _, one := range Tables {
		names = append(names, one.Name)
	}
	return append(names, Costs)
}

func counted(name string, of func(wire.StatisticsDay) int64) Column {
	return Column{name, Count, func(d wire.StatisticsDay) (float64, bool) { return float64(of(d)), true }}
}

func timesColumns(name string, of func(wire.StatisticsDay) wire.Times) []Column {
	return []Column{
		counted(name, func(d wire.StatisticsDay) int64 { return of(d).Count }),
		{"median", Seconds, func(d wire.StatisticsDay) (float64, bool) { return of(d).Median, of(d).Count > 0 }},
		{"p90", Seconds, func(d wire.StatisticsDay) (float64, bool) { return of(d).P90, of(d).Count > 0 }},
	}
}

func part(of, all int64) (float64, bool) {
	if all == 0 {
		return 0, false
	}
	return float64(of) / float64(all), true
}

// WriteCSV writes a table. Times are in seconds, shares parts of 1 and money millionths of the currency.
// What a day does not have is empty. A row of costs is one repository on one day.
func WriteCSV(to io.Writer, name string, of wire.Statistics) error {
	out := csv.NewWriter(to)
	rows, err := csvRows(name, of)
	if err != nil {
		return err
	}
	return out.WriteAll(rows)
}

func csvRows(name string, of wire.Statistics) ([][]string, error) {
	if name == Costs {
		return csvCosts(of), nil
	}
	at := slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })
	if at < 0 {
		return nil, task.Errorf(task.NotFound, "there are no statistics with the name %q", name)
	}
	rows := [][]string{{"day"}}
	for _, column := range Tables[at].Columns {
		rows[0] = append(rows[0], columnName(column))
	}
	for _, day := range of.Days {
		row := []string{day.Day}
		for _, column := range Tables[at].Columns {
			text := ""
			if value, is := column.Value(day); is {
				text = strconv.FormatFloat(value, 'f', -1, 64)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// columnName says the unit too where it is not plain.
func columnName(column Column) string {
	if column.Unit == Seconds {
		return column.Name + "_seconds"
	}
	return column.Name
}

func csvCosts(of wire.Statistics) [][]string {
	rows := [][]string{{"day", "repository", "tokens", "money_millionths"}}
	for _, day := range of.Days {
		for _, one := range day.Cost.Repositories {
			name := one.Repository
			if one.Others {
				name = "others"
			}
			rows = append(rows, []string{day.Day, name, strconv.FormatInt(one.Tokens, 10), strconv.FormatInt(one.Money, 10)})
		}
	}
	return rows
}
