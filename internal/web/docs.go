package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/docsite"
	"github.com/toryo-dev/toryo/internal/task"
)

// accountWithin is how long the database may take to say who reads the documentation. It is
// most needed when something does not work.
const accountWithin = 2 * time.Second

// registerDocs adds the documentation. It is the same on every installation and has no
// secrets, so that nobody need sign in to read it.
func (p *Pages) registerDocs(mux *http.ServeMux) {
	mux.HandleFunc("GET "+docsite.Root, p.document)
	mux.HandleFunc("GET "+docsite.Root+"/{page}", p.document)
	mux.HandleFunc("GET "+docsite.Root+"/search", p.searchDocs)
	mux.HandleFunc("GET "+docsite.Root+"/images/{sum}/{name}", p.docsImage)
	mux.HandleFunc("GET "+docsite.Root+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, docsite.Root, http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET "+docsite.Root+"/", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, p.anyone(r), noDocument())
	})
}

func noDocument() error {
	return task.Errorf(task.NotFound, "the documentation has no such page").WithHint("look for it in %s", docsite.Root)
}

// anyone is the visit of somebody who need not be signed in. Who is signed in is shown as
// such, as far as the database can tell.
func (p *Pages) anyone(r *http.Request) visit {
	v := p.stranger(r)
	cookie, err := r.Cookie(sessionCookie)
	if err != nil { // there is none
		return v
	}
	ctx, cancel := context.WithTimeout(r.Context(), accountWithin)
	defer cancel()
	if user, err := p.accounts.Check(ctx, cookie.Value); err == nil { // else a stranger
		v.user = user
	}
	return v
}

// document answers with one page of the documentation.
func (p *Pages) document(w http.ResponseWriter, r *http.Request) {
	v := p.anyone(r)
	library, err := docsite.In(v.language)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	name := r.PathValue("page")
	if page, found := library.Page(name); found {
		p.writeDocument(w, r, documentPage(v, documentView{library: library, page: page}))
		return
	}
	// Messages of the program name files.
	if page, found := library.Page(strings.TrimSuffix(name, ".md")); found {
		http.Redirect(w, r, page.Path(), http.StatusSeeOther)
		return
	}
	p.fail(w, r, v, noDocument())
}

// documentView is a page of the documentation, and what is around it.
type documentView struct {
	library *docsite.Library
	page    *docsite.Page
	query   string
	results []docsite.Result
}

// searchDocs answers with what the documentation has about a query.
func (p *Pages) searchDocs(w http.ResponseWriter, r *http.Request) {
	v := p.anyone(r)
	library, err := docsite.In(v.language)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	query := docsite.Query(r.URL.Query().Get("q"))
	p.writeDocument(w, r, docsSearchPage(v, documentView{library: library, query: query, results: library.Search(query)}))
}

// docsImage answers with a picture. Both languages may show it.
func (p *Pages) docsImage(w http.ResponseWriter, r *http.Request) {
	for _, language := range languages {
		library, err := docsite.In(language)
		if err != nil {
			p.fail(w, r, p.stranger(r), err)
			return
		}
		if image, found := library.Image(r.URL.Path); found {
			w.Header().Set("Cache-Control", keepForGood)
			http.ServeContent(w, r, path.Base(image.Path), time.Time{}, bytes.NewReader(image.Content))
			return
		}
	}
	p.fail(w, r, p.stranger(r), noDocument())
}

// writeDocument sends a page that a browser may keep, and asks for again only if it has
// changed: by the reader, the language, the colours or the version.
func (p *Pages) writeDocument(w http.ResponseWriter, r *http.Request, component templ.Component) {
	body, made := p.render(w, r, component)
	if !made {
		return
	}
	sum := sha256.Sum256(body)
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Vary", "Cookie, Accept-Language")
	header.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// marked shows pieces of a text, with those that were looked for marked.
func marked(pieces []docsite.Piece) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var out strings.Builder
		for _, piece := range pieces {
			text := templ.EscapeString(piece.Text)
			if piece.Marked {
				text = "<mark>" + text + "</mark>"
			}
			out.WriteString(text)
		}
		_, err := io.WriteString(w, out.String())
		return err
	})
}

// docsLink is a page of the documentation for a hint: its title in the reader's language
// where it has one, and its path. The title is empty if there is no such page, which a test
// does not allow.
func docsLink(v visit, name, anchor string) (title, path string) {
	library, err := docsite.In(v.language)
	if err != nil {
		return "", ""
	}
	page, found := library.Page(name)
	if !found {
		return "", ""
	}
	path = page.Path()
	if anchor != "" {
		path += "#" + anchor
	}
	return page.Title, path
}
