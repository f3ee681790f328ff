package forge

import (
	"context"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// How much an adapter reads of a repository for [Setup]. What has more is TooLarge.
const (
	MaxLabels = 5000
	MaxHooks  = 200
	// MaxLastDeliveries is of how many webhooks the last delivery is asked for, where that
	// takes a request for each.
	MaxLastDeliveries = 20
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
	// EditHook replaces address, secret and events of a webhook, and switches it on. The id may
	// change: Gitea cannot change a secret, so that there another webhook takes its place.
	EditHook(ctx context.Context, repository, id string, post HookPost) (Hook, error)
	// DeleteHook deletes a webhook. One that is not there is no error.
	DeleteHook(ctx context.Context, repository, id string) error
	// TestHook asks the forge to deliver something to the webhook now. Whether it arrived is
	// seen on our side; a forge that delivers while it answers may say what went wrong.
	TestHook(ctx context.Context, repository, id string) error

	// CreateIssue opens an issue and assigns it. Labels that are missing are created. Forges
	// leave out, without a word, who cannot be assigned: see [Item.AssignedTo].
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
	// LastAt and LastStatus are about the last delivery as far as the forge tells, and zero
	// if it does not. The status is 0 for one that did not reach us.
	LastAt     time.Time
	LastStatus int
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

// defaultLabelColor is the colour of a label for which none was chosen.
const defaultLabelColor = "1d76db"

var labelColor = regexp.MustCompile(`^[0-9a-f]{6}$`)

// Checked returns the label as every forge takes it. One without a name, or with a colour that
// is none, is Invalid.
func (l Label) Checked() (Label, error) {
	name, color := strings.TrimSpace(textfmt.OneLine(Clean(l.Name))), strings.ToLower(strings.TrimPrefix(l.Color, "#"))
	if color == "" {
		color = defaultLabelColor
	}
	if name == "" || name != l.Name || !labelColor.MatchString(color) {
		return Label{}, task.Errorf(task.Invalid, "there can be no label %q with the color %q", l.Name, l.Color).
			WithHint("a color is six hexadecimal digits")
	}
	return Label{name, color, textfmt.Shorten(textfmt.OneLine(Clean(l.Description)), maxLabelText)}, nil
}

// MissingEvents returns the names of the events that the webhook is not enabled for.
func (h Hook) MissingEvents(events WebhookEvents) []string {
	return slices.DeleteFunc(events.Names(), func(name string) bool { return slices.Contains(h.Events, name) })
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

// String leaves the secret out.
func (p HookPost) String() string { return p.URL }

// GoString leaves the secret out.
func (p HookPost) GoString() string { return p.URL }

// LogValue leaves the secret out.
func (p HookPost) LogValue() slog.Value { return slog.StringValue(p.URL) }

// Texts are the title and the text as they are posted: what is in them is no command to the
// forge, and mentions nobody but the assignees.
func (p IssuePost) Texts(repository string) (title, text string) {
	safe := Neutraliser{Repository: repository, Participants: p.Assignees}
	return safe.Title(p.Title).String(), safe.Text(p.Body).String()
}
