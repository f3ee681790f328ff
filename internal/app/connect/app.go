package connect

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// App is a GitHub App that acts as the bot.
type App struct {
	ID         int64
	Slug       string        // its name in addresses
	PrivateKey redact.Secret // in PEM
	// WebhookSecret is what its webhook is signed with; empty if it has no webhook.
	WebhookSecret redact.Secret
}

// appKeyFile is the key of the configuration that names the file with the private key.
const appKeyFile = "github.app_private_key_file"

// Bot is the login under which GitHub shows what the App does.
func (a App) Bot() string { return a.Slug + "[bot]" }

// AppPage is where people install an App, by the login of its bot, on the repositories that it
// is to work on.
func AppPage(address, bot string) string {
	folder := "/github-apps/" // of GitHub Enterprise Server
	if wellKnownHost(address) == task.GitHub {
		folder = "/apps/"
	}
	return strings.TrimSuffix(address, "/") + folder + url.PathEscape(strings.TrimSuffix(bot, "[bot]")) + "/installations/new"
}

// Manifest describes a GitHub App to GitHub, which then asks the person whether to register
// it.
type Manifest struct {
	Name        string            `json:"name,omitempty"`
	URL         string            `json:"url"`
	Hook        *ManifestHook     `json:"hook_attributes,omitempty"`
	Redirect    string            `json:"redirect_url"`
	Description string            `json:"description"`
	Public      bool              `json:"public"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events,omitempty"`
}

// ManifestHook is the webhook of an App.
type ManifestHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// NewManifest describes the App for a server at an address, to which GitHub sends the person
// back at the path. An App that GitHub could not deliver webhooks to gets none: GitHub refuses
// to register one with such an address.
func NewManifest(name, server, path, forgeURL string) Manifest {
	server = strings.TrimSuffix(server, "/")
	made := Manifest{
		Name: name, URL: server, Redirect: server + path, Description: "Works on issues that are assigned to it, and opens pull requests.",
		Permissions: github.AppPermissions(),
	}
	if Unreachable(server, KindOf(task.GitHub), forgeURL) == "" {
		made.Hook = &ManifestHook{URL: HookURL(server, task.GitHub), Active: true}
		made.Events = github.HookEvents()
	}
	return made
}

// Registration is the page of GitHub to which the manifest is sent, for an App of the
// organisation or, without one, of the person.
func Registration(address, organisation string) string {
	address = strings.TrimSuffix(address, "/")
	if organisation == "" {
		return address + "/settings/apps/new"
	}
	return address + "/organizations/" + url.PathEscape(organisation) + "/settings/apps/new"
}

const (
	// converting is how long GitHub may take to answer.
	converting = 20 * time.Second
	// maxConversion is how much is read of its answer: a key in PEM is most of it.
	maxConversion = 256 << 10
)

var (
	appCode = lazyregexp.New(`^[A-Za-z0-9_-]{1,200}$`)
	appSlug = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
)

// Convert exchanges the code that GitHub has given for the App that it has registered. The code
// is worth as much as the private key of the App until it is used, so no error repeats it. After
// an error, used says that the code is of no use any more.
func Convert(ctx context.Context, client *http.Client, api, code string) (app App, used bool, err error) {
	if !appCode.MatchString(code) {
		return App{}, true, task.Errorf(task.Invalid, "the answer of GitHub has no code").WithHint("begin again on the page Connect")
	}
	ctx, cancel := context.WithTimeout(ctx, converting)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(api, "/")+"/app-manifests/"+code+"/conversions", http.NoBody)
	if err != nil {
		return App{}, false, task.Errorf(task.Invalid, "the address of GitHub cannot be used")
	}
	request.Header.Set("Accept", "application/vnd.github+json")
	answer, err := client.Do(request)
	if err != nil {
		return App{}, false, Explain(task.Wrap(task.Unavailable, reach.Brief(err), "GitHub did not give the key of the App"), KindOf(task.GitHub), hostOf(api))
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusUnprocessableEntity:
		return App{}, true, task.Errorf(task.Invalid, "GitHub does not know the code any more: it was used, or is older than an hour").
			WithHint("delete the App in its settings on GitHub, and begin again on the page Connect")
	case answer.StatusCode != http.StatusCreated:
		return App{}, false, task.Errorf(task.Unavailable, "GitHub did not give the key of the App (status %d)", answer.StatusCode).WithHint("try again later")
	}
	app, err = readApp(io.LimitReader(answer.Body, maxConversion))
	return app, true, err
}

// hostOf is the scheme and host of an address.
func hostOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return "GitHub"
	}
	return at.Scheme + "://" + at.Host
}

// readApp reads the answer of GitHub. Nothing of it is repeated: most of it is secret.
func readApp(from io.Reader) (App, error) {
	var said struct {
		ID            int64   `json:"id"`
		Slug          string  `json:"slug"`
		PEM           string  `json:"pem"`
		WebhookSecret *string `json:"webhook_secret"`
	}
	wrong := task.Errorf(task.Unavailable, "the answer of GitHub about the App cannot be understood").
		WithHint("delete the App in its settings on GitHub, and begin again on the page Connect")
	if err := json.NewDecoder(from).Decode(&said); err != nil {
		return App{}, wrong
	}
	made := App{ID: said.ID, Slug: said.Slug, PrivateKey: redact.Secret(strings.TrimSpace(said.PEM))}
	if said.WebhookSecret != nil {
		made.WebhookSecret = redact.Secret(*said.WebhookSecret)
	}
	block, _ := pem.Decode([]byte(said.PEM))
	oneLine := !strings.ContainsAny(made.WebhookSecret.Reveal(), "\r\n")
	if said.ID <= 0 || !appSlug.MatchString(said.Slug) || block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") || !oneLine {
		return App{}, wrong
	}
	return made, nil
}
