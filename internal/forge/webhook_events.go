package forge

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/task"
)

// ItemChange is a kind of change to an item.
type ItemChange string

// The kinds of change.
const (
	TextChanged           ItemChange = "text" // opened, closed, its title, its description
	AssigneesChanged      ItemChange = "assignees"
	LabelsChanged         ItemChange = "labels"
	CommitsChanged        ItemChange = "commits"         // of a pull request
	CommentsChanged       ItemChange = "comments"        // in the conversation
	ReviewsChanged        ItemChange = "reviews"         // with their summaries
	ReviewCommentsChanged ItemChange = "review comments" // on lines of a pull request
)

// WebhookEvent is an event for which a webhook can be enabled on a forge, and of
// which changes to items it tells. One that tells of none is about checks of commits:
// without it, checks are found by polling.
type WebhookEvent struct {
	Name  string // as the API of the forge calls it
	Title string // as the page calls it on which people set up a webhook
	Issue []ItemChange
	Pull  []ItemChange
}

// Optional reports whether the event tells of no changes to items. Not every server has such an event:
// a Gitea before 1.24 has none for statuses, and neither have versions of Forgejo.
func (e WebhookEvent) Optional() bool { return len(e.Issue)+len(e.Pull) == 0 }

// WebhookEvents are the events of a forge that tell of changes to items and of checks.
type WebhookEvents []WebhookEvent

// For returns the names of the events that tell of a change to an item of the kind:
// several if the forge sends it as one or the other.
func (e WebhookEvents) For(kind task.ItemKind, change ItemChange) []string {
	var names []string
	for _, event := range e {
		if slices.Contains(event.about(kind), change) {
			names = append(names, event.Name)
		}
	}
	return names
}

// Names returns the names of the events.
func (e WebhookEvents) Names() []string {
	names := make([]string, 0, len(e))
	for _, event := range e {
		names = append(names, event.Name)
	}
	return names
}

// About returns the names of the events that tell of anything about items of the kind.
func (e WebhookEvents) About(kind task.ItemKind) []string {
	var names []string
	for _, event := range e {
		if len(event.about(kind)) > 0 {
			names = append(names, event.Name)
		}
	}
	return names
}

// Has reports whether there is an event of the name.
func (e WebhookEvents) Has(name string) bool {
	return slices.ContainsFunc(e, func(event WebhookEvent) bool { return event.Name == name })
}

func (e WebhookEvent) about(kind task.ItemKind) []ItemChange {
	if kind == task.Pull {
		return e.Pull
	}
	return e.Issue
}
