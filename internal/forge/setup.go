package forge

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// How much an adapter reads of a repository for [Setup]. What has more is TooLarge.
const (
	MaxLabels = 5000
	MaxHooks  = 200
	// FewestPerPage is how many of them a page has on average at least: a listing may have
	// as many pages as the limit allows then. Those of a faulty server never end.
	FewestPerPage = 10
)

// Setup prepares a repository for us, and looks at how it is prepared: for toryo init, for
// toryo doctor and for the page on which forges are connected. No task uses it.
type Setup interface {
	Webhooks

	// CheckRights tries, without changing anything, what we need in the repository, one
	// right after the other in the order of [NeededRights]. One that the forge does not have
	// is left out. An error is that the forge did not answer, or that the repository is not
	// there for the credential.
	CheckRights(ctx context.Context, repository string) ([]RightCheck, error)

	// Labels returns the names of the labels that items of the repository can have, those of
	// the organisation or group too. Compare them with [SameLabel].
	Labels(ctx context.Context, repository string) ([]string, error)
	// CreateLabel creates a label. One that is there stays as it is, and created is false.
	CreateLabel(ctx context.Context, repository string, label Label) (created bool, err error)
	// DeleteLabel deletes a label of the repository. One that is not there is no error.
	DeleteLabel(ctx context.Context, repository, name string) error

	// CreateIssue opens an issue and assigns it. Labels that are missing are created. Who cannot
	// be assigned is left out: see [Item.AssignedTo]. With them others may be, since some forges
	// refuse all assignees because of one.
	CreateIssue(ctx context.Context, repository string, post IssuePost) (Item, error)
}

// Webhooks sets up the webhooks of repositories.
type Webhooks interface {
	// Hooks returns the webhooks of the repository. It is Forbidden where only administrators
	// are shown them and the account is none.
	Hooks(ctx context.Context, repository string) ([]Hook, error)
	// CreateHook creates a webhook.
	CreateHook(ctx context.Context, repository string, post HookPost) (Hook, error)
	// EditHook replaces address, secret and events of a webhook, and switches it on. The id may
	// change: Gitea cannot change a secret, so that there another webhook takes its place. If
	// that was made and the old one could not be deleted, it is returned together with the
	// error, and both are there. Whoever finds several webhooks with our address deletes all
	// but the newest, which has the highest id.
	EditHook(ctx context.Context, repository, id string, post HookPost) (Hook, error)
	// DeleteHook deletes a webhook. One that is not there is no error.
	DeleteHook(ctx context.Context, repository, id string) error
	// TestHook asks the forge to deliver something to the webhook now. Whether it arrived is
	// seen on our side; a forge that delivers while it answers may say what went wrong.
	TestHook(ctx context.Context, repository, id string) error
	// LastDelivery tells how the last delivery of a webhook went. It is zero if there was none
	// and if the forge does not tell, be it that it cannot or that it does not tell us.
	LastDelivery(ctx context.Context, repository, id string) (HookDelivery, error)
}

// Right is something that we have to be allowed to do.
type Right string

// The rights.
const (
	ReadSelf Right = "read_self" // to know who we are
	ReadCode Right = "read_code" // to fetch
	Push     Right = "push"      // branches
	// PushWorkflows is to push changes to .github/workflows. Only GitHub has it: elsewhere Push
	// is enough.
	PushWorkflows Right = "push_workflows"
	ReadItems     Right = "read_items"   // issues and pull requests
	CommentOn     Right = "comment"      // on issues and pull requests
	LabelItems    Right = "label"        // to put labels on items
	OpenPulls     Right = "pulls"        // to open pull requests and to review them
	SetStatuses   Right = "statuses"     // of commits
	ReadChecks    Right = "read_checks"  // of commits, and their logs
	ManageHooks   Right = "manage_hooks" // only to create webhooks
)

