package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	repositoryPath = "/board/{owner}/{name}"
	itemPath       = repositoryPath + "/{kind}/{number}"
)

func (p *Pages) registerBoard(mux *http.ServeMux) {
	mux.HandleFunc("GET /board", p.onBoard(p.showRepositories))
	mux.HandleFunc("GET "+repositoryPath, p.onBoard(p.showItems))
	mux.HandleFunc("GET "+repositoryPath+"/{kind}", p.onBoard(p.showItems))
	mux.HandleFunc("GET "+repositoryPath+"/issues/new", p.page(access.Operator, func(r *http.Request, v visit) (templ.Component, error) {
		return newIssuePage(v, repositoryOf(r), p.Board.Bot()), nil
	}))
	mux.HandleFunc("GET "+repositoryPath+"/pulls/new", p.onBoard(p.showNewPull))
	mux.HandleFunc("GET "+repositoryPath+"/items/{number}", p.signedIn(access.Viewer, p.findItem))
	mux.HandleFunc("GET "+itemPath, p.onBoard(p.showItem))
	p.registerBoardActions(mux)
	p.registerBoardLive(mux)
}

// fitting is the access to the board of people with a role.
var fitting = map[access.Role]forge.Access{
	access.Viewer: forge.ReadAccess, access.Operator: forge.WriteAccess, access.Admin: forge.AdminAccess,
}

// person is the board in the hands of whoever is signed in, who gets an account
// there when it is first needed.
func (p *Pages) person(ctx context.Context, v visit) (*board.Forge, error) {
	login, ok := p.Board.LoginOf(v.user.Login)
	if !ok {
		return nil, task.Errorf(task.Forbidden, "the login %q cannot be yours on the board", v.user.Login)
	}
	if _, err := p.Board.EnsureUser(ctx, login, fitting[v.role()]); err != nil {
		return nil, err
	}
	return p.Board.As(login), nil
}

// onBoard is a page of the board.
func (p *Pages) onBoard(show func(r *http.Request, v visit, hands *board.Forge) (templ.Component, error)) http.HandlerFunc {
	return p.page(access.Viewer, func(r *http.Request, v visit) (templ.Component, error) {
		hands, err := p.person(r.Context(), v)
		if err != nil {
			return nil, err
		}
		return show(r, v, hands)
	})
}

func repositoryOf(r *http.Request) string { return r.PathValue("owner") + "/" + r.PathValue("name") }

// kindOf reads the kind of items from a path.
func kindOf(r *http.Request) (task.ItemKind, error) {
	switch r.PathValue("kind") {
	case "", "issues":
		return task.Issue, nil
	case "pulls":
		return task.Pull, nil
	default:
		return "", task.Errorf(task.NotFound, "there is no page at %s", r.URL.Path)
	}
}

// keyOf reads which item a path is about.
func keyOf(r *http.Request) (task.Key, error) {
	kind, err := kindOf(r)
	if err != nil {
		return task.Key{}, err
	}
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil {
		return task.Key{}, task.Errorf(task.NotFound, "there is no page at %s", r.URL.Path)
	}
	key := task.Key{Forge: task.Board, Repository: repositoryOf(r), Kind: kind, Number: number}
	if err := key.Validate(); err != nil {
		return task.Key{}, task.Wrap(task.NotFound, err, "there is no such item")
	}
	return key, nil
}

// findItem leads to an item of which only the number is known.
func (p *Pages) findItem(w http.ResponseWriter, r *http.Request, v visit) {
	hands, err := p.person(r.Context(), v)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	for _, kind := range []string{"issues", "pulls"} {
		r.SetPathValue("kind", kind)
		var key task.Key
		if key, err = keyOf(r); err != nil {
			break
		}
		if _, err = hands.Item(r.Context(), key); err == nil {
			http.Redirect(w, r, itemURL(key), http.StatusSeeOther)
			return
		}
		if task.CodeOf(err) != task.NotFound {
			break
		}
	}
	p.fail(w, r, v, err)
}

// itemURL is where an item of the board has its page.
func itemURL(key task.Key) string {
	return "/board/" + key.Repository + "/" + string(key.Kind) + "s/" + strconv.FormatInt(key.Number, 10)
}

