package web

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// LinkedAccounts lets people write on items of other forges under their own accounts there.
type LinkedAccounts interface {
	// LoginOf says whose an access token of a forge is. It fails with Unauthorized if the forge does not
	// take it, and with Forbidden if it is the bot's: what that writes is not taken for the word of a
	// person.
	LoginOf(ctx context.Context, of task.Forge, token string) (string, error)
	// Comment writes a comment on an item with the token.
	Comment(ctx context.Context, on task.Key, token, text string) error
}

const (
	// accountCookie begins the names of the cookies with linked accounts, one for each forge.
	accountCookie = "toryo_account_"
	// accountLasts is how long an account stays linked, if the server is not started again before.
	accountLasts = 30 * 24 * time.Hour
)

// linkedAccount is an account of a person on a forge. The server keeps nothing of it: the browser does, in
// a cookie that only the server can read and that is of use to that person only.
type linkedAccount struct {
	Login string `json:"login"`
	Token string `json:"token"`
}

// newSeal makes what linked accounts are encrypted with. The key lasts as long as the process.
func newSeal() cipher.AEAD {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // which never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("a key of 32 bytes is refused: " + err.Error())
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("AES cannot be used: " + err.Error())
	}
	return seal
}

// whose is what a linked account is bound to.
func whose(v visit, of task.Forge) []byte { return []byte(v.user.Login + "\x00" + string(of)) }

// account is the account that the reader has linked on a forge.
func (p *Pages) account(r *http.Request, v visit, of task.Forge) (account linkedAccount, found bool) {
	cookie, err := r.Cookie(accountCookie + string(of))
	if err != nil || p.Linked == nil {
		return account, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return account, false
	}
	opened, err := p.seal.Open(nil, nil, sealed, whose(v, of))
	if err != nil { // it is somebody else's, or the server was started again
		return account, false
	}
	return account, json.Unmarshal(opened, &account) == nil && account.Token != ""
}

// readAccount sees whether the reader can write on the item of a task.
func (p *Pages) readAccount(r *http.Request, v visit, view *taskView) {
	if p.Linked == nil || view.Key.Forge == task.Board || !v.operator() {
		return
	}
	account, found := p.account(r, v, view.Key.Forge)
	view.account, view.speaks, view.links = account.Login, found, !found
}

func (p *Pages) registerLinked(mux *http.ServeMux) {
	if p.Linked == nil {
		return
	}
	mux.HandleFunc("POST /tasks/{id}/account", p.signedIn(access.Operator, p.linkAccount))
	mux.HandleFunc("POST /tasks/{id}/account/unlink", p.signedIn(access.Operator, p.unlinkAccount))
}

// linkAccount links the account that an access token is of.
func (p *Pages) linkAccount(w http.ResponseWriter, r *http.Request, v visit) {
	of, err := p.Store.Task(r.Context(), task.ID(r.PathValue("id")))
	var account linkedAccount
	if err == nil {
		err = p.audited(r.Context(), v.user.Login, "account.link", r.URL.Path+" forge="+string(of.Key.Forge), func() (err error) {
			account, err = p.checkAccount(r, of.Key.Forge, strings.TrimSpace(r.PostFormValue("token")))
			return err
		})
	}
	var plain []byte
	if err == nil {
		plain, err = json.Marshal(account)
	}
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	sealed := p.seal.Seal(nil, nil, plain, whose(v, of.Key.Forge)) //nolint:gosec // it makes a random nonce by itself; see newSeal
	setCookie(w, r, accountCookie+string(of.Key.Forge), base64.RawURLEncoding.EncodeToString(sealed), accountLasts)
	http.Redirect(w, r, "/tasks/"+string(of.ID), http.StatusSeeOther)
}

// maxLinkedToken is how long a token may be, in bytes: browsers keep no longer cookies.
const maxLinkedToken = 1000

func (p *Pages) checkAccount(r *http.Request, of task.Forge, token string) (linkedAccount, error) {
	switch {
	case of == task.Board:
		return linkedAccount{}, task.Errorf(task.Invalid, "on the board you have an account already")
	case token == "":
		return linkedAccount{}, task.Errorf(task.Invalid, "the token is empty")
	case len(token) > maxLinkedToken:
		return linkedAccount{}, task.Errorf(task.TooLarge, "the token has %d bytes; %d are allowed", len(token), maxLinkedToken)
	case !private(r):
		return linkedAccount{}, task.Errorf(task.Forbidden, "a token is not taken over a connection that others can read").
			WithHint("open the page with https")
	}
	login, err := p.Linked.LoginOf(r.Context(), of, token)
	return linkedAccount{Login: login, Token: token}, err
}

// private reports whether nobody can read a request on its way: it came over TLS, or from this machine.
// One that a proxy has passed on comes from the proxy, which may be on this machine, so that it counts
// how the browser speaks to the proxy.
func private(r *http.Request) bool {
	if passedOn(r) {
		return strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	}
	address := net.ParseIP(addressOf(r))
	return r.TLS != nil || address != nil && address.IsLoopback()
}

// passedOn reports whether a proxy has passed the request on.
func passedOn(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || name == "Via" || name == "X-Real-Ip" {
			return true
		}
	}
	return false
}

func (p *Pages) unlinkAccount(w http.ResponseWriter, r *http.Request, v visit) {
	of, err := p.Store.Task(r.Context(), task.ID(r.PathValue("id")))
	if err == nil {
		err = p.audited(r.Context(), v.user.Login, "account.unlink", r.URL.Path+" forge="+string(of.Key.Forge), func() error { return nil })
	}
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	setCookie(w, r, accountCookie+string(of.Key.Forge), "", -time.Second)
	http.Redirect(w, r, "/tasks/"+string(of.ID), http.StatusSeeOther)
}

// sayOnItem writes a comment on the item of a task, as the person who is signed in.
func (p *Pages) sayOnItem(r *http.Request, v visit) (string, error) {
	of, err := p.Store.Task(r.Context(), task.ID(r.PathValue("id")))
	if err != nil {
		return "", err
	}
	next, text := "/tasks/"+string(of.ID), r.PostFormValue("body")
	if strings.TrimSpace(text) == "" {
		return "", task.Errorf(task.Invalid, "the comment is empty")
	}
	if of.Key.Forge != task.Board {
		account, found := p.account(r, v, of.Key.Forge)
		if !found {
			return "", task.Errorf(task.Forbidden, "no account of yours on %s is linked", of.Key.Forge).
				WithHint("link it on the page of the task, or write on the item: %s", of.URL)
		}
		return next, p.Linked.Comment(r.Context(), of.Key, account.Token, text)
	}
	if p.Board == nil {
		return "", task.Errorf(task.Unsupported, "there is no board")
	}
	hands, err := p.person(r.Context(), v)
	if err != nil {
		return "", err
	}
	_, err = hands.AddComment(r.Context(), of.Key, text)
	return next, err
}
