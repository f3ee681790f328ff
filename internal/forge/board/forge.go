package board

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Forge is the board as one user sees it and acts on it. It implements the forge port,
// and what people do on the board besides.
type Forge struct {
	board *Board
	self  string
}

var _ forge.Forge = (*Forge)(nil)

// Name is Board.
func (f *Forge) Name() task.Forge { return task.Board }

var accessLevels = map[store.BoardAccess]forge.Access{
	store.BoardRead: forge.ReadAccess, store.BoardWrite: forge.WriteAccess, store.BoardAdmin: forge.AdminAccess,
}

func accessOf(user store.BoardUser) forge.Access {
	if !user.RemovedAt.IsZero() {
		return forge.NoAccess
	}
	return accessLevels[user.Access]
}

// require refuses the call if the user may not do it. Who may not even read does
// not learn what is there.
func (f *Forge) require(ctx context.Context, repository string, needed forge.Access) error {
	user, err := f.board.store.BoardUser(ctx, f.self)
	switch code := task.CodeOf(err); {
	case code == task.NotFound || err == nil && !user.RemovedAt.IsZero():
		return task.Errorf(task.Unauthorized, "there is no user %q on the board", f.self)
	case err != nil:
		return storeError("ask what "+f.self+" may do", err)
	}
	switch access := accessOf(user); {
	case access == forge.NoAccess:
		return noRepository(repository)
	case access < needed:
		return task.Errorf(task.Forbidden, "%s may not do this: it takes %s access", f.self, needed)
	default:
		return nil
	}
}

func noRepository(name string) error {
	return task.Errorf(task.NotFound, "there is no repository %q on the board", name)
}

// requireRepository checks that there is such a repository, and that the user has the
// access to it that a call needs.
func (f *Forge) requireRepository(ctx context.Context, repository string, needed forge.Access) error {
	if err := CheckName(repository); err != nil {
		return err
	}
	if err := f.require(ctx, repository, needed); err != nil {
		return err
	}
	_, err := f.board.store.BoardRepository(ctx, repository)
	return storeError("find the repository", err)
}

// item checks a call that is about an item, and returns the item.
func (f *Forge) item(ctx context.Context, key task.Key, needed forge.Access) (store.BoardItem, error) {
	if key.Forge != task.Board {
		return store.BoardItem{}, task.Errorf(task.Invalid, "%s is not an item on the board", key)
	}
	if err := key.Validate(); err != nil {
		return store.BoardItem{}, err
	}
	if err := f.requireRepository(ctx, key.Repository, needed); err != nil {
		return store.BoardItem{}, err
	}
	found, err := f.board.store.BoardItem(ctx, key.Repository, key.Number)
	if err == nil && found.Kind != key.Kind {
		err = task.Errorf(task.NotFound, "%s is not of that kind", key)
	}
	return found, storeError("find "+key.String(), err)
}

// pull is item for pull requests only.
func (f *Forge) pull(ctx context.Context, key task.Key, needed forge.Access) (store.BoardItem, error) {
	if key.Kind != task.Pull {
		return store.BoardItem{}, task.Errorf(task.Invalid, "%s is not a pull request", key)
	}
	return f.item(ctx, key, needed)
}

// Self returns the login as it was registered.
func (f *Forge) Self(ctx context.Context) (string, error) {
	user, err := f.board.store.BoardUser(ctx, f.self)
	if task.CodeOf(err) == task.NotFound {
		return "", task.Errorf(task.Unauthorized, "there is no user %q on the board", f.self)
	}
	return user.Login, storeError("ask who we are", err)
}

// Repositories returns all repositories.
func (f *Forge) Repositories(ctx context.Context) ([]forge.Repository, error) {
	if err := f.require(ctx, "", forge.ReadAccess); err != nil {
		if task.CodeOf(err) == task.NotFound {
			return nil, nil
		}
		return nil, err
	}
	found, err := f.board.store.ListBoardRepositories(ctx)
	if err != nil {
		return nil, storeError("list the repositories", err)
	}
	var all []forge.Repository
	for _, one := range found {
		repository, err := f.board.repository(ctx, one)
		if err != nil {
			return nil, err
		}
		all = append(all, repository)
	}
	return all, nil
}

// Repository returns one repository.
func (f *Forge) Repository(ctx context.Context, name string) (forge.Repository, error) {
	if err := f.requireRepository(ctx, name, forge.ReadAccess); err != nil {
		return forge.Repository{}, err
	}
	found, err := f.board.store.BoardRepository(ctx, name)
	if err != nil {
		return forge.Repository{}, storeError("find the repository", err)
	}
	return f.board.repository(ctx, found)
}

// Access says what a login may do.
func (f *Forge) Access(ctx context.Context, repository, login string) (forge.Access, error) {
	if err := f.requireRepository(ctx, repository, forge.ReadAccess); err != nil {
		return forge.NoAccess, err
	}
	user, err := f.board.store.BoardUser(ctx, login)
	if task.CodeOf(err) == task.NotFound {
		return forge.NoAccess, nil
	}
	return accessOf(user), storeError("ask what "+login+" may do", err)
}

// people returns a function that gives a login as it is to be shown.
func (f *Forge) people(ctx context.Context) (func(login string) string, error) {
	users, err := f.board.store.ListBoardUsers(ctx)
	if err != nil {
		return nil, storeError("list the users of the board", err)
	}
	shown := make(map[string]string, len(users))
	for _, user := range users {
		if user.RemovedAt.IsZero() {
			shown[task.FoldLogin(user.Login)] = user.Login
		}
	}
	return func(login string) string {
		if name, found := shown[task.FoldLogin(login)]; found {
			return name
		}
		return forge.Ghost
	}, nil
}

