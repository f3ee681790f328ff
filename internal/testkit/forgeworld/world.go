package forgeworld

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// World is everything that there is.
type World struct {
	sync.Mutex
	Forge task.Forge
	// NumbersApart says that pull requests have a row of numbers of their own.
	NumbersApart bool

	Users   []*User
	Repos   []*Repo
	Renamed map[string]*Repo // by former name, in small letters
	Tokens  map[string]*User

	folder string
	lastID int64
}

// New makes a world with nobody in it.
func New(t testing.TB, name task.Forge) *World {
	t.Helper()
	return &World{Forge: name, Renamed: map[string]*Repo{}, Tokens: map[string]*User{}, folder: t.TempDir()}
}

// User is an account.
type User struct {
	ID    int64
	Login string
	Gone  bool
}

// Repo is a repository. Labels has the colour by name.
type Repo struct {
	ID     int64
	Name   string
	Access map[*User]forge.Access
	Labels []string
	// GroupLabels are labels of a group above the repository.
	GroupLabels []string
	Hooks       []*Hook
	Items       []*Item
	Statuses    []*Status
	Jobs        []*Job

	world  *World
	folder string
}

// Hook is a webhook.
type Hook struct {
	ID       int64
	URL      string
	Secret   string
	Events   []string
	Insecure bool
	LastAt   time.Time // of the last delivery; zero if there was none
	// LastStatus is the status of the answer, or 0 if there was no answer.
	LastStatus int
}

// Hook finds a webhook by its id.
func (r *Repo) Hook(id string) *Hook {
	for _, hook := range r.Hooks {
		if strconv.FormatInt(hook.ID, 10) == id {
			return hook
		}
	}
	return nil
}

// AddHook adds a webhook.
func (r *Repo) AddHook(hook Hook) *Hook {
	hook.ID = r.world.NextID()
	r.Hooks = append(r.Hooks, &hook)
	return &hook
}

// RemoveHook removes a webhook.
func (r *Repo) RemoveHook(hook *Hook) {
	r.Hooks = slices.DeleteFunc(r.Hooks, func(other *Hook) bool { return other == hook })
}

// Deliver sends something to a webhook, and notes what came of it. The headers are those of the
// forge.
func (h *Hook) Deliver(t testing.TB, header map[string]string, body string) {
	t.Helper()
	h.LastAt, h.LastStatus = Now(), 0
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return // nobody is there
	}
	_ = answer.Body.Close()
	h.LastStatus = answer.StatusCode
}

// HasLabel reports whether the repository or a group above it has a label.
func (r *Repo) HasLabel(name string) bool {
	same := func(has string) bool { return strings.EqualFold(has, name) }
	return slices.ContainsFunc(r.Labels, same) || slices.ContainsFunc(r.GroupLabels, same)
}

// RemoveLabel removes a label from the repository, and says whether it was there.
func (r *Repo) RemoveLabel(name string) bool {
	before := len(r.Labels)
	r.Labels = slices.DeleteFunc(r.Labels, func(has string) bool { return strings.EqualFold(has, name) })
	return len(r.Labels) < before
}

// Status is a status of a commit.
type Status struct {
	ID int64
	forge.CommitStatus
}

// Job is a job of continuous integration.
type Job struct {
	Status
	Log string
}

// Item is an issue or pull request.
type Item struct {
	ID        int64
	Repo      *Repo
	Kind      task.ItemKind
	Number    int64
	Title     string
	Body      string
	Author    *User
	State     forge.ItemState
	Labels    []string
	Assignees []*User
	Comments  []*Comment
	Events    []*Event
	Reactions []*Reaction
	WaitsFor  []*Item // what has to be closed before
	CreatedAt time.Time
	UpdatedAt time.Time

	Head, Base string
	Fork       bool
	Draft      bool
	MergedAt   time.Time
	Reviews    []*Review
	Threads    []*Thread
	headAtEnd  string // the head when it was merged or closed
	baseAtEnd  string
}

// Comment is a comment, on an item or in a thread.
type Comment struct {
	ID        int64
	Author    *User
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time
	Reactions []*Reaction
}

