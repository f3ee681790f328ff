package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxRepositories is how many repositories are named; the page of webhooks shows all.
const maxRepositories = 20

// Webhooks says which repositories deliver which webhooks: one finding for each that
// delivers any, and one for all others. Look may find nothing, if no webhooks are taken
// or no server has run yet; then there are no findings. A GitHub App has one webhook for all
// repositories, which toryo init does not make.
func Webhooks(ctx context.Context, look func(context.Context) ([]items.WebhookReport, error), app bool) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	reports, err := look(ctx)
	if err != nil {
		return []Finding{{Name: "webhooks", Status: Warning, Found: "what they deliver cannot be read: " + err.Error(), Hint: "see database in toryo.yaml"}}
	}
	var findings []Finding
	var silent, silentApp []string
	var every time.Duration
	more := 0
	for _, report := range reports {
		switch {
		case !delivers(report) && app && report.Forge == task.GitHub:
			silentApp, every = append(silentApp, string(report.Forge)+":"+report.Repository), report.IssuesEvery
		case !delivers(report):
			silent, every = append(silent, string(report.Forge)+":"+report.Repository), report.IssuesEvery
		case len(findings) == maxRepositories:
			more++
		default:
			findings = append(findings, webhooksOf(report, app))
		}
	}
	if more > 0 {
		findings = append(findings, Finding{Name: "webhooks", Status: OK, Found: fmt.Sprintf("%d more repositories deliver some: see the page Webhooks in the settings", more)})
	}
	if len(silent) > 0 {
		findings = append(findings, Finding{
			Name: "webhooks", Status: OK, Found: fmt.Sprintf("none yet from %s, polled every %s", few(silent), every),
			Hint: "add a webhook to these repositories for fewer requests and quicker reactions (see docs/forges.md); this creates them:", Command: setUp,
		})
	}
	if len(silentApp) > 0 {
		findings = append(findings, Finding{
			Name: "webhooks", Status: OK, Found: fmt.Sprintf("none yet from %s, polled every %s", few(silentApp), every),
			Hint: "if something has happened there: see in the settings of the GitHub App whether its webhook is active and its deliveries arrive",
		})
	}
	return findings
}

func delivers(report items.WebhookReport) bool {
	for _, event := range report.Events {
		if event.State != items.WebhookNone {
			return true
		}
	}
	return false
}

// webhooksOf says what one repository delivers. What never came may not have happened:
// only what was missed is a warning.
func webhooksOf(report items.WebhookReport, app bool) Finding {
	finding := Finding{Name: "webhooks", Status: OK}
	parts := []string{fmt.Sprintf("%s:%s: issues are polled every %s, pull requests every %s",
		report.Forge, report.Repository, report.IssuesEvery.Round(time.Second), report.PullsEvery.Round(time.Second))}
	var none, missed []string
	for _, event := range report.Events {
		if event.State == items.WebhookNone {
			none = append(none, event.Title)
			continue
		}
		part := fmt.Sprintf("%s: %d delivered, last %s, every %s", event.Event, event.Delivered, moment(event.LastAt), event.Every.Round(time.Second))
		if event.Missed != "" {
			part += fmt.Sprintf(", not reported by a webhook: %s at %s", event.Missed, moment(event.MissedAt))
		}
		if event.State == items.WebhookMissed {
			missed = append(missed, event.Title)
		}
		parts = append(parts, part)
	}
	if len(none) > 0 {
		parts = append(parts, "none yet: "+strings.Join(none, ", "))
		finding.Hint = "enable " + strings.Join(none, ", ") + " in the webhook, unless they are"
	}
	if len(missed) > 0 {
		finding.Status = Warning
		if !app || report.Forge != task.GitHub {
			finding.Command = setUp
		}
		finding.Hint = "enable " + strings.Join(append(missed, none...), ", ") + " in the webhook, and look there whether its deliveries arrive"
	}
	finding.Found = strings.Join(parts, "; ")
	return finding
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") + " UTC" }

// few names the first of many.
func few(names []string) string { return firstOf(names, 5) }

// firstOf names the first of many, and says how many more there are.
func firstOf(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more repositories", strings.Join(names[:most], ", "), len(names)-most)
}