// List returns open items.
func (f *Forge) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	if err := f.requireRepository(ctx, query.Repository, forge.ReadAccess); err != nil {
		return nil, err
	}
	items, err := f.browse(ctx, forge.Listing{
		Repository: query.Repository, Kind: query.Kind, State: forge.Open, Labels: query.Labels, Assignee: query.Assignee,
	})
	return slices.DeleteFunc(items, func(item forge.Item) bool { return item.UpdatedAt.Before(query.UpdatedSince) }), err
}

// Browse returns items of one or all repositories, also those that are closed.
// Those of one repository come by number.
func (f *Forge) Browse(ctx context.Context, listing forge.Listing) ([]forge.Item, error) {
	err := f.require(ctx, listing.Repository, forge.ReadAccess)
	if err == nil && listing.Repository != "" {
		err = f.requireRepository(ctx, listing.Repository, forge.ReadAccess)
	}
	if err != nil {
		return nil, err
	}
	return f.browse(ctx, listing)
}

func (f *Forge) browse(ctx context.Context, listing forge.Listing) ([]forge.Item, error) {
	filter := store.BoardFilter{
		Repository: listing.Repository, Kind: listing.Kind, State: store.BoardState(listing.State), Assignee: listing.Assignee,
	}
	if len(listing.Labels) > 0 {
		filter.Label = listing.Labels[0]
	}
	found, err := f.board.store.ListBoardItems(ctx, filter)
	if err != nil {
		return nil, storeError("list the items of "+cmp.Or(listing.Repository, "the board"), err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return nil, err
	}
	var items []forge.Item
	for _, one := range found {
		item := f.shown(one, show)
		lacks := func(label string) bool { return !item.HasLabel(label) }
		if !slices.ContainsFunc(listing.Labels, lacks) {
			items = append(items, item)
		}
	}
	return items, nil
}

// shown is an item as the port has it, but for the commit at its head.
func (f *Forge) shown(x store.BoardItem, show func(string) string) forge.Item {
	key := task.Key{Forge: task.Board, Repository: x.Repository, Kind: x.Kind, Number: x.Number}
	item := forge.Item{
		Key: key, Title: x.Title, Body: x.Body, State: forge.ItemState(x.State), Labels: x.Labels, Author: show(x.Author),
		URL: f.board.itemURL(key), CreatedAt: x.CreatedAt, UpdatedAt: x.UpdatedAt, Head: x.Head, Base: x.Base, Draft: x.Draft,
	}
	for _, login := range x.Assignees {
		item.Assignees = append(item.Assignees, show(login))
	}
	return item
}

// Item returns one item.
func (f *Forge) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	found, err := f.item(ctx, key, forge.ReadAccess)
	if err != nil {
		return forge.Item{}, err
	}
	return f.whole(ctx, found)
}

func (f *Forge) whole(ctx context.Context, x store.BoardItem) (forge.Item, error) {
	show, err := f.people(ctx)
	if err != nil {
		return forge.Item{}, err
	}
	item := f.shown(x, show)
	if x.Kind == task.Pull {
		item.HeadCommit, err = f.board.head(ctx, x)
	}
	return item, err
}

// LinkedPulls returns the pull requests whose text refers to the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if _, err := f.item(ctx, key, forge.ReadAccess); err != nil || key.Kind == task.Pull {
		return nil, err
	}
	pulls, err := f.board.store.ListBoardItems(ctx, store.BoardFilter{Kind: task.Pull})
	if err != nil {
		return nil, storeError("list the pull requests", err)
	}
	var linked []forge.LinkedPull
	for _, pull := range pulls {
		if refersTo(pull, key) {
			at := task.Key{Forge: task.Board, Repository: pull.Repository, Kind: task.Pull, Number: pull.Number}
			linked = append(linked, forge.LinkedPull{Key: at, State: forge.ItemState(pull.State), URL: f.board.itemURL(at)})
		}
	}
	return linked, nil
}

var reference = lazyregexp.New(`(?:^|[^\w/#&])((?:[\w.-]+/[\w.-]+)?)#(\d+)\b`)

// refersTo reports whether the text of a pull request names the issue.
func refersTo(pull store.BoardItem, issue task.Key) bool {
	for _, found := range reference.FindAllStringSubmatch(" "+pull.Title+"\n"+pull.Body, -1) {
		repository := found[1]
		if repository == "" {
			repository = pull.Repository
		}
		if repository == issue.Repository && found[2] == strconv.FormatInt(issue.Number, 10) {
			return true
		}
	}
	return false
}

// LabelEvents returns when labels were put on and taken off.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) ([]forge.LabelEvent, error) {
	timeline, err := f.Timeline(ctx, key)
	if err != nil {
		return nil, err
	}
	var events []forge.LabelEvent
	for _, one := range timeline {
		if one.Kind == store.BoardLabeled || one.Kind == store.BoardUnlabeled {
			events = append(events, forge.LabelEvent{Label: one.Subject, On: one.Kind == store.BoardLabeled, Actor: one.Actor, At: one.At})
		}
	}
	return events, nil
}

// Timeline returns everything that happened to an item but comments and reviews.
func (f *Forge) Timeline(ctx context.Context, key task.Key) ([]store.BoardEvent, error) {
	if _, err := f.item(ctx, key, forge.ReadAccess); err != nil {
		return nil, err
	}
	timeline, err := f.board.store.BoardTimeline(ctx, key.Repository, key.Number)
	if err != nil {
		return nil, storeError("read the timeline of "+key.String(), err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return nil, err
	}
	for i := range timeline {
		timeline[i].Actor = show(timeline[i].Actor)
	}
	return timeline, nil
}