// Event is what the forge notes by itself.
type Event struct {
	ID     int64
	Kind   string // labeled, unlabeled, assigned, unassigned, cross-referenced, review_dismissed
	Actor  *User
	Label  string
	User   *User // who was assigned or unassigned
	Source *Item
	Review *Review // that was dismissed
	At     time.Time
}

// Reaction is someone's reaction.
type Reaction struct {
	ID       int64
	User     *User
	Reaction forge.Reaction
	At       time.Time
}

// Review is a submitted review.
type Review struct {
	ID        int64
	Author    *User
	Verdict   forge.Verdict
	Body      string
	Commit    string
	Dismissed bool
	At        time.Time
}

// Thread is a conversation on a line.
type Thread struct {
	ID       int64
	Anchor   forge.Anchor
	Commit   string
	Review   int64
	Resolved bool
	Comments []*Comment
}

// NextID returns a new id, which is larger than all before.
func (w *World) NextID() int64 {
	w.lastID++
	return 1000 + w.lastID
}

// Now is the time. Forges keep it to the millisecond at best.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// User finds an account by its login.
func (w *World) User(login string) *User {
	for _, user := range w.Users {
		if strings.EqualFold(user.Login, login) && !user.Gone {
			return user
		}
	}
	return nil
}

// NewUser makes an account with a login that nobody has.
func (w *World) NewUser(prefix string) *User {
	id := w.NextID()
	user := &User{ID: id, Login: prefix + strconv.FormatInt(id, 10)}
	w.Users = append(w.Users, user)
	return user
}

// Repo finds a repository by its present name.
func (w *World) Repo(name string) *Repo {
	for _, repo := range w.Repos {
		if strings.EqualFold(repo.Name, name) {
			return repo
		}
	}
	return nil
}

// Seen finds a repository that a user may know of.
func (w *World) Seen(name string, user *User) *Repo {
	if repo := w.Repo(name); repo != nil && repo.Access[user] != forge.NoAccess {
		return repo
	}
	return nil
}

// Item finds an item.
func (r *Repo) Item(kind task.ItemKind, number int64) *Item {
	for _, item := range r.Items {
		if item.Kind == kind && item.Number == number {
			return item
		}
	}
	return nil
}

var mention = regexp.MustCompile(`#(\d+)`)

// NewItem makes an item. What its text mentions is told so.
func (r *Repo) NewItem(kind task.ItemKind, author *User, title, body string) *Item {
	item := &Item{
		ID: r.world.NextID(), Repo: r, Kind: kind, Number: 1, Title: title, Body: body, Author: author,
		State: forge.Open, CreatedAt: Now(), UpdatedAt: Now(),
	}
	for _, other := range r.Items {
		if (other.Kind == kind || !r.world.NumbersApart) && other.Number >= item.Number {
			item.Number = other.Number + 1
		}
	}
	r.Items = append(r.Items, item)
	for _, match := range mention.FindAllStringSubmatch(body, -1) {
		number, _ := strconv.ParseInt(match[1], 10, 64)
		if target := r.Item(task.Issue, number); target != nil && !target.mentionedBy(item) {
			target.note(&Event{Kind: "cross-referenced", Actor: author, Source: item})
		}
	}
	return item
}

func (i *Item) mentionedBy(source *Item) bool {
	return slices.ContainsFunc(i.Events, func(e *Event) bool { return e.Source == source })
}

func (i *Item) note(event *Event) {
	event.ID, event.At = i.Repo.world.NextID(), Now()
	i.Events = append(i.Events, event)
	i.UpdatedAt = Now()
}

// Key is the item's key.
func (i *Item) Key() task.Key {
	return task.Key{Forge: i.Repo.world.Forge, Repository: i.Repo.Name, Kind: i.Kind, Number: i.Number}
}

// NewComment makes a comment that belongs to nothing yet.
func (w *World) NewComment(author *User, body string) *Comment {
	return &Comment{ID: w.NextID(), Author: author, Body: body, CreatedAt: Now(), UpdatedAt: Now()}
}

// Comment adds a comment to the conversation.
func (i *Item) Comment(author *User, body string) *Comment {
	comment := i.Repo.world.NewComment(author, body)
	i.Comments = append(i.Comments, comment)
	i.UpdatedAt = Now()
	return comment
}

// Edit changes a comment.
func (c *Comment) Edit(body string) { c.Body, c.UpdatedAt = body, Now() }

