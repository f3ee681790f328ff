package connectpage

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// changeWithin is how long it may take to connect a forge. It is done to the end, also if the
// browser goes away: half of the webhooks is worse than all or none.
const changeWithin = 3 * time.Minute

// begin makes sure that nobody else changes the configuration meanwhile, and that it can be
// written: better now than after a forge has been asked. The caller calls end.
func (p *Page) begin() (end func(), err error) {
	if !p.changing.TryLock() {
		return nil, busy()
	}
	return p.begun()
}

// busy is that somebody else changes the configuration.
func busy() error {
	return task.Errorf(task.Conflict, "somebody else is connecting something").WithHint("try again in a minute")
}

// wait is begin for what cannot be asked for again later: it waits until others are done.
func (p *Page) wait(ctx context.Context) (end func(), err error) {
	if p.changing.Lock(ctx) != nil {
		return nil, busy()
	}
	return p.begun()
}

// begun makes sure that the configuration can be written, once nobody else changes it.
func (p *Page) begun() (end func(), err error) {
	if err := errors.Join(connect.Writable(p.File), connect.Writable(filepath.Join(p.Running.DataDir, connect.RecordFile))); err != nil {
		p.changing.Unlock()
		return nil, err
	}
	return p.changing.Unlock, nil
}

// installer applies answers to the installation of the server.
func (p *Page) installer(now present, report func(connect.Step)) *connect.Installer {
	return &connect.Installer{
		ConfigFile: p.File, DataDir: p.dataDir(), Addr: p.Running.Server.Addr, Environ: p.Environ, Overrides: p.Overrides, Random: p.Random, Report: report,
		Open: p.opener(now.Config), Receive: connect.Watch(p.Webhooks), Wait: p.Wait, Shared: p.Running.Database.Driver == "postgres",
	}
}

// dataDir is the data directory in full, as toryo init writes it down.
func (p *Page) dataDir() string {
	full, err := filepath.Abs(p.Running.DataDir)
	if err != nil {
		return p.Running.DataDir
	}
	return full
}

// apply makes the installation what the answers say, and keeps what was done under a name. What
// was done before an error is kept too, and the error.
func (p *Page) apply(ctx context.Context, now present, name string, answers connect.Answers, first ...web.DoneStep) error {
	var steps []connect.Step
	err := p.installer(now, func(step connect.Step) { steps = append(steps, step) }).Apply(ctx, answers)
	if errors.Is(err, context.DeadlineExceeded) {
		err = task.Wrap(task.Unavailable, err, "it took too long, and was stopped").WithHint("try again: what was done is not done twice")
	}
	// What was made now is masked too: it is in files then, or was sent nowhere.
	clean := p.cleaner(p.read().Config, slices.Concat(now.Secrets(), []redact.Secret{
		answers.Token.Value, answers.Model.Key.Value, answers.App.PrivateKey, answers.App.WebhookSecret,
	})...)
	list := slices.Clone(first)
	for _, step := range steps {
		list = append(list, web.DoneStep{What: clean(step.What), State: string(step.State), Detail: clean(step.Detail)})
	}
	if err != nil {
		text, _ := words(err)
		list = append(list, web.DoneStep{What: "the rest was not done", State: string(connect.LeftOut), Detail: clean(text)})
	}
	p.mu.Lock()
	p.done[name] = web.StepList{At: p.Now(), Steps: list}
	p.mu.Unlock()
	return p.shown(ctx, err, clean)
}

// ConnectForge implements [web.Connecting].
func (p *Page) ConnectForge(ctx context.Context, form web.ForgeForm) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWithin)
	defer cancel()
	end, err := p.begin()
	if err != nil {
		return p.shown(ctx, err, p.cleaner(p.Running, form.Token))
	}
	defer end()
	now := p.read()
	clean := p.cleaner(now.Config, form.Token)
	kind := connect.KindOf(form.Forge)
	form.URL = connect.Address(form.URL)
	token := p.tokenFor(now, form)
	if err := p.checkForm(ctx, now, kind, form, token); err != nil {
		return p.shown(ctx, err, clean)
	}
	look := p.look(now, kind, connect.Target{Forge: kind.Forge, URL: form.URL, Token: token.Value})
	answers, err := look.answers(ctx, form.Repositories)
	if err != nil {
		return p.shown(ctx, err, look.clean)
	}
	answers.Token = token
	if err := p.notOverridden(answers.keys(), answers.files()...); err != nil {
		return p.shown(ctx, err, look.clean)
	}
	first := p.decideWebhooks(&answers, kind, form.Webhook)
	return p.apply(ctx, now, string(kind.Forge), answers.Answers, first...)
}

