package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// appLasts is how long people may take to register an App on GitHub. The code that
	// GitHub gives lasts as long.
	appLasts = time.Hour
	// mostApps is how many registrations can be under way.
	mostApps = 100
)

// appAttempts are registrations of Apps that have begun. They are kept here and not in the
// browser, so that a state can be used once.
type appAttempts struct {
	mutex sync.Mutex
	open  map[string]appAttempt // by the hash of the state
}

// appAttempt belongs to the session in which it was begun.
type appAttempt struct {
	session string // hash of its secret
	form    AppForm
	until   time.Time
}

// begin keeps an attempt, and returns the state by which it is known.
func (a *appAttempts) begin(session string, form AppForm, now time.Time) (state string, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for name, one := range a.open {
		if now.After(one.until) {
			delete(a.open, name)
		}
	}
	if len(a.open) >= mostApps {
		return "", task.Errorf(task.TooMany, "too many registrations of Apps have begun").WithHint("try again in an hour")
	}
	if a.open == nil {
		a.open = make(map[string]appAttempt)
	}
	state = access.NewSecret()
	a.open[string(access.Hash(state))] = appAttempt{session: session, form: form, until: now.Add(appLasts)}
	return state, nil
}

// take uses up a state. It is good in the session in which it was made; tried in another, it
// is used up too, because somebody else knows it then.
func (a *appAttempts) take(session, state string, now time.Time) (one appAttempt, found bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	name := string(access.Hash(state))
	one, found = a.open[name]
	delete(a.open, name)
	return one, found && session != "" && one.session == session && now.Before(one.until)
}

// giveBack makes a state good again that came to nothing.
func (a *appAttempts) giveBack(state string, one appAttempt) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.open[string(access.Hash(state))] = one
}

// sessionOf tells the session of a request from all others.
func sessionOf(r *http.Request) string {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || cookie.Value == "" {
		return ""
	}
	return string(access.Hash(cookie.Value))
}

// gitHubCard is where the person comes back to.
var gitHubCard = ForgeConnection{Forge: task.GitHub}.name()

// offerApp shows what GitHub will be asked to register, with the form that goes there. It is
// the one page from which a form goes elsewhere, so that it has a policy of its own.
func (p *Pages) offerApp(w http.ResponseWriter, r *http.Request, v visit) {
	form := AppForm{
		URL: trimmed(r, "url"), Owner: trimmed(r, "owner"), Organisation: r.PostFormValue("organisation") == "yes", Name: trimmed(r, "name"),
		Account: trimmed(r, "account"),
	}
	var offer AppOffer
	var state string
	err := p.audited(r.Context(), v.user.Login, "connect.app.begin", subjectOf(r, []string{"owner"})+addressesIn(r), func() (err error) {
		if offer, err = p.Connecting.OfferApp(r.Context(), form, callbackPath); err != nil {
			return err
		}
		if originOf(offer.Action) == "" {
			return task.Errorf(task.Invalid, "the address of GitHub cannot be used").WithHint("write it like https://github.example.com")
		}
		if err := comesBack(r, offer.Back); err != nil {
			return err
		}
		state, err = p.apps.begin(sessionOf(r), form, p.Now())
		return err
	})
	if err != nil {
		p.connectFailed(w, r, v, gitHubCard, err)
		return
	}
	w.Header().Set("Content-Security-Policy", policyWithForm(originOf(offer.Action)))
	w.Header().Set("Referrer-Policy", "strict-origin-when-cross-origin") // or GitHub would be told that the form comes from nowhere
	offer.Action += "?state=" + url.QueryEscape(state)
	p.write(w, r, http.StatusOK, appPage(v, offer))
}

// comesBack makes sure that GitHub sends the person back to where the session is: browsers have
// one for each host. A browser says in a form where it is; a proxy may have put another host
// into the request.
func comesBack(r *http.Request, back string) error {
	here := r.Host
	if at, err := url.Parse(r.Header.Get("Origin")); err == nil && at.Host != "" {
		here = at.Host
	}
	at, err := url.Parse(back)
	if err == nil && strings.EqualFold(at.Host, here) {
		return nil
	}
	return task.Errorf(task.Conflict, "GitHub would send you back to %s, and you are at %s, where you are signed in", originOf(back), here).
		WithHint("begin again at %s, or set server.public_url to the address at which people reach this server, and start it again", originOf(back)+connectPath)
}

// plainHost is a host and a port that mean nothing else in a policy.
var plainHost = lazyregexp.New(`^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

// originOf is the server of an address, or nothing if it is none that a policy can name.
func originOf(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.User != nil || !plainHost.MatchString(at.Host) {
		return ""
	}
	return at.Scheme + "://" + at.Host
}

// comeBackFromGitHub takes the person back whom GitHub has sent, with a code for the App that it
// has registered. Pages about errors, and the one on which people sign in, repeat the address
// that they stand at: they are not told this one, because the code is in it.
func (p *Pages) comeBackFromGitHub(w http.ResponseWriter, r *http.Request) {
	query, bare := r.URL.Query(), r.Clone(r.Context())
	bare.URL = &url.URL{Path: connectPath}
	if query.Get("code") != "" && !p.hasSession(r) {
		v := p.stranger(bare)
		p.write(w, bare, http.StatusUnauthorized, signInPage(v, signInForm{next: connectPath, failure: v.t("connect.app_without_session", r.Host)}))
		return
	}
	p.signedIn(access.Admin, func(w http.ResponseWriter, r *http.Request, v visit) { p.finishApp(w, r, v, query) })(w, bare)
}

// hasSession reports whether somebody is signed in, or that cannot be told.
func (p *Pages) hasSession(r *http.Request) bool {
	var secret string
	if cookie, err := r.Cookie(sessionCookie); err == nil { // else there is none
		secret = cookie.Value
	}
	_, err := p.accounts.Check(r.Context(), secret)
	return task.CodeOf(err) != task.Unauthorized
}

// finishApp fetches the App. The state shows that this person has begun it here. While the code
// was not used, the same address can be loaded again.
func (p *Pages) finishApp(w http.ResponseWriter, r *http.Request, v visit, query url.Values) {
	state := query.Get("state")
	begun, found := p.apps.take(sessionOf(r), state, p.Now())
	err := p.audited(r.Context(), v.user.Login, "connect.app", cmp.Or(begun.form.Owner, "?"), func() error {
		if !found {
			return task.Errorf(task.Forbidden, "nobody has begun this in your session, it was done already, or it took longer than an hour").
				WithHint("begin again on the page Connect, at the address at which people reach this server; an App that was registered meanwhile can be deleted in its settings on GitHub")
		}
		used, err := p.Connecting.FinishApp(r.Context(), begun.form, query.Get("code"))
		if err == nil || used {
			return err
		}
		p.apps.giveBack(state, begun)
		return tryAgain(err)
	})
	if err != nil {
		p.showProblem(w, r, v, err) // whoever connects has logged it
		return
	}
	// The code is used up; the address with it does not stay in the history.
	http.Redirect(w, r, connectPath+"#"+gitHubCard, http.StatusSeeOther)
}

// tryAgain says that what GitHub has given is still good.
func tryAgain(err error) error {
	coded, found := task.AsError(err)
	if !found {
		return err
	}
	again := *coded
	again.Hint = strings.TrimPrefix(coded.Hint+"; ", "; ") + "GitHub has registered the App, so do not begin again: load this page again within the hour"
	return &again
}
