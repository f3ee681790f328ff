package web

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Connecting connects forges and models on behalf of administrators. Everything that it
// returns, errors too, is without secrets.
type Connecting interface {
	// Connections says what is connected, as far as that is known without asking anybody.
	Connections(ctx context.Context) (Connections, error)
	// Lacks says what is not connected yet.
	Lacks(ctx context.Context) (Lacks, error)
	// TestForge looks at a forge as toryo doctor does, and keeps what it found for
	// Connections.
	TestForge(ctx context.Context, of task.Forge) error
	// TestModel asks the model of a provider, and keeps what came of it.
	TestModel(ctx context.Context, provider string) error
	// ConnectForge checks a token and repositories, and writes what the server needs for
	// them: the token into a file, the rest into the configuration.
	ConnectForge(ctx context.Context, form ForgeForm) error
	// ConnectModel tries a model, and writes it into the configuration.
	ConnectModel(ctx context.Context, form ModelForm) error
	// Prepare creates labels and webhooks in repositories of a forge that is connected.
	Prepare(ctx context.Context, of task.Forge, repositories []string) error
	// OfferApp describes a GitHub App. GitHub sends the person back to the path.
	OfferApp(ctx context.Context, form AppForm, back string) (AppOffer, error)
	// FinishApp fetches the App that GitHub has registered, by the code that it gave, and
	// writes it into the configuration. After an error, used says that the code cannot be
	// tried again.
	FinishApp(ctx context.Context, form AppForm, code string) (used bool, err error)
}

// Lacks says what is not connected yet.
type Lacks struct{ Forge, Model bool }

// Connections is what the page Connect shows.
type Connections struct {
	// File is the configuration file, and Problem what is wrong with it.
	File, Problem string
	// Restart is the command that starts the server with what the file says now; empty if it
	// was started with that.
	Restart string
	// Service is the service of systemd that does so in place of the command; else empty.
	Service string
	// ReadOnly says why the file cannot be changed here, and what to do; empty if it can.
	ReadOnly string
	Forges   []ForgeConnection
	Models   []ModelConnection
}

// ForgeConnection is a sort of forge, and what is known of the one that is connected.
type ForgeConnection struct {
	Forge     task.Forge
	Title     string
	Connected bool // the configuration has it
	// Running says that the server works with what the configuration says now.
	Running bool
	URL     string
	Bot     string
	AppName string // of the GitHub App that acts in its place
	// App is where the GitHub App that acts as the bot is installed; empty without one.
	App string
	// Watched is the setting that says which repositories are worked on.
	Watched    string
	Credential Origin
	TokenPage  string

	HookURL string
	Hooked  bool // deliveries are taken
	// Unreachable says why the forge cannot deliver to HookURL; empty if nothing speaks
	// against it.
	Unreachable string
	Deliveries  []store.Received // newest first
	Events      []WebhookEvent   // of all repositories together

	// Asked says that the server has asked the forge something, and what came of it.
	Asked                     bool
	Requests, Failed, Limited int64
	Remaining                 int // requests that are left until Reset; -1 if the forge does not say
	Reset, PausedUntil        time.Time
	Failure                   string
	FailedAt                  time.Time

	// Chosen are the repositories that were connected last.
	Chosen []string
	Check  ForgeCheck
	Done   StepList
}

// name is how the page calls the card of the forge.
func (f ForgeConnection) name() string { return "forge-" + string(f.Forge) }

// looked are the repositories that a form begins with: those that were connected, or else
// those that were looked at.
func (f ForgeConnection) looked() string {
	all := slices.Clone(f.Chosen)
	if len(all) == 0 {
		for _, one := range f.Check.Repositories {
			all = append(all, one.Name)
		}
	}
	return strings.Join(all, "\n")
}

// webhook is what is chosen about webhooks if nobody chooses.
func (f ForgeConnection) webhook() string {
	if f.Unreachable != "" {
		return "no"
	}
	return "yes"
}