// NeededRights are the rights in the order in which they are checked. Without a right that is
// not required Toryo works, but less well.
var NeededRights = []struct {
	Right    Right
	Required bool
}{
	{ReadSelf, true}, {ReadCode, true}, {Push, true}, {PushWorkflows, false}, {ReadItems, true}, {CommentOn, true}, {LabelItems, true},
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
	// write:issue", "the role Developer", "Contents: read and write". Of a right that is
	// missing it is only what is missing of that.
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

// Hook is a webhook of a repository. Those that send something else to other programs, such as
// a chat, are none. The address of one that is not ours may have a secret in it.
type Hook struct {
	ID     string
	URL    string
	Events []string // as in [WebhookEvent], and the forge's own name for pushes
	Active bool
}

// HookDelivery is something that a webhook has delivered.
type HookDelivery struct {
	At     time.Time
	Status int // of the answer; 0 if it did not arrive
}

// HookPost is what a webhook is to be.
type HookPost struct {
	URL    string
	Secret string
	Events []string // as in [WebhookEvent]; empty means all that the adapter knows, and pushes
	// Insecure lets a certificate of the server pass that the forge does not know.
	Insecure bool
}

// IssuePost is an issue to open. Adapters neutralise its texts: see [IssuePost.Texts].
type IssuePost struct {
	Title     string
	Body      string
	Assignees []string
	Labels    []string
}

// ShortReason makes one line of what a forge said, which is not too long to show.
func ShortReason(said string) string {
	const most = 300
	return textfmt.Shorten(textfmt.OneLine(Clean(textfmt.Clip(said, 4*most))), most)
}

// maxLabelText is how many characters a label's description has at most on every forge.
const maxLabelText = 100

// DefaultLabelColor is the colour of a label for which none was chosen.
const DefaultLabelColor = "1d76db"

var labelColor = lazyregexp.New(`^[0-9a-f]{6}$`)

// Checked returns the label as every forge takes it. One without a name, or with a colour that
// is none, is Invalid.
func (l Label) Checked() (Label, error) {
	name, color := strings.TrimSpace(textfmt.OneLine(Clean(l.Name))), strings.ToLower(strings.TrimPrefix(l.Color, "#"))
	if color == "" {
		color = DefaultLabelColor
	}
	if name == "" || name != l.Name || !labelColor.MatchString(color) {
		return Label{}, task.Errorf(task.Invalid, "there can be no label %q with the color %q", l.Name, l.Color).
			WithHint("a color is six hexadecimal digits")
	}
	return Label{name, color, textfmt.Shorten(textfmt.OneLine(Clean(l.Description)), maxLabelText)}, nil
}

// MissingEvents returns the names of the events that the webhook has to be enabled for and is not.
// Those that are optional are not among them.
func (h Hook) MissingEvents(events WebhookEvents) []string {
	var missing []string
	for _, event := range events {
		if !event.Optional() && !slices.Contains(h.Events, event.Name) {
			missing = append(missing, event.Name)
		}
	}
	return missing
}

// Checked returns the events that the webhook is to be enabled for. Known are all that the
// adapter can enable. An address or event that cannot be is Invalid, and so is a webhook
// without a secret: we take no delivery of one.
func (p HookPost) Checked(known []string) ([]string, error) {
	address, err := url.Parse(p.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, task.Errorf(task.Invalid, "the address of a webhook has to be an http or https URL")
	}
	if p.Secret == "" {
		return nil, task.Errorf(task.Invalid, "a webhook needs a secret")
	}
	for _, event := range p.Events {
		if !slices.Contains(known, event) {
			return nil, task.Errorf(task.Invalid, "there is no event %q for a webhook", event).
				WithHint("there are %s", strings.Join(known, ", "))
		}
	}
	if len(p.Events) == 0 {
		return slices.Clone(known), nil
	}
	return slices.Clone(p.Events), nil
}

// String leaves out the secret, and a password in the address.
func (p HookPost) String() string {
	address, err := url.Parse(p.URL)
	if err != nil {
		return "an address that cannot be read"
	}
	return address.Redacted()
}

// GoString leaves out what String leaves out.
func (p HookPost) GoString() string { return p.String() }

// LogValue leaves out what String leaves out.
func (p HookPost) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Hide returns the error of a request that had the webhook in it, with a text without its secrets and
// without others that were in the request: a forge may repeat what it was sent. It has to come before
// the text is cut.
func (p HookPost) Hide(err error, others ...string) error {
	if err == nil {
		return nil
	}
	secrets := redact.New(append(others, p.Secret)...)
	if address, parseErr := url.Parse(p.URL); parseErr == nil {
		password, _ := address.User.Password()
		secrets.Add(password)
	}
	return &shortenedError{secrets.String(err.Error()), err}
}

// Texts are the title and the text as they are posted: what is in them is no command to the
// forge, and mentions nobody but the assignees.
func (p IssuePost) Texts(repository string) (title, text string) {
	safe := Neutraliser{Repository: repository, Participants: p.Assignees}
	return safe.Title(p.Title).String(), safe.Text(p.Body).String()
}
