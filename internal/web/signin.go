package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// linkLasts is how long a link can be used by which someone enters.
const linkLasts = time.Hour

func (p *Pages) registerSignIn(mux *http.ServeMux) {
	mux.HandleFunc("GET /signin", func(w http.ResponseWriter, r *http.Request) {
		p.write(w, r, http.StatusOK, signInPage(p.stranger(r), signInForm{next: safeNext(r.URL.Query().Get("next"))}))
	})
	mux.HandleFunc("POST /signin", p.strangersForm(p.signIn))
	mux.HandleFunc("POST /signout", p.strangersForm(p.signOut))
	mux.HandleFunc("GET /enter", p.enter)
}

type signInForm struct {
	next, login, failure string
}

func (p *Pages) signIn(w http.ResponseWriter, r *http.Request) {
	v := p.stranger(r)
	form := signInForm{next: safeNext(r.PostFormValue("next")), login: r.PostFormValue("login")}
	var secret string
	user, err := p.accounts.Verify(r.Context(), form.login, r.PostFormValue("password"), r.RemoteAddr)
	if err == nil {
		err = p.audited(r.Context(), user.Login, "signin", addressOf(r), func() (err error) {
			secret, err = p.accounts.Open(r.Context(), user.Login)
			return err
		})
	} else {
		p.noteFailure(r, form.login, "signin", err)
	}
	switch task.CodeOf(err) {
	case "":
		setCookie(w, r, sessionCookie, secret, access.SessionLength)
		http.Redirect(w, r, form.next, http.StatusSeeOther)
	case task.Unauthorized:
		form.failure = v.t("signin.wrong")
		p.write(w, r, http.StatusUnauthorized, signInPage(v, form))
	case task.Unavailable:
		form.failure = v.t("signin.slow")
		p.write(w, r, http.StatusTooManyRequests, signInPage(v, form))
	default:
		p.fail(w, r, v, err)
	}
}

// How many sign-ins that failed are in the audit log: as many as failuresAtOnce, and
// one more each failureEvery. Anyone can fail, and the database is not for everyone to
// fill; the metrics of requests count them all.
const (
	failuresAtOnce = 60
	failureEvery   = time.Minute
)

// noteFailure puts a sign-in that failed into the audit log. One that was not even
// looked at, because there were too many, is only counted.
func (p *Pages) noteFailure(r *http.Request, login, action string, err error) {
	if task.CodeOf(err) != task.Unauthorized || !p.failures.AllowN(p.Now(), 1) {
		return
	}
	_ = p.audited(r.Context(), login, action, addressOf(r), func() error { return err }) // the answer says it
}

func (p *Pages) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(sessionCookie); err == nil { // else nobody is signed in
		if err := p.accounts.SignOut(r.Context(), cookie.Value); err != nil {
			p.fail(w, r, p.stranger(r), err)
			return
		}
	}
	setCookie(w, r, sessionCookie, "", -time.Second)
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, accountCookie) {
			setCookie(w, r, cookie.Name, "", -time.Second)
		}
	}
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

// links are ways in that work once.
type links struct {
	mutex sync.Mutex
	open  map[string]link // by the hash of the secret
}

type link struct {
	login string
	until time.Time
}

// Invite makes an account for someone who is known to be at this machine, unless
// there is one, and returns the path by which that person enters once.
func (p *Pages) Invite(ctx context.Context, login string, role access.Role) (path string, err error) {
	err = p.accounts.Create(ctx, login, role, "")
	if err != nil && task.CodeOf(err) != task.Conflict {
		return "", err
	}
	secret := access.NewSecret()
	p.links.mutex.Lock()
	defer p.links.mutex.Unlock()
	if p.links.open == nil {
		p.links.open = make(map[string]link)
	}
	p.links.open[string(access.Hash(secret))] = link{login, p.Now().Add(linkLasts)}
	return "/enter?once=" + url.QueryEscape(secret), nil
}

// take uses up a link.
func (l *links) take(secret string, now time.Time) (login string, found bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	name := string(access.Hash(secret))
	one, found := l.open[name]
	delete(l.open, name)
	return one.login, found && now.Before(one.until)
}

func (p *Pages) enter(w http.ResponseWriter, r *http.Request) {
	v := p.stranger(r)
	login, found := p.links.take(r.URL.Query().Get("once"), p.Now())
	if !found {
		p.write(w, r, http.StatusUnauthorized, signInPage(v, signInForm{next: "/", failure: v.t("signin.used")}))
		return
	}
	var secret string
	err := p.audited(r.Context(), login, "enter", addressOf(r), func() (err error) {
		secret, err = p.accounts.Open(r.Context(), login)
		return err
	})
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	setCookie(w, r, sessionCookie, secret, access.SessionLength)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