// Origin says where a secret comes from.
type Origin struct {
	// Kind is file, variable, app or none.
	Kind string
	Name string // of the file or variable
}

// ForgeCheck is what a look at a forge has found.
type ForgeCheck struct {
	At    time.Time // zero if there was none
	Login string    // of whose token it is
	// Problem is why there is no more, with what to do about it.
	Problem, Hint string
	Repositories  []RepositoryCheck
	More          int // repositories that were not looked at
}

// RepositoryCheck is what is known of a repository.
type RepositoryCheck struct {
	Name   string
	Rights []forge.RightCheck
	// Problems are what is missing besides rights.
	Problems []CheckProblem
	Hook     HookCheck
}

// missing counts the rights that are missing: those without which Toryo does not work, and
// those without which it works less well.
func (r RepositoryCheck) missing() (required, optional int) {
	for _, right := range r.Rights {
		switch {
		case right.State != forge.RightMissing:
		case needed(right.Right):
			required++
		default:
			optional++
		}
	}
	return required, optional
}

// badge is the state of the repository in a colour and words.
func (r RepositoryCheck) badge(v visit) (kind, text string) {
	required, optional := r.missing()
	switch {
	case required > 0:
		return "bad", v.t("connect.missing", required)
	case len(r.Problems) > 0:
		return "bad", v.t("connect.problems", len(r.Problems))
	case optional > 0:
		return "wait", v.t("connect.optional_missing", optional)
	}
	return "ok", v.t("connect.all_rights")
}

// wrong reports whether Toryo cannot work in the repository.
func (r RepositoryCheck) wrong() bool {
	required, _ := r.missing()
	return required > 0 || len(r.Problems) > 0
}

// CheckProblem is something that is missing, and how to fix it.
type CheckProblem struct{ What, Fix string }

// HookCheck is what is known of the webhook of a repository.
type HookCheck struct {
	// State is good, none, off, events, failed, hidden, app or unknown.
	State      string
	Missing    []string // events
	LastAt     time.Time
	LastStatus int
}

// ModelConnection is a provider of models, and what is known of the one that is configured.
type ModelConnection struct {
	Provider  string
	Fixed     bool // it is changed in the file, not on the page
	Connected bool
	Running   bool
	Models    []ModelUse
	BaseURL   string
	Key       Origin
	Variable  string // in which the provider's own programs have the key
	Check     ModelCheck
	Done      StepList
}

// name is how the page calls the card of the provider.
func (m ModelConnection) name() string { return "model-" + m.Provider }

// model is the one that is used for what nothing else is set for.
func (m ModelConnection) model() string {
	for _, use := range m.Models {
		if use.For == "" {
			return use.Model
		}
	}
	return ""
}

// ModelUse is a model and what it is used for: a role, a phase or another name of the
// configuration; empty means everything else.
type ModelUse struct{ For, Model string }

// ModelCheck is how a model has answered.
type ModelCheck struct {
	At         time.Time // zero if it was not asked
	OK         bool
	Said, Hint string
}

// StepList is what was done when something was connected last.
type StepList struct {
	At    time.Time // zero if nothing was
	Steps []DoneStep
}

// DoneStep is something that was done, or not.
type DoneStep struct {
	What string
	// State is done, unchanged or left_out.
	State  string
	Detail string
}

// ForgeForm is a forge to connect.
type ForgeForm struct {
	Forge        task.Forge
	URL          string
	Token        redact.Secret // empty: the one that is configured, or in the environment
	Repositories []string
	Webhook      bool
}

// ModelForm is a model to connect.
type ModelForm struct {
	Provider, Model, BaseURL string
	Key                      redact.Secret // empty: as with [ForgeForm]
}

// AppForm is a GitHub App to register.
type AppForm struct {
	URL          string // of GitHub
	Owner        string // whose repositories it is to work on
	Organisation bool   // the owner is one
	Account      string // that people assign: no App can be assigned
	Name         string
}