// checkForm refuses what cannot be connected, before anything secret is sent anywhere.
func (p *Page) checkForm(ctx context.Context, now present, kind connect.Kind, form web.ForgeForm, token connect.Secret) error {
	if kind.Forge == "" {
		return task.Errorf(task.Invalid, "there is no such forge")
	}
	if err := config.CheckValue(string(kind.Forge)+".url", form.URL); err != nil {
		return err
	}
	switch {
	case kind.Forge == task.GitHub && now.GitHub.UsesApp():
		return task.Errorf(task.Conflict, "a GitHub App acts as the bot").WithHint("remove the keys github.app_… from %s to use a token in its place", p.File)
	case token.Value == "":
		return task.Errorf(task.Invalid, "give an access token").WithHint("make one at %s", kind.TokenPage(form.URL))
	case len(form.Repositories) == 0:
		return task.Errorf(task.Invalid, "name a repository").WithHint("write it as owner/name")
	}
	if err := p.sameOwner(now, kind, form); err != nil {
		return err
	}
	if err := mayAsk(ctx, form.URL); err != nil {
		return err
	}
	return p.recognise(ctx, kind, form.URL)
}

// recognise makes sure that a forge of the sort answers at an address.
func (p *Page) recognise(ctx context.Context, kind connect.Kind, address string) error {
	known, err := connect.Recognise(ctx, p.Client, address)
	if err != nil {
		return err
	}
	if known.Forge != kind.Forge {
		return task.Errorf(task.Invalid, "what answers at %s is %s, not %s", address, connect.KindOf(known.Forge).Title, kind.Title).
			WithHint("give the address of the forge's first page, or use the card of %s", connect.KindOf(known.Forge).Title)
	}
	return nil
}

// sameOwner refuses repositories of another owner than the one whose are worked on: these would
// not be worked on any more.
func (p *Page) sameOwner(now present, kind connect.Kind, form web.ForgeForm) error {
	owner, err := connect.Owner(kind, form.Repositories)
	if err != nil {
		return err
	}
	present := map[task.Forge]string{task.GitHub: now.GitHub.Owner, task.Gitea: now.Gitea.Owner}[kind.Forge]
	if present == "" || strings.EqualFold(present, owner) || !sameAddress(now.Account(kind.Forge).URL, form.URL) {
		return nil
	}
	return task.Errorf(task.Conflict, "the repositories of %s are worked on, and these are of %s", present, owner).
		WithHint("an installation works on the repositories of one owner on %s; to work on those of %s instead, set %s.owner in %s", kind.Title, owner, kind.Forge, p.File)
}

// forgeAnswers are the answers about a forge, and what may be done in its repositories.
type forgeAnswers struct {
	connect.Answers

	hooks bool // the account may create webhooks in all of them
}

// keys are those of the configuration that will be set.
func (a forgeAnswers) keys() map[string]string {
	section := string(a.Forge)
	set := map[string]string{section + ".url": a.URL, section + ".bot_name": a.Bot}
	if connect.KindOf(a.Forge).OneOwner() { // else there is a list, to which Apply adds, and looks itself
		set[section+".owner"] = a.Owner
	}
	return set
}

// files are the keys that will be set to files, if the token was typed.
func (a forgeAnswers) files() []string {
	if a.Token.Configured || a.Token.Variable != "" {
		return nil
	}
	section := string(a.Forge)
	return []string{section + ".token", section + ".token_file"}
}

