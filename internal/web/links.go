package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// linkStore is what saved links need of the database.
type linkStore interface {
	SaveLink(ctx context.Context, link store.SavedLink) error
	LinksOf(ctx context.Context, owner string) ([]store.SavedLink, error)
	RemoveLink(ctx context.Context, owner, name string) error
}

// maxLinkName is how many bytes the name of a link may have.
const maxLinkName = 80 * 4

func (p *Pages) registerLinks(mux *http.ServeMux) {
	mux.HandleFunc("POST /links/save", p.act(action{name: "link.save", role: access.Viewer, noted: []string{"name"}, do: func(r *http.Request, v visit) (string, error) {
		name, next := strings.TrimSpace(r.PostForm.Get("name")), safeNext(r.PostForm.Get("next"))
		if len(name) > maxLinkName {
			return "", task.Errorf(task.TooLarge, "the name is too long")
		}
		return next, p.Store.SaveLink(r.Context(), store.SavedLink{Owner: v.user.Login, Name: name, Path: next, CreatedAt: p.Now()})
	}}))
	mux.HandleFunc("POST /links/remove", p.act(action{name: "link.remove", role: access.Viewer, noted: []string{"name"}, do: func(r *http.Request, v visit) (string, error) {
		return safeNext(r.PostForm.Get("next")), p.Store.RemoveLink(r.Context(), v.user.Login, r.PostForm.Get("name"))
	}}))
}

// linksOf are the links to a list that the reader has saved.
func (p *Pages) linksOf(ctx context.Context, v visit, path string) ([]store.SavedLink, error) {
	links, err := p.Store.LinksOf(ctx, v.user.Login)
	return slices.DeleteFunc(links, func(link store.SavedLink) bool {
		at, err := url.Parse(link.Path)
		return err != nil || at.Path != path
	}), err
}
