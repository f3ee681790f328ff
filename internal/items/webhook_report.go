package items

import (
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// WebhookState is how it stands with an event of a repository.
type WebhookState string

// The states of an event.
const (
	WebhookNone    WebhookState = "none"    // never delivered
	WebhookTrusted WebhookState = "trusted" // more or less
	WebhookLapsed  WebhookState = "lapsed"  // not delivered for long
	WebhookMissed  WebhookState = "missed"  // not delivered since it did not tell of a change
)

// WebhookReport is what is known of the webhooks of a repository.
type WebhookReport struct {
	Forge      task.Forge
	Repository string
	Events     []EventReport
	// IssuesEvery and PullsEvery are how often its items are read.
	IssuesEvery time.Duration
	PullsEvery  time.Duration
}

// EventReport is what is known of one event. Every is how often items would be read if
// there were no other events.
type EventReport struct {
	store.WebhookEvent
	Title string // as the page calls it on which people set up a webhook
	State WebhookState
	Every time.Duration
}

// ReportWebhooks says how it stands with each event that the forges have, for each
// repository that the store knows of.
func ReportWebhooks(known []store.WebhookEvent, events map[task.Forge]forge.WebhookEvents, ages Ages, now time.Time) []WebhookReport {
	var reports []WebhookReport
	for len(known) > 0 {
		first, end := known[0], 1
		for end < len(known) && known[end].Forge == first.Forge && known[end].Repository == first.Repository {
			end++
		}
		if all := events[first.Forge]; len(all) > 0 {
			reports = append(reports, reportOne(known[:end], all, ages, now))
		}
		known = known[end:]
	}
	return reports
}

func reportOne(known []store.WebhookEvent, events forge.WebhookEvents, ages Ages, now time.Time) WebhookReport {
	longest := max(ages.Longest, ages.Shortest)
	report := WebhookReport{Forge: known[0].Forge, Repository: known[0].Repository, IssuesEvery: longest, PullsEvery: longest}
	for _, event := range events {
		one := EventReport{Title: event.Title, WebhookEvent: store.WebhookEvent{Forge: report.Forge, Repository: report.Repository, Event: event.Name}}
		for _, row := range known {
			if row.Event == event.Name {
				one.WebhookEvent = row
			}
		}
		one.Every, one.State = ages.With(one.WebhookEvent, now), ages.state(one.WebhookEvent, now)
		if len(event.Issue) > 0 {
			report.IssuesEvery = min(report.IssuesEvery, one.Every)
		}
		if len(event.Pull) > 0 {
			report.PullsEvery = min(report.PullsEvery, one.Every)
		}
		report.Events = append(report.Events, one)
	}
	return report
}

func (a Ages) state(event store.WebhookEvent, now time.Time) WebhookState {
	switch {
	case event.Delivered == 0:
		return WebhookNone
	case event.Trusted <= 0:
		return WebhookMissed
	case now.Sub(event.LastAt) >= a.TrustFor:
		return WebhookLapsed
	default:
		return WebhookTrusted
	}
}
