package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Stats is the command toryo stats.
func Stats(p site.Program) *cobra.Command {
	o := stats{onTasks: onTasks{operate{Program: p}}}
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show statistics of runs: number, time, success and cost",
		Long: `Show statistics of runs: number, time, success and cost, over the last 7, 30
or 90 days, today among them. Days are those of UTC. docs/statistics.md says what each number
means. The page Statistics draws the same. It asks the server that runs on the data directory,
or reads its database if none runs; with --server and TORYO_TOKEN it works from anywhere.`,
		Example: `  toryo stats --days 90
  toryo stats --repository gitea:team/app
  toryo stats --csv runs > runs.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	c.Flags().IntVar(&o.days, "days", statistics.Default, "of how many days: 7, 30 or 90")
	c.Flags().StringVar(&o.repository, "repository", "", "only this `REPOSITORY`, with or without its forge, such as gitea:team/app")
	c.Flags().StringVar(&o.csv, "csv", "", "print one `TABLE` by day as CSV: "+strings.Join(statistics.Names(), ", "))
	cli.CompleteFlag(c, "days", "7", "30", "90")
	cli.CompleteFlag(c, "csv", statistics.Names()...)
	c.MarkFlagsMutuallyExclusive("csv", "json")
	return c
}

type stats struct {
	onTasks
	days       int
	repository string
	csv        string
}

func (o *stats) run(ctx context.Context) error {
	wish := statistics.Wish{Days: o.days, Repository: o.repository}
	if err := wish.Check(); err != nil {
		return task.Errorf(task.Usage, "%s", err)
	}
	return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
		found, err := tasks.statistics(ctx, wish)
		if err != nil {
			return err
		}
		switch {
		case o.csv != "":
			return statistics.WriteCSV(o.Stdout, o.csv, found)
		case o.json:
			return cli.PrintJSON(o.Stdout, found)
		default:
			return o.print(found)
		}
	})
}

func (o *stats) print(found wire.Statistics) error {
	total := found.Total
	lines := [][]string{
		{"days", found.From + " to " + found.To + " (UTC)"},
		{"repository", cli.OneLine(statsName(found.Repository))},
		{"runs", fmt.Sprintf("%d: %d done, %d failed, %d stopped, %d paused, %d handed back",
			total.Runs.All(), total.Runs.Done, total.Runs.Failed, total.Runs.Stopped, total.Runs.Paused, total.Runs.Returned)},
		{"right at first attempt", statsShare(total.FirstAttempts.Right, total.FirstAttempts.All(), "issues")},
		{"assignment to pull request", statsTimes(total.Pulls, "pull requests")},
		{"review rounds", statsRounds(total.Rounds)},
		{"wait in the queue", statsTimes(total.Waits, "tasks")},
		{"agents busy", strconv.FormatFloat(total.Busy.Average, 'f', 2, 64) + " on average"},
		{"cost", statsMoney(total.Cost.Money, total.Cost.Tokens)},
	}
	for _, one := range total.Cost.Repositories[:min(len(total.Cost.Repositories), statsRepositories)] {
		name := cli.OneLine(one.Repository)
		switch {
		case one.Others:
			name = "other repositories"
		case name == "":
			name = "no task"
		}
		lines = append(lines, []string{"  " + name, statsMoney(one.Money, one.Tokens)})
	}
	return o.table(lines)
}

// statsRepositories is how many repositories are listed with their costs.
const statsRepositories = 10

func statsName(repository string) string {
	if repository == "" {
		return "all"
	}
	return repository
}

func statsShare(of, all int64, what string) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%% (%d of %d %s)", float64(of)/float64(all)*100, of, all, what)
}

func statsTimes(times wire.Times, what string) string {
	if times.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("median %s, p90 %s (%d %s)", statsDuration(times.Median), statsDuration(times.P90), times.Count, what)
}

// statsDuration is a time as exactly as people need it.
func statsDuration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	if d < time.Hour {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

func statsRounds(rounds wire.RoundCounts) string {
	if rounds.All() == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f on average (none %d, one %d, two %d, three or more %d)",
		float64(rounds.Sum)/float64(rounds.All()), rounds.None, rounds.One, rounds.Two, rounds.More)
}

func statsMoney(millionths, tokens int64) string {
	return fmt.Sprintf("%.2f (%s tokens)", float64(millionths)/1e6, textfmt.Count(tokens))
}
