package connectpage

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

const (
	// checkWithin is how long a look at a forge may take.
	checkWithin = time.Minute
	// maxChecked is how many repositories are looked at, and can be connected at once.
	maxChecked = 20
	// checksAtOnce is how many of them are looked at side by side.
	checksAtOnce = 8
)

// TestForge implements [web.Connecting]. That something is missing is no error: it is shown.
func (p *Page) TestForge(ctx context.Context, of task.Forge) error {
	now := p.read()
	kind := connect.KindOf(of)
	if kind.Forge == "" || !slices.Contains(now.ConfiguredForges(), of) {
		return task.Errorf(task.NotFound, "this forge is not connected")
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	look := p.look(now, kind, connect.Target{Forge: of, URL: strings.TrimSuffix(now.Account(of).URL, "/"), Token: connect.TokenOf(now.Config, of)})
	look.app = of == task.GitHub && now.GitHub.UsesApp()
	p.keepCheck(of, look.all(ctx))
	return nil
}

func (p *Page) keepCheck(of task.Forge, check web.ForgeCheck) {
	check.At = p.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks[of] = check
}

// look is a look at a forge.
type look struct {
	page   *Page
	now    present
	kind   connect.Kind
	target connect.Target
	app    bool // a GitHub App acts as the bot, and has a webhook of its own
	clean  func(string) string
}

// look begins to look at a forge.
func (p *Page) look(now present, kind connect.Kind, target connect.Target) look {
	return look{page: p, now: now, kind: kind, target: target, clean: p.cleaner(now.Config, target.Token)}
}

// opener makes adapters on the client that asks what people give.
func (p *Page) opener(c config.Config) connect.Opener {
	return connect.Adapters(c, func(c config.Config, of task.Forge) (forge.Forge, error) { return p.Open(c, of, p.Client) })
}

// all asks whose credential it is, which repositories there are, and what may be done in them.
func (l look) all(ctx context.Context) web.ForgeCheck {
	f, login, err := l.signIn(ctx)
	check := web.ForgeCheck{Login: l.clean(login)}
	if err != nil {
		check.Problem, check.Hint = l.words(err)
		return check
	}
	found, err := f.Repositories(ctx)
	if err != nil {
		check.Problem, check.Hint = l.words(connect.Explain(err, l.kind, l.target.URL))
		return check
	}
	names := l.ours(found)
	if len(names) == 0 {
		check.Problem = l.clean(watched(l.now.Config, l.kind.Forge) + ": " + login + " has access to no repository there")
		check.Hint = "let the account write to a repository, or change the setting"
	}
	check.More = max(0, len(names)-maxChecked)
	check.Repositories, _ = l.repositories(ctx, f, login, names[:min(len(names), maxChecked)])
	return check
}

// signIn asks the forge whose credential it is.
func (l look) signIn(ctx context.Context) (connect.Forge, string, error) {
	f, err := l.page.opener(l.now.Config)(l.target)
	if err != nil {
		return nil, "", err
	}
	login, err := connect.Whom(ctx, f, l.kind, l.target.URL)
	return f, login, err
}

// ours are the repositories that are worked on, in order. Projects of GitLab are those that
// the configuration names, also if they are not found.
func (l look) ours(found []forge.Repository) []string {
	scope := l.page.Scope(l.now.Config)
	var names []string
	for _, one := range found {
		if scope(l.kind.Forge, one.Name) {
			names = append(names, one.Name)
		}
	}
	if l.kind.Forge == task.GitLab {
		for _, wanted := range l.now.GitLab.Projects {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, wanted) }) {
				names = append(names, wanted)
			}
		}
	}
	slices.Sort(names)
	return names
}

// repositories looks at repositories side by side, for the page and for whoever wants to connect
// them.
func (l look) repositories(ctx context.Context, f connect.Forge, login string, names []string) ([]web.RepositoryCheck, []connect.RepositoryCheck) {
	shown, all := make([]web.RepositoryCheck, len(names)), make([]connect.RepositoryCheck, len(names))
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for i, name := range names {
		group.Go(func() error {
			shown[i], all[i] = l.repository(ctx, f, login, name)
			return nil
		})
	}
	_ = group.Wait() // nothing fails: what cannot be read is shown
	return shown, all
}

// repository looks at one repository, for the page and for whoever wants to connect it. That
// it cannot be looked at is a problem like others.
func (l look) repository(ctx context.Context, f connect.Forge, login, name string) (web.RepositoryCheck, connect.RepositoryCheck) {
	shown := web.RepositoryCheck{Name: l.clean(name)}
	check, err := connect.CheckRepository(ctx, f, l.kind, l.target.URL, login, name)
	if err != nil {
		what, fix := l.words(err)
		shown.Problems = append(shown.Problems, web.CheckProblem{What: what, Fix: fix})
		check.Problems = append(check.Problems, connect.Problem{What: what, Fix: fix, Required: true})
		return shown, check
	}
	shown.Name = l.clean(check.Name)
	for _, right := range check.Rights {
		right.Given, right.Found = l.clean(right.Given), l.clean(right.Found)
		shown.Rights = append(shown.Rights, right)
	}
	for _, problem := range check.Problems[:len(check.Problems)-missing(check.Rights)] { // the rights are shown one by one
		shown.Problems = append(shown.Problems, web.CheckProblem{What: l.clean(problem.What), Fix: l.clean(problem.Fix)})
	}
	shown.Hook = l.hook(ctx, f, check.Name)
	return shown, check
}

