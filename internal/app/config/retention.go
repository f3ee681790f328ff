package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Retention is the section "retention". All values are days.
type Retention struct {
	Journals     int `key:"journals" default:"90" min:"0" max:"36500" about:"What runs wrote and were told (journals, texts of comments and of what was posted), after the end of the task. The task itself, its moves and what was decided stay."`
	Git          int `key:"git" default:"30" min:"0" max:"36500" about:"What tasks have pushed, after the end of the task. Comments on stopped and failed tasks say until when it can be fetched."`
	Mirrors      int `key:"mirrors" default:"90" min:"0" max:"36500" about:"Mirrors of repositories, after the last fetch and when no task has anything in them."`
	Sent         int `key:"sent" default:"90" min:"0" max:"36500" about:"What models were sent for answers in conversations about reviews; the answers stay."`
	Calls        int `key:"calls" default:"31" min:"0" max:"36500" about:"Single calls to models; what tasks have spent in all stays."`
	Statistics   int `key:"statistics" default:"400" min:"0" max:"36500" about:"What the page Statistics counts: runs, pull requests, and what was spent on a day."`
	Audit        int `key:"audit" default:"400" min:"0" max:"36500" about:"The audit: who did what."`
	Deliveries   int `key:"deliveries" default:"14" min:"0" max:"36500" about:"Webhooks that were dealt with, by which one that comes again is known."`
	ForgeAnswers int `key:"forge_answers" default:"14" min:"0" max:"36500" about:"Answers of forges that are asked again with their ETags."`
	Tokens       int `key:"revoked_tokens" default:"30" min:"0" max:"36500" about:"Revoked tokens."`
	Contexts     int `key:"contexts" default:"30" min:"0" max:"36500" about:"Context files of runs that have ended, on the agent."`
	Snapshots    int `key:"snapshots" default:"14" min:"0" max:"36500" about:"Environments kept after their set-up that no task has started from, on the agent; see also sandbox.snapshots.max_size."`
}

// Days is a number of days as a duration.
func Days(days int) time.Duration { return time.Duration(days) * 24 * time.Hour }

// Summary says in one line for how many days what is kept, by the names of the settings.
func (r Retention) Summary() string {
	var parts []string
	for field, value := range reflect.ValueOf(r).Fields() {
		parts = append(parts, fmt.Sprintf("%s=%d", field.Tag.Get("key"), value.Int()))
	}
	return strings.Join(parts, " ")
}
