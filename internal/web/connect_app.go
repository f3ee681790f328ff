package web

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
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
func (a *appAttempts) take(session, state string, now time.Time) (form AppForm, found bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	name := string(access.Hash(state))
	one, found := a.open[name]
	delete(a.open, name)
	return one.form, found && session != "" && one.session == session && now.Before(one.until)
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

// plainHost is a host and a port that mean nothing else in a policy.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

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
	p.signedIn(access.Admin, func(w http.ResponseWriter, r *http.Request, v visit) { p.finishApp(w, r, v, query) })(w, bare)
}

// finishApp fetches the App. The state shows that this person has begun it here.
func (p *Pages) finishApp(w http.ResponseWriter, r *http.Request, v visit, query url.Values) {
	form, found := p.apps.take(sessionOf(r), query.Get("state"), p.Now())
	err := p.audited(r.Context(), v.user.Login, "connect.app", cmp.Or(form.Owner, "?"), func() error {
		if !found {
			return task.Errorf(task.Forbidden, "nobody has begun this in your session, it was done already, or it took longer than an hour").
				WithHint("begin again on the page Connect, at the address at which people reach this server; an App that was registered meanwhile can be deleted in its settings on GitHub")
		}
		return p.Connecting.FinishApp(r.Context(), form, query.Get("code"))
	})
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	// The code is used up; the address with it does not stay in the history.
	http.Redirect(w, r, connectPath+"#"+gitHubCard, http.StatusSeeOther)
}