// missing counts the rights that are missing, which are the last problems of a check.
func missing(rights []forge.RightCheck) int {
	count := 0
	for _, right := range rights {
		if right.State == forge.RightMissing {
			count++
		}
	}
	return count
}

// hook looks at our webhook in a repository.
func (l look) hook(ctx context.Context, f connect.Forge, name string) web.HookCheck {
	if l.app {
		return web.HookCheck{State: "app"}
	}
	hooks, err := f.Hooks(ctx, name)
	switch code := task.CodeOf(err); {
	case code == task.Forbidden, code == task.NotFound:
		return web.HookCheck{State: "hidden"}
	case err != nil:
		return web.HookCheck{State: "unknown"}
	}
	ours := connect.HookURL(l.page.URL, l.kind.Forge)
	at := slices.IndexFunc(hooks, func(one forge.Hook) bool { return strings.EqualFold(strings.TrimSuffix(one.URL, "/"), ours) })
	if at < 0 {
		return web.HookCheck{State: "none"}
	}
	last, err := f.LastDelivery(ctx, name, hooks[at].ID)
	if err != nil {
		last = forge.HookDelivery{} // it is not known
	}
	check := web.HookCheck{State: "good", LastAt: last.At, LastStatus: last.Status, Missing: l.titles(hooks[at].MissingEvents(l.kind.Events()))}
	switch {
	case !hooks[at].Active:
		check.State = "off"
	case len(check.Missing) > 0:
		check.State = "events"
	case !last.At.IsZero() && (last.Status < http.StatusOK || last.Status >= http.StatusMultipleChoices):
		check.State = "failed"
	}
	return check
}

// titles are events as the forge calls them.
func (l look) titles(names []string) []string {
	var titles []string
	for _, event := range l.kind.Events() {
		if slices.Contains(names, event.Name) {
			titles = append(titles, event.Title)
		}
	}
	return titles
}

// words are what an error says to people, without secrets.
func (l look) words(err error) (text, hint string) {
	text, hint = words(err)
	return l.clean(text), l.clean(hint)
}

// tokenFor is the token that a form means: the one that was typed, that of the configuration
// for the same address, or one in the environment for the vendor's own address. To an address
// that somebody has typed on a page goes only what was typed beside it.
func (p *Page) tokenFor(now present, form web.ForgeForm) connect.Secret {
	if form.Token != "" {
		return connect.Secret{Value: form.Token}
	}
	account := now.Account(form.Forge)
	if token := connect.TokenOf(now.Config, form.Forge); token != "" && sameAddress(account.URL, form.URL) {
		return connect.Secret{Value: token, Configured: true}
	}
	if own := connect.KindOf(form.Forge).URL; own == "" || !sameAddress(own, form.URL) {
		return connect.Secret{}
	}
	variable, token := config.FindToken(form.Forge, form.URL, p.Environ)
	if variable == config.Variable(string(form.Forge)+".token") { // it is for the address that is configured
		return connect.Secret{}
	}
	return connect.Secret{Value: token, Variable: variable}
}

func sameAddress(one, other string) bool {
	return strings.EqualFold(strings.TrimSuffix(one, "/"), strings.TrimSuffix(other, "/"))
}

// keyFor is the key that a form means, as with tokens.
func (p *Page) keyFor(now present, form web.ModelForm) connect.Secret {
	if form.Key != "" {
		return connect.Secret{Value: form.Key}
	}
	if now.LLM.APIKey != "" && now.LLM.Provider == form.Provider && sameAddress(now.LLM.BaseURL, form.BaseURL) {
		return connect.Secret{Value: now.LLM.APIKey, Configured: true}
	}
	if form.BaseURL != "" {
		return connect.Secret{}
	}
	variable, key := p.keyInEnvironment(now, form.Provider)
	return connect.Secret{Value: key, Variable: variable}
}

// keyInEnvironment finds the key of a provider that no model is configured for: in a variable of
// its own programs. What is in ours is for the provider that is configured, so that it counts only
// where there is none.
func (p *Page) keyInEnvironment(now present, provider string) (variable string, key redact.Secret) {
	names := config.LLM{Provider: provider}.KeyVariables()
	if now.LLM.Provider != "" {
		names = names[1:]
	}
	for _, name := range names {
		if value := p.variable(name); value != "" {
			return name, redact.Secret(value)
		}
	}
	return "", ""
}

// variable is the value of a variable in the environment.
func (p *Page) variable(name string) string {
	for _, line := range p.Environ {
		if found, value, _ := strings.Cut(line, "="); found == name && strings.TrimSpace(value) != "" {
			return strings.TrimRight(value, "\r\n")
		}
	}
	return ""
}
