package web

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// The cookies. The first is a secret; the others are choices of the reader.
const (
	sessionCookie  = "toryo_session"
	languageCookie = "toryo_language"
	themeCookie    = "toryo_theme"
	attemptCookie  = "toryo_attempt" // a sign-in elsewhere that has begun
)

// visit is who looks at a page, and how that person wants to see it.
type visit struct {
	user     store.User // without a login if nobody is signed in
	language task.Language
	theme    string // "light", "dark", or "" for what the device says
	path     string // with its query, to come back to
	now      time.Time
	board    bool // there is one
	reviews  bool
	connect  bool // forges and models can be connected on a page
	version  string
	provider string // where people can sign in too; empty if there is none
}

func (v visit) role() access.Role { return access.Role(v.user.Role) }

// may reports whether the reader may do what needs the role.
func (v visit) may(role access.Role) bool { return v.user.Login != "" && v.role().Includes(role) }

func (v visit) operator() bool { return v.may(access.Operator) }
func (v visit) admin() bool    { return v.may(access.Admin) }

// t is a text in the reader's language.
func (v visit) t(key string, args ...any) string { return messages.Text(v.language, key, args...) }

// textOr is a text in the reader's language, or the given one if there is none: for
// codes that other parts of the program may add to.
func (v visit) textOr(key, otherwise string) string {
	if text, found := messages.Find(v.language, key); found {
		return text
	}
	return otherwise
}

// reason is a reason in words, or nothing if it is not known. On pages it stands alone, so that
// it begins with a capital letter.
func (v visit) reason(reason task.Reason) string {
	return textfmt.UpperFirst(messages.Reason(v.language, reason))
}

// reasonOrCode is a reason in words, or as it is if there are none: it is of a newer version, or
// in words already.
func (v visit) reasonOrCode(reason task.Reason) string {
	return cmp.Or(v.reason(reason), string(reason))
}

// ago is how long ago a point in time was, in words. One in the future is shown as it is.
func (v visit) ago(at time.Time) string {
	switch since := v.now.Sub(at); {
	case since < -time.Minute:
		return at.UTC().Format("2006-01-02 15:04")
	case since < time.Minute:
		return v.t("ago.now")
	case since < time.Hour:
		return v.t("ago.minutes", int(since.Minutes()))
	case since < 48*time.Hour:
		return v.t("ago.hours", int(since.Hours()))
	default:
		return v.t("ago.days", int(since.Hours()/24))
	}
}

// stranger is a visit of someone who is not signed in.
func (p *Pages) stranger(r *http.Request) visit {
	v := visit{
		language: languageOf(r), theme: themeOf(r), path: comeBack(r), now: p.Now(), board: p.Board != nil, reviews: p.Reviews != nil, connect: p.Connecting != nil, version: p.Version,
	}
	if p.Provider != nil {
		v.provider = p.Provider.Name()
	}
	return v
}

// maxComeBack is how long an address may be, in bytes, for pages to name it.
const maxComeBack = 2000

// comeBack is the address that is asked for, to come back to.
func comeBack(r *http.Request) string {
	if address := r.URL.RequestURI(); len(address) <= maxComeBack {
		return address
	}
	return "/"
}

// hintForRole is what somebody can do whose role does not allow something.
const hintForRole = "an administrator can change the role under Settings → Users"

// signedIn lets only those through who are signed in and have the role. Others
// are asked to sign in, and come back afterwards.
func (p *Pages) signedIn(role access.Role, next func(w http.ResponseWriter, r *http.Request, v visit)) http.HandlerFunc {
	return p.signedInWith(role, func(w http.ResponseWriter, r *http.Request) error { return readForm(w, r, maxForm) }, next)
}

// signedInWith is signedIn with a way to read the forms that are sent.
func (p *Pages) signedInWith(role access.Role, read func(http.ResponseWriter, *http.Request) error, next func(w http.ResponseWriter, r *http.Request, v visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := p.stranger(r)
		var secret string
		if cookie, err := r.Cookie(sessionCookie); err == nil { // else there is none
			secret = cookie.Value
		}
		user, err := p.accounts.Check(r.Context(), secret)
		switch {
		case task.CodeOf(err) == task.Unauthorized && r.Method == http.MethodGet && acceptsPages(r):
			http.Redirect(w, r, "/signin?next="+url.QueryEscape(v.path), http.StatusSeeOther)
			return
		case err != nil:
			p.fail(w, r, v, err)
			return
		}
		v.user = user
		if !v.may(role) {
			p.fail(w, r, v, task.Errorf(task.Forbidden, "%s has the role %s, and this takes the role %s", user.Login, user.Role, role).WithHint("%s", hintForRole))
			return
		}
		if r.Method == http.MethodPost {
			if err := read(w, r); err != nil {
				p.fail(w, r, v, err)
				return
			}
		}
		next(w, r, v)
	}
}

// acceptsPages tells a browser that opens a page from a script that fetches.
func acceptsPages(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// safeNext is a place to go on with that is certainly on this server.
func safeNext(next string) string {
	parsed, err := url.Parse(next)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// setCookie sends a cookie that scripts cannot read and other sites cannot make
// a browser send with a form.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is set where there is TLS
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: overTLS(r),
	})
}

// overTLS reports whether the browser speaks TLS, with us or with a proxy before
// us. The header could be a lie; then the cookie is only kept safer than needed.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// addressOf is where a request comes from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
