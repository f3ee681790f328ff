package connectpage

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/web"
)

// Options is what the page needs of the program.
type Options struct {
	// File is the configuration file, in full; it need not be there. Given is how the server
	// was told of it, so that what it names compares with what the server has.
	File, Given string

	Environ   []string
	Overrides map[string]string // values of flags that go over the configuration
	Running   config.Config     // with which the server was started
	Command   string            // by which it is started again
	Service   string            // of systemd, which starts it in place of Command; else empty
	OwnAgent  bool              // there is an agent in this process
	URL       string            // where people and forges find the server

	// Open makes the adapter of a forge on a client, and Client asks addresses that people
	// give: see [NewClient].
	Open   func(c config.Config, of task.Forge, client *http.Client) (forge.Forge, error)
	Client *http.Client
	// API is the root of the API of a GitHub at an address.
	API func(address string) string
	// Ask asks a model something short by a transport, which is that of Client.
	Ask func(ctx context.Context, llm config.LLM, through http.RoundTripper) error
	// Scope tells the repositories that are worked on from the others.
	Scope func(c config.Config) func(of task.Forge, repository string) bool
	// NeedsModel reports whether anything is done with a model that is configured here.
	NeedsModel func(c config.Config) bool

	Webhooks *server.Webhooks
	// Events says what webhooks of each repository have told.
	Events func(ctx context.Context) ([]web.WebhookRepository, error)
	// Transports are those to the forges that the server was started with.
	Transports map[task.Forge]*transport.Transport
	Store      Store

	Now    func() time.Time
	Random io.Reader
	Wait   time.Duration // for a webhook to arrive
	Log    *slog.Logger
}

// Store is what the page needs of the database.
type Store interface {
	ListReceived(ctx context.Context, of task.Forge) ([]store.Received, error)
	ListAgents(ctx context.Context) ([]store.Agent, error)
}

// Page does what the page Connect offers. Use [New].
type Page struct {
	Options

	changing lifecycle.Mutex // one change of the configuration at a time

	mu     sync.Mutex
	checks map[task.Forge]web.ForgeCheck
	models map[string]web.ModelCheck
	done   map[string]web.StepList // by forge or provider
}

var _ web.Connecting = (*Page)(nil)

// New makes a page.
func New(options Options) *Page {
	return &Page{
		Options: options, changing: lifecycle.NewMutex(), checks: map[task.Forge]web.ForgeCheck{}, models: map[string]web.ModelCheck{}, done: map[string]web.StepList{},
	}
}

// present is what the configuration says now.
type present struct {
	config.Config
	report  config.Report
	problem error               // with the configuration
	clean   func(string) string // see Page.cleaner
}

// read reads the configuration. With problems it is what could be understood; of a file that
// cannot be read at all, what the server was started with.
func (p *Page) read() present {
	text, _, err := connect.ReadConfig(p.File)
	if err != nil {
		return present{Config: p.Running, problem: err, clean: p.cleaner(p.Running)}
	}
	loaded, report := config.LoadText(cmp.Or(p.Given, p.File), text, p.Environ, p.Overrides)
	return present{loaded, report, report.Err(), p.cleaner(loaded)}
}

// longestText is how much is shown of what a forge, a model or an error says.
const longestText = 600

// cleaner makes a text that others wrote fit for a page: one line, not too long, and without
// the secrets of the configuration and those that are given.
func (p *Page) cleaner(c config.Config, typed ...redact.Secret) func(string) string {
	var secrets []string
	for _, secret := range slices.Concat(c.Secrets(), p.Running.Secrets(), typed) {
		secrets = append(secrets, secret.Reveal())
	}
	redactor := redact.New(secrets...)
	return func(text string) string {
		// Without characters that are not seen, a secret in it is found; before it is cut, the
		// whole of it.
		text = redactor.String(forge.Clean(textfmt.Plain(text)))
		return textfmt.Shorten(textfmt.OneLine(text), longestText)
	}
}