// FindComment finds a comment of the conversation in a repository.
func (r *Repo) FindComment(id int64) (*Item, *Comment) {
	for _, item := range r.Items {
		for _, comment := range item.Comments {
			if comment.ID == id {
				return item, comment
			}
		}
	}
	return nil, nil
}

// AddLabel puts a label on the item and creates it if need be.
func (i *Item) AddLabel(actor *User, name string) {
	if !i.Repo.HasLabel(name) {
		i.Repo.Labels = append(i.Repo.Labels, name)
	}
	if !slices.Contains(i.Labels, name) {
		i.Labels = append(i.Labels, name)
		i.note(&Event{Kind: "labeled", Actor: actor, Label: name})
	}
}

// RemoveLabel takes a label off and says whether it was there.
func (i *Item) RemoveLabel(actor *User, name string) bool {
	at := slices.Index(i.Labels, name)
	if at < 0 {
		return false
	}
	i.Labels = slices.Delete(slices.Clone(i.Labels), at, at+1)
	i.note(&Event{Kind: "unlabeled", Actor: actor, Label: name})
	return true
}

// Assign sets the assignees.
func (i *Item) Assign(actor *User, users ...*User) {
	for _, user := range users {
		if !slices.Contains(i.Assignees, user) {
			i.note(&Event{Kind: "assigned", Actor: actor, User: user})
		}
	}
	for _, user := range i.Assignees {
		if !slices.Contains(users, user) {
			i.note(&Event{Kind: "unassigned", Actor: actor, User: user})
		}
	}
	i.Assignees = slices.Clone(users)
}

// End closes or merges the item.
func (i *Item) End(t testing.TB, state forge.ItemState) {
	t.Helper()
	if i.Kind == task.Pull {
		i.headAtEnd, i.baseAtEnd = i.HeadCommit(t), i.BaseCommit(t)
	}
	i.State, i.UpdatedAt = state, Now()
	if state == forge.Merged {
		i.MergedAt = Now()
	}
}

// React adds a reaction, once.
func (w *World) React(reactions *[]*Reaction, user *User, kind forge.Reaction) (reaction *Reaction, added bool) {
	for _, has := range *reactions {
		if has.User == user && has.Reaction == kind {
			return has, false
		}
	}
	reaction = &Reaction{ID: w.NextID(), User: user, Reaction: kind, At: Now()}
	*reactions = append(*reactions, reaction)
	return reaction, true
}

// Submit adds a review and its comments on lines.
func (i *Item) Submit(author *User, verdict forge.Verdict, body, commit string, comments []LineComment) *Review {
	world := i.Repo.world
	review := &Review{ID: world.NextID(), Author: author, Verdict: verdict, Body: body, Commit: commit, At: Now()}
	i.Reviews = append(i.Reviews, review)
	for _, comment := range comments {
		i.Threads = append(i.Threads, &Thread{
			ID: world.NextID(), Anchor: comment.Anchor, Commit: commit, Review: review.ID,
			Comments: []*Comment{world.NewComment(author, comment.Body)},
		})
	}
	i.UpdatedAt = Now()
	return review
}

// LineComment is a comment on a line that is to be made.
type LineComment struct {
	Anchor forge.Anchor
	Body   string
}

// Shows reports whether the item's diff has the line.
func (i *Item) Shows(t testing.TB, anchor forge.Anchor) bool {
	t.Helper()
	anchors, err := forge.Diff{Patch: i.Patch(t)}.Anchors()
	return err == nil && anchors[anchor]
}

func (w *World) must(t testing.TB, login string) *User {
	t.Helper()
	user := w.User(login)
	if user == nil {
		t.Fatalf("there is no account %q", login)
	}
	return user
}

func (w *World) item(t testing.TB, key task.Key) *Item {
	t.Helper()
	if repo := w.Repo(key.Repository); repo != nil {
		if item := repo.Item(key.Kind, key.Number); item != nil {
			return item
		}
	}
	t.Fatalf("there is no item %s", key)
	return nil
}

// Name makes a repository's new name.
func (w *World) newName(owner string) string { return fmt.Sprintf("%s/repo-%d", owner, w.NextID()) }

func lower(name string) string { return strings.ToLower(name) }
