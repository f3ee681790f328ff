package connectpage

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/web"
)

// finishWithin is how long it may take to fetch and write an App. It is done to the end, also if
// the browser goes away: its key can be fetched once.
const finishWithin = time.Minute

// maxAppName is how many characters the name of an App has at most on GitHub.
const maxAppName = 34

// OfferApp implements [web.Connecting].
func (p *Page) OfferApp(ctx context.Context, form web.AppForm, back string) (web.AppOffer, error) {
	end, err := p.begin()
	if err != nil {
		return web.AppOffer{}, p.shown(ctx, err, p.cleaner(p.Running))
	}
	defer end()
	now := p.read()
	form.URL = connect.Address(form.URL)
	if err := p.checkApp(ctx, now, form); err != nil {
		return web.AppOffer{}, p.shown(ctx, err, now.clean)
	}
	if err := p.recognise(ctx, connect.KindOf(task.GitHub), form.URL); err != nil {
		return web.AppOffer{}, p.shown(ctx, err, now.clean)
	}
	organisation := ""
	if form.Organisation {
		organisation = form.Owner
	}
	name := textfmt.Clip(cmp.Or(form.Name, "toryo-"+form.Owner), maxAppName)
	manifest := connect.NewManifest(name, p.URL, back, form.URL)
	text, err := json.Marshal(manifest)
	if err != nil {
		return web.AppOffer{}, err
	}
	offer := web.AppOffer{Back: manifest.Redirect, Action: connect.Registration(form.URL, organisation), Manifest: string(text), Events: manifest.Events}
	for _, permission := range slices.Sorted(maps.Keys(manifest.Permissions)) {
		offer.Permissions = append(offer.Permissions, permission+": "+manifest.Permissions[permission])
	}
	if manifest.Hook != nil {
		offer.Webhook = manifest.Hook.URL
	}
	return offer, nil
}

// checkApp refuses an App that could not be used. What the environment says would go over what
// is written for it; and what is connected has webhooks, whose secret the App would replace.
func (p *Page) checkApp(ctx context.Context, now present, form web.AppForm) error {
	if form.URL == "" || form.Owner == "" || form.Account == "" {
		return task.Errorf(task.Invalid, "give the address of GitHub, whose repositories are worked on, and the account that people assign")
	}
	if err := config.CheckValue("github.bot_name", form.Account); err != nil {
		return err
	}
	if err := config.CheckValue("github.url", form.URL); err != nil {
		return err
	}
	if err := config.CheckValue("github.owner", form.Owner); err != nil {
		return err
	}
	if err := p.notOverridden(map[string]string{"github.url": form.URL, "github.owner": form.Owner}, appKeys...); err != nil {
		return err
	}
	if now.GitHub.HasCredentials() {
		return task.Errorf(task.Conflict, "GitHub is connected already, by a token or another App").
			WithHint("to put an App in its place, undo that first: toryo init --remove, or take the section github out of %s and delete our webhooks in its repositories", p.File)
	}
	return mayAsk(ctx, form.URL)
}

// appKeys are the keys that an App sets or replaces, besides those that the form has.
var appKeys = []string{
	"github.bot_name", "github.token", "github.token_file", "github.app_id", "github.app_installation_id", "github.app_name", "github.app_private_key",
	"github.app_private_key_file", "github.webhook_secret", "github.webhook_secret_file",
}

// FinishApp implements [web.Connecting].
func (p *Page) FinishApp(ctx context.Context, form web.AppForm, code string) (used bool, err error) {
	ctx = context.WithoutCancel(ctx)
	waiting, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	end, err := p.wait(waiting)
	if err != nil {
		return false, p.shown(ctx, err, p.cleaner(p.Running))
	}
	defer end()
	ctx, cancel = context.WithTimeout(ctx, finishWithin)
	defer cancel()
	now := p.read()
	form.URL = connect.Address(form.URL)
	if err := p.checkApp(ctx, now, form); err != nil {
		return false, p.shown(ctx, err, now.clean)
	}
	app, used, err := connect.Convert(ctx, p.Client, p.API(form.URL), code)
	if err != nil {
		return used, p.shown(ctx, err, now.clean)
	}
	return true, p.writeApp(ctx, now, form, app)
}

// writeApp writes down an App that GitHub has registered.
func (p *Page) writeApp(ctx context.Context, now present, form web.AppForm, app connect.App) error {
	err := p.apply(ctx, now, string(task.GitHub), connect.Answers{Forge: task.GitHub, URL: form.URL, Owner: form.Owner, Bot: form.Account, App: app},
		web.DoneStep{What: "the App " + app.Bot() + " is registered", State: string(connect.Done), Detail: "install it on repositories: " + connect.AppPage(form.URL, app.Slug) + "; people assign " + form.Account})
	if err == nil {
		return nil
	}
	text, hint := words(err)
	return task.Errorf(task.CodeOf(err), "GitHub has registered the App %s, but it could not be written down: %s", app.Bot(), text).
		WithHint("%s; then delete the App in its settings on GitHub, and begin again", hint)
}