// notOverridden refuses keys that a variable would go over with another value, or with any.
func (p *Page) notOverridden(exact map[string]string, others ...string) error {
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(exact)), others) {
		want, known := exact[key]
		for _, line := range p.Environ {
			name, value, _ := strings.Cut(line, "=")
			if name == config.Variable(key) && value != "" && (!known || value != want) {
				return task.Errorf(task.Conflict, "the environment variable %s is set, and would go over what is written here", name).
					WithHint("start the server without it, and try again")
			}
		}
	}
	return nil
}

// answers looks at the repositories that are to be connected, and keeps what was found for the
// page. That something needed is missing in one is an error.
func (l look) answers(ctx context.Context, names []string) (forgeAnswers, error) {
	made := forgeAnswers{Answers: connect.Answers{Forge: l.kind.Forge, URL: l.target.URL}, hooks: true}
	if len(names) > maxChecked {
		return made, task.Errorf(task.Invalid, "%d repositories are named, and %d can be connected at once", len(names), maxChecked)
	}
	owner, err := connect.Owner(l.kind, names)
	if err != nil {
		return made, err
	}
	f, login, err := l.signIn(ctx)
	if err != nil {
		return made, err
	}
	made.Owner, made.Bot = owner, login
	check := web.ForgeCheck{Login: l.clean(login)}
	var first error
	shown, all := l.repositories(ctx, f, login, names)
	for i, name := range names {
		found := all[i]
		shown[i].Hook = web.HookCheck{} // it may be created next
		check.Repositories = append(check.Repositories, shown[i])
		if err := lacking(found, name); err != nil && first == nil {
			first = err
		}
		made.Repositories = append(made.Repositories, found.Name)
		made.hooks = made.hooks && found.Has(forge.ManageHooks)
	}
	l.page.keepCheck(l.kind.Forge, check)
	return made, first
}

// lacking is the error of a repository in which something needed is missing.
func lacking(check connect.RepositoryCheck, name string) error {
	for _, problem := range check.Problems {
		if problem.Required {
			return task.Errorf(task.Forbidden, "%s: %s", name, problem.What).WithHint("%s", problem.Fix)
		}
	}
	return nil
}

// decideWebhooks decides whether webhooks are created. If they are wanted and cannot be, a
// step says why.
func (p *Page) decideWebhooks(answers *forgeAnswers, kind connect.Kind, wanted bool) []web.DoneStep {
	answers.HookBase = p.URL
	why := connect.Unreachable(p.URL, kind, answers.URL)
	if why == "" && !answers.hooks {
		why = "the account has no permission to create them"
	}
	answers.Webhook = wanted && why == ""
	if !wanted || answers.Webhook {
		return nil
	}
	return []web.DoneStep{{What: "webhooks", State: string(connect.LeftOut), Detail: why + "; changes are found by polling"}}
}

// Prepare implements [web.Connecting].
func (p *Page) Prepare(ctx context.Context, of task.Forge, repositories []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWithin)
	defer cancel()
	end, err := p.begin()
	if err != nil {
		return p.shown(ctx, err, p.cleaner(p.Running))
	}
	defer end()
	now := p.read()
	kind := connect.KindOf(of)
	if kind.Forge == "" || !slices.Contains(now.ConfiguredForges(), of) {
		return task.Errorf(task.NotFound, "this forge is not connected")
	}
	scope := p.Scope(now.Config)
	for _, name := range repositories {
		if of != task.GitLab && !scope(of, name) {
			return p.shown(ctx, task.Errorf(task.Invalid, "%s is not worked on: %s", name, watched(now.Config, of)).
				WithHint("name repositories of that owner"), now.clean)
		}
	}
	if len(repositories) == 0 {
		return task.Errorf(task.Invalid, "name a repository").WithHint("write it as owner/name")
	}
	token := connect.TokenOf(now.Config, of)
	look := p.look(now, kind, connect.Target{Forge: of, URL: strings.TrimSuffix(now.Account(of).URL, "/"), Token: token})
	look.app = of == task.GitHub && now.GitHub.UsesApp()
	answers, err := look.answers(ctx, repositories)
	if err != nil {
		return p.shown(ctx, err, look.clean)
	}
	answers.Token = connect.Secret{Value: token, Configured: true}
	first := p.decideWebhooks(&answers, kind, !look.app)
	return p.apply(ctx, now, string(of), answers.Answers, first...)
}
