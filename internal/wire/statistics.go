package wire

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Statistics is what has happened, by days in UTC. Docs/statistics.md says what each number means.
type Statistics struct {
	From       string    `json:"from" doc:"The first day, in UTC" example:"2026-10-19"`
	To         string    `json:"to" doc:"The last day, which is today" example:"2026-11-17"`
	CountedAt  time.Time `json:"counted_at" doc:"Up to when is counted"`
	Repository string    `json:"repository,omitempty" doc:"The one repository that is counted; missing for all" example:"github:owner/name"`
	// Days has every day of the time, also those on which nothing happened.
	Days  []StatisticsDay `json:"days" doc:"Each day, oldest first, also those on which nothing happened"`
	Total StatisticsDay   `json:"total" doc:"All days together"`
}

// StatisticsDay is what happened on a day.
type StatisticsDay struct {
	Day           string        `json:"day,omitempty" doc:"Missing for all days together" example:"2026-11-17"`
	Runs          RunCounts     `json:"runs" doc:"Runs that have ended on the day, by how"`
	FirstAttempts AttemptCounts `json:"first_attempts" doc:"First attempts on issues that have ended on the day, by what became of them up to now"`
	Pulls         Times         `json:"pull_requests" doc:"From the assignment of an issue to its pull request, for those that were opened on the day"`
	Rounds        RoundCounts   `json:"review_rounds" doc:"How often changes were requested up to now, for pull requests that were opened on the day"`
	Waits         Times         `json:"queue_wait" doc:"From when a task could be handed out until an agent took it, for those that were taken on the day"`
	Cost          DayCost       `json:"cost" doc:"What calls to models have cost"`
	Busy          Busy          `json:"agents_busy" doc:"For how long agents have worked on tasks"`
}

// RunCounts is how many runs have ended in which way.
type RunCounts struct {
	Done     int64 `json:"done"`
	Failed   int64 `json:"failed"`
	Stopped  int64 `json:"stopped" doc:"By a person"`
	Paused   int64 `json:"paused" doc:"Also to wait for an answer"`
	Returned int64 `json:"returned" doc:"The agent handed the task back, or was not heard of any more"`
}

// All is how many runs that are.
func (r RunCounts) All() int64 { return r.Done + r.Failed + r.Stopped + r.Paused + r.Returned }

// AttemptCounts is what became of first attempts.
type AttemptCounts struct {
	Right     int64 `json:"right"`
	Corrected int64 `json:"corrected" doc:"Changes were requested or checks failed later"`
	Failed    int64 `json:"failed"`
}

// All is how many attempts that are.
func (a AttemptCounts) All() int64 { return a.Right + a.Corrected + a.Failed }

// Times is how times are spread.
type Times struct {
	Count  int64   `json:"count"`
	Median float64 `json:"median_seconds" doc:"Half of them are no longer; 0 if there are none"`
	P90    float64 `json:"p90_seconds" doc:"Nine of ten are no longer; 0 if there are none"`
}

// RoundCounts is how many pull requests have had how many review rounds.
type RoundCounts struct {
	None int64 `json:"none"`
	One  int64 `json:"one"`
	Two  int64 `json:"two"`
	More int64 `json:"three_or_more"`
	Sum  int64 `json:"rounds" doc:"All rounds together"`
}

// All is how many pull requests that are.
func (r RoundCounts) All() int64 { return r.None + r.One + r.Two + r.More }

// DayCost is what calls to models have cost.
type DayCost struct {
	Tokens       int64            `json:"tokens"`
	Money        int64            `json:"money" doc:"In millionths of the currency that the prices are in; 0 if prices are not known"`
	Repositories []RepositoryCost `json:"repositories" doc:"By repository, those with the highest costs in the whole time first"`
}

// RepositoryCost is what calls to models for one repository have cost.
type RepositoryCost struct {
	Repository string `json:"repository,omitempty" doc:"Missing for what belongs to no task, and for the others" example:"github:owner/name"`
	Others     bool   `json:"others,omitempty" doc:"All repositories that are not listed"`
	Tokens     int64  `json:"tokens"`
	Money      int64  `json:"money"`
}

// Busy is for how long agents have worked.
type Busy struct {
	Seconds float64 `json:"seconds" doc:"All agents together"`
	Average float64 `json:"average" doc:"How many were busy on average; for all days together since the first one on which any was"`
}

// Statistics asks for the statistics of the last days, of one repository or, if that is empty, of all.
func (c *Client) Statistics(ctx context.Context, days int, repository string) (Statistics, error) {
	query := url.Values{"days": {strconv.Itoa(days)}}
	if repository != "" {
		query.Set("repository", repository)
	}
	var found Statistics
	err := c.get(ctx, "/v1/statistics?"+query.Encode(), &found)
	return found, err
}
