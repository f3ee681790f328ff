package forge

import (
	"context"
	"time"
)

// Setup prepares a repository for us, and looks at how it is prepared: for toryo init, for
// toryo doctor and for the page on which forges are connected. No task uses it.
type Setup interface {
	// CheckRights tries, without changing anything, what we need in the repository, one
	// right after the other in the order of [NeededRights]. An error is that the forge did
	// not answer, or that the repository is not there for the credential.
	CheckRights(ctx context.Context, repository string) ([]RightCheck, error)

	// Labels returns the names of the labels that items of the repository can have, those of
	// the organisation or group too.
	Labels(ctx context.Context, repository string) ([]string, error)
	// CreateLabel creates a label. One that is there stays as it is, and created is false.
	CreateLabel(ctx context.Context, repository string, label Label) (created bool, err error)
	// DeleteLabel deletes a label of the repository. One that is not there is no error.
	DeleteLabel(ctx context.Context, repository, name string) error

	// Hooks returns the webhooks of the repository. It is Forbidden where only administrators
	// are shown them and the account is none.
	Hooks(ctx context.Context, repository string) ([]Hook, error)
	// CreateHook creates a webhook.
	CreateHook(ctx context.Context, repository string, post HookPost) (Hook, error)
	// EditHook replaces address, secret and events of a webhook, and switches it on.
	EditHook(ctx context.Context, repository, id string, post HookPost) (Hook, error)
	// DeleteHook deletes a webhook. One that is not there is no error.
	DeleteHook(ctx context.Context, repository, id string) error
	// TestHook asks the forge to deliver something to the webhook now. Whether it arrived is
	// seen on our side; a forge that delivers while it answers may say what went wrong.
	TestHook(ctx context.Context, repository, id string) error

	// CreateIssue opens an issue and assigns it.
	CreateIssue(ctx context.Context, repository string, post IssuePost) (Item, error)
}

// Right is something that we have to be allowed to do.
type Right string

// The rights.
const (
	ReadSelf    Right = "read_self"    // to know who we are
	ReadCode    Right = "read_code"    // to fetch
	Push        Right = "push"         // branches
	ReadItems   Right = "read_items"   // issues and pull requests
	CommentOn   Right = "comment"      // on issues and pull requests
	LabelItems  Right = "label"        // to put labels on items
	OpenPulls   Right = "pulls"        // to open pull requests and to review them
	SetStatuses Right = "statuses"     // of commits
	ReadChecks  Right = "read_checks"  // of commits, and their logs
	ManageHooks Right = "manage_hooks" // only to create webhooks
)

// NeededRights are the rights in the order in which they are checked. Without a right that is
// not required Toryo works, but less well.
var NeededRights = []struct {
	Right    Right
	Required bool
}{
	{ReadSelf, true}, {ReadCode, true}, {Push, true}, {ReadItems, true}, {CommentOn, true}, {LabelItems, true},
	{OpenPulls, true}, {SetStatuses, true}, {ReadChecks, false}, {ManageHooks, false},
}

// RightState says whether we have a right.
type RightState string

// The states of a right.
const (
	RightGiven   RightState = "given"
	RightMissing RightState = "missing"
	RightUnknown RightState = "unknown" // the forge does not tell, and it cannot be tried without a change
)

// RightCheck is what is known of a right.
type RightCheck struct {
	Right Right
	State RightState
	// Given is what gives the right on this forge, in its own words: "the scope
	// write:issue", "the role Developer", "Contents: read and write".
	Given string
	// Found is what the forge said, if the right is missing.
	Found string
}

// Label is a label that is to be there.
type Label struct {
	Name        string
	Color       string // six hexadecimal digits
	Description string
}

// Hook is a webhook of a repository.
type Hook struct {
	ID     string
	URL    string
	Events []string // as in [WebhookEvent]
	Active bool
	// LastAt and LastStatus are about the last delivery as far as the forge tells; zero, and
	// 0 for one that did not reach us.
	LastAt     time.Time
	LastStatus int
}

// HookPost is what a webhook is to be.
type HookPost struct {
	URL    string
	Secret string
	Events []string // as in [WebhookEvent]; all that the adapter knows if empty
	// Insecure lets a certificate of the server pass that the forge does not know.
	Insecure bool
}

// IssuePost is an issue to open.
type IssuePost struct {
	Title     string
	Body      string
	Assignees []string
	Labels    []string
}