func (p *Pages) showRepositories(r *http.Request, v visit, hands *board.Forge) (templ.Component, error) {
	found, err := hands.Repositories(r.Context())
	if err != nil {
		return nil, err
	}
	open, err := hands.Browse(r.Context(), forge.Listing{State: forge.Open})
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int)
	for _, item := range open {
		counts[item.Key.Repository]++
	}
	view := repositoriesView{listing: readListing(r)}
	rows := make([]repositoryRow, 0, len(found))
	for _, one := range found {
		if contains(view.search(), one.Name, one.DefaultBranch) {
			rows = append(rows, repositoryRow{one, counts[one.Name]})
		}
	}
	inOrder(view.listing, rows, repositoryColumns)
	view.rows = pageOf(&view.listing, rows)
	view.links, err = p.linksOf(r.Context(), v, view.path)
	return repositoriesPage(v, view), err
}

// repositoryRow is a repository in a list.
type repositoryRow struct {
	forge.Repository
	open int // items
}

// repositoryColumns are the columns by which repositories can be put in order.
var repositoryColumns = columns[repositoryRow]{
	"name":   byText(func(row repositoryRow) string { return row.Name }),
	"open":   func(a, b repositoryRow) int { return cmp.Compare(a.open, b.open) },
	"branch": byText(func(row repositoryRow) string { return row.DefaultBranch }),
}

// repositoriesView is a listing of repositories.
type repositoriesView struct {
	listing
	rows  []repositoryRow // of the page
	links []store.SavedLink
}

// itemsView is a listing of issues or pull requests.
type itemsView struct {
	listing    listing
	repository string
	kind       task.ItemKind
	state      forge.ItemState // "" for all
	items      []forge.Item    // of the page
	links      []store.SavedLink
	did        string // what was done with many items
	since      string // the revision that is shown
}

// itemColumns are the columns by which items can be put in order.
var itemColumns = columns[forge.Item]{
	"number": func(a, b forge.Item) int { return cmp.Compare(a.Key.Number, b.Key.Number) },
	"title":  byText(func(item forge.Item) string { return item.Title }),
	"author": byText(func(item forge.Item) string { return item.Author }),
}

// itemOrders are the orders that the list of items offers.
var itemOrders = []string{"-number", "number", "title", "author"}

// matching are the items in which a search is found.
func matching(search string, items []forge.Item) []forge.Item {
	return slices.DeleteFunc(items, func(item forge.Item) bool {
		return !contains(search, item.Title, "#"+strconv.FormatInt(item.Key.Number, 10), item.Author,
			strings.Join(item.Labels, "\n"), strings.Join(item.Assignees, "\n"))
	})
}

func (l itemsView) path(kind task.ItemKind, state forge.ItemState) string {
	return "/board/" + l.repository + "/" + string(kind) + "s?state=" + string(state)
}

func (p *Pages) showItems(r *http.Request, v visit, hands *board.Forge) (templ.Component, error) {
	kind, err := kindOf(r)
	if err != nil {
		return nil, err
	}
	view := itemsView{listing: readListing(r, stateName), repository: repositoryOf(r), kind: kind, state: forge.Open, did: did(r, v)}
	view.listing.path = "/board/" + view.repository + "/" + string(kind) + "s"
	switch state := r.URL.Query().Get("state"); state {
	case "closed", "merged":
		view.state = forge.ItemState(state)
	case "all":
		view.state = ""
	}
	if _, err := hands.Repository(r.Context(), view.repository); err != nil {
		return nil, err
	}
	if view.since, err = p.listingRevision(view.repository, kind)(r.Context()); err != nil {
		return nil, err
	}
	found, err := hands.Browse(r.Context(), forge.Listing{Repository: view.repository, Kind: kind, State: view.state})
	if err != nil {
		return nil, err
	}
	slices.Reverse(found) // the newest first
	found = matching(view.listing.search(), found)
	inOrder(view.listing, found, itemColumns)
	view.items = pageOf(&view.listing, found)
	view.links, err = p.linksOf(r.Context(), v, view.listing.path)
	return itemsPage(v, view), err
}

// newPullView is the form for a new pull request.
type newPullView struct {
	repository, base string
	heads            []string // what could be merged, the newest first
	branches         []string
}

func (p *Pages) showNewPull(r *http.Request, v visit, hands *board.Forge) (templ.Component, error) {
	if !v.operator() {
		return nil, task.Errorf(task.Forbidden, "%s has the role %s, and this takes the role %s", v.user.Login, v.user.Role, access.Operator).WithHint("%s", hintForRole)
	}
	view := newPullView{repository: repositoryOf(r)}
	repository, err := hands.Repository(r.Context(), view.repository)
	if err != nil {
		return nil, err
	}
	view.base = repository.DefaultBranch
	if view.branches, err = hands.Branches(r.Context(), view.repository); err != nil {
		return nil, err
	}
	view.heads = slices.DeleteFunc(slices.Clone(view.branches), func(name string) bool { return name == view.base })
	return newPullPage(v, view), nil
}