// shown is an error as the page shows it: without its cause, which is logged.
func (p *Page) shown(ctx context.Context, err error, clean func(string) string) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, context.Canceled) {
		p.Log.WarnContext(ctx, "what was asked for on the page Connect was not done", "code", task.CodeOf(err), "error", clean(err.Error()))
	}
	text, hint := words(err)
	return &task.Error{Code: task.CodeOf(err), Message: clean(text), Hint: clean(hint)}
}

// words are what an error says to people, and what they can do.
func words(err error) (text, hint string) {
	if coded, found := task.AsError(err); found {
		return coded.Message, coded.Hint
	}
	return task.CodeOf(err).Info().Meaning, ""
}

// Connections implements [web.Connecting].
func (p *Page) Connections(ctx context.Context) (web.Connections, error) {
	now := p.read()
	view := web.Connections{File: p.File}
	if now.problem != nil {
		text, _ := words(now.problem)
		view.Problem = now.clean(text)
	}
	if !p.inUse(now) {
		view.Restart, view.Service = p.Command, p.Service
	}
	if err := connect.Writable(p.File); err != nil {
		text, hint := words(err)
		view.ReadOnly = now.clean(text + ": " + hint)
	}
	events, err := p.Events(ctx)
	if err != nil {
		return view, err
	}
	for _, kind := range connect.Kinds {
		one, err := p.forge(ctx, now, kind, events)
		if err != nil {
			return view, err
		}
		view.Forges = append(view.Forges, one)
	}
	view.Models = p.modelCards(now)
	return view, nil
}

// inUse reports whether the server was started with what the configuration says now about
// forges and models.
func (p *Page) inUse(now present) bool {
	another := func(kind connect.Kind) bool { return !p.forgeInUse(now, kind.Forge) }
	return p.modelsInUse(now) && !slices.ContainsFunc(connect.Kinds, another)
}

func (p *Page) modelsInUse(now present) bool {
	then := p.Running
	return reflect.DeepEqual(now.LLM, then.LLM) && reflect.DeepEqual(now.LLMOverrides, then.LLMOverrides) && reflect.DeepEqual(now.Roles, then.Roles)
}

func (p *Page) forgeInUse(now present, of task.Forge) bool {
	switch of {
	case task.GitHub:
		return reflect.DeepEqual(now.GitHub, p.Running.GitHub)
	case task.GitLab:
		return reflect.DeepEqual(now.GitLab, p.Running.GitLab)
	default:
		return reflect.DeepEqual(now.Gitea, p.Running.Gitea)
	}
}

// forge is the card of a sort of forge.
func (p *Page) forge(ctx context.Context, now present, kind connect.Kind, events []web.WebhookRepository) (web.ForgeConnection, error) {
	account := now.Account(kind.Forge)
	one := web.ForgeConnection{
		Forge: kind.Forge, Title: kind.Title, URL: account.URL, Bot: account.BotName, Remaining: -1,
		Connected: slices.Contains(now.ConfiguredForges(), kind.Forge), Running: p.forgeInUse(now, kind.Forge),
		Credential: p.credential(now, kind.Forge), HookURL: connect.HookURL(p.URL, kind.Forge), Hooked: p.hooked(kind.Forge),
	}
	if one.URL == "" {
		one.URL = kind.URL
	}
	if one.URL != "" {
		one.TokenPage, one.Unreachable = kind.TokenPage(one.URL), connect.Unreachable(p.URL, kind, one.URL)
	}
	p.mu.Lock()
	one.Check, one.Done = p.checks[kind.Forge], p.done[string(kind.Forge)]
	p.mu.Unlock()
	if !one.Connected {
		return one, nil
	}
	one.Watched = watched(now.Config, kind.Forge)
	if kind.Forge == task.GitHub && now.GitHub.UsesApp() {
		one.AppName = cmp.Or(account.App, account.BotName)
		one.App = connect.AppPage(one.URL, one.AppName)
	}
	one.Chosen = p.installer(now, nil).Repositories(kind.Forge, one.URL)
	one.Events = together(events, kind.Forge)
	p.addTraffic(&one, now.clean)
	var err error
	one.Deliveries, err = p.Store.ListReceived(ctx, kind.Forge)
	return one, err
}

