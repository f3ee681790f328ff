package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// attemptLasts is how long people may take to sign in elsewhere.
const attemptLasts = 10 * time.Minute

func (p *Pages) registerElsewhere(mux *http.ServeMux) {
	mux.HandleFunc("GET /signin/oidc", p.goElsewhere)
	mux.HandleFunc("GET /signin/oidc/callback", p.comeBack)
}

// journey is a sign-in elsewhere that has begun, as the browser keeps it.
type journey struct {
	access.Attempt
	Next string `json:"next"`
}

// goElsewhere sends the browser to the provider. It is a link and not a form: the
// policy of our pages lets forms go nowhere else.
func (p *Pages) goElsewhere(w http.ResponseWriter, r *http.Request) {
	attempt, err := p.Provider.Begin(r.Context())
	if err != nil {
		p.fail(w, r, p.stranger(r), err)
		return
	}
	kept, err := json.Marshal(journey{attempt, safeNext(r.URL.Query().Get("next"))})
	if err != nil {
		p.fail(w, r, p.stranger(r), err)
		return
	}
	setCookie(w, r, attemptCookie, base64.RawURLEncoding.EncodeToString(kept), attemptLasts)
	http.Redirect(w, r, attempt.URL, http.StatusSeeOther)
}

// journeyOf is the sign-in that the browser has begun. What cannot be read is one
// that nobody has begun.
func journeyOf(r *http.Request) (begun journey) {
	cookie, err := r.Cookie(attemptCookie)
	if err != nil {
		return journey{}
	}
	kept, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(kept, &begun) != nil {
		return journey{}
	}
	return begun
}

// comeBack signs in whoever the provider let in.
func (p *Pages) comeBack(w http.ResponseWriter, r *http.Request) {
	v, address := p.stranger(r), addressOf(r)
	begun := journeyOf(r)
	setCookie(w, r, attemptCookie, "", -time.Second)
	network := access.Network(r.RemoteAddr)
	if p.accounts.Addresses.Wait(p.Now(), network) > 0 {
		p.write(w, r, http.StatusTooManyRequests, signInPage(v, signInForm{next: "/", failure: v.t("signin.slow")}))
		return
	}
	who, err := p.Provider.Finish(r.Context(), begun.Attempt, r.URL.Query())
	var secret string
	if err == nil {
		err = p.audited(r.Context(), who.Login, "signin.oidc", address, func() (err error) {
			_, secret, err = p.accounts.Admit(r.Context(), who)
			return err
		})
	} else {
		p.noteFailure(r, p.Provider.Name(), "signin.oidc", err)
	}
	switch {
	case err == nil:
		setCookie(w, r, sessionCookie, secret, access.ElsewhereLength)
		http.Redirect(w, r, safeNext(begun.Next), http.StatusSeeOther)
	case task.CodeOf(err) == task.Unauthorized:
		p.accounts.Addresses.Failed(p.Now(), network)
		p.Log.WarnContext(r.Context(), "a sign-in elsewhere was refused", "provider", p.Provider.Name(), "error", err)
		p.write(w, r, http.StatusUnauthorized, signInPage(v, signInForm{next: safeNext(begun.Next), failure: v.t("signin.elsewhere_wrong", p.Provider.Name())}))
	default:
		p.fail(w, r, v, err)
	}
}
