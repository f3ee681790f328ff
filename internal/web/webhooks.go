package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

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

// webhooksView is one page of repositories.
type webhooksView struct {
	listing
	repositories []WebhookRepository // of the page
	links        []store.SavedLink
}

// webhookStates are what the list can be narrowed to: repositories with an event in that state.
var webhookStates = []string{"trusted", "missed", "lapsed", "none"}

// webhookColumns are the columns by which the repositories can be put in order.
var webhookColumns = columns[WebhookRepository]{
	"repository": byText(WebhookRepository.address),
	"last":       byTime(WebhookRepository.last),
}

// webhookOrders are the orders that the list offers.
var webhookOrders = []string{"repository", "-last"}

// last is when a webhook of the repository came last.
func (r WebhookRepository) last() (at time.Time) {
	for _, event := range r.Events {
		if event.LastAt.After(at) {
			at = event.LastAt
		}
	}
	return at
}

// has reports whether an event of the repository is in a state; any has none.
func (r WebhookRepository) has(state string) bool {
	return state == "" || slices.ContainsFunc(r.Events, func(event WebhookEvent) bool { return event.State == state })
}

func (p *Pages) showWebhooks(r *http.Request, v visit) (templ.Component, error) {
	view := webhooksView{listing: readListing(r, stateName)}
	var all []WebhookRepository
	var err error
	if p.Settings.Webhooks != nil {
		if all, err = p.Settings.Webhooks(r.Context()); err != nil {
			return nil, err
		}
	}
	found := make([]WebhookRepository, 0, len(all))
	for _, one := range all {
		if one.has(view.get(stateName)) && contains(view.search(), one.address()) {
			found = append(found, one)
		}
	}
	inOrder(view.listing, found, webhookColumns)
	view.repositories = pageOf(&view.listing, found)
	view.links, err = p.linksOf(r.Context(), v, view.path)
	return webhooksPage(v, view), err
}