// hooked reports whether the running server takes webhooks of the forge.
func (p *Page) hooked(of task.Forge) bool {
	_, taken := p.Webhooks.Forges[of]
	return taken
}

// addTraffic adds what the running server has seen of the forge.
func (p *Page) addTraffic(one *web.ForgeConnection, clean func(string) string) {
	through, running := p.Transports[one.Forge]
	if !running {
		return
	}
	counts, state := through.Counts(), through.State()
	one.Asked, one.Requests, one.Failed, one.Limited = true, counts.Requests, counts.Failed, counts.Limited
	one.Remaining, one.Reset, one.PausedUntil = state.Remaining, state.Reset, state.PausedUntil
	one.Failure, one.FailedAt = clean(state.Failure), state.FailedAt
}

// watched is the setting that says which repositories are worked on.
func watched(c config.Config, of task.Forge) string {
	switch of {
	case task.GitHub:
		return "github.owner: " + c.GitHub.Owner
	case task.Gitea:
		return "gitea.owner: " + c.Gitea.Owner
	default:
		return "gitlab.projects: " + strings.Join(c.GitLab.Projects, ", ")
	}
}

// together adds up the events of the repositories of a forge.
func together(repositories []web.WebhookRepository, of task.Forge) []web.WebhookEvent {
	var all []web.WebhookEvent
	for _, repository := range repositories {
		if repository.Forge != of {
			continue
		}
		for _, event := range repository.Events {
			at := slices.IndexFunc(all, func(other web.WebhookEvent) bool { return other.Name == event.Name })
			if at < 0 {
				all = append(all, web.WebhookEvent{Name: event.Name, Title: event.Title})
				at = len(all) - 1
			}
			all[at].Delivered += event.Delivered
			if event.LastAt.After(all[at].LastAt) {
				all[at].LastAt = event.LastAt
			}
		}
	}
	return all
}

// credential says where the credential of a forge comes from.
func (p *Page) credential(now present, of task.Forge) web.Origin {
	account := now.Account(of)
	if of == task.GitHub && now.GitHub.UsesApp() {
		return web.Origin{Kind: "app", Name: p.fileOr(now.GitHub.AppPrivateKeyFile, config.Variable("github.app_private_key"))}
	}
	variable, _ := config.FindToken(of, account.URL, p.Environ)
	if !account.Credentials && (variable == "" || connect.KindOf(of).URL == "") {
		return web.Origin{Kind: "none"}
	}
	files := map[task.Forge]string{task.GitHub: now.GitHub.TokenFile, task.GitLab: now.GitLab.TokenFile, task.Gitea: now.Gitea.TokenFile}
	if strings.HasPrefix(now.report.Origin(string(of)+".token").String(), "token_file") {
		return web.Origin{Kind: "file", Name: p.inFull(files[of])}
	}
	return web.Origin{Kind: "variable", Name: variable}
}

func (p *Page) fileOr(file, otherwise string) string {
	if file == "" {
		return otherwise
	}
	return p.inFull(file)
}

// inFull is a file that the configuration names, which is so from its own folder.
func (p *Page) inFull(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(p.File), file)
}

// Lacks implements [web.Connecting]. Where agents on other machines do the work, models are
// configured there.
func (p *Page) Lacks(ctx context.Context) (web.Lacks, error) {
	now := p.read()
	lacks := web.Lacks{Forge: len(now.ConfiguredForges()) == 0, Model: p.NeedsModel(now.Config) && now.ModelFor().Lacking() != ""}
	if !lacks.Model || p.OwnAgent {
		return lacks, nil
	}
	agents, err := p.Store.ListAgents(ctx)
	lacks.Model = len(agents) == 0
	return lacks, err
}
