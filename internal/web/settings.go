package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// settingsStore is what the settings page needs of the database.
type settingsStore interface {
	access.TokenStore
	memory.Store
	ListAudit(ctx context.Context, before string, limit int) ([]store.AuditEntry, error)
}

// auditView is entries of the audit log.
type auditView struct {
	listing
	entries []store.AuditEntry // of the page
	links   []store.SavedLink
	older   string // the address of the older ones; "" if there are none
}

// auditColumns are the columns by which the audit log can be put in order.
var auditColumns = columns[store.AuditEntry]{
	"when":    byTime(func(entry store.AuditEntry) timeOf { return entry.At }),
	"who":     byText(func(entry store.AuditEntry) string { return entry.Actor }),
	"what":    byText(func(entry store.AuditEntry) string { return entry.Action }),
	"outcome": byText(func(entry store.AuditEntry) string { return entry.Outcome }),
}

func (p *Pages) showAudit(r *http.Request, v visit) (templ.Component, error) {
	view := auditView{listing: readListing(r, beforeName)}
	found, err := p.Store.ListAudit(r.Context(), view.get(beforeName), mostListed)
	if err != nil {
		return nil, err
	}
	if len(found) == mostListed {
		view.older = view.with(beforeName, found[len(found)-1].ID)
	}
	found = slices.DeleteFunc(found, func(entry store.AuditEntry) bool {
		return !contains(view.search(), entry.Actor, entry.Action, entry.Subject, entry.Outcome)
	})
	inOrder(view.listing, found, auditColumns)
	view.entries = pageOf(&view.listing, found)
	view.links, err = p.linksOf(r.Context(), v, view.path)
	return auditLogPage(v, view), err
}

// Settings is what the settings pages show of the installation.
type Settings struct {
	Budget Budget
	// Configuration is what is in force, with secrets masked.
	Configuration []Setting
	// Forges says how the forges are doing; nil means that nobody knows.
	Forges func(ctx context.Context) ([]ForgeHealth, error)
	// Webhooks says which repositories deliver which webhooks; nil means that nobody
	// knows.
	Webhooks func(ctx context.Context) ([]WebhookRepository, error)
	// Memory says whether notes from reviews are kept and given to tasks.
	Memory bool
	// Mask masks the secrets of the installation in notes that people write; nil means that nothing is
	// looked for.
	Mask func(text string) string
}

// Setting is one key of the configuration.
type Setting struct{ Key, Value string }

// Budget is what models may use. Money is in millionths; 0 means no limit.
type Budget struct {
	TaskTokens, TaskMoney, DayTokens, DayMoney int64
}

// share is how many percent of the day's budget are used, -1 without one.
func (b Budget) share(spent store.Amount) int {
	most := int64(-1)
	if b.DayMoney > 0 {
		most = spent.Money * 100 / b.DayMoney
	}
	if b.DayTokens > 0 {
		most = max(most, spent.Tokens*100/b.DayTokens)
	}
	return int(most)
}

// ForgeHealth is how a forge is doing.
type ForgeHealth struct {
	Forge    task.Forge
	Requests int64
	Failed   int64
	Limited  int64
	Hooked   bool // webhooks are taken from it
	// Deliveries are the last webhooks, newest first.
	Deliveries []store.Received
}

