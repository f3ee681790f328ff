package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/task"
)

// webhookPage is how many repositories a page of webhooks shows.
const webhookPage = 50

// WebhookRepository is what is known of the webhooks of a repository, and how often its
// items are read.
type WebhookRepository struct {
	Forge       task.Forge
	Name        string
	IssuesEvery time.Duration
	PullsEvery  time.Duration
	Events      []WebhookEvent
}

// WebhookEvent is what is known of one event of a repository.
type WebhookEvent struct {
	Name  string
	Title string // as the forge calls it
	// State is none, trusted, lapsed or missed.
	State     string
	Delivered int64
	LastAt    time.Time
	MissedAt  time.Time // when a change was last found that it should have told of
	Missed    string    // the item with that change
	Every     time.Duration
}

// address tells the repository from all others.
func (r WebhookRepository) address() string { return string(r.Forge) + ":" + r.Name }

// unreliable lists the titles of the events that are to be looked at.
func (r WebhookRepository) unreliable() string {
	var titles []string
	for _, event := range r.Events {
		if event.State != "trusted" {
			titles = append(titles, event.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// webhookBadge is the colour of a state.
func webhookBadge(state string) string {
	switch state {
	case "trusted":
		return "ok"
	case "missed":
		return "bad"
	default:
		return "wait"
	}
}

// webhooksView is one page of repositories. Next is where the following one begins.
type webhooksView struct {
	repositories []WebhookRepository
	next         string
}

func (p *Pages) showWebhooks(r *http.Request, v visit) (templ.Component, error) {
	var view webhooksView
	if p.Settings.Webhooks == nil {
		return webhooksPage(v, view), nil
	}
	all, err := p.Settings.Webhooks(r.Context())
	if from := r.URL.Query().Get("from"); from != "" {
		for len(all) > 0 && all[0].address() != from {
			all = all[1:]
		}
	}
	if len(all) > webhookPage {
		view.next = all[webhookPage].address()
		all = all[:webhookPage]
	}
	view.repositories = all
	return webhooksPage(v, view), err
}
