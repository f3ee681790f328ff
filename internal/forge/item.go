package forge

import (
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Ghost is the login of every account that no longer exists. Nobody can have it
// on any of the forges.
const Ghost = "ghost"

// Repository is a repository on a forge.
type Repository struct {
	Name          string // as in [task.Key]
	DefaultBranch string // empty while there is no commit
	URL           string // for people
	Private       bool
	Archived      bool
	Lacks         Rights
}

// Rights are what our own account may not do in a repository, as far as the forge says so.
type Rights struct {
	Push    bool // it may not push branches or open pull requests
	Comment bool // it may not comment
	Label   bool // it may not put labels on items
	Issues  bool // it may neither comment on issues nor label them, whatever it may do with pull requests
}

// AllRights is that it may do nothing but read.
var AllRights = Rights{Push: true, Comment: true, Label: true, Issues: true}

// ItemState says whether an item is open.
type ItemState string

// The states of an item. Only pull requests are merged.
const (
	Open   ItemState = "open"
	Closed ItemState = "closed"
	Merged ItemState = "merged"
)

// Item is an issue or a pull (merge) request.
type Item struct {
	Key       task.Key
	Title     string // without the prefix by which some forges mark a draft
	Body      string
	State     ItemState
	Labels    []string
	Assignees []string
	Author    string
	URL       string // for people
	CreatedAt time.Time
	// UpdatedAt moves with what happens to the item, new comments included. An
	// edited comment or a reaction does not move it on every forge.
	UpdatedAt time.Time
	// Confidential items are hidden from people who can read the repository, on
	// forges that have such.
	Confidential bool

	// Of a pull request only. Head is a branch of the repository itself; for a
	// pull request from a fork it is empty and Fork says so.
	Head       string
	HeadCommit string
	Base       string
	Draft      bool
	Fork       bool
}

// LinkedPull is a pull request that is about an issue.
type LinkedPull struct {
	Key   task.Key
	State ItemState
	URL   string
}

// SameLabel reports whether two names are those of one label. On GitHub small and capital letters make no
// difference.
func SameLabel(on task.Forge, one, other string) bool {
	return one == other || on == task.GitHub && strings.EqualFold(one, other)
}

// HasLabel reports whether the label is on the item.
func (i Item) HasLabel(name string) bool { return slices.Contains(i.Labels, name) }

// AssignedTo reports whether the login is among the assignees.
func (i Item) AssignedTo(login string) bool {
	return slices.ContainsFunc(i.Assignees, func(a string) bool { return task.SameLogin(a, login) })
}

// Query says which open items to list. Zero fields do not narrow.
type Query struct {
	Repository   string // always one repository
	Kind         task.ItemKind
	Labels       []string // all of these, such as "needs-review"
	Assignee     string
	UpdatedSince time.Time
}

// Access is what an account may do in a repository.
type Access int

// The levels of access, lowest first. What forges have in between is rounded
// down: GitHub's triage and GitLab's reporter are ReadAccess.
const (
	NoAccess Access = iota
	ReadAccess
	WriteAccess
	AdminAccess
)

// CanWrite reports whether the account may push to the repository.
func (a Access) CanWrite() bool { return a >= WriteAccess }

func (a Access) String() string {
	names := [...]string{"none", "read", "write", "admin"}
	if a < NoAccess || a > AdminAccess {
		return "unknown"
	}
	return names[a]
}

// LabelEvent says that a label was put on an item or taken off.
type LabelEvent struct {
	Label string
	On    bool
	Actor string
	At    time.Time
}

// LabeledAt returns when the label was last put on, by the item's label events.
// It is false if the label is not on the item according to them.
func LabeledAt(events []LabelEvent, label string) (time.Time, bool) {
	var at time.Time
	on := false
	for _, event := range events {
		if event.Label != label {
			continue
		}
		if event.On && !on {
			at = event.At
		}
		on = event.On
	}
	return at, on
}

// LabeledBy returns who put the label on last, by the item's label events; "" if nobody
// did according to them.
func LabeledBy(events []LabelEvent, label string) string {
	actor := ""
	for _, event := range events {
		if event.Label == label && event.On {
			actor = event.Actor
		}
	}
	return actor
}
