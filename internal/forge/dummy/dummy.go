package dummy

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fault is how a call misbehaves.
type Fault int

// The faults.
const (
	None     Fault = iota
	Refuse         // fails for now, nothing was done
	Lose           // is done, but the answer is lost
	Hang           // is not done; ends with its context
	Panic          // is not done
	Forbid         // fails for good, nothing was done
	Conflict       // conflicts with something, nothing was done
)

// Call is a call that was made.
type Call struct {
	Method string
	Key    task.Key // of the item, if it is about one
	Detail string   // a label, login, text…
}

// Forge is a forge in memory. Use [New].
type Forge struct {
	name task.Forge
	self string
	now  func() time.Time

	mu           sync.Mutex
	fault        func(Call) Fault
	calls        []Call
	lastID       int
	repositories map[string]*repository
	items        map[task.Key]*item
}

type repository struct {
	forge.Repository
	branches map[string]string // to commits
	access   map[string]forge.Access
	checks   map[string]map[string]forge.Check // by commit and name
	logs     map[string]string                 // of checks, by id
	remote   forge.Remote
	last     int64
	setup
}

type item struct {
	forge.Item
	waitsFor  []task.Key
	comments  []task.Comment
	labeled   []forge.LabelEvent
	reviews   []forge.Review
	threads   []forge.ReviewThread
	reactions map[string][]forge.ReactionBy // by comment
	diff      forge.Diff
}

// New makes an empty forge that we use under the login self.
func New(name task.Forge, self string) *Forge {
	return &Forge{name: name, self: self, now: time.Now, repositories: map[string]*repository{}, items: map[task.Key]*item{}}
}

// SetClock gives the forge another time than the real one. It is called before anything
// else.
func (f *Forge) SetClock(now func() time.Time) { f.now = now }

var _ forge.Forge = (*Forge)(nil)

// SetFaults sets the function that chooses the fault of each call.
func (f *Forge) SetFaults(fault func(Call) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Calls returns the calls that reached the forge, in order.
func (f *Forge) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count returns how many calls of a method reached the forge.
func (f *Forge) Count(method string) int {
	count := 0
	for _, call := range f.Calls() {
		if call.Method == method {
			count++
		}
	}
	return count
}

// AddRepository makes a repository; git finds it at the remote.
func (f *Forge) AddRepository(name string, remote forge.Remote) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[name] = &repository{
		Repository: forge.Repository{Name: name, DefaultBranch: "main", URL: "https://forge.invalid/" + name},
		branches:   map[string]string{}, access: map[string]forge.Access{},
		checks: map[string]map[string]forge.Check{}, logs: map[string]string{}, remote: remote,
		setup: setup{secrets: map[string]string{}, delivered: map[string]forge.HookDelivery{}, rights: map[forge.Right]forge.RightCheck{}},
	}
}

// AddItem makes an open item by an author.
func (f *Forge) AddItem(repository string, kind task.ItemKind, author, title string) task.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(repository, kind, author, title).Key
}

func (f *Forge) add(repository string, kind task.ItemKind, author, title string) *item {
	r := f.repositories[repository]
	r.last++
	key := task.Key{Forge: f.name, Repository: repository, Kind: kind, Number: r.last}
	now := f.moment()
	made := &item{
		Item: forge.Item{
			Key: key, Title: title, State: forge.Open, Author: author, CreatedAt: now, UpdatedAt: now,
			URL: r.URL + "/" + string(kind) + "/" + strconv.FormatInt(r.last, 10),
		},
		reactions: map[string][]forge.ReactionBy{},
	}
	f.items[key] = made
	return made
}

// AddComment writes a comment as someone else.
func (f *Forge) AddComment(key task.Key, author, body string) task.Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.comment(f.items[key], author, body)
}

// Close closes an item.
func (f *Forge) Close(key task.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[key].State = forge.Closed
	f.items[key].UpdatedAt = f.moment()
}

// Advance lets time pass on the forge.
func (f *Forge) Advance(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.now
	f.now = func() time.Time { return before().Add(by) }
}

