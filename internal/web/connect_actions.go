package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// connectAction is something that an administrator does on the page Connect.
type connectAction struct {
	name  string   // a stable word for the audit log
	noted []string // fields that belong into it
	// card is the one that the person comes back to.
	card func(r *http.Request) string
	do   func(r *http.Request) error
}

func (p *Pages) registerConnectActions(mux *http.ServeMux) {
	forgeCard := func(r *http.Request) string {
		return ForgeConnection{Forge: task.Forge(r.PostFormValue("forge"))}.name()
	}
	modelCard := func(r *http.Request) string { return ModelConnection{Provider: r.PostFormValue("provider")}.name() }
	for path, one := range map[string]connectAction{
		"/connect/forge": {"connect.forge", []string{"forge", "repositories"}, forgeCard, func(r *http.Request) error {
			return p.Connecting.ConnectForge(r.Context(), forgeForm(r))
		}},
		"/connect/forge/test": {"connect.test", []string{"forge"}, forgeCard, func(r *http.Request) error {
			return p.Connecting.TestForge(r.Context(), task.Forge(r.PostFormValue("forge")))
		}},
		"/connect/forge/prepare": {"connect.prepare", []string{"forge", "repositories"}, forgeCard, func(r *http.Request) error {
			return p.Connecting.Prepare(r.Context(), task.Forge(r.PostFormValue("forge")), names(r.PostFormValue("repositories")))
		}},
		"/connect/model": {"connect.model", []string{"provider", "model"}, modelCard, func(r *http.Request) error {
			return p.Connecting.ConnectModel(r.Context(), ModelForm{
				Provider: r.PostFormValue("provider"), Model: trimmed(r, "model"), BaseURL: trimmed(r, "base_url"), Key: redact.Secret(trimmed(r, "key")),
			})
		}},
		"/connect/model/test": {"connect.test", []string{"provider"}, modelCard, func(r *http.Request) error {
			return p.Connecting.TestModel(r.Context(), r.PostFormValue("provider"))
		}},
	} {
		mux.HandleFunc("POST "+path, p.signedIn(access.Admin, func(w http.ResponseWriter, r *http.Request, v visit) {
			subject := subjectOf(r, one.noted) + addressesIn(r)
			err := p.audited(r.Context(), v.user.Login, one.name, subject, func() error { return one.do(r) })
			if err != nil {
				p.connectFailed(w, r, v, one.card(r), err)
				return
			}
			http.Redirect(w, r, connectPath+"#"+one.card(r), http.StatusSeeOther)
		}))
		// Who loads the answer to a failed form again, or changes the language there, sees the page.
		mux.HandleFunc("GET "+path, toConnect)
	}
	mux.HandleFunc("GET /connect/github/app", toConnect)
}

func toConnect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, connectPath, http.StatusSeeOther)
}

func forgeForm(r *http.Request) ForgeForm {
	return ForgeForm{
		Forge: task.Forge(r.PostFormValue("forge")), URL: trimmed(r, "url"), Token: redact.Secret(trimmed(r, "token")),
		Repositories: names(r.PostFormValue("repositories")), Webhook: r.PostFormValue("webhook") == "yes",
	}
}

// trimmed is a field without what a person has copied around it.
func trimmed(r *http.Request, field string) string { return strings.TrimSpace(r.PostFormValue(field)) }

// names reads a list: one name to a line, or with commas between them.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\t' })
}

// addressFields hold addresses, into which people may have typed a password.
var addressFields = []string{"url", "base_url"}

// addressesIn are the addresses of a form as the audit log has them.
func addressesIn(r *http.Request) string {
	var text strings.Builder
	for _, field := range addressFields {
		if address := withoutUser(trimmed(r, field)); address != "" {
			text.WriteString(" " + field + "=" + address)
		}
	}
	return text.String()
}

// withoutUser is an address without a name and a password in it, or "" if it is none.
func withoutUser(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return ""
	}
	at.User = nil
	return at.String()
}

// secretFields are never shown again.
var secretFields = map[string]bool{"token": true, "key": true}

// connectFailed shows the page with what went wrong beside the form, and the form as it was
// sent, but for secrets.
func (p *Pages) connectFailed(w http.ResponseWriter, r *http.Request, v visit, card string, failed error) {
	info := task.CodeOf(failed).Info()
	view, err := p.readConnections(r.Context())
	if err != nil || info.Code == task.Internal {
		p.fail(w, r, v, failed)
		return
	}
	view.failed = connectFailure{card: card, text: info.Meaning, fields: map[string]string{}}
	if coded, found := task.AsError(failed); found {
		view.failed.text, view.failed.hint = coded.Message, coded.Hint
	}
	for name, values := range r.PostForm {
		switch {
		case secretFields[name]:
		case slices.Contains(addressFields, name):
			view.failed.fields[name] = withoutUser(strings.TrimSpace(values[0]))
		default:
			view.failed.fields[name] = values[0]
		}
	}
	p.write(w, r, info.Status, connectPage(v, view))
}
