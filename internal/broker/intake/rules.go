package intake

import (
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Rules are what the configuration says about which work there is.
type Rules struct {
	Roles        []task.Role // by their labels, in the order of the configuration
	DefaultRole  task.Role
	Priorities   map[string]int // by label; larger is sooner
	ReviewLabel  string
	ReviewDelay  time.Duration
	ReviewRounds int // how often our own reviews of one pull request may ask for changes
	// FixUpOn names what leads to changes on our pull requests besides reviews that request
	// them.
	FixUpOn []FixUpOn
	// Merge says that our pull requests are merged when they are approved and their checks
	// have succeeded.
	Merge bool

	OnCheckFailure OnCheckFailure
	CheckRounds    int           // how often in a row failed checks of one pull request lead to a task
	CheckGiveUp    time.Duration // how long checks that do not end are asked for
}

// FixUpOn is what may lead to changes on a pull request of ours besides reviews that request
// them.
type FixUpOn string

// What may lead to changes: comments on lines and reviews that decide nothing; comments that
// mention the bot.
const (
	OnReviewComments FixUpOn = "review_comments"
	OnMentions       FixUpOn = "mentions"
)

// looksLikeRole is how role labels are written: in capitals.
var looksLikeRole = lazyregexp.New(`^[A-Z][A-Z0-9_-]{4,}$`)

// roleLabels are the labels of an item that name a role, or look as if they did.
func (r Rules) roleLabels(item forge.Item) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(item.Labels)), func(label string) bool {
		return !looksLikeRole.MatchString(label) && !slices.Contains(r.Roles, task.Role(label))
	})
}

// role returns the role that an item asks for: the first by the order of the
// configuration of those whose labels are on it, and otherwise the given one.
// Wrong says what is odd about the item's labels, if anything.
func (r Rules) role(item forge.Item, otherwise task.Role) (role task.Role, wrong string) {
	var found []task.Role
	for _, known := range r.Roles {
		if item.HasLabel(string(known)) {
			found = append(found, known)
		}
	}
	switch {
	case len(found) > 1:
		return found[0], "it has several role labels; the first by the order of the configuration counts"
	case len(found) == 1:
		return found[0], ""
	case slices.ContainsFunc(item.Labels, looksLikeRole.MatchString):
		return otherwise, "it has a label like that of a role, and no such role is configured; the default role is used"
	default:
		return otherwise, ""
	}
}

// priority is the largest of those that the item's labels have.
func (r Rules) priority(item forge.Item) int {
	found, largest := false, 0
	for _, label := range item.Labels {
		if value, known := r.Priorities[label]; known && (!found || value > largest) {
			found, largest = true, value
		}
	}
	return largest
}