// SetBranch puts a branch at a commit.
func (f *Forge) SetBranch(repository, name, commit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[repository].branches[name] = commit
}

// SetAccess says what a login may do.
func (f *Forge) SetAccess(repository, login string, access forge.Access) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[repository].access[login] = access
}

// SetLacks says what we may not do in a repository.
func (f *Forge) SetLacks(repository string, lacks forge.Rights) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repositories[repository].Lacks = lacks
}

// SetDiff says what a pull request changes.
func (f *Forge) SetDiff(key task.Key, diff forge.Diff) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[key].diff = diff
}

// moment is the time as forges keep it: to the second.
func (f *Forge) moment() time.Time { return f.now().UTC().Truncate(time.Second) }

func (f *Forge) id() string {
	f.lastID++
	return strconv.Itoa(f.lastID)
}

func (f *Forge) comment(on *item, author, body string) task.Comment {
	now := f.moment()
	made := task.Comment{ID: f.id(), Kind: task.ItemComment, Author: author, Body: forge.Clean(body), CreatedAt: now, UpdatedAt: now}
	on.comments = append(on.comments, made)
	on.UpdatedAt = now
	return made
}

var errLost = errors.New("the answer was lost")

// do makes a call: records it, misbehaves if asked to, and holds the lock while
// it is done.
func (f *Forge) do(ctx context.Context, call Call, body func() error) error {
	if err := ctx.Err(); err != nil {
		return unavailable(call, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	fault := None
	if f.fault != nil {
		fault = f.fault(call)
	}
	switch fault {
	case None:
		return body()
	case Refuse:
		return unavailable(call, errors.New("not now"))
	case Forbid:
		return &forge.Error{Err: task.Errorf(task.Forbidden, "%s is not allowed here", call.Method), Status: 403}
	case Conflict:
		return &forge.Error{Err: task.Errorf(task.Conflict, "%s is in conflict", call.Method), Status: 409}
	case Hang:
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return unavailable(call, ctx.Err())
	case Lose:
		if err := body(); err != nil {
			return err
		}
		return unavailable(call, errLost)
	default:
		panic("the forge panics in " + call.Method)
	}
}

func unavailable(call Call, err error) error {
	return task.Wrap(task.Unavailable, err, "cannot do "+call.Method)
}

func notFound(what string) error {
	return &forge.Error{Err: task.Errorf(task.NotFound, "there is no %s", what), Status: 404}
}

func invalid(format string, args ...any) error {
	return &forge.Error{Err: task.Errorf(task.Invalid, format, args...), Status: 422}
}

func (f *Forge) onItem(ctx context.Context, method string, key task.Key, detail string, body func(*item) error) error {
	if key.Forge != f.name {
		return invalid("%s is of another forge", key)
	}
	return f.do(ctx, Call{method, key, detail}, func() error {
		found, ok := f.items[key]
		if !ok {
			return notFound("item " + key.String())
		}
		return body(found)
	})
}

func (f *Forge) onRepository(ctx context.Context, method, name, detail string, body func(*repository) error) error {
	return f.do(ctx, Call{Method: method, Detail: detail}, func() error {
		found, ok := f.repositories[name]
		if !ok {
			return notFound("repository " + name)
		}
		return body(found)
	})
}

// Change changes an item as people do.
func (f *Forge) Change(key task.Key, change func(*forge.Item)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.items[key].Item)
	f.items[key].UpdatedAt = f.moment()
}

// Block makes an item wait for others.
func (f *Forge) Block(key task.Key, by ...task.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[key].waitsFor = by
	f.items[key].UpdatedAt = f.moment()
}

// Dependencies implements forge.Dependent.
func (f *Forge) Dependencies(ctx context.Context, key task.Key) (keys []task.Key, err error) {
	err = f.onItem(ctx, "Dependencies", key, "", func(on *item) error {
		keys = slices.Clone(on.waitsFor)
		return nil
	})
	return keys, err
}