// AppOffer is an App as it is described to GitHub.
type AppOffer struct {
	Action      string // the address of GitHub to which Manifest is sent
	Manifest    string // JSON
	Back        string // where GitHub sends the person, in full
	Permissions []string
	Events      []string
	Webhook     string // its address; empty if the App has none
}

// connectPath is the page on which forges and models are connected, and callbackPath where
// GitHub sends people back.
const (
	connectPath  = "/connect"
	callbackPath = "/connect/github/callback"
)

func (p *Pages) registerConnect(mux *http.ServeMux) {
	mux.HandleFunc("GET "+connectPath, p.page(access.Admin, func(r *http.Request, v visit) (templ.Component, error) {
		view, err := p.readConnections(r.Context())
		return connectPage(v, view), err
	}))
	mux.HandleFunc("GET /live/connect", p.changesFor(access.Admin, func(*http.Request) (string, look, error) {
		return "connect", p.whenHappened(p.connectRevision, false), nil
	}))
	p.registerConnectActions(mux)
	mux.HandleFunc("POST /connect/github/app", p.signedIn(access.Admin, p.offerApp))
	mux.HandleFunc("GET "+callbackPath, p.comeBackFromGitHub)
}

// connectView is the page, with the form that has failed, if one has.
type connectView struct {
	Connections

	since  string
	failed connectFailure
}

// connectFailure is a form that came to nothing. Its fields are shown again, but for secrets.
type connectFailure struct {
	card       string
	text, hint string
	fields     map[string]string
}

// field is what a field of a form begins with: what was typed there, if the form has failed.
func (c connectView) field(card, name, usual string) string {
	if typed, found := c.failed.fields[name]; found && c.failed.card == card {
		return typed
	}
	return usual
}

// stray reports whether a form has failed that belongs to no card.
func (c connectView) stray() bool {
	if c.failed.card == "" {
		return false
	}
	return !slices.ContainsFunc(c.Forges, func(one ForgeConnection) bool { return one.name() == c.failed.card }) &&
		!slices.ContainsFunc(c.Models, func(one ModelConnection) bool { return one.name() == c.failed.card })
}

// openApp reports whether the form that has failed is that of a GitHub App.
func (c connectView) openApp() bool {
	_, owner := c.failed.fields["owner"]
	return c.failed.card == gitHubCard && owner
}

// open reports whether the form of a card is shown without being asked for.
func (c connectView) open(card string) bool { return c.failed.card == card }

// forges lists the forges that are connected, or those that are not.
func (c connectView) forges(connected bool) []ForgeConnection {
	var all []ForgeConnection
	for _, one := range c.Forges {
		if one.Connected == connected {
			all = append(all, one)
		}
	}
	return all
}

func (p *Pages) readConnections(ctx context.Context) (connectView, error) {
	found, err := p.Connecting.Connections(ctx)
	if err != nil {
		return connectView{}, err
	}
	revision, err := revisionOf(found)
	return connectView{Connections: found, since: revision}, err
}

// connectRevision changes with everything that the page shows.
func (p *Pages) connectRevision(ctx context.Context) (string, error) {
	found, err := p.Connecting.Connections(ctx)
	if err != nil {
		return "", err
	}
	return revisionOf(found)
}

func revisionOf(found Connections) (string, error) {
	sum := fnv.New64a()
	if err := json.NewEncoder(sum).Encode(found); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum64()), nil
}

// lacks says to an administrator what is not connected yet. A repository on the board is as
// good as a forge.
func (p *Pages) lacks(ctx context.Context, v visit) (Lacks, error) {
	if p.Connecting == nil || !v.admin() {
		return Lacks{}, nil
	}
	missing, err := p.Connecting.Lacks(ctx)
	if err != nil || !missing.Forge || p.Board == nil {
		return missing, err
	}
	boards, err := p.Store.ListBoardRepositories(ctx)
	missing.Forge = len(boards) == 0
	return missing, err
}