func (p *Pages) registerSettings(mux *http.ServeMux) {
	mux.HandleFunc("GET /settings", p.page(access.Viewer, p.showSettings))
	mux.HandleFunc("GET /settings/webhooks", p.page(access.Viewer, p.showWebhooks))
	p.registerMemory(mux)
	mux.HandleFunc("GET /settings/configuration", p.page(access.Admin, func(_ *http.Request, v visit) (templ.Component, error) {
		return configurationPage(v, p.Settings.Configuration), nil
	}))
	mux.HandleFunc("GET /settings/people", p.page(access.Admin, p.showPeople))
	mux.HandleFunc("GET /settings/audit", p.page(access.Admin, p.showAudit))
	mux.HandleFunc("POST /settings/tokens", p.signedIn(access.Admin, p.createToken))
	mux.HandleFunc("POST /settings/tokens/many", p.signedIn(access.Admin, func(w http.ResponseWriter, r *http.Request, v visit) {
		p.many(w, r, v, manyAction{name: "token", path: "/settings/tokens id=", do: map[string]func(context.Context, visit, string) error{
			"revoke": func(ctx context.Context, _ visit, id string) error { return p.Store.RevokeToken(ctx, id, p.Now()) },
		}})
	}))
	on := func(path, name string, do func(r *http.Request, v visit) error, noted ...string) {
		back := path[:strings.LastIndex(path, "/")]
		mux.HandleFunc("POST "+path, p.act(action{name: name, role: access.Admin, noted: noted, do: func(r *http.Request, v visit) (string, error) {
			return back, do(r, v)
		}}))
	}
	on("/settings/tokens/revoke", "token.revoke", func(r *http.Request, _ visit) error {
		return p.Store.RevokeToken(r.Context(), r.PostFormValue("id"), p.Now())
	}, "id")
	on("/settings/people/create", "user.create", func(r *http.Request, _ visit) error {
		if r.PostFormValue("password") == "" {
			return task.Errorf(task.Invalid, "give the new user a password")
		}
		return p.accounts.Create(r.Context(), strings.TrimSpace(r.PostFormValue("login")), access.Role(r.PostFormValue("role")), r.PostFormValue("password"))
	}, "login", "role")
	on("/settings/people/role", "user.role", p.changeRole, "login", "role")
	on("/settings/people/password", "user.password", func(r *http.Request, _ visit) error {
		return p.accounts.SetPassword(r.Context(), r.PostFormValue("login"), r.PostFormValue("password"))
	}, "login")
	on("/settings/people/remove", "user.remove", func(r *http.Request, v visit) error {
		if task.SameLogin(r.PostFormValue("login"), v.user.Login) {
			return task.Errorf(task.Invalid, "you cannot remove yourself").WithHint("another administrator can")
		}
		return p.Store.RemoveUser(r.Context(), r.PostFormValue("login"))
	}, "login")
	mux.HandleFunc("GET /settings/tokens", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/settings", http.StatusSeeOther) })
}

func (p *Pages) changeRole(r *http.Request, v visit) error {
	role := access.Role(r.PostFormValue("role"))
	if err := access.CheckPersonRole(role); err != nil {
		return err
	}
	if task.SameLogin(r.PostFormValue("login"), v.user.Login) {
		return task.Errorf(task.Invalid, "you cannot change your own role").WithHint("another administrator can")
	}
	return p.Store.SetUserRole(r.Context(), r.PostFormValue("login"), string(role))
}

// settingsView is what everyone may know, and what admins manage.
type settingsView struct {
	listing listing       // of the tokens
	tokens  []store.Token // of the page
	revoked int           // tokens that are out of sight
	links   []store.SavedLink
	did     string // what was done with many tokens
	forges  []ForgeHealth
	budget  Budget
	spent   store.Amount
	users   []store.User // for whom a token can act
	created string       // a token that was just made, to be seen once
}

// tokensName is what the tokens are narrowed to: with the revoked ones, or without.
const tokensName = "tokens"

// tokenColumns are the columns by which tokens can be put in order.
var tokenColumns = columns[store.Token]{
	"name": byText(func(token store.Token) string { return token.Name }),
	"role": byText(func(token store.Token) string { return token.Role }),
	"made": byTime(func(token store.Token) timeOf { return token.CreatedAt }),
}

// showTokens chooses the tokens of the page. Revoked ones are out of sight unless the reader asks
// for them.
func (s *settingsView) showTokens(tokens []store.Token) {
	all := s.listing.get(tokensName) == allStates
	shown := make([]store.Token, 0, len(tokens))
	for _, token := range tokens {
		switch {
		case !contains(s.listing.search(), token.Name, token.Person, token.Role):
		case token.RevokedAt.IsZero() || all:
			shown = append(shown, token)
		default:
			s.revoked++
		}
	}
	inOrder(s.listing, shown, tokenColumns)
	s.tokens = pageOf(&s.listing, shown)
}

func (p *Pages) readSettings(r *http.Request, v visit) (view settingsView, err error) {
	ctx := r.Context()
	view.budget, view.listing, view.did = p.Settings.Budget, readListing(r, tokensName), did(r, v)
	view.listing.path = "/settings" // also of the answer to a form
	if p.Settings.Forges != nil {
		if view.forges, err = p.Settings.Forges(ctx); err != nil {
			return view, err
		}
	}
	tokens, err := p.Store.ListTokens(ctx)
	if err != nil {
		return view, err
	}
	view.showTokens(tokens)
	if view.links, err = p.linksOf(ctx, v, view.listing.path); err != nil {
		return view, err
	}
	if v.admin() {
		if view.users, err = p.Store.ListUsers(ctx); err != nil {
			return view, err
		}
	}
	_, view.spent, err = p.Store.Spent(ctx, "", v.now)
	return view, err
}

func (p *Pages) showSettings(r *http.Request, v visit) (templ.Component, error) {
	view, err := p.readSettings(r, v)
	return settingsPage(v, view), err
}

// createToken makes a token and shows it on the answer to the form: it is never
// in an address, and can be seen this once.
func (p *Pages) createToken(w http.ResponseWriter, r *http.Request, v visit) {
	name, role, person := strings.TrimSpace(r.PostFormValue("name")), access.Role(r.PostFormValue("role")), r.PostFormValue("person")
	subject := name + " role=" + string(role)
	if person != "" {
		subject += " for=" + person
	}
	var secret string
	err := p.audited(r.Context(), v.user.Login, "token.create", subject, func() (err error) {
		secret, err = p.newToken(r.Context(), role, name, person)
		return err
	})
	var view settingsView
	if err == nil {
		view, err = p.readSettings(r, v)
	}
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	view.created = secret
	p.write(w, r, http.StatusOK, settingsPage(v, view))
}

// newToken makes a token, which acts for a person if one is named.
func (p *Pages) newToken(ctx context.Context, role access.Role, name, person string) (string, error) {
	if name == "" {
		return "", task.Errorf(task.Invalid, "give the token a name")
	}
	tokens := access.Tokens{Store: p.Store, Now: p.Now}
	if person == "" {
		return tokens.Create(ctx, role, name)
	}
	user, err := p.Store.User(ctx, person)
	if err != nil {
		return "", err
	}
	return tokens.CreateFor(ctx, role, name, user)
}

// peopleView is the users.
type peopleView struct {
	listing
	users []store.User // of the page
	links []store.SavedLink
}

// personColumns are the columns by which users can be put in order.
var personColumns = columns[store.User]{
	"login": byText(func(user store.User) string { return user.Login }),
	"role":  byText(func(user store.User) string { return user.Role }),
}

// personOrders are the orders that the list of users offers.
var personOrders = []string{"login", "-login", "role"}

func (p *Pages) showPeople(r *http.Request, v visit) (templ.Component, error) {
	view := peopleView{listing: readListing(r)}
	users, err := p.Store.ListUsers(r.Context())
	if err != nil {
		return nil, err
	}
	users = slices.DeleteFunc(users, func(user store.User) bool {
		return !contains(view.search(), user.Login, user.Role, v.t("role."+user.Role))
	})
	inOrder(view.listing, users, personColumns)
	view.users = pageOf(&view.listing, users)
	view.links, err = p.linksOf(r.Context(), v, view.path)
	return peoplePage(v, view), err
}
