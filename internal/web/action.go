package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
)

// action is something that a person does by sending a form.
type action struct {
	name string // a stable word for the audit log
	role access.Role
	// noted are the fields of the form that belong into the audit log.
	noted []string
	// do does it and returns the page to go on with.
	do func(r *http.Request, v visit) (next string, err error)
}

// act answers the form of an action. It is in the audit log before it is done:
// what cannot be noted is not done.
func (p *Pages) act(a action) http.HandlerFunc {
	return p.signedIn(a.role, func(w http.ResponseWriter, r *http.Request, v visit) {
		var next string
		err := p.audited(r.Context(), v.user.Login, a.name, subjectOf(r, a.noted), func() (err error) {
			next, err = a.do(r, v)
			return err
		})
		if err != nil {
			p.fail(w, r, v, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
	})
}

// audited does something and notes who did it, before and after.
func (p *Pages) audited(ctx context.Context, actor, name, subject string, do func() error) error {
	return access.Auditor{Store: p.Store, Now: p.Now, Log: p.Log}.Do(ctx, actor, name, subject, do)
}

// subjectOf is what an action is done to: the path, and what the form says.
func subjectOf(r *http.Request, fields []string) string {
	parts := []string{r.URL.Path}
	for _, field := range fields {
		if value := r.PostForm.Get(field); value != "" {
			parts = append(parts, field+"="+value)
		}
	}
	return strings.Join(parts, " ")
}
